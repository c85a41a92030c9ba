"""The help of a verb: plain text that fits 80 columns, with its options in groups."""

import re
from typing import Any

from typer.core import TyperCommand, TyperGroup

_TYPES = {"<str>": "TEXT", "<int>": "N", "<float>": "X", "<path>": "PATH", "<datetime>": "DATE"}


class Verb(TyperCommand):
    """A verb whose options are listed under the heading of their group (`rich_help_panel`)."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The options and arguments, in one line."""
        return [piece.strip("{}").replace("}...", "...") for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments, options, and the options of each group."""
        groups: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for one in self.get_params(ctx):
            record = one.get_help_record(ctx)
            if record is not None:
                usual = "Arguments" if one.param_type_name == "argument" else "Options"
                group = getattr(one, "rich_help_panel", None) or usual
                name, text = _readable(*record)
                groups.setdefault(str(group), []).append((name.split(" ")[0] if usual == "Arguments" else name, text))
        for title, records in groups.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records, col_max=28)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """The end of the help, line by line as it is."""
        if self.epilog:
            formatter.write(f"\n{self.epilog}\n")


class Verbs(TyperGroup):
    """Verbs under a common word, each with the whole first sentence of its help."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The verbs, and what they do."""
        records = []
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            first = re.match(r".*?[.?](?=\s|$)", (command.help if command else None) or "", re.DOTALL)
            records.append((name, first[0] if first else ""))
        with formatter.section("Commands"):
            formatter.write_dl(records)


def _readable(name: str, text: str) -> tuple[str, str]:
    """An option without the types of Python, and its default without double brackets."""
    name = re.sub(r"<(\w+) range>", r"<\1>", name)
    name = name.replace("<%Y-%m-%d>", "DATE").replace("<list[str]>", "TEXT")
    for kind, shown in _TYPES.items():
        name = name.replace(kind, shown)
    return name, re.sub(r"\[default: \((.*)\)([];])", r"[default: \1\2", text)
