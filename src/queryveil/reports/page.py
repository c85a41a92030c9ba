"""A page in one file: nothing is fetched, nothing runs but what is in it, and every text from a log is inert."""

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from queryveil.errors import require
from queryveil.text.show import printable

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


class Drawing(NamedTuple):
    """One of the drawings of a figure."""

    title: str
    """May be empty."""
    chart: dict[str, Any]
    """Altair's chart as plain values."""
    note: str = ""
    """What it shows, if the caption of the figure does not say so."""
    points: tuple[str, ...] = ()
    """The names of what is numbered in it."""


class Field(NamedTuple):
    """One field of a heat map."""

    text: str = ""
    """The number that stands in it; empty where there is none."""
    level: float | None = None
    """How strong its colour is, from 0 to 1; None, and hatched, where there is no number."""
    note: str = ""
    """All about it, or why there is no number."""
    strong: bool = False
    """Whether it is marked as one to look at."""


class Column(NamedTuple):
    """One column of a heat map."""

    name: str
    """As short as can be."""
    note: str
    """What it is."""
    group: str
    """Those of a group stand together, under its name."""


@dataclass(frozen=True)
class Heat:
    """Numbers in coloured fields: a stronger colour is a larger number.

    Attributes:
        of: What a row is.
        columns: Its columns, in the order of their groups.
        rows: The name of each row, and its fields.
        tone: The colour of its fields, by the name of a style.
    """

    of: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, tuple[Field, ...]], ...]
    tone: Literal["main", "alarm"] = "main"

    @property
    def groups(self) -> list[tuple[str, int]]:
        """The groups of columns, and how many columns each has."""
        return [(name, len(list(some))) for name, some in groupby(self.columns, key=lambda one: one.group)]


@dataclass(frozen=True)
class Figure:
    """Drawings, or a heat map, with what they show in words and in numbers.

    Attributes:
        name: Its anchor in the page.
        caption: The main finding in a sentence or two, which also stands for the drawings where they are not seen.
        drawings: What is drawn.
        keys: What marks mean: the kind of mark and its meaning.
        head: The columns of the data table.
        rows: Its rows.
        texts: How many of its first columns are texts; the others are numbers.
        tail: Whether the last column is a text, too.
        wide: Whether it is scrolled rather than squeezed on a narrow screen.
        heat: What is shown as a heat map instead of drawings.
    """

    name: str
    caption: str
    drawings: tuple[Drawing, ...]
    keys: tuple[tuple[str, str], ...]
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    texts: int = 1
    tail: bool = False
    wide: bool = False
    heat: Heat | None = None


def check_packages() -> None:
    """Refuse to make a report without the packages that it needs: those that draw, and those that mask examples."""
    require("A report", "altair", "jinja2", "markupsafe", "vl_convert", "phonenumbers", "stdnum")


def templates(*packages: str) -> "Environment":
    """The templates of some packages and of this one, in which every text is escaped."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package) for package in (*packages, "queryveil.reports")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(code=_code, shown=_shown, step=_step)
    return environment


def render(template: str, figures: Sequence[Figure], **given: object) -> str:
    """A page from a template of this package."""
    from markupsafe import Markup

    environment = templates()
    style = source(environment, "style.css")
    script = "\n".join([chart_library(), source(environment, "page.js"), source(environment, "tables.js")])
    charts = {f"{figure.name}-{i}": drawing.chart for figure in figures for i, drawing in enumerate(figure.drawings)}
    policy = {
        "default-src": "'none'",
        "script-src": _hash(script),
        "style-src": _hash(style),
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return environment.get_template(template).render(
        style=Markup(style),  # noqa: S704  # files of this package
        script=Markup(script),  # noqa: S704
        charts=inert_json(charts),
        policy="; ".join(f"{name} {value}" for name, value in policy.items()),
        figures={figure.name: figure for figure in figures},
        **given,
    )


def inert_json(value: Mapping[str, Any]) -> "Markup":
    """JSON that nothing in it can end the script element around it, and that every browser reads."""
    from markupsafe import Markup

    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704  # no character is left that means something in HTML


def source(environment: "Environment", name: str) -> str:
    """The text of a file among the templates."""
    assert environment.loader is not None  # noqa: S101
    return environment.loader.get_source(environment, name)[0]


@cache
def chart_library() -> str:
    """The JavaScript that draws, once for all charts of a page."""
    import vl_convert

    library: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    if re.search("</script|<!--", library, re.IGNORECASE):
        raise AssertionError("The library would end the script element around it.")
    return library


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _shown(text: object) -> str:
    """Text without what steers the direction of writing or breaks a document."""
    return _whole("\n".join(printable(line) for line in str(text).split("\n")))


def _step(level: float) -> int:
    """The number of the style of a field: the policy of the page allows no colours but those of its style."""
    return round(10 * min(max(level, 0.0), 1.0))


def _whole(text: str) -> str:
    """Text in which a number stays with its unit."""
    return re.sub(r"(?<=\d) %", "\N{NO-BREAK SPACE}%", text)


def _code(sentence: object) -> "Markup":
    """A sentence of queryveil's own, in which `this` is code."""
    from markupsafe import Markup, escape

    parts = re.split(r"`([^`]*)`", _shown(sentence))
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if i % 2 else escape(part) for i, part in enumerate(parts)
    )
