"""queryveil reproduce: the experiments of a paper, on a log."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from queryveil.cli import options, printing, resolvers
from queryveil.cli.labels import Sensitive, Truth, read_labels, read_topics
from queryveil.cli.progress import progress
from queryveil.cli.reading import Reader
from queryveil.errors import QueryveilError, did_you_mean, require

if TYPE_CHECKING:
    from queryveil.assess.reproduce import Beside, Figure


def reproduce(
    reader: Reader,
    paper: Annotated[
        str, typer.Argument(metavar="PAPER", help="carpineto2015, erola2011, erola2012, batet2013 or milanifard2010.")
    ],
    log: options.Logs,
    taxonomy: Annotated[
        str, typer.Option("--taxonomy", help="wordnet, or a web directory; erola2012 needs a web directory.")
    ] = "wordnet",
    resolver: resolvers.Named = None,
    send_queries_to: resolvers.SendTo = None,
    cache: resolvers.Cache = None,
    rate: resolvers.Rate = None,
    timeout: resolvers.Timeout = None,
    clusters: Annotated[
        int, typer.Option("--clusters", help="Clusters of users, for batet2013; 0 for the best number.", min=0)
    ] = 80,
    sensitive: Sensitive = None,
    truth: Truth = None,
    k: Annotated[
        str | None,
        typer.Option(
            "-k",
            "--k",
            metavar="K,...",
            help="Values of k, for carpineto2015.",
            show_default="2,3,5,10,20,50,80,100,200, up to the users of the log",
        ),
    ] = None,
    theta: Annotated[
        str | None,
        typer.Option("--theta", metavar="T,...", help="Values of theta, for carpineto2015.", show_default="0.9,0.8"),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(
            "--user",
            metavar="ID",
            help="A user of the log, for figure 5b and table 4 of carpineto2015; shown on the terminal only.",
        ),
    ] = None,
    depth: Annotated[
        int | None,
        typer.Option("--depth", help="Depth of table 5 of carpineto2015; the root is 1.", min=1, show_default="3"),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="DIR", help="A folder for tables and charts."),
    ] = None,
    report: Annotated[
        str | None,
        typer.Option("--report", metavar="FILE", help="One HTML page with the figures, beside what the paper says."),
    ] = None,
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """Run the experiments of a paper on a log: its figures as tables and charts, beside the values in its text."""
    from queryveil.assess.reproduce import PAPERS, beside
    from queryveil.assess.reproduce import reproduce as run
    from queryveil.files.folders import check_file, write_whole
    from queryveil.knowledge import open_taxonomy
    from queryveil.methods import Affinity

    if paper not in PAPERS:
        raise QueryveilError(f"There is no paper '{paper}' to reproduce; {did_you_mean(paper, PAPERS)}.")
    if (resolver or send_queries_to) and paper != "erola2012":
        raise QueryveilError("--resolver and --send-queries-to are only for erola2012; leave them out.")
    folder = Path(output) if output is not None else None
    if folder is not None and folder.exists():
        raise QueryveilError(f"{folder} exists already; choose another name.", code="exists")
    if folder is not None and not folder.parent.is_dir():
        raise QueryveilError(f"The folder {folder.parent} does not exist; make it first.")
    if folder is not None:
        require("A chart", "altair", "vl_convert")
    given = {"--sensitive": sensitive, "-k": k, "--theta": theta, "--user": user, "--depth": depth}
    unused = next((name for name, value in given.items() if value is not None), None)
    if unused is not None and paper != "carpineto2015":
        raise QueryveilError(f"{unused} is only for carpineto2015; leave it out.")
    if truth is not None and paper != "batet2013":
        raise QueryveilError("--truth is only for batet2013; leave it out.")
    if user is not None and as_json:
        raise QueryveilError("--user shows one person's queries on the terminal only; leave --json out.")
    ks = None if k is None else options.numbers("-k", k, int, least=2)
    thetas = None if theta is None else options.numbers("--theta", theta, float)
    for one in thetas or ():
        Affinity(theta=one)  # a wrong one must fail before the log is read
    page = None if report is None else check_file(report, (".html",), overwrite=False)
    if page is not None:
        from queryveil.reports import check_packages, paper_page

        check_packages()
    labels = None if sensitive is None else read_labels(sensitive)
    topics = None if truth is None else read_topics(truth)
    base = open_taxonomy(taxonomy)
    finder = resolvers.chosen(resolver, base, send_queries_to, cache, rate, timeout)
    read = reader(log)
    with progress("Reproducing") as step:
        figures = run(
            paper,
            read,
            base,
            resolver=finder,
            clusters=clusters or None,
            labels=labels,
            topics=topics,
            ks=ks,
            thetas=thetas,
            user=user,
            depth=depth or 3,
            seed=seed,
            progress=step,
        )
    compared = beside(PAPERS[paper].published, figures)
    if page is not None:
        options_given = {
            "--taxonomy TAXONOMY": taxonomy != "wordnet",
            f"--resolver {resolver}": resolver is not None,
            "--send-queries-to URL --cache FILE": send_queries_to is not None,
            f"--clusters {clusters}": paper == "batet2013" and clusters != 80,
            "--sensitive LABELS": sensitive is not None,
            "--truth TOPICS": truth is not None,
            f"-k {k}": k is not None,
            f"--theta {theta}": theta is not None,
            f"--depth {depth}": depth is not None,
        }
        words = [words for words, given in options_given.items() if given]
        command = " ".join(["queryveil reproduce", paper, "LOG", *words, f"--seed {seed}", "--report page.html"])
        made = paper_page(paper, figures, read, taxonomy=base.name, seed=seed, command=command)
        write_whole(page, made.encode(), private=True)
    about = {"paper": paper, "taxonomy": base.name, "seed": seed, "fingerprint": read.fingerprint}
    if folder is not None:
        _save(figures, about, folder)
    if as_json:
        shown = [{"name": figure.name, "title": figure.title, "rows": figure.rows} for figure in figures]
        published = [one.__dict__ for one in compared]
        typer.echo(printing.json_text({**about, "figures": shown, "published": published}))
        return
    printing.tables(*map(_table, figures), *_compared(compared))
    if page is not None:
        printing.tables(f"The report is {printing.printable(str(page))}; it is for those who may see the log.")
    if folder is not None:
        but = "" if user is None else ", except those about one user"
        printing.tables(f"Tables and charts are in {printing.printable(str(folder))}{but}.")


def _table(figure: "Figure") -> tuple[str, Any]:
    """The figure as a table: one row per line, one column per position on the axis.

    A figure with many positions is turned, so that it fits on a terminal. A table of the paper never is: its lines are
    queries or concepts, and have no room as heads of columns.
    """
    lines = [name for name in (figure.panel, figure.colour) if name is not None]
    places = list(dict.fromkeys(row[figure.x] for row in figure.rows))
    heads = [printing.printable(place if isinstance(place, str) else f"{figure.x} {place}") for place in places]
    values = [row[figure.y] for row in figure.rows if row[figure.y] is not None]
    form = None if figure.share else ".2f" if max(map(abs, values), default=1) >= 0.01 else ".2g"
    cells: dict[tuple[Any, ...], dict[Any, str]] = {}
    for row in figure.rows:
        cells.setdefault(tuple(row[name] for name in lines), {})[row[figure.x]] = _cell(row[figure.y], form)
    title = printing.printable(f"{figure.name.replace('-', ' ').capitalize()}: {figure.title}")
    if len(places) > 6 and lines and not figure.name.startswith("table"):
        turned = [
            (head, *(values.get(place, "") for values in cells.values()))
            for head, place in zip(heads, places, strict=True)
        ]
        named = (printing.printable(", ".join(map(str, key))) for key in cells)
        return printing.table(title, ("", *named), turned)
    head = (*lines, *heads)
    rows = [
        (*(printing.printable(str(part)) for part in key), *(values.get(place, "") for place in places))
        for key, values in cells.items()
    ]
    return printing.table(title, head, rows, texts=len(lines))


def _compared(compared: "list[Beside]") -> list[tuple[str, Any]]:
    """What the text of the paper says of these figures, beside what was found."""
    if not compared:
        return []
    rows = [
        tuple(map(printing.printable, (one.figure.replace("-", " "), one.what, one.value, one.ours, one.where)))
        for one in compared
    ]
    head = ("", "what", "the paper", "here", "where it says so")
    return [printing.table("What the text of the paper says, beside what was found here", head, rows, texts=5)]


def _cell(value: float | None, form: str | None) -> str:
    """A number in a form, or as a share."""
    from queryveil.text.show import percent

    if value is None:
        return "-"
    if isinstance(value, int):
        return f"{value:,}"
    return percent(value) if form is None else f"{value:{form}}"


def _save(figures: "list[Figure]", about: dict[str, Any], folder: Path) -> None:
    import csv
    from io import StringIO

    from queryveil.assess.drawings import save_chart
    from queryveil.files.folders import LocalFolder

    place = LocalFolder(folder)
    stage = place.stage()
    try:
        for figure in (figure for figure in figures if not figure.private):
            text = StringIO()
            writer = csv.DictWriter(text, list(figure.rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(figure.rows)
            stage.write(f"{figure.name}.csv", text.getvalue().encode())
            save_chart(figure.chart(), stage.path / f"{figure.name}.svg")
        stage.write("run.json", (printing.json_text(about) + "\n").encode())
        place.take(stage, None)
    finally:
        stage.remove()
