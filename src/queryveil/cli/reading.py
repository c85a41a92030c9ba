"""How a verb reads a log: the options for it, and the function that they are passed to."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from queryveil.cli.cluster import start_spark
from queryveil.cli.progress import note, progress
from queryveil.errors import QueryveilError, did_you_mean
from queryveil.formats import FORMATS

if TYPE_CHECKING:
    from queryveil.formats.input import Input, ReadAs
    from queryveil.log import LocalLog, QueryLog
    from queryveil.methods.recipe import Recipe, RecipeInput
    from queryveil.release import Release

Log = TypeVar("Log", bound="QueryLog")
Reader = Callable[[Sequence[str]], "LocalLog"]
"""Reads a log on this machine, as the options say."""
AnyReader = partial["QueryLog"]
"""The same, on any engine."""

_ENGINE = ("engine", "master", "conf", "work_dir")
"""The options of `read` for the verbs that can run on Spark."""
_INTERNAL = ("paths", "recipe", "stated")
"""The arguments of `read` that are no options."""


def read(
    paths: Sequence[str],
    *,
    format: Annotated[
        str | None,
        typer.Option(
            help=f"Format of the log: {', '.join(FORMATS[:-1])} or {FORMATS[-1]}.",
            show_default="detected automatically",
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=COLUMN,...",
            help="Names of the columns, such as user=cookie,query=q,time=ts.",
            show_default="detected automatically",
        ),
    ] = None,
    encoding: Annotated[
        str | None,
        typer.Option(help="Encoding of text files, such as latin-1 or utf-16.", show_default="utf-8; SogouQ: gb18030"),
    ] = None,
    time_format: Annotated[
        str | None,
        typer.Option(
            metavar="FORMAT",
            help="How times are written, such as '%d/%m/%Y %H:%M'.",
            show_default="detected automatically",
        ),
    ] = None,
    from_sql: Annotated[
        str | None,
        typer.Option(
            metavar="QUERY",
            help="A query whose rows are the log; LOG is then a database, such as postgresql://HOST/NAME.",
            show_default="LOG is files",
        ),
    ] = None,
    language: Annotated[
        str | None,
        typer.Option(
            metavar="CODE,...",
            help="Language of the queries, such as de; several with commas; or auto, to detect them.",
            show_default="en; that of a release",
        ),
    ] = None,
    max_bad_rows: Annotated[
        float, typer.Option(min=0, max=1, help="Largest share of bad rows; with more, reading fails.")
    ] = 0.01,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Number of threads; does not change the result.", show_default="all")
    ] = None,
    memory_limit: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Memory limit, such as 8GB; work that needs more fails with a message.",
            show_default="none; tables spill to disk beyond 4 GB",
        ),
    ] = None,
    engine: Annotated[
        str, typer.Option(help="Where to run: duckdb (this machine) or spark (a cluster).", rich_help_panel="Engine")
    ] = "duckdb",
    master: Annotated[
        str, typer.Option(help="Spark's master, such as spark://HOST:7077.", rich_help_panel="Engine")
    ] = "local[*]",
    conf: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A Spark setting; repeat for several.", rich_help_panel="Engine"),
    ] = None,
    work_dir: Annotated[
        str | None,
        typer.Option(
            help="Folder for Spark's intermediate tables, which driver and workers can reach.",
            show_default="temporary, with a local master only",
            rich_help_panel="Engine",
        ),
    ] = None,
    recipe: "RecipeInput | None" = None,
    stated: "Input | None" = None,
) -> "QueryLog":
    """Read a log with a progress line, and report how it was read and the rows that were left out.

    The last two are no options: what a recipe says about the log, and what the manifest of a release says.
    """
    from queryveil.log.ingest import read_log

    named = mapping(
        "--columns", columns.split(",") if columns else [], "NAME=COLUMN pairs, such as user=cookie,query=q"
    )
    given = {"format": format, "encoding": encoding, "time_format": time_format, "language": language}
    from_recipe = {} if recipe is None else recipe.arguments
    shared: dict[str, Any] = from_recipe | {name: value for name, value in given.items() if value is not None}
    shared |= {"columns": from_recipe.get("columns", {}) | named, "max_bad_rows": max_bad_rows, "stated": stated}
    shared["sql"] = from_sql
    log: QueryLog
    if engine == "spark":
        if threads is not None:
            raise QueryveilError(
                "--threads is not for Spark; set the cores in the master, such as --master 'local[4]'."
            )
        if memory_limit is not None:
            raise QueryveilError("--memory-limit is not for Spark; use --conf spark.executor.memory=8g.")
        settings = mapping("--conf", conf or (), "NAME=VALUE, such as spark.executor.memory=8g")
        cluster = start_spark(master, settings, work_dir)
        with progress("Reading"):
            log = read_log(list(paths), engine=cluster, **shared)
    elif engine == "duckdb":
        if conf or work_dir or master != "local[*]":
            raise QueryveilError("--master, --conf and --work-dir are for Spark; add --engine spark.")
        with progress("Reading") as update:
            log = read_log(list(paths), threads=threads, memory_limit=memory_limit, progress=update, **shared)
    else:
        raise QueryveilError(f"There is no engine '{engine}'; {did_you_mean(engine, ('duckdb', 'spark'))}.")
    for line in _how_read(log.stats.read_as):
        note(line)
    for kind, count in log.stats.bad_rows.count.items():
        rows = "1 row" if count == 1 else f"{count:,} rows"
        note(f"left out {rows} with {kind}, the first at {log.stats.bad_rows.first[kind]}.")
    return log


def _how_read(read_as: "ReadAs | None") -> Iterator[str]:
    """What nobody said about the columns. Only usual names are shown: without a header, others may be data."""
    if read_as is None:
        return
    columns = read_as.columns
    guessed = [f"{name}={columns[name]}" for name in read_as.guessed if columns.get(name, name) != name]
    if guessed:
        yield f"found by the names of columns: {', '.join(guessed)}; for others, use --columns NAME=COLUMN,..."
    if "time_format" in read_as.guessed:
        yield f"times are read as '{read_as.time_format}'; for another format, use --time-format."
    if "time_format" in read_as.stated:
        form = read_as.time_format
        yield f"the manifest of the release reads times as '{form}'; for another format, use --time-format."
    if "encoding" in read_as.stated:
        yield f"the manifest of the release names the encoding {read_as.encoding}; for another, use --encoding."
    named = ", ".join(f"{name}={columns[name]}" for name in read_as.stated if name in columns)
    if named:
        yield f"named by the manifest of the release: {named}; for others, use --columns NAME=COLUMN,..."


def read_counted(reader: Callable[[Sequence[str]], Log], paths: Sequence[str], counted_on: Sequence[str] | None) -> Log:
    """Read a log and, if there is one, the other log on which rules count users."""
    log = reader(paths)
    if not counted_on:
        return log
    alike = partial(reader, language=",".join(log.language.ids)) if isinstance(reader, partial) else reader
    return log.counted_on(alike(counted_on))


def in_languages(reader: Callable[[Sequence[str]], Log], ids: Sequence[str]) -> Callable[[Sequence[str]], Log]:
    """A reader that reads in these languages, unless others were asked for."""
    if not isinstance(reader, partial) or reader.keywords["language"] is not None:
        return reader
    return partial(reader, language=",".join(ids))


def as_released(reader: Callable[[Sequence[str]], Log], release: "Release") -> Callable[[Sequence[str]], Log]:
    """A reader that reads as the manifest of a release says, where neither the options nor the files say so."""
    manifest = release.manifest
    alike = reader if manifest.language is None else in_languages(reader, manifest.language.ids)
    return partial(alike, stated=manifest.input) if isinstance(alike, partial) else alike


def as_in_recipe(reader: "partial[Log]", recipe: "Recipe | None") -> "partial[Log]":
    """A reader that reads as a recipe says, where the options say nothing else."""
    return reader if recipe is None else partial(reader, recipe=recipe.input)


def opened(
    reader: AnyReader,
    release: str,
    original: Sequence[str],
    user_map: str | None = None,
    counted_on: Sequence[str] | None = None,
    *,
    check: Callable[["Release"], object] | None = None,
    lists: Sequence[str] | None = None,
) -> tuple["Release", "QueryLog"]:
    """A release and its log, on the engine that the options name.

    Args:
        reader: Reads the log.
        release: The folder of the release; on Spark also an address that only the cluster reaches.
        original: The files of the log.
        user_map: The user map of the release, if it is given.
        counted_on: The other log on which rules count users, if there is one.
        check: Refuses a release that cannot be used.
        lists: The lists that the release was made with.
    """
    from queryveil.files.folders import is_address
    from queryveil.release import Release, with_user_map

    made: Release | None = None
    read: Callable[[Sequence[str]], QueryLog] = reader
    if reader.keywords["engine"] != "spark" or not is_address(release):
        # A wrong folder must fail before the log is read.
        made = _checked(Release.load(release, lists=lists or ()), check)
        read = as_released(reader, made)
    log = read_counted(read, original, counted_on)
    if made is None:
        made = _checked(Release.load(log.folder(release), lists=lists or ()), check)
    return (made if user_map is None else with_user_map(made, log, user_map)), log


def _checked(release: "Release", check: Callable[["Release"], object] | None) -> "Release":
    if check is not None:
        check(release)
    return release


def reads_log(verb: Callable[..., None], *, spark: bool = False) -> Callable[..., None]:
    """A verb that takes a `reader`, as a verb that takes the options for reading instead."""
    reading = [p for p in keywords(read) if p.name not in _INTERNAL and (spark or p.name not in _ENGINE)]

    def run(**given: Any) -> None:
        verb(reader=partial(read, **{p.name: given.pop(p.name) for p in reading}), **given)

    own = [p for p in keywords(verb) if p.name != "reader"]
    place = next((i for i, p in enumerate(own) if p.name == "as_json"), len(own))
    return with_options(run, [*own[:place], *reading, *own[place:]], verb.__doc__)


def keywords(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters of a function, to be given by name."""
    return [p.replace(kind=p.KEYWORD_ONLY) for p in inspect.signature(function).parameters.values()]


def with_options(
    run: Callable[..., None], parameters: Sequence[inspect.Parameter], help: str | None
) -> Callable[..., None]:
    """Give a function that takes any keywords the parameters and the help of a verb."""
    run.__doc__ = help
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def mapping(option: str, given: Sequence[str], example: str) -> dict[str, str]:
    """Pairs of a name and a value that an option was given."""
    pairs = [pair.split("=", 1) for pair in given]
    if any(len(pair) != 2 or not all(part.strip() for part in pair) for pair in pairs):
        raise QueryveilError(f"{option} takes {example}. Got '{','.join(given)}' instead.")
    mapping = {name.strip(): value.strip() for name, value in pairs}
    if len(mapping) < len(pairs):
        raise QueryveilError(f"{option} has a name twice in '{','.join(given)}'; give each name once.")
    return mapping
