"""Options that several verbs share, and the way they open a log."""

import inspect
import json
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from queryveil.errors import QueryveilError, did_you_mean
from queryveil.formats import FORMATS

if TYPE_CHECKING:
    import pyarrow as pa

    from queryveil.log import LocalLog, QueryLog

Logs = Annotated[
    list[str],
    typer.Argument(metavar="LOG", help="The log: a file, several, a folder, or a quoted pattern.", show_default=False),
]
Original = Annotated[
    list[str],
    typer.Option("--original", metavar="LOG", help="The original log; repeat for several files.", show_default=False),
]
Certificate = Annotated[
    str | None,
    typer.Option(
        "--certificate",
        metavar="FILE",
        help="The file that 'anonymize --certificate' wrote; its seed allows checks of the fingerprint and every byte.",
        show_default=False,
    ),
]
Lists = Annotated[
    list[str] | None,
    typer.Option(
        "--list",
        metavar="FILE",
        help="An allow-list or block-list that the release was made with, to make it again; repeat for both.",
        show_default=False,
    ),
]
MaybeOriginal = Annotated[
    list[str] | None,
    typer.Option("--original", metavar="LOG", help="The original log; repeat for several files.", show_default=False),
]
InputFormat = Annotated[
    str | None,
    typer.Option(
        "--format",
        help=f"Format of the log: {', '.join(FORMATS[:-1])} or {FORMATS[-1]}.",
        show_default="detected automatically",
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="NAME=COLUMN,...",
        help="Names of the columns, such as user=cookie,query=q,time=ts.",
        show_default="detected automatically",
    ),
]
Encoding = Annotated[
    str | None, typer.Option("--encoding", help="Encoding of text files.", show_default="utf-8; SogouQ: gb18030")
]
MaxBadRows = Annotated[
    float, typer.Option("--max-bad-rows", min=0, max=1, help="Largest share of bad rows; with more, reading fails.")
]
Threads = Annotated[
    int | None,
    typer.Option("--threads", min=1, help="Number of threads; does not change the result.", show_default="all"),
]
MemoryLimit = Annotated[
    str | None,
    typer.Option(
        "--memory-limit",
        metavar="SIZE",
        help="Memory limit, such as 8GB; work that needs more fails with a message.",
        show_default="none; tables spill to disk beyond 4 GB",
    ),
]
TaxonomyOf = Annotated[
    str | None,
    typer.Option(
        "--taxonomy",
        help="The taxonomy that the release was made with, if it is not in the current folder.",
        show_default=False,
    ),
]

UserMap = Annotated[
    str | None,
    typer.Option(
        "--user-map",
        metavar="FILE",
        help="The user map that 'anonymize --user-map' wrote; without it, many attacks and measures cannot run.",
        show_default=False,
    ),
]

Sensitive = Annotated[
    str | None,
    typer.Option(
        "--sensitive",
        metavar="FILE",
        help="Labelled queries, Parquet or CSV: columns query and sensitive (0, no, false or empty if not).",
        show_default=False,
    ),
]

Policy = Annotated[
    str | None,
    typer.Option(
        "--policy",
        metavar="FILE",
        help="Exit with 1 unless this policy is met: a TOML file, or 'default' for the built-in one.",
        show_default=False,
    ),
]
Vectors = Annotated[
    str,
    typer.Option(
        "--vectors",
        metavar="words|concepts",
        help="Compare queries by concepts and all other words, or by concepts only (weaker).",
    ),
]
ConceptMinUsers = Annotated[
    int | None,
    typer.Option(
        "--concept-min-users",
        min=2,
        help="Least users of a concept, independent of k.",
        show_default="0.01 % of users, at least 5",
    ),
]

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]


Engine = Annotated[
    str,
    typer.Option(
        "--engine", help="Where to run: duckdb (this machine) or spark (a cluster).", rich_help_panel="Engine"
    ),
]
Master = Annotated[
    str,
    typer.Option("--master", help="Spark's master, such as spark://HOST:7077.", rich_help_panel="Engine"),
]
Conf = Annotated[
    list[str] | None,
    typer.Option(
        "--conf",
        metavar="NAME=VALUE",
        help="A Spark setting; repeat for several.",
        show_default=False,
        rich_help_panel="Engine",
    ),
]
WorkDir = Annotated[
    str | None,
    typer.Option(
        "--work-dir",
        help="Folder for Spark's intermediate tables, which driver and workers can reach.",
        show_default="temporary, with a local master only",
        rich_help_panel="Engine",
    ),
]

N = TypeVar("N", int, float)

Reader = Callable[[Sequence[str]], "LocalLog"]
"""Reads a log as the options say."""
AnyReader = Callable[[Sequence[str]], "QueryLog"]
"""The same, on any engine."""

_PAIRS = "NAME=COLUMN pairs, such as user=cookie,query=q"
_INPUT = {
    "format": (InputFormat, None),
    "columns": (Columns, None),
    "encoding": (Encoding, None),
    "max_bad_rows": (MaxBadRows, 0.01),
    "threads": (Threads, None),
    "memory_limit": (MemoryLimit, None),
}
_ENGINE = {
    "engine": (Engine, "duckdb"),
    "master": (Master, "local[*]"),
    "conf": (Conf, None),
    "work_dir": (WorkDir, None),
}


def keyword(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    """A parameter of a verb."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def input_parameters(*, spark: bool) -> list[inspect.Parameter]:
    """The options of every verb that reads a log."""
    wanted = _INPUT | (_ENGINE if spark else {})
    return [keyword(name, annotation, default) for name, (annotation, default) in wanted.items()]


def reader(given: dict[str, Any]) -> AnyReader:
    """Remove the options about reading a log from those that were given, and make a reader of them."""
    return partial(_read, **{name: given.pop(name) for name in (*_INPUT, *_ENGINE) if name in given})


def reads_log(verb: Callable[..., None], *, spark: bool = False) -> Callable[..., None]:
    """A verb that takes a `reader`, as a verb that takes the options for reading instead."""

    def run(**given: Any) -> None:
        verb(reader=reader(given), **given)

    own = [p.replace(kind=p.KEYWORD_ONLY) for p in inspect.signature(verb).parameters.values() if p.name != "reader"]
    before = [p for p in own if p.name != "as_json"]
    parameters = [*before, *input_parameters(spark=spark), *(p for p in own if p.name == "as_json")]
    run.__doc__ = verb.__doc__
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


opened = ExitStack()
"""Logs on a cluster, to be closed at the end."""


_cancel: list[Callable[[], None]] = []
"""Cancel the jobs of a cluster."""
_stopping = threading.Event()


def stop_jobs() -> bool:
    """Cancel all jobs on a cluster, now and from now on; returns whether there is a cluster."""
    if _cancel:
        _stopping.set()
        threading.Thread(target=_keep_cancelling, daemon=True).start()
    return bool(_cancel)


def _keep_cancelling() -> None:
    while _cancel:
        for end in _cancel.copy():
            with suppress(Exception):
                end()
        time.sleep(0.5)


def _read(
    paths: Sequence[str],
    *,
    format: str | None,
    columns: str | None,
    encoding: str | None,
    max_bad_rows: float,
    threads: int | None,
    memory_limit: str | None,
    engine: str = "duckdb",
    master: str = "local[*]",
    conf: Sequence[str] | None = None,
    work_dir: str | None = None,
) -> "QueryLog":
    """Read a log with a progress line, and report the rows that were left out."""
    from queryveil.log.ingest import read_log

    shared: dict[str, Any] = {
        "format": format,
        "columns": _mapped(columns),
        "encoding": encoding,
        "max_bad_rows": max_bad_rows,
    }
    log: QueryLog
    if engine == "spark":
        from queryveil.engines.spark import Spark, start

        if threads is not None:
            raise QueryveilError(
                "--threads is not for Spark; set the cores in the master, such as --master 'local[4]'."
            )
        if memory_limit is not None:
            raise QueryveilError("--memory-limit is not for Spark; use --conf spark.executor.memory=8g.")
        settings = _mapping("--conf", conf or (), "NAME=VALUE, such as spark.executor.memory=8g")
        with working("Starting Spark"):
            session = start(master, settings, work_dir)
            opened.callback(session.stop)
            cluster = Spark(session, work_dir=work_dir)
            cluster.progress = _show_step
            opened.callback(cluster.close)
            _cancel.append(session.sparkContext.cancelAllJobs)
            opened.callback(_cancel.clear)
        with working("Reading"):
            log = read_log(list(paths), engine=cluster, **shared)
    elif engine == "duckdb":
        if conf or work_dir or master != "local[*]":
            raise QueryveilError("--master, --conf and --work-dir are for Spark; add --engine spark.")
        with progress("Reading") as update:
            log = read_log(list(paths), threads=threads, memory_limit=memory_limit, progress=update, **shared)
    else:
        raise QueryveilError(f"There is no engine '{engine}'; {did_you_mean(engine, ('duckdb', 'spark'))}.")
    for kind, count in log.stats.bad_rows.count.items():
        rows = "1 row" if count == 1 else f"{count:,} rows"
        first = printable(log.stats.bad_rows.first[kind])
        typer.echo(f"queryveil: left out {rows} with {kind}, the first at {first}.", err=True)
    return log


def _mapped(columns: str | None) -> dict[str, str]:
    return _mapping("--columns", columns.split(",") if columns else [], _PAIRS)


def labels(path: str) -> "pa.Table":
    """Queries with labels."""
    import pyarrow as pa
    import pyarrow.csv as pacsv
    import pyarrow.parquet as pq

    texts = pacsv.ConvertOptions(column_types={"query": pa.string()})
    try:
        return pq.read_table(path) if path.endswith(".parquet") else pacsv.read_csv(path, convert_options=texts)
    except (OSError, pa.ArrowException):
        raise QueryveilError(f"The labels in {path} cannot be read; give Parquet, or CSV with a header.") from None


def numbers(option: str, given: str, kind: type[N]) -> list[N]:
    """Numbers with commas between them."""
    try:
        return [kind(part) for part in given.split(",")]
    except ValueError:
        noun = "whole numbers" if kind is int else "numbers"
        raise QueryveilError(f"{option} takes {noun} with commas between them. Got '{given}' instead.") from None


def _mapping(option: str, given: Sequence[str], example: str) -> dict[str, str]:
    pairs = [pair.split("=", 1) for pair in given]
    if any(len(pair) != 2 or not all(part.strip() for part in pair) for pair in pairs):
        raise QueryveilError(f"{option} takes {example}. Got '{','.join(given)}' instead.")
    mapping = {name.strip(): value.strip() for name, value in pairs}
    if len(mapping) < len(pairs):
        raise QueryveilError(f"{option} has a name twice in '{','.join(given)}'; give each name once.")
    return mapping


_step: list[Callable[[str], None]] = []
"""Show the current step beside the newest progress line."""


def _show_step(name: str) -> None:
    if _stopping.is_set():
        raise QueryveilError("Stopped.")
    if _step:
        _step[-1](name)


@contextmanager
def progress(what: str, unit: str = "rows") -> Iterator[Any]:
    """A progress line on the terminal; nothing if stderr is not a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[rows]}"))
    with Progress(
        *columns, TimeElapsedColumn(), console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(what, total=None, rows="")
        _step.append(lambda name: bar.update(task, rows=name))
        try:
            yield lambda rows: bar.update(task, rows=f"{rows:,} {unit}")
        finally:
            _step.pop()


@contextmanager
def steps(what: str) -> Iterator[Callable[[str], None]]:
    """A line on the terminal with the current step."""
    with progress(what):
        yield _show_step


@contextmanager
def working(what: str) -> Iterator[None]:
    """A spinner on the terminal while something runs."""
    with progress(what):
        yield


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
        result.add_column(name, justify="right" if i >= texts else "left")
    for row in rows:
        result.add_row(*(Text(cell) for cell in row))
    return title, result


def json_text(value: Any) -> str:
    """What a verb prints for a program: standard JSON, with null for numbers that are infinite or undefined."""
    return json.dumps(_finite(value), indent=2, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def printable(text: str) -> str:
    """Text of a log, or the name of a file, without control characters for the terminal."""
    from queryveil.text.show import printable as shown

    return shown(text)


def listed(summaries: dict[str, str]) -> str:
    """Names with what they stand for, one a line, for a terminal of 80 columns."""
    width = max(map(len, summaries)) + 2
    return "\n".join(
        fill(f"{name:{width}}{summary}", 76, subsequent_indent=" " * width) for name, summary in summaries.items()
    )
