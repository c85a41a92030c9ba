"""A series of daily releases against one release of the whole log, and what secret thresholds cost.

The log is cut into its 92 days beforehand. Both contenders read, anonymize by equality (k = 5), check and write. Time
is that of the processor, so that other work on the machine does not count.
"""

import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from benchmarks.harness import DATA, log_file, run, timed
from queryveil import Equality, Series, read_log

K = 5


def report(sizes: Sequence[int], times: int) -> Iterator[str]:
    """The tables of README.md."""
    yield "| log | one release | 92 daily releases | ratio | of all distinct queries | of all events | mean wait |" + (
        " power of what waits | peak memory, one | daily |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for users in sizes:
        _days(users)
        one = run("benchmarks.series:whole", users, times=times)
        many = run("benchmarks.series:daily", users, "none", times=times)
        single, found = json.loads(one.told), json.loads(many.told)
        yield (
            f"| {users:,} users, {single['rows']:,} rows | {single['seconds']:.1f} s | {found['seconds']:.1f} s |"
            f" **{found['seconds'] / single['seconds']:.1f}** | {found['queries']:,} of {single['queries']:,} |"
            f" {found['released'] / single['released']:.1%} | {found['wait']:.1f} days | {found['power']:.2f} |"
            f" {one.peak_gib:.1f} GiB | {many.peak_gib:.1f} GiB |"
        )
    yield ""
    yield "| log | jitter | distinct queries | events | newcomer attack, 4 accounts | 8 accounts |"
    yield "|---|---|---|---|---|---|"
    for users in (size for size in sizes if size <= 5_000):
        for jitter in ("none", "0.8", "0.5", "0.2"):
            found = json.loads(run("benchmarks.series:daily", users, jitter, "attacked").told)
            attacked = " | ".join(
                f"{value:.1%}, without the person {control:.1%}" for value, control in found["newcomer"]
            )
            yield f"| {users:,} users | {jitter} | {found['queries']:,} | {found['released']:,} | {attacked} |"


def _days(users: int) -> list[Path]:
    """The log cut into its days, made once."""
    folder = DATA / f"days-{users}"
    if not folder.exists():
        file = log_file(users)
        folder.mkdir()
        whole = pacsv.read_csv(
            file, parse_options=pacsv.ParseOptions(delimiter="\t", quote_char=False),
            convert_options=pacsv.ConvertOptions(column_types={"QueryTime": pa.string(), "AnonID": pa.string(),
                                                               "ItemRank": pa.string()}),
        )  # fmt: skip
        day = pc.utf8_slice_codeunits(whole["QueryTime"], 0, 10)
        for one in sorted(filter(None, pc.unique(day).to_pylist())):
            some = whole.filter(pc.equal(day, one))
            text = "\t".join(whole.column_names) + "\n"
            text += "".join("\t".join(v or "" for v in row.values()) + "\n" for row in some.to_pylist())
            (folder / f"{one}.tsv").write_text(text)
    return sorted(folder.iterdir())


def _warm(folder: str) -> None:
    """Compile the loops on a small log."""
    days = _days(500)[:2]
    series = Series.init(f"{folder}/warm", Equality(k=2))
    for number, day in enumerate(days):
        series.add(read_log(day), f"{folder}/warm-{number}")


def whole(users: str) -> None:
    """One release of the whole log."""
    with tempfile.TemporaryDirectory() as folder:
        _warm(folder)
        begin = time.process_time()
        with timed():
            log = read_log(log_file(int(users)))
            release = Equality(k=K).anonymize(log)
            release.save(f"{folder}/release")
        counts = release.manifest.counts
        told = {"rows": log.stats.rows, "queries": counts.queries, "released": counts.events}
        print(json.dumps({"seconds": time.process_time() - begin} | told))


def daily(users: str, jitter: str, attacked: str = "") -> None:
    """A release for every day."""
    days = _days(int(users))
    with tempfile.TemporaryDirectory() as folder:
        _warm(folder)
        series = Series.init(f"{folder}/ledger", Equality(k=K, jitter=None if jitter == "none" else float(jitter)))
        costs, waited, releases = [], [], []
        begin = time.process_time()
        with timed():
            for number, day in enumerate(days):
                start = time.process_time()
                period = series.add(read_log(day), f"{folder}/release-{number}")
                costs.append(time.process_time() - start)
                waited.append(period.waiting + period.released)
                if period.release is not None:
                    releases.append(f"{folder}/release-{number}")
        seconds = time.process_time() - begin
        status = series.status()
        told = {
            "seconds": seconds,
            "queries": status.sums["queries"],
            "released": status.sums["released"],
            "wait": status.mean_wait,
            "power": _power(waited, costs),
        }
        if attacked:
            found = series.attack(releases, (read_log(day) for day in days))
            told["newcomer"] = [
                (one.estimate.value, one.control.value) for one in found.findings if one.attack == "newcomer"
            ]
        print(json.dumps(told))


def _power(waited: list[int], costs: list[float]) -> float:
    """How the time of a period grows with what waits: the slope on logarithmic scales, of the second half."""
    half = len(costs) // 2
    return float(np.polyfit(np.log(waited[half:]), np.log(costs[half:]), 1)[0])


if __name__ == "__main__":
    for line in report([1000], 1):
        print(line)
