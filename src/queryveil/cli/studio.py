"""queryveil studio: the reviewing app."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from queryveil.cli import options
from queryveil.cli.progress import note
from queryveil.cli.reading import AnyReader, mapping
from queryveil.errors import QueryveilError
from queryveil.files.folders import is_address

if TYPE_CHECKING:
    from queryveil.log import LocalLog
    from queryveil.studio.project import Reading


def studio(
    reader: AnyReader,
    log: Annotated[
        list[str] | None,
        typer.Argument(metavar="LOG", help="The log: a file, several, a folder, or a quoted pattern."),
    ] = None,
    project: Annotated[
        str | None,
        typer.Option(
            "--project",
            metavar="FOLDER",
            help="The folder of the project, private to you; it is made, or work in it goes on.",
            show_default="LOG.studio; none with --release",
        ),
    ] = None,
    release: Annotated[
        str | None,
        typer.Option("--release", metavar="RELEASE", help="Look at this release instead, read only; needs --original."),
    ] = None,
    original: options.MaybeOriginal = None,
    user_map: options.UserMap = None,
    certificate: options.Certificate = None,
    lists: options.Lists = None,
    policy: Annotated[
        str,
        typer.Option(
            "--policy",
            metavar="FILE",
            help="What a release must meet: a TOML file, or 'default'.",
        ),
    ] = "default",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="The port on this machine.", show_default="any")
    ] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the app in the browser.")] = True,
) -> None:
    """Review a log in the browser: choose, ask, decide, judge and sign.

    The app runs on this machine and is shown to your browser alone; it fetches nothing and sends nothing. Everything
    that it does can be repeated with the recipe and the commands that it shows. With --release it opens a release with
    its log, and changes nothing. Stop it with Ctrl-C; started again with the same project, it goes on.
    """
    if (release is None) == (original is not None) or (release is None) == (not log):
        raise QueryveilError("Give a LOG to make a release of, or --release RELEASE and --original LOG to look at one.")
    if release is None and (user_map or certificate or lists):
        raise QueryveilError("--user-map, --certificate and --list belong to a release; give --release as well.")
    if reader.keywords["from_sql"] is not None or any(map(is_address, (*(log or ()), *(original or ())))):
        # It is shown in the browser and kept in the project, and an address may hold a password.
        raise QueryveilError(
            "The studio fetches nothing: it reads files of this machine; save the log as a file first."
        )
    from queryveil.assess.policy import load_policy
    from queryveil.release import Release
    from queryveil.studio import check_packages, serve
    from queryveil.studio.project import Project, Reading
    from queryveil.studio.results import Audit
    from queryveil.studio.session import Session

    check_packages()
    logs = list(log or original or ())
    given = reader.keywords
    columns = mapping("--columns", given["columns"].split(",") if given["columns"] else [], "NAME=COLUMN pairs")
    named = {name: given[name] for name in ("format", "encoding", "time_format", "language", "max_bad_rows")}
    reading = Reading(columns=columns, **named)
    load_policy(policy)  # what is wrong must not wait for the log
    audit = None
    if release is not None:
        Release.load(release)  # a wrong folder must fail at once
        audit = Audit(release, user_map, certificate, tuple(lists or ()))
    elif project is None:
        project = f"{Path(logs[0]).name.partition('.')[0] or 'log'}.studio"
    kept = None if project is None else Project(project, logs, reading)
    if kept is not None and reading not in (Reading(), kept.state.reading):
        note("The project has its own way to read the log, so options about reading are ignored.")
    limits = {name: given[name] for name in ("threads", "memory_limit")}
    session = Session(logs, reading, partial(_read, limits), kept, audit, policy)
    session.read()
    typer.echo("The studio is for those who may see the log. Stop it with Ctrl-C.")
    serve(session, port=port, ready=lambda address: typer.echo(f"Open {address}"), browser=browser)


def _read(limits: dict[str, Any], paths: list[str], reading: "Reading", progress: Any) -> "LocalLog":
    from queryveil.log.ingest import read_log

    named: dict[str, Any] = limits | ({} if reading.language is None else {"language": reading.language})
    log: LocalLog = read_log(
        paths,
        format=reading.format,
        columns=reading.columns,
        encoding=reading.encoding,
        time_format=reading.time_format,
        stated=reading.stated,
        max_bad_rows=reading.max_bad_rows,
        progress=progress,
        **named,
    )
    return log
