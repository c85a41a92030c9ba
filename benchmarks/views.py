"""Ingest of results shown against ingest of clicks, per row, on the same number of rows and on the very same rows."""

import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness import DATA, log_file, run

HERE = "benchmarks.views"
ROWS_PER_EVENT = (10, 1.27)
"""Rows of an event of the synthetic log: with views, and with clicks alone."""


def ingest(path: str) -> None:
    """Read a log; prints rows and seconds of processor time, which other work on the machine does not change much."""
    import queryveil as qv

    qv.read_log(Path(__file__).parent / "warm.tsv")  # loads the compiled kernels
    begin = time.process_time()
    log = qv.read_log(path)
    print(f"{log.stats.rows} {time.process_time() - begin} {log.stats.views} {log.stats.clicks}")


def views_file(users: int) -> Path:
    """A synthetic log of results shown, made once."""
    from queryveil import generate

    DATA.mkdir(exist_ok=True)
    path = DATA / f"views-{users}.tsv"
    if not path.exists():
        generate(path, users=users, seed=1, views=True)
    return path


def as_clicks(path: Path) -> Path:
    """The same rows without the column that says which were clicked, so that all are clicks."""
    made = path.with_name(f"clicks-of-{path.name}")
    if not made.exists():
        with path.open("rb") as rows, made.open("wb") as out:
            out.writelines(row.rpartition(b"\t")[0] + b"\n" for row in rows)
    return made


def report(sizes: list[int], times: int) -> Iterator[str]:
    """Seconds of processor time per million rows, and how many times those of clicks."""
    yield "| log | rows | views | clicks | CPU s | CPU s per million rows | ratio to clicks |"
    yield "|---|--:|--:|--:|--:|--:|--:|"
    for users in sizes:
        few = max(100, round(users * ROWS_PER_EVENT[1] / ROWS_PER_EVENT[0]))
        views = views_file(few)
        contenders = {
            f"clicks of {users:,} users": log_file(users),
            f"views of {few:,} users": views,
            "the rows of these views, read as clicks": as_clicks(views),
        }
        found = {}
        for name, path in contenders.items():
            told = [run(f"{HERE}:ingest", str(path)).told.split() for _ in range(times)]
            found[name] = min(told, key=lambda one: float(one[1]))
        each = {name: 1e6 * float(one[1]) / int(one[0]) for name, one in found.items()}
        clicks, shown, same = each.values()
        ratios = ("1", f"{shown / clicks:.2f}", f"1 (views: {shown / same:.2f})")
        for (name, (rows, seconds, views_read, clicked)), ratio in zip(found.items(), ratios, strict=True):
            numbers = f"{int(rows):,} | {int(views_read):,} | {int(clicked):,} | {float(seconds):.1f}"
            yield f"| {name} | {numbers} | {each[name]:.2f} | {ratio} |"
