"""queryveil series: release after release, with a ledger of the events that wait."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from queryveil.cli import options, printing
from queryveil.cli.attack import finding_tables
from queryveil.cli.progress import progress
from queryveil.cli.reading import AnyReader, Reader, in_languages
from queryveil.cli.verify import show_verdicts
from queryveil.errors import QueryveilError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from queryveil.log import LocalLog
    from queryveil.methods import Method
    from queryveil.series import Period, Status

Ledger = Annotated[str, typer.Argument(metavar="LEDGER", help="The folder of the ledger.")]
Releases = Annotated[
    list[str], typer.Argument(metavar="RELEASE", help="The folders of all releases, in the order of the series.")
]
_LOGS = "The log of a period; repeat for all periods, in their order. A folder or a quoted pattern is one log."


def init(
    ledger: Annotated[str, typer.Argument(metavar="LEDGER", help="The folder of the ledger, which is made.")],
    recipe: Annotated[str, typer.Option("--recipe", help="A recipe file, or the name of a built-in recipe.")],
    retention: Annotated[
        str | None,
        typer.Option(
            "--retention",
            metavar="TIME",
            help="How long an event may wait, such as 13months or 90days; what waits longer is deleted.",
            show_default="for ever",
        ),
    ] = None,
    jitter: Annotated[
        float | None,
        typer.Option(
            "--jitter",
            metavar="P",
            help="Raise the least users of each query by a secret number: by none with chance P, by one with chance P"
            " of the rest, and so on. Against planted accounts.",
            show_default="that of the recipe",
        ),
    ] = None,
    budget_epsilon: Annotated[
        float | None,
        typer.Option(
            "--budget-epsilon", metavar="E", help="For a private method: the epsilon of all releases together."
        ),
    ] = None,
    budget_delta: Annotated[
        float | None, typer.Option("--budget-delta", metavar="D", help="The delta of all releases together.")
    ] = None,
    carry_pseudonyms: Annotated[
        bool,
        typer.Option(
            "--carry-pseudonyms",
            help="Keep who has which pseudonym, so that 'series links' can link releases. Makes people far easier to"
            " re-identify.",
        ),
    ] = False,
    language: Annotated[
        str, typer.Option(metavar="CODE,...", help="Language of all logs, such as de; several with commas.")
    ] = "en",
    seed: Annotated[
        int | None, typer.Option(help="Random seed of all releases. Keep it secret.", show_default="128 random bits")
    ] = None,
) -> None:
    """Begin a series of releases that are safe together.

    The ledger is a private folder. It holds the events that are not published yet, so guard it as you guard the log.
    """
    from queryveil.series import Series

    method = _configured(recipe, jitter)
    Series.init(
        ledger,
        method,
        retention=retention,
        budget_epsilon=budget_epsilon,
        budget_delta=budget_delta,
        carry_pseudonyms=carry_pseudonyms,
        seed=seed,
        language=language,
    )
    shown = printing.printable(str(ledger))
    typer.echo(f"Made {shown}. Next: queryveil series add {shown} LOG -o RELEASE, once for each period.")


def _configured(name: str, jitter: float | None) -> "Method":
    """The method of a recipe, with secret thresholds if these are asked for."""
    from queryveil.methods import METHODS, Pipeline
    from queryveil.methods.recipe import load_recipe

    recipe = load_recipe(name)
    if recipe.input is not None:
        raise QueryveilError(
            f"The recipe {name} has a table [input], which a series does not keep; give its options to 'series add'."
        )
    if recipe.method not in METHODS:
        raise QueryveilError(f"The recipe {name} names the method '{recipe.method}', which does not exist.")
    if recipe.about is not None:
        raise QueryveilError(
            f"A series keeps no [about] of its recipe; leave it out of {name}, and give --title and the others"
            " to 'series add'."
        )
    method = METHODS[recipe.method](**recipe.parameters)
    if jitter is None:
        return method
    if not any("jitter" in type(part).model_fields for part in method.parts):
        raise QueryveilError(
            f"No step of {name} has a threshold of users that could be secret, which equality and rules have; leave"
            " --jitter out."
        )
    changed = [
        type(part)(**part.model_dump(exclude_unset=True) | {"jitter": jitter})
        if "jitter" in type(part).model_fields
        else part
        for part in method.parts
    ]
    return changed[0] if len(changed) == 1 else Pipeline(changed)


def add(
    reader: AnyReader,
    ledger: Ledger,
    log: options.Logs,
    output: Annotated[str, typer.Option("--output", "-o", help="The folder to write the release to.")],
    output_format: Annotated[str, typer.Option(help="Format of the table: parquet, aol (TSV) or csv.")] = "parquet",
    drop_late: Annotated[
        bool,
        typer.Option("--drop-late", help="Leave out events that are not later than the end of the last log."),
    ] = False,
    certificate: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Also write data for quick checks; ends with .certificate. Keep it secret."),
    ] = None,
    title: options.Title = None,
    source: options.Source = None,
    contact: options.Contact = None,
    published: options.Published = None,
    covers: options.Covers = None,
    as_json: options.Json = False,
) -> None:
    """Add the log of a period: its events wait with the others, and what can be released leaves.

    If nothing can be released, no release is written and all events wait on. A run that is killed leaves ledger and
    releases as before or as after.
    """
    from queryveil.files.folders import is_address
    from queryveil.series import Series

    about = options.about(title=title, source=source, contact=contact, published=published, covers=covers)
    series = None if is_address(ledger) else Series(ledger)  # a wrong folder must fail before the log is read
    read = (reader if series is None else in_languages(reader, series.languages))(log)
    series = series or Series(ledger, engine=getattr(read.engine, "session", None))
    with progress("Releasing what waits"):
        period = series.add(
            read, output, format=output_format, drop_late=drop_late, certificate=certificate, about=about
        )
    if as_json:
        written = None if period.release is None else output
        typer.echo(printing.json_text({"release_folder": written} | _plain(period)))
        return
    printing.tables(
        printing.table(f"Period {period.number}", ("", "events"), _counted(period)), _outcome(period, output)
    )


def _plain(period: "Period") -> dict[str, Any]:
    return period.model_dump(mode="json", exclude={"fingerprint"})


def _counted(period: "Period") -> list[tuple[str, str]]:
    rows = [("came with the log", period.events), ("released", period.released), ("wait on", period.waiting)]
    lost = (
        ("left out by rules about rows", period.left_out),
        ("deleted after the retention time", period.expired),
        ("left out as too late", period.late),
    )
    return [(name, f"{number:,}") for name, number in (*rows, *(row for row in lost if row[1]))]


def _outcome(period: "Period", output: str) -> str:
    if period.release is None:
        return "Nothing could be released, so no release was written."
    spent = "" if period.epsilon is None else f" All releases together use epsilon {period.epsilon:.6g}."
    return (
        f"Release {period.release} is in {printing.printable(output)}: {period.queries:,} distinct queries,"
        f" {period.new_queries:,} of them for the first time; its events waited {period.waited:.1f} days on average."
        f"{spent}"
    )


def status(
    ledger: Ledger,
    last: Annotated[int, typer.Option("--last", min=1, help="How many periods to show.")] = 20,
    as_json: options.Json = False,
) -> None:
    """Show what came, what was released, what waits and what was lost, period by period."""
    from queryveil.series import Series

    found = Series(ledger).status()
    if as_json:
        periods = [_plain(period) for period in found.periods]
        typer.echo(printing.json_text(found.sums | {"mean_wait": found.mean_wait, "all_periods": periods}))
        return
    head = ("", "until", "came", "left", "lost", "wait on", "queries", "new", "days")
    rows = [
        (
            str(one.number),
            f"{one.end:%Y-%m-%d}",
            f"{one.events:,}",
            f"{one.released:,}",
            f"{one.lost:,}",
            f"{one.waiting:,}",
            f"{one.queries:,}",
            f"{one.new_queries:,}",
            f"{one.waited:.1f}" if one.released else "-",
        )
        for one in found.periods[-last:]
    ]
    printing.tables(
        *([printing.table("Periods: events, released queries, and days waited", head, rows, texts=2)] if rows else []),
        _summed(found),
    )


def _summed(found: "Status") -> str:
    sums, budget = found.sums, found.ledger.settings.budget_epsilon
    wait = "" if found.mean_wait is None else f" Released events waited {found.mean_wait:.1f} days on average."
    spent = ""
    if budget is not None:
        used = max((one.epsilon or 0 for one in found.periods), default=0)
        spent = f" The releases use epsilon {used:.6g} of {budget:g}."
    return (
        f"{sums['releases']:,} releases in {sums['periods']:,} periods by {found.ledger.settings.method}:"
        f" {sums['queries']:,} distinct queries and {sums['released']:,} of {sums['events']:,} events released,"
        f" {sums['waiting']:,} wait, {sums['lost']:,} lost.{wait}{spent}"
    )


def verify(
    reader: Reader,
    ledger: Ledger,
    releases: Releases,
    original: Annotated[
        list[str] | None, typer.Option("--original", metavar="LOG", help=f"{_LOGS} Without logs, less is checked.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Check a series: the chain of its releases, and with the logs every promise of every release.

    Exits with 0 if everything holds; otherwise with 1 and what is wrong. A release that was changed, left out, put in
    another place or added twice is refused.
    """
    from queryveil.series import Series

    series = Series(ledger)
    with progress("Checking"):
        logs = None if original is None else _read(in_languages(reader, series.languages), original)
        found = series.verify(releases, logs)
    held = f"The series keeps its promises{', as far as it was checked' if found.unchecked else ''}."
    if original is None:
        held = "The releases are complete and unchanged; what they promise was not checked."
    show_verdicts(found, held, "The series is refuted.", as_json)


def _read(reader: "Callable[[Sequence[str]], LocalLog]", paths: list[str]) -> "Iterator[LocalLog]":
    """One log after the other, so that one is in memory at a time."""
    for path in paths:
        log = reader([path])
        yield log
        log.close()


def attack(
    reader: Reader,
    ledger: Ledger,
    releases: Releases,
    original: Annotated[list[str], typer.Option("--original", metavar="LOG", help=_LOGS)],
    report: Annotated[
        str | None,
        typer.Option("--report", metavar="FILE", help="Also write a page that shows the series over time; .html."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier page.")] = False,
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """Attack a series: what do its releases show together, and when they appear?

    Differencing of consecutive states, planted accounts that wait for a newcomer, and linkage across releases, each
    beside a control.
    """
    from queryveil.files.folders import check_file, write_whole
    from queryveil.reports.series import check_packages, series_page
    from queryveil.series import Series

    series = Series(ledger)
    place = None if report is None else check_file(report, (".html",), overwrite)
    if place is not None:
        check_packages()
    with progress("Attacking") as step:
        found = series.attack(
            releases, _read(in_languages(reader, series.languages), original), seed=seed, progress=step
        )
    if place is not None:
        write_whole(place, series_page(series.status(), found).encode(), overwrite=overwrite, private=True)
    if as_json:
        typer.echo(printing.json_text(found.as_dict() | {"exposure": [vars(one) for one in found.exposure]}))
    else:
        written = [] if report is None else [f"\nThe page is {printing.printable(report)}."]
        printing.tables(*finding_tables(found), f"\n{found.summary}", *written)


def links(
    ledger: Ledger,
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="The table to write; ends with .csv.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier table.")] = False,
) -> None:
    """Write which pseudonyms of different releases are of one person, if the ledger keeps them.

    With this table, everything that a person issued in all releases is one record. 'series attack' measures what that
    makes easier; publish it only if you must.
    """
    import io

    import pyarrow.csv as pacsv

    from queryveil.files.folders import check_file, write_whole
    from queryveil.series import Series

    place = check_file(output, (".csv",), overwrite)
    table = Series(ledger).links()
    content = io.BytesIO()
    pacsv.write_csv(table, content)
    write_whole(place, content.getvalue(), overwrite=overwrite, private=True)
    people = len(table["person"].unique())
    typer.echo(
        f"{len(table):,} pseudonyms of {people:,} people are in {printing.printable(output)}. It links all"
        " releases, and only you can read it until you decide otherwise."
    )


def forget(
    ledger: Ledger,
    user: Annotated[
        str | None, typer.Option("--user", metavar="ID", help="Delete the waiting events of this user of the logs.")
    ] = None,
    before: Annotated[
        str | None, typer.Option("--before", metavar="DATE", help="Delete all waiting events up to this date or time.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Delete waiting events: those of a person (the right to erasure), or all up to a date.

    What is published already cannot be taken back; it says how much that is.
    """
    from queryveil.series import Series

    done = Series(ledger).forget(user=user, before=None if before is None else _date(before))
    if as_json:
        typer.echo(printing.json_text({"deleted": done.events, "published": done.published}))
        return
    typer.echo(f"Deleted {done.events:,} waiting events.")
    if user is None:
        return
    if not done.published:
        typer.echo("No release has an event of this user." + ("" if done.events else " Is the name right?"))
        return
    each = ", ".join(f"{events:,} in release {number}" for number, events in done.published.items())
    typer.echo(f"Already left with releases, without the user's name, and cannot be taken back: {each}.")


def _date(given: str) -> datetime:
    try:
        found = datetime.fromisoformat(given)
    except ValueError:
        raise QueryveilError(f"--before takes a date or a time such as 2026-03-31. Got '{given}' instead.") from None
    return found if found.tzinfo is None else found.astimezone(UTC).replace(tzinfo=None)
