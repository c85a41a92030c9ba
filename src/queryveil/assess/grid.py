"""What equality and affinity release of a log at every position of some sliders, counted once and then only looked up.

For each theta and each least number of users of a word, what affinity releases shrinks as k grows. So every query has a
level, the largest k of the grid for which it is released, and counts of queries by level and users answer any setting.
What background knowledge reveals cannot be counted in this way: it is measured on some releases, and stands for all
settings that release less.
"""

import io
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from queryveil import __version__
from queryveil.arrays import Bools, Longs
from queryveil.assess.arguments import at_least, several
from queryveil.assess.attacks.finding import InapplicableError
from queryveil.assess.attacks.history_linkage import history_linkage
from queryveil.errors import QueryveilError, did_you_mean, option
from queryveil.files.folders import write_whole
from queryveil.log import LocalLog, QueryLog, local
from queryveil.log.sessions import Link
from queryveil.methods import Affinity, Equality
from queryveil.methods.affinity.method import Candidates
from queryveil.methods.linked import LinkedMethod
from queryveil.methods.queries import Selection, Speaker
from queryveil.release.bands import Band, bands

KS = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 25, 30, 40, 50)
THETAS = (0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)
WORD_USERS = (2, 5, 10)
LINKAGE_KS = (2, 5, 10, 20)
_MANY = 100
"""Larger numbers of users, if no k is larger, count as one: the last frequency band begins here."""

Method = Literal["equality", "affinity"]
Progress = Callable[[str, float], None]


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


class _Point(NamedTuple):
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
    points: tuple[_Point, ...]

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
                for name, schema in ((_TABLE, _LEVELS), (_FREQUENCIES, _USERS), (_POINTS, _POINT))
            ]
            axes = about["ks"], about["thetas"], about["word_users"]
        except FileNotFoundError:
            raise QueryveilError(f"There is no finished grid in {place}; {again}.") from None
        except (OSError, ValueError, KeyError, TypeError, pa.ArrowException):
            raise QueryveilError(f"The grid in {place} is damaged; {again}.") from None
        if {name: about.get(name) for name in _log(log)} != json.loads(_as_json(_log(log))):
            raise QueryveilError(f"The grid in {place} is of another log, or of another version; {again}.")
        points = tuple(_Point(**row) for row in tables[2].to_pylist())
        ks, thetas, words = (tuple(axis) for axis in axes)
        return cls(about, ks, thetas, words, log.n_users, tables[0], tables[1], points)


_ABOUT, _TABLE, _FREQUENCIES, _POINTS = "grid.json", "levels.parquet", "frequencies.parquet", "linkage.parquet"
_COUNTS = [(name, pa.int64()) for name in ("users", "shown", "queries", "events")]
_USERS = pa.schema(_COUNTS)
_LEVELS = pa.schema([("theta", pa.float64()), ("word_users", pa.int64()), ("level", pa.int64()), *_COUNTS])
_POINT = pa.schema(
    [("theta", pa.float64()), ("k", pa.int64()), *((name, pa.float64()) for name in ("share", "low", "high"))]
)


def grid(
    log: QueryLog,
    *,
    ks: Sequence[int] = KS,
    thetas: Sequence[float] = THETAS,
    word_users: Sequence[int] = WORD_USERS,
    linkage_ks: Sequence[int] = LINKAGE_KS,
    link: Link = "none",
    seed: int = 0,
    progress: Progress | None = None,
    **parameters: Any,
) -> Grid:
    """Count what equality and affinity release for every k, theta and least users of a word, in one run.

    Each number is what `anonymize` with the same parameters releases. Concepts, vectors and the graph are made once.

    Args:
        log: The log.
        ks: Values of k; those above the users of the log are left out.
        thetas: Values of theta, the least cosine.
        word_users: Values of `min_term_users` beside k itself.
        linkage_ks: Values of k, of `ks`, at which linkage is measured: of equality, and of affinity for each theta.
        link: How the releases link events, which decides what can be learned from them.
        seed: Random seed of what is measured.
        progress: Called with what is being done and the share of it that is finished. What it raises ends the work.
        **parameters: Further parameters of `Affinity`.
    """
    here = local(log, "grid")
    found = {name: sorted(set(several(values))) for name, values in (("ks", ks), ("word_users", word_users))}
    at_least(2, "grid", "ks", *found["ks"])
    at_least(1, "grid", "word_users", *found["word_users"])
    used, words, angles = [k for k in found["ks"] if k <= here.n_users], found["word_users"], sorted(set(thetas))
    if not used or not angles:
        raise QueryveilError("A grid needs at least one theta, and a k of at most the users of the log.")
    for theta in angles:  # checked as the method checks it
        method = Affinity(k=used[0], theta=theta, link=link, **parameters)
    if {"min_term_users"} & set(parameters):
        raise QueryveilError(f"A grid takes a list, {option('word_users')}, instead of {option('min_term_users')}.")
    made = _Making(here, used, angles, words, method, sorted({*linkage_ks} & {*used}), seed, progress or _silent)
    frequencies = made.frequencies()
    points, table = [*made.equality()], []
    for line in made.affinity():
        points += line.points
        table.append(line.table)
    about = _log(here) | {
        "ks": used,
        "thetas": angles,
        "word_users": words,
        "linkage_ks": made.linkage_ks,
        "seed": seed,
        "parameters": method.parameters(),
    }
    return Grid(
        about, tuple(used), tuple(angles), tuple(words), here.n_users, pa.concat_tables(table), frequencies, (*points,)
    )


class _Line(NamedTuple):
    """What was counted for one theta and one least number of users of words."""

    table: pa.Table
    points: list[_Point]


@dataclass(frozen=True)
class _Making:
    """The heavy part."""

    log: LocalLog
    ks: list[int]
    thetas: list[float]
    word_users: list[int]
    method: Affinity
    linkage_ks: list[int]
    seed: int
    progress: Progress

    @cached_property
    def _shown(self) -> Longs:
        """The users of each query, 0 for a masked one."""
        users = self.log.users_per_query.copy()
        if self.log.stats.scrub is not None and self.log.stats.scrub.how == "mask":
            self.log.ensure_tables("masked")
            users[self.log.engine.fetch("SELECT query_id FROM masked")["query_id"].to_numpy()] = 0
        return users

    def frequencies(self) -> pa.Table:
        """How many queries there are by users."""
        self.progress("users of queries", 0.0)
        size = int(self.log.users_per_query.max(initial=0)) + 1
        return self._by(np.zeros(self.log.n_queries, np.int64), size).select(_USERS.names)

    def _by(self, level: Longs, size: int) -> pa.Table:
        """Queries and events by level and users, where larger numbers of users count as the last."""
        users, shown = (np.minimum(each, size - 1) for each in (self.log.users_per_query, self._shown))
        # Shown users are the users, or 0 of a masked query.
        key = (level * size + users) * 2 + (shown != users)
        queries = np.bincount(key)
        events = np.bincount(key, weights=self.log.events_per_query).astype(np.int64)  # exact up to 2**53
        there = np.flatnonzero(queries)
        user = there // 2 % size
        return pa.table(
            {
                "level": there // 2 // size,
                "users": user,
                "shown": np.where(there % 2 == 1, 0, user),
                "queries": queries[there],
                "events": events[there],
            }
        )

    def equality(self) -> Iterator[_Point]:
        """What linkage is at each k of equality."""
        for k in self.linkage_ks:
            self.progress(f"linkage of equality, k = {k}", 0.0)
            method = Equality(k=k, **{name: getattr(self.method, name) for name in LinkedMethod.model_fields})
            yield from self._measured(method, self.log.users_per_query >= k, None, k)

    def affinity(self) -> Iterator[_Line]:
        """Every theta, with each least number of users of words."""
        log, size = self.log, max(_MANY, *self.ks) + 1
        self.progress("concepts", 0.02)
        candidates = Candidates(self.method, log, sorted({*self.ks, *self.word_users}))
        self.progress("the graph of similar queries", 0.05)
        graph = candidates.graph(self.thetas[0])
        rules = [None, *self.word_users]
        whole = len(rules) * len(self.thetas) * len(self.ks)
        done = 0
        for words in rules:
            level, points = np.zeros(log.n_queries, np.int64), list[_Point]()
            for one in candidates.released(self.ks, self.thetas, term_users=words, graph=graph):
                self.progress(f"affinity, theta = {one.theta:g}, k = {one.k}", 0.1 + 0.9 * done / whole)
                done += 1
                level += one.queries
                if words is None and one.k in self.linkage_ks:
                    method = self.method.model_copy(update={"k": one.k, "theta": one.theta})
                    points += self._measured(method, one.queries, one.theta, one.k)
                if one.k == self.ks[-1]:
                    table = self._by(level, size)
                    axes = {"theta": np.full(len(table), one.theta), "word_users": np.full(len(table), words or 0)}
                    columns = axes | {name: table[name] for name in table.column_names}
                    yield _Line(pa.table(columns).cast(_LEVELS), points)
                    level, points = np.zeros(log.n_queries, np.int64), []

    def _measured(self, method: Equality | Affinity, kept: Bools, theta: float | None, k: int) -> Iterator[_Point]:
        """What background knowledge reveals in a release of some queries; nothing if there is nothing to link."""
        with self.log.workspace() as work:
            queries = work.read(pa.table({"query_id": np.flatnonzero(kept).astype(np.int32)}), "queries of a setting")
            release = method.publish(self.log, work, Selection(queries), Speaker(method), seed=self.seed)
            try:
                found = history_linkage(release, self.log, seed=self.seed).estimate
            except InapplicableError:
                return
        yield _Point(theta, k, found.value, found.low, found.high)


def _by_band(rows: dict[str, Any], kept: Bools) -> tuple[Band, ...]:
    columns = {"users": rows["shown"], "queries": rows["queries"], "events": rows["events"]}
    columns |= {f"kept_{name}": np.where(kept, rows[name], 0) for name in ("queries", "events")}
    return bands(pa.table(columns))


def _log(log: QueryLog) -> dict[str, Any]:
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


def _silent(step: str, share: float) -> None:
    pass
