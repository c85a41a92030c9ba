"""Options that several verbs share, and the way they open a log."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from queryveil.errors import QueryveilError

if TYPE_CHECKING:
    from queryveil.log import LocalLog

Logs = Annotated[
    list[str],
    typer.Argument(metavar="LOG", help="The log: a file, several, a folder, or a quoted pattern.", show_default=False),
]
Original = Annotated[
    list[str],
    typer.Option("--original", metavar="LOG", help="The original log; repeat for several files.", show_default=False),
]
InputFormat = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="Format of the log: aol, excite, sogou, ubi, parquet, jsonl, tsv or csv.",
        show_default="told by content",
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="NAME=COLUMN,...",
        help="Which column is which, e.g. user=cookie,query=q,time=ts.",
        show_default="told by name",
    ),
]
Encoding = Annotated[
    str | None, typer.Option("--encoding", help="Encoding of text files.", show_default="utf-8; SogouQ: gb18030")
]
MaxBadRows = Annotated[
    float, typer.Option("--max-bad-rows", min=0, max=1, help="Share of bad rows past which reading stops.")
]
Threads = Annotated[
    int | None, typer.Option("--threads", min=1, help="Threads to use; the result is the same.", show_default="all")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]


def read(
    paths: Sequence[str],
    format: str | None,
    columns: str | None,
    encoding: str | None,
    max_bad_rows: float,
    threads: int | None,
) -> "LocalLog":
    """Read a log with a progress line, and tell of rows that were left out."""
    from queryveil.ingest import read_log

    with progress("Reading") as update:
        log = read_log(
            list(paths),
            format=format,
            columns=_mapping(columns),
            encoding=encoding,
            max_bad_rows=max_bad_rows,
            threads=threads,
            progress=update,
        )
    for kind, count in log.facts.bad_rows.count.items():
        rows = "1 row" if count == 1 else f"{count:,} rows"
        typer.echo(f"queryveil: left out {rows} with {kind}, the first at {log.facts.bad_rows.first[kind]}.", err=True)
    return log


def _mapping(columns: str | None) -> dict[str, str]:
    pairs = [pair.split("=", 1) for pair in columns.split(",")] if columns else []
    if any(len(pair) != 2 or not all(part.strip() for part in pair) for pair in pairs):
        raise QueryveilError(
            f"--columns takes NAME=COLUMN pairs, such as user=cookie,query=q. Got '{columns}' instead."
        )
    mapping = {name.strip(): column.strip() for name, column in pairs}
    if len(mapping) < len(pairs):
        raise QueryveilError(f"--columns names something twice in '{columns}'; say each once.")
    return mapping


@contextmanager
def progress(what: str) -> Iterator[Any]:
    """A line on the terminal with the rows done so far; nothing where stderr is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[rows]}"))
    with Progress(
        *columns, TimeElapsedColumn(), console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(what, total=None, rows="")
        yield lambda rows: bar.update(task, rows=f"{rows:,} rows")


@contextmanager
def working(what: str) -> Iterator[None]:
    """A spinner on the terminal while something takes its time."""
    with progress(what):
        yield


def tables(*parts: Any) -> None:
    """Print tables and sentences to stdout."""
    from rich.console import Console

    console = Console()
    for part in parts:
        for line in part if isinstance(part, tuple) else (part,):
            console.print(line, markup=False, highlight=False, soft_wrap=isinstance(line, str))


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[str, Any]:
    """A title, and a table whose first column is text and whose others are numbers."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    result = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_header=any(head))
    for i, name in enumerate(head):
        result.add_column(name, justify="right" if i else "left")
    for row in rows:
        result.add_row(*(Text(cell) for cell in row))
    return title, result


def printable(text: str) -> str:
    """Text of a log without what could steer a terminal."""
    from queryveil.text.show import printable as shown

    return shown(text)
