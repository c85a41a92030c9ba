"""Count what equality and affinity release of a log at every position of some sliders: the tables of a `Grid`.

For each theta and each least number of users of a word, what affinity releases shrinks as k grows. So every query has a
level, the largest k of the grid for which it is released, and counts of queries by level and users answer any setting.
What background knowledge reveals cannot be counted in this way: it is measured on some releases, and stands for all
settings that release less.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from queryveil.arrays import Bools, Longs
from queryveil.assess.arguments import at_least, several
from queryveil.assess.attacks.finding import InapplicableError
from queryveil.assess.attacks.history_linkage import history_linkage
from queryveil.assess.grid import KS, LEVELS, THETAS, USERS, WORD_USERS, Grid, Point, about_log
from queryveil.errors import QueryveilError, option
from queryveil.log import LocalLog, QueryLog, local
from queryveil.log.sessions import Link
from queryveil.methods import Affinity, Equality
from queryveil.methods.affinity.method import Candidates
from queryveil.methods.linked import LinkedMethod
from queryveil.methods.queries import Selection, Speaker

LINKAGE_KS = (2, 5, 10, 20)
_MANY = 100
"""Larger numbers of users, if no k is larger, count as one: the last frequency band begins here."""

Progress = Callable[[str, float], None]


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
    about = about_log(here) | {
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
    points: list[Point]


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
        return self._by(np.zeros(self.log.n_queries, np.int64), size).select(USERS.names)

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

    def equality(self) -> Iterator[Point]:
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
            level, points = np.zeros(log.n_queries, np.int64), list[Point]()
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
                    yield _Line(pa.table(columns).cast(LEVELS), points)
                    level, points = np.zeros(log.n_queries, np.int64), []

    def _measured(self, method: Equality | Affinity, kept: Bools, theta: float | None, k: int) -> Iterator[Point]:
        """What background knowledge reveals in a release of some queries; nothing if there is nothing to link."""
        with self.log.workspace() as work:
            queries = work.read(pa.table({"query_id": np.flatnonzero(kept).astype(np.int32)}), "queries of a setting")
            release = method.publish(self.log, work, Selection(queries), Speaker(method), seed=self.seed)
            try:
                found = history_linkage(release, self.log, seed=self.seed).estimate
            except InapplicableError:
                return
        yield Point(theta, k, found.value, found.low, found.high)


def _silent(step: str, share: float) -> None:
    pass
