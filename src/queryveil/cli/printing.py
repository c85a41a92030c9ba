"""What verbs print: tables, JSON and texts of a log."""

from collections.abc import Sequence
from textwrap import fill
from typing import Any


def tables(*parts: Any) -> None:
    """Print tables and sentences to stdout."""
    from rich.console import Console

    console = Console()
    for part in parts:
        for line in part if isinstance(part, tuple) else (part,):
            console.print(line, markup=False, highlight=False, soft_wrap=isinstance(line, str))


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], *, texts: int = 1) -> tuple[str, Any]:
    """A title, and a table whose first columns are texts and whose others are numbers."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    result = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_header=any(head))
    for i, name in enumerate(head):
        result.add_column(Text(name), justify="right" if i >= texts else "left")
    for row in rows:
        result.add_row(*(Text(cell) for cell in row))
    return title, result


def json_text(value: Any) -> str:
    """What a verb prints for a program: standard JSON, with null for numbers that are infinite or undefined."""
    from queryveil.text.show import json_text as made

    return made(value)


def printable(text: str) -> str:
    """Text of a log, or the name of a file, without control characters for the terminal, in any direction."""
    from queryveil.text.show import isolated

    return isolated(text)


def listed(groups: dict[str, dict[str, str]]) -> str:
    """Names with what they stand for, one a line under the title of their group, for a terminal of 80 columns."""
    width = max(len(name) for summaries in groups.values() for name in summaries) + 2
    return "\n\n".join(
        "\n".join(
            [
                f"{title}:",
                *(fill(f"{name:{width}}{text}", 76, subsequent_indent=" " * width) for name, text in summaries.items()),
            ]
        )
        for title, summaries in groups.items()
    )
