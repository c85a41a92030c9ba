"""What an attacker sees of a release, and what the log knows of it, as arrays."""

import os
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from queryveil.arrays import Bools, Ints, Longs, Ragged, offsets, ranges
from queryveil.assess.attacks.finding import InapplicableError, NoUserMapError
from queryveil.engines import Table
from queryveil.kernels import holders as kernel
from queryveil.kernels.postings import postings
from queryveil.log import LocalLog, QueryLog, local
from queryveil.log.draws import keyed
from queryveil.methods.microaggregation.common import Searches
from queryveil.release import Release, check_log, loaded
from queryveil.release.scoring import Bags, Truth

NO_QUERY = "the release has no query of the log"
T = TypeVar("T")
_KEY = b"records compared"
_CHUNK = 2_000


@dataclass(frozen=True, eq=False)
class Holders(Ragged):
    """From items to the records, or users, that have them: item i is in record[start[i]:start[i + 1]]."""

    record: Ints
    people: Longs

    @classmethod
    def of(cls, start: Longs, item: Ints, items: int, people: Longs | None = None) -> "Holders":
        """Turn lists of items round.

        Args:
            start: The items of record r are item[start[r]:start[r + 1]].
            item: Items.
            items: How many there are.
            people: How many people stand behind each record; one if not given.
        """
        n = len(start) - 1
        found = postings(start, item, np.ones(len(item), np.int32), items, np.ones(n, np.bool_))
        return cls(found[0], found[1], np.ones(n, np.int64) if people is None else people)

    def count(self, start: Longs, item: Ints, own: Ints | None = None) -> tuple[Longs, Bools]:
        """How many people hold all items of a list, and whether the list's owner does.

        Args:
            start: List t is item[start[t]:start[t + 1]].
            item: Items.
            own: The record of the owner of each list; -1 for nobody's.
        """
        n = len(start) - 1
        whose = np.full(n, -1, np.int32) if own is None else own

        def part(at: int) -> tuple[Longs, Bools]:
            end = min(at + _CHUNK, n)
            return kernel.holders(start[at : end + 1], item, self.start, self.record, self.people, whose[at:end])

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            found = list(pool.map(part, range(0, n, _CHUNK)))
        if not found:
            return np.empty(0, np.int64), np.empty(0, np.bool_)
        return np.concatenate([count for count, _ in found]), np.concatenate([there for _, there in found])


@dataclass(frozen=True, eq=False)
class View:
    """A release as numbers, beside its log.

    Attributes:
        log: The log.
        texts: Whether queries are released, rather than items that stand for them.
        sessions: Whether a record is a session of a user, rather than all that is released of a user.
        bags: What each record has, and how often: queries of the log by their ids, or nodes. A released text that is no
            query of the log is left out; no record where events are not linked.
        rest: A digest of the texts of each record that are no queries of the log, 0 if there are none.
        people: How many users stand behind each record.
        truth: Who is behind which record; None if that is not known.
        queries: The released queries of the log, each once, ascending.
        nodes: The released nodes, each once, ascending.
    """

    log: LocalLog
    texts: bool
    sessions: bool
    bags: Bags
    rest: NDArray[np.uint64]
    people: Longs
    truth: Truth | None
    queries: Ints
    nodes: Ints

    @classmethod
    def of(cls, release: Release, log: QueryLog) -> "View":
        """Look at a release."""
        here = local(log, "An attack")
        check_log(release, here)
        columns = set(release.schema.names)
        if not columns & {"query", "node"}:
            raise InapplicableError(NO_QUERY)
        texts, column = "query" in columns, next((name for name in ("user", "session") if name in columns), None)
        with loaded(release, here) as released:
            rows = here.engine.fetch(_entries(released, texts, column))
            who = here.engine.fetch(_records(released, column, bool(release.manifest.last.parameters.get("compact"))))
            queries = nodes = np.empty(0, np.int32)
            other = here.engine.fetch(_other(released, column)) if texts and column else None
            if texts:
                queries = released_queries(released, here)
            else:
                found = here.engine.fetch(f"SELECT node FROM {released} GROUP BY node ORDER BY node")
                nodes = found["node"].to_numpy().astype(np.int32)
        ids = who["record"].to_numpy()
        record = np.searchsorted(ids, rows["record"].to_numpy())
        rest = np.zeros(len(ids), np.uint64)
        if other is not None:
            text = pc.dictionary_encode(other["query"].combine_chunks()).indices.to_numpy()
            np.add.at(rest, np.searchsorted(ids, other["record"].to_numpy()), _mixed(text, other["n"].to_numpy()))
        return cls(
            log=here,
            texts=texts,
            sessions=column == "session",
            bags=Bags(
                np.searchsorted(record, np.arange(len(ids) + 1)),
                rows["item"].to_numpy().astype(np.int32),
                rows["n"].to_numpy(),
            ),
            rest=rest,
            people=who["people"].to_numpy().astype(np.int64),
            truth=_truth(release, here, ids),
            queries=queries,
            nodes=nodes,
        )

    @property
    def records(self) -> int:
        """How many records there are."""
        return len(self.people)

    @cached_property
    def owner(self) -> Ints | None:
        """The record of every user of the log, -1 for one who is left out; None if a user has several, or not known."""
        if self.truth is None or self.sessions:
            return None
        found = np.full(self.log.n_users, -1, np.int32)
        found[self.truth.user] = self.truth.record
        return found

    @cached_property
    def searches(self) -> Searches:
        """Who issued what in the log."""
        return Searches.of(self.log)

    @cached_property
    def issued(self) -> Holders:
        """From queries to the users of the log who issued them."""
        return Holders.of(self.searches.start, self.searches.query, self.log.n_queries)

    @cached_property
    def holding(self) -> Holders:
        """From queries to the records that hold them."""
        return Holders.of(self.bags.start, self.bags.item, self.log.n_queries, self.people)

    @cached_property
    def kind(self) -> Longs:
        """Records that hold the same, as often, are of one kind; nobody can distinguish them."""
        whole: NDArray[np.uint64] = self.bags.sums(_mixed(self.bags.item, self.bags.n)) ^ keyed(_KEY, self.rest)
        return np.unique(whole, return_inverse=True)[1].astype(np.int64)

    @cached_property
    def class_size(self) -> Longs:
        """How many people stand behind the records of each kind."""
        found = np.zeros(int(self.kind.max(initial=-1)) + 1, np.int64)
        np.add.at(found, self.kind, self.people)
        return found

    def need_records(self) -> None:
        """Refuse a release without pseudonyms, or of items."""
        if not self.records or not self.texts:
            raise InapplicableError("needs a release of queries with pseudonyms")
        if not len(self.queries):
            raise InapplicableError(NO_QUERY)

    def owners(self) -> Ints:
        """The record of every user of the log."""
        self.need_records()
        return self.need_owner()

    def need_owner(self) -> Ints:
        """The record of every user of the log, whatever the records hold."""
        if self.sessions:
            raise InapplicableError(
                "needs one record per user, and here every session has its own; history linkage tries sessions"
            )
        if self.owner is None:
            raise NoUserMapError
        return self.owner


def view(release: Release, log: QueryLog) -> View:
    """What there is to see of a release."""
    return once("view", release, log, lambda: View.of(release, log))


def once(kind: str, release: Release, log: QueryLog, make: Callable[[], T]) -> T:
    """What is made of a release and its log: made once, and let go of with the release."""
    key = kind, id(release), id(log)
    if key not in _made:
        _made.setdefault(key, make())
        weakref.finalize(release, _made.pop, key, None)
    found: T = _made[key]
    return found


_made: dict[tuple[str, int, int], Any] = {}
"""All of it holds its log, and goes with its release, so that no other objects get these numbers meanwhile."""


def released_queries(released: Table, log: LocalLog) -> Ints:
    """The released queries of a log, each once, ascending."""
    found = log.engine.fetch(
        f"SELECT q.query_id AS query_id FROM queries q JOIN (SELECT query FROM {released} GROUP BY query) AS r"
        " ON r.query = q.query ORDER BY query_id"
    )
    return np.asarray(found["query_id"].to_numpy(), np.int32)


def lists(*columns: NDArray[np.integer]) -> tuple[Longs, Ints]:
    """Lists of as many items each, from columns of items: where each starts, and the items."""
    item = np.stack(columns, axis=1).astype(np.int32)
    return offsets(np.full(len(item), item.shape[1])), item.reshape(-1)


def events_of(log: LocalLog, people: Longs) -> tuple[Longs, Longs]:
    """The events of some users, ascending, and the place of the user of each; events are ordered by user."""
    user = log.events["user_id"].to_numpy()
    begin, end = np.searchsorted(user, people), np.searchsorted(user, people, side="right")
    return ranges(begin, end - begin), np.repeat(np.arange(len(people)), end - begin)


def _mixed(item: NDArray[np.integer], times: Longs) -> NDArray[np.uint64]:
    """A digest of each item and how often it is there."""
    return keyed(_KEY, (item.astype(np.uint64) << np.uint64(32)) | times.astype(np.uint64))


def _other(released: Table, column: str) -> str:
    """SQL of the released texts of each record that are no queries of the log."""
    return (
        f'SELECT r."{column}" AS record, r.query AS query, count(*) AS n FROM {released} r LEFT JOIN queries q'
        f' ON q.query = r.query WHERE q.query_id IS NULL GROUP BY r."{column}", r.query'
    )


def _entries(released: Table, texts: bool, column: str | None) -> str:
    """SQL of the distinct items of each record."""
    if column is None:
        return "SELECT 0 AS record, 0 AS item, 0 AS n WHERE 1 = 0"
    item = "q.query_id" if texts else "r.node"
    joined = " JOIN queries q ON q.query = r.query" if texts else ""
    return (
        f'SELECT r."{column}" AS record, {item} AS item, count(*) AS n FROM {released} r{joined}'
        f' GROUP BY r."{column}", {item} ORDER BY record, item'
    )


def _records(released: Table, column: str | None, compact: bool) -> str:
    """SQL of the records, and the people behind each."""
    if column is None:
        return "SELECT 0 AS record, 0 AS people WHERE 1 = 0"
    people = "max(users)" if compact else "1"
    return f'SELECT "{column}" AS record, {people} AS people FROM {released} GROUP BY "{column}" ORDER BY record'


def _truth(release: Release, log: LocalLog, ids: Longs) -> Truth | None:
    if release.pseudonyms is None or release.log is not log:
        return None
    found: pa.Table = log.engine.fetch(
        f'SELECT user_id, "user" AS record FROM {release.pseudonyms} ORDER BY record, user_id'
    )
    return Truth(np.searchsorted(ids, found["record"].to_numpy()), found["user_id"].to_numpy().astype(np.int64))
