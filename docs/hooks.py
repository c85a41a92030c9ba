"""Fill the pages with what the code declares, so that the two cannot differ.

| marker                       | becomes                                            |
|------------------------------|----------------------------------------------------|
| `<!-- parameters: METHOD -->` | the table of the parameters of a method or step    |
| `<!-- limits: METHOD -->`     | what the method does not promise                   |
| `<!-- recipe: NAME -->`       | the text of a shipped recipe                       |
| `<!-- policy: default -->`    | the text of the shipped policy                     |
| `<!-- options: VERB -->`      | the table of a verb's arguments and options        |
| `<!-- signature: NAME -->`    | how a public function, class or method is called   |
| `<!-- notebook: NAME -->`     | a notebook of `examples/`, with what it shows      |

A marker that names something unknown stops the build.
"""

import base64
import inspect
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import typer

import queryveil
from queryveil import cli
from queryveil.assess import policy as policies
from queryveil.claims.limits import LIMITS
from queryveil.cli.messages import PANEL
from queryveil.methods import STEPS, parameters_of
from queryveil.methods.recipe import shipped

_EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
_NARROW = 40
"""Characters of code in one line on a phone."""
_MARKER = re.compile(r"<!-- (\w+): ([\w.-]+) -->")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace the markers of a page; MkDocs calls this for each."""
    return _MARKER.sub(lambda match: _FILL[match[1]](match[2]) if match[1] in _FILL else match[0], markdown)


def parameters(method: str) -> str:
    """The parameters of a method, as it declares them."""
    return _table(
        ("parameter", "option", "value", "default", "meaning"),
        [
            (
                f"`{parameter.name}`",
                f"`-{parameter.name}`, `--{parameter.name}`"
                if len(parameter.name) == 1
                else f"`--{parameter.name.replace('_', '-')}`",
                parameter.expected,
                _default(parameter.default),
                parameter.help,
            )
            for parameter in parameters_of(STEPS[method])
        ],
    )


def limits(method: str) -> str:
    """What a method does not promise, as every report of it says."""
    return "\n".join(f"- {limit}" for limit in LIMITS[method])


def recipe(name: str) -> str:
    """A recipe that ships with queryveil."""
    return f"```toml\n{shipped()[name].strip()}\n```"


def policy(name: str) -> str:
    """The policy that ships with queryveil."""
    if name != policies.DEFAULT:
        raise KeyError(name)
    return f"```toml\n{policies.shipped().strip()}\n```"


def options(verb: str) -> str:
    """The arguments and options of a verb, as its help lists them."""
    commands: dict[str, Any] = typer.main.get_command(cli.build([])).commands  # type: ignore[attr-defined]
    below = getattr(commands[verb], "commands", None)
    if below is None:
        return _options(commands[verb])
    return "\n".join(f"`queryveil {verb} {name}`:\n\n{_options(command)}" for name, command in below.items())


def _options(command: Any) -> str:
    rows = []
    for one in command.params:
        if "--help" in one.opts or getattr(one, "rich_help_panel", None) == PANEL:  # described once, for all
            continue
        names = [one.metavar or one.name.upper()] if one.param_type_name == "argument" else sorted(one.opts, key=len)
        default = one.show_default if isinstance(one.show_default, str) else _default(one.default)
        rows.append((", ".join(f"`{name}`" for name in names), "required" if one.required else default, one.help))
    return _table(("option", "default", "meaning"), rows)


def signature(name: str) -> str:
    """How something public is called."""
    first, *rest = name.split(".")
    found = getattr(queryveil, first)
    for part in rest:
        found = getattr(found, part)
    # A list indented below the name, where one line would be wider than a phone.
    parts = _signature(found)
    whole = f"{name}({', '.join(parts)})"
    if len(whole) > _NARROW:
        whole = "\n".join([f"{name}(", *(f"    {part}," for part in parts), ")"])
    return f'<div class="signature" markdown>\n\n```python\n{whole}\n```\n\n</div>'


def _signature(found: Any) -> list[str]:
    given = inspect.signature(found)
    ours = [parameter for parameter in given.parameters.values() if parameter.name not in ("self", "cls")]
    parts, starred = [], False
    for parameter in ours:
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        default = "" if parameter.default is parameter.empty else f"={parameter.default!r}"
        parts.append(parameter.name + default)
    return parts


def notebook(name: str) -> str:
    """A notebook as a page: its text, its code, and what the code showed when `docs/examples.py` ran it."""
    parts = []
    for cell in json.loads((_EXAMPLES / f"{name}.ipynb").read_text("utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        parts += [_output(output) for output in cell.get("outputs", ())]
    heading, _, rest = "\n\n".join(parts).partition("\n\n")
    return f"{heading}\n\n*This page is the notebook `examples/{name}.ipynb`, run.*\n\n{rest}"


def _output(output: dict[str, Any]) -> str:
    data = output.get("data", {"text/plain": output.get("text", "")})
    kind = next(kind for kind in ("image/svg+xml", "text/html", "text/plain") if kind in data)
    text = "".join(data[kind]).strip()
    if kind == "image/svg+xml":
        picture = base64.b64encode(text.encode()).decode()
        return f'<div class="shown"><img alt="chart" src="data:image/svg+xml;base64,{picture}"></div>'
    return f'<div class="shown">{text}</div>' if kind == "text/html" else f"```text\n{text}\n```"


def _default(value: Any) -> str:
    if value is None or value is False:
        return "off"
    if isinstance(value, tuple | list):
        return ", ".join(f"`{item}`" for item in value)
    return f"`{value}`"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *([cell.replace("|", r"\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


_FILL: dict[str, Callable[[str], str]] = {
    "parameters": parameters,
    "limits": limits,
    "recipe": recipe,
    "policy": policy,
    "options": options,
    "signature": signature,
    "notebook": notebook,
}
