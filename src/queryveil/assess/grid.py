"""What equality and affinity release of a log at every position of some sliders, looked up in tables.

`grid_making` counts the tables once. They do not grow with the log, so any setting is answered at once.
"""

import io
import json
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from queryveil import __version__
from queryveil.arrays import Bools
from queryveil.assess.arguments import at_least
from queryveil.errors import QueryveilError, did_you_mean
from queryveil.files.folders import write_whole
from queryveil.log import QueryLog
from queryveil.release.bands import Band, bands

KS = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 25, 30, 40, 50)
THETAS = (0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)
WORD_USERS = (2, 5, 10)

Method = Literal["equality", "affinity"]


@dataclass(frozen=True)
class Linkage:
    """What an attacker with a random half of each history learns from a release, as `history_linkage` measures it.

    Attributes:
        share: The share of unknown texts that they link to the right person.
        low: The lower end of its 95 % interval.
        high: The upper end.
        k: The k of the release that was measured.
        theta: Its theta; None for equality.
        measured: Whether that is the setting that was asked for. Otherwise the release that was measured holds
            everything which the setting releases, and more, so this is an upper estimate, but no proven bound.
    """

    share: float
    low: float | None
    high: float | None
    k: int
    theta: float | None
    measured: bool


@dataclass(frozen=True)
class Setting:
    """What one setting releases.

    Attributes:
        queries: Distinct queries.
        events: Their events.
        by_band: The same by frequency band, as in the manifest of the release.
        few_queries: Released queries that fewer than k people issued. A promise about similar queries covers them.
        exposed_queries: Those that no promise covers, as a policy counts them.
        linkage: What background knowledge reveals; None if it was not measured, which is never a risk of 0.
    """

    method: Method
    k: int
    theta: float | None
    min_word_users: int | None
    queries: int
    events: int
    by_band: tuple[Band, ...]
    few_queries: int
    exposed_queries: int
    linkage: Linkage | None


class Point(NamedTuple):
    """A release whose linkage was measured."""

    theta: float | None
    k: int
    share: float
    low: float | None
    high: float | None


@dataclass(frozen=True, eq=False)
class Grid:
    """Counts that answer any setting of equality, and each one of affinity on the grid.

    Attributes:
        made_of: What it was made of: the log, the version, the parameters. Two grids of the same are the same.
        ks: Values of k, ascending.
        thetas: Values of theta, ascending.
        word_users: Values of `min_word_users`, ascending, beside None, which stands for k.
        users: How many users the log has, which is the largest k of equality.
        table: For each `theta`, `word_users` (0 for k), `level`, number of `users` and of `shown` users, how many
            `queries` and `events` there are. The level counts the values of k for which they are released. A masked
            query has no shown users, and numbers above all that decide anything count as one.
        frequencies: For each number of `users` and of `shown` users, how many `queries` and `events` there are.
        points: The releases whose linkage was measured.
    """

    made_of: dict[str, Any]
    ks: tuple[int, ...]
    thetas: tuple[float, ...]
    word_users: tuple[int, ...]
    users: int
    table: pa.Table
    frequencies: pa.Table
    points: tuple[Point, ...]

    def at(self, method: Method, *, k: int, theta: float | None = None, min_word_users: int | None = None) -> Setting:
        """What a setting releases, and what is known about its risk.

        Args:
            method: `equality` or `affinity`.
            k: The least users. Of equality any; of affinity one of the grid.
            theta: Of affinity the least cosine, one of the grid.
            min_word_users: Of affinity the least users of each word, one of the grid; by default k.

        Raises:
            QueryveilError: If it is not on the grid.
        """
        if method == "equality":
            at_least(2, "grid", "k", k)
            if k > self.users:
                raise QueryveilError(f"The log has only {self.users:,} users, so k cannot be {k:,}; lower it.")
            theta = min_word_users = None
            rows, kept = self._counted(self.frequencies), self._counted(self.frequencies)["users"] >= k
        else:
            self._check(method, k, theta, min_word_users)
            rows = self._lines[theta or 0.0, min_word_users or 0]
            kept = rows["level"] > self.ks.index(k)
        few = int(rows["queries"][kept & (rows["users"] < k)].sum())
        found = _by_band(rows, kept)
        return Setting(
            method,
            k,
            theta,
            min_word_users,
            sum(band.kept_queries for band in found),
            sum(band.kept_events for band in found),
            found,
            few,
            0,  # both methods promise users behind each released query
            self._linkage(k, theta, min_word_users),
        )

    def _check(self, method: str, k: int, theta: float | None, min_word_users: int | None) -> None:
        if method != "affinity":
            raise QueryveilError(
                f"A grid has no method '{method}'; {did_you_mean(str(method), ['equality', 'affinity'])}."
            )
        for name, value, known in (
            ("k", k, self.ks),
            ("theta", theta, self.thetas),
            ("min_word_users", min_word_users, (None, *self.word_users)),
        ):
            if value not in known:
                listed = ", ".join(f"{one:g}" for one in known if one is not None)
                raise QueryveilError(f"The grid has no {name} of {value!r}; choose one of {listed}.")

    def _linkage(self, k: int, theta: float | None, words: int | None) -> Linkage | None:
        """What was measured of the setting, or of the nearest release that holds all of its queries."""
        least = k if words is None else min(k, words)
        around = [
            one
            for one in self.points
            if one.k <= least and (one.theta is None) == (theta is None) and (one.theta or 0.0) <= (theta or 0.0)
        ]
        if not around:
            return None
        best = max(around, key=lambda one: (one.theta or 0.0, one.k))
        measured = (best.k, best.theta) == (k, theta) and words in (None, k)
        return Linkage(best.share, best.low, best.high, best.k, best.theta, measured)

    @staticmethod
    def _counted(table: pa.Table) -> dict[str, Any]:
        return {name: table[name].to_numpy() for name in table.column_names}

    @cached_property
    def _lines(self) -> dict[tuple[float, int], dict[str, Any]]:
        """The rows of the table by theta and users of words."""
        rows = self._counted(self.table)
        return {
            (theta, words): {name: column[some] for name, column in rows.items()}
            for theta, words in product(self.thetas, (0, *self.word_users))
            for some in [(rows["theta"] == theta) & (rows["word_users"] == words)]
        }

    def save(self, folder: str | Path) -> None:
        """Write it into a folder, which is made for its owner only; an earlier grid there is replaced.

        Args:
            folder: The folder. What is in it describes the log, and is for those who may see that.
        """
        place = Path(folder)
        try:
            place.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise QueryveilError(f"{place} cannot be made: {error.strerror}; name another folder.") from None
        (place / _ABOUT).unlink(missing_ok=True)  # which says that all of it is there
        for name, table in ((_TABLE, self.table), (_FREQUENCIES, self.frequencies), (_POINTS, self._points)):
            sink = io.BytesIO()
            pq.write_table(table, sink)
            write_whole(place / name, sink.getvalue(), overwrite=True, private=True)
        write_whole(place / _ABOUT, _as_json(self.made_of), overwrite=True, private=True)

    @property
    def _points(self) -> pa.Table:
        return pa.Table.from_pylist([one._asdict() for one in self.points], schema=_POINT)

    @classmethod
    def load(cls, folder: str | Path, log: QueryLog) -> "Grid":
        """Read what `save` wrote.

        Args:
            folder: The folder.
            log: The log that the grid must be of.

        Raises:
            QueryveilError: If there is none, or it is of another log or version.
        """
        place = Path(folder)
        again = "make the grid again"
        try:
            about = json.loads((place / _ABOUT).read_bytes())
            tables = [
                pq.read_table(place / name).cast(schema)
                for name, schema in ((_TABLE, LEVELS), (_FREQUENCIES, USERS), (_POINTS, _POINT))
            ]
            axes = about["ks"], about["thetas"], about["word_users"]
        except FileNotFoundError:
            raise QueryveilError(f"There is no finished grid in {place}; {again}.") from None
        except (OSError, ValueError, KeyError, TypeError, pa.ArrowException):
            raise QueryveilError(f"The grid in {place} is damaged; {again}.") from None
        if {name: about.get(name) for name in about_log(log)} != json.loads(_as_json(about_log(log))):
            raise QueryveilError(f"The grid in {place} is of another log, or of another version; {again}.")
        points = tuple(Point(**row) for row in tables[2].to_pylist())
        ks, thetas, words = (tuple(axis) for axis in axes)
        return cls(about, ks, thetas, words, log.n_users, tables[0], tables[1], points)


_ABOUT, _TABLE, _FREQUENCIES, _POINTS = "grid.json", "levels.parquet", "frequencies.parquet", "linkage.parquet"
_COUNTS = [(name, pa.int64()) for name in ("users", "shown", "queries", "events")]
USERS = pa.schema(_COUNTS)
LEVELS = pa.schema([("theta", pa.float64()), ("word_users", pa.int64()), ("level", pa.int64()), *_COUNTS])
_POINT = pa.schema(
    [("theta", pa.float64()), ("k", pa.int64()), *((name, pa.float64()) for name in ("share", "low", "high"))]
)


def _by_band(rows: dict[str, Any], kept: Bools) -> tuple[Band, ...]:
    columns = {"users": rows["shown"], "queries": rows["queries"], "events": rows["events"]}
    columns |= {f"kept_{name}": np.where(kept, rows[name], 0) for name in ("queries", "events")}
    return bands(pa.table(columns))


def about_log(log: QueryLog) -> dict[str, Any]:
    """Everything about a log that decides what a grid says."""
    scrub = log.stats.scrub
    return {
        "software": f"queryveil {__version__}",
        "fingerprint": log.fingerprint,
        "scrub": None if scrub is None else scrub.model_dump(mode="json"),
        "language": list(log.language.ids),
    }


def _as_json(about: dict[str, Any]) -> bytes:
    return json.dumps(about, indent=2, sort_keys=True).encode() + b"\n"
