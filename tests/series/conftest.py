"""Small logs of several periods."""

from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import queryveil as qv

DAY = 86_400_000_000
BEGIN = datetime(2026, 1, 1)


def rows(*events: tuple[str, str, int], url: str | None = None) -> pa.Table:
    """Events of (user, query, hours since the beginning) as a table."""
    return pa.table(
        {
            "user": pa.array([user for user, _, _ in events], pa.string()),
            "query": pa.array([query for _, query, _ in events], pa.string()),
            "time": pa.array([BEGIN + timedelta(hours=hour) for _, _, hour in events], pa.timestamp("us")),
            "url": pa.array([url] * len(events), pa.string()),
            "rank": pa.array([None if url is None else 1] * len(events), pa.int32()),
        }
    )


def log(*events: tuple[str, str, int], url: str | None = None) -> qv.QueryLog:
    """Events as a log."""
    return qv.read_log(rows(*events, url=url))


WEEK = (
    [("a", "cats", 1), ("b", "cats", 2), ("a", "dogs", 3), ("c", "secret diary", 4)],
    [("c", "dogs", 25), ("d", "cats", 26), ("d", "fish", 27)],
    [("e", "cats", 50), ("b", "fish", 51), ("a", "birds", 52)],
)
"""Three days: cats leave on the first and the third, dogs on the second, fish on the third."""


class Made:
    """A series in a folder, with its logs and releases."""

    def __init__(self, folder: Path, method: qv.Equality, **given: object) -> None:
        self.folder = folder
        self.ledger = folder / "ledger"
        self.series = qv.Series.init(self.ledger, method, **given)
        self.logs: list[qv.QueryLog] = []
        self.releases: list[Path] = []

    def add(self, log: qv.QueryLog, **given: object) -> object:
        """Add a log."""
        place = self.folder / f"release-{len(self.logs) + 1}"
        period = self.series.add(log, place, **given)
        self.logs.append(log)
        if period.release is not None:
            self.releases.append(place)
        return period

    def wrong(self) -> list[str]:
        """What the verifier refutes."""
        found = self.series.verify(self.releases, self.logs)
        return [f"{one.claim} {one.counterexample}" for one in found.verdicts if not one.holds]


@pytest.fixture
def week(tmp_path: Path) -> Made:
    """The three days, released by equality with k = 2."""
    made = Made(tmp_path, qv.Equality(k=2))
    for day in WEEK:
        made.add(log(*day))
    return made


def queries(place: Path) -> list[str]:
    """The released queries, one for each event."""
    return sorted(qv.Release.load(place).to_arrow()["query"].to_pylist())
