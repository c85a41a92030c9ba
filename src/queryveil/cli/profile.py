"""queryveil profile: a log in numbers."""

import typer

from queryveil.cli import options, printing
from queryveil.cli.progress import progress
from queryveil.cli.reading import AnyReader


def profile(
    reader: AnyReader,
    log: options.Logs,
    as_json: options.Json = False,
) -> None:
    """Show a log in numbers: size, users, lengths of queries, and what each k would keep."""
    from queryveil.assess.profiles import profile as make
    from queryveil.release.summary import share

    read = reader(log)
    with progress("Profiling"):
        found = make(read)
    if as_json:
        typer.echo(printing.json_text(found.as_dict()))
        return
    size = [
        ("rows", f"{found.rows:,}"),
        ("  left out: empty query", f"{found.empty_rows:,}"),
        *((f"  left out: {kind}", f"{count:,}") for kind, count in found.bad_rows.items()),
        ("events", f"{found.events:,}"),
        ("users", f"{found.users:,}"),
        ("distinct queries", f"{found.queries:,}"),
        ("distinct words", f"{found.words:,}"),
        *([] if found.views is None else [("views", f"{found.views:,}")]),
        ("clicks", f"{found.clicks:,}"),
        ("from", found.first or "no times"),
        ("to", found.last or "no times"),
        *(
            (f"column {printing.printable(name)}", f"{count:,} value{'s' * (count != 1)}")
            for name, count in found.extras.items()
        ),
    ]
    per_user = [(name, f"{value:,.1f}".removesuffix(".0")) for name, value in found.queries_per_user.items()]

    def row(label: str, queries: int, events: int) -> tuple[str, ...]:
        of_queries, of_events = share(queries, found.queries), share(events, found.events)
        return label, f"{queries:,}", of_queries, f"{events:,}", of_events

    lengths = [row(part.words, part.queries, part.events) for part in found.lengths]
    by_band = [row(band.label, band.queries, band.events) for band in found.bands]
    scripts = [(one.name, f"{one.queries:,}", share(one.queries, found.queries)) for one in found.scripts]
    seen = sum(one.queries for one in found.languages)
    languages = [(one.name, f"{one.queries:,}", share(one.queries, seen)) for one in found.languages]
    kept = [row(f"k = {part.k}", part.queries, part.events) for part in found.kept]
    counts = ("distinct queries", "share", "events", "share")
    ranks = [(one.rank, f"{one.views:,}", f"{one.clicks:,}", share(one.clicks, one.views)) for one in found.ranks]
    printing.tables(
        printing.table("The log", ("", ""), size),
        printing.table("Queries per user", ("", "events"), per_user),
        printing.table("Length in words", ("words", *counts), lengths),
        printing.table("Queries by number of users", ("users", *counts), by_band),
        printing.table("Queries that at least k users issued", ("", *counts), kept),
        *([printing.table("Results by rank", ("rank", "views", "clicks", "share clicked"), ranks)] if ranks else []),
        printing.table("Scripts", ("", *counts[:2]), scripts),
        *([printing.table("Languages of a sample", ("", *counts[:2]), languages)] if languages else []),
        *(f"Warning: {warning}" for warning in found.warnings),
        f"Fingerprint {found.fingerprint}",
    )
