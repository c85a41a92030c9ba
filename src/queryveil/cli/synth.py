"""queryveil synth: make a synthetic log."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from queryveil.cli import options, printing
from queryveil.cli.progress import progress
from queryveil.errors import Done

if TYPE_CHECKING:
    from queryveil.synth import Figure

_MEASURED_ANYWAY = 2_000_000  # rows; measuring so many takes seconds

Users = Annotated[int, typer.Option("--users", help="How many users, from 100 to 5,000,000; about 56 rows each.")]
Seed = Annotated[int, typer.Option("--seed", help="Random seed; the same seed gives the same bytes.")]
LanguageName = Annotated[
    str,
    typer.Option(
        "--language", metavar="LANG,...",
        help="Language of the queries: en, de, fr, es, pl, el, zh, ja, several of them, or mix for all."
    )
]  # fmt: skip
Output = Annotated[
    Path,
    typer.Option(
        "--output", "-o", metavar="FILE", help="The file to write: .tsv, .tsv.gz, .tsv.zst (AOL format) or .parquet."
    )
]  # fmt: skip
TruthFolder = Annotated[
    Path | None,
    typer.Option(
        "--truth", metavar="DIR", help="Folder for the ground truth about every query, and the web directory.",
        show_default="none is written"
    )
]  # fmt: skip
Views = Annotated[
    bool, typer.Option("--views", help="Write what was shown: ten results per query, clicked or not, one row each.")
]
Calibrate = Annotated[
    bool, typer.Option("--calibrate", help="Compare the log with AOL's even if it is large (minutes).")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace earlier files.")]


def synth(
    output: Output,
    users: Users = 1000,
    seed: Seed = 0,
    language: LanguageName = "en",
    truth: TruthFolder = None,
    views: Views = False,
    calibrate: Calibrate = False,
    overwrite: Overwrite = False,
    as_json: options.Json = False,
) -> None:
    """Make a synthetic query log that looks like AOL's: topics, sessions, clicks, and planted personal data.

    Nothing in it is about a real person. To start: queryveil synth --users 1000 --seed 1 -o log.tsv.gz
    Only an English log is compared with AOL's.
    """
    from queryveil import synth as logs

    with progress("Making users", "users") as update:
        made = logs.generate(
            output,
            users=users,
            seed=seed,
            language=language,
            truth=truth,
            views=views,
            overwrite=overwrite,
            progress=lambda done, whole: update(Done(done, done / whole)),
        )
    figures: list[Figure] = []
    if calibrate or (made.rows <= _MEASURED_ANYWAY and language == "en"):
        with progress("Measuring"):
            figures = logs.calibrate(output, views=views)
    if as_json:
        found = {
            "path": str(output), "truth": str(truth) if truth else None, "seed": seed, "language": language,
            **asdict(made)
        }  # fmt: skip
        typer.echo(printing.json_text(found | {"figures": [figure._asdict() for figure in figures]}))
        return
    size = [(name, f"{count:,}") for name, count in asdict(made).items()]
    parts = [f"Made {printing.printable(str(output))}", printing.table("The log", ("", ""), size)]
    if figures:
        head = ("", "AOL", "this log")
        rows = [(name, _number(name, published), _number(name, achieved)) for name, published, achieved in figures]
        parts.append(printing.table("Compared with the published figures of the AOL log (657,426 users)", head, rows))
        parts.append(
            "Ratios of distinct queries or words, and counts of frequent n-grams, depend on the size of a log."
        )
    if truth:
        parts.append(f"Ground truth, for measuring only: {printing.printable(str(truth))}")
    printing.tables(*parts)


def _number(figure: str, value: float) -> str:
    if figure.startswith("frequent"):
        return f"{value:,.0f}"
    return f"{value:.1f}" if figure.startswith("%") or value >= 10 else f"{value:.3f}"
