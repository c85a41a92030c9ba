"""What a release holds and what it holds back, page by page, for a person who reviews it and may see the log.

All queries are numbered and sorted once, as arrays. A page is then a slice, however many millions there are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from queryveil.arrays import Bools, Longs
from queryveil.assess.arguments import at_least
from queryveil.engines.memory import reserve
from queryveil.errors import QueryveilError, parameter
from queryveil.log import QueryLog, local
from queryveil.release import Release, check_log, loaded, loaded_release
from queryveil.scrubbing import DEFAULT_KINDS, KINDS, Scope, check_scrub, mask, scope_of
from queryveil.text import normal_form

Which = Literal["released", "held"]
Order = Literal["random", "longest", "rarest_word", "users"]
ORDERS: tuple[Order, ...] = ("random", "longest", "rarest_word", "users")
_HITS = pa.schema([("query_id", pa.int64()), ("hits", pa.int64())])


@dataclass(frozen=True)
class BrowsedQuery:
    """A query of the log, or a masked one of the release.

    Attributes:
        query: Its text, which a page must escape and may mask.
        users: Who issued it; 0 for a masked query, which stands for several.
        events: Its events in the log.
        word_users: The users of its rarest word.
        rows: Its rows in the release; 0 if it is held back.
        kinds: The kinds of personal data that scrubbing finds in it; None if that was not looked for.
    """

    query: str
    users: int
    events: int
    word_users: int
    rows: int
    kinds: tuple[str, ...] | None


@dataclass(frozen=True)
class Page:
    """Some of the queries that were asked for.

    Attributes:
        rows: The queries of this page.
        total: How many there are on all pages.
        page: Its number, from 0.
        size: How many queries a page has.
    """

    rows: tuple[BrowsedQuery, ...]
    total: int
    page: int
    size: int

    @property
    def pages(self) -> int:
        """How many pages there are."""
        return -(-self.total // self.size)


class Browser:
    """The queries of a log, those in a release and those held back, in several orders.

    Args:
        release: A release of queries, or its folder.
        log: Its log. If a scrubbed one is given, what scrubbing removed is not among the queries held back.
        seed: Random seed, for the random order.
        kinds: Kinds of personal data that are looked for; by default those of `scrub`.
        countries: Countries whose numbers are looked for, as in `scrub`.

    Raises:
        QueryveilError: If the release has no queries, or was made from another log.
    """

    def __init__(
        self,
        release: str | Path | Release,
        log: QueryLog,
        *,
        seed: int = 0,
        kinds: Sequence[str] = DEFAULT_KINDS,
        countries: Sequence[str] | None = None,
    ) -> None:
        self._log = here = local(log, "browse")
        release = loaded_release(release)
        check_log(release, here)
        if "query" not in release.schema.names or release.manifest.kind == "tokens":
            raise QueryveilError("The release has no queries that could be browsed; choose one that releases queries.")
        check_scrub("remove", kinds, None, countries)
        self._seed, self._kinds, self._scope = seed, tuple(kinds), scope_of(here.language, countries)
        reserve(40 * here.n_queries, "The list of all queries")
        with loaded(release, here) as released:
            found = here.engine.fetch(
                "SELECT q.query_id AS query_id, r.query AS query, r.n AS n FROM (SELECT query, count(*) AS n"  # noqa: S608  # a table of ours
                f" FROM {released} WHERE query IS NOT NULL GROUP BY query) AS r"
                " LEFT JOIN queries q ON q.query = r.query ORDER BY q.query_id, r.query"
            )
        known = pc.is_valid(found["query_id"])
        masked = found.filter(pc.invert(known))
        texts = masked["query"].combine_chunks().cast(pa.large_string())
        self._texts = pa.chunked_array([here.query_text, texts]) if len(texts) else pa.chunked_array([here.query_text])
        self._rows = np.zeros(len(self._texts), np.int64)
        self._rows[found["query_id"].filter(known).to_numpy()] = found["n"].filter(known).to_numpy()
        self._rows[here.n_queries :] = masked["n"].to_numpy()
        self._looked_for: tuple[str, Bools] = ("", np.ones(0, np.bool_))

    def page(
        self,
        which: Which = "released",
        *,
        order: Order = "random",
        one_user: bool = False,
        flagged: bool = False,
        contains: str = "",
        page: int = 0,
        size: int = 50,
    ) -> Page:
        """Some queries.

        Args:
            which: Those `released`, or those `held` back.
            order: At `random`; the `longest` text first; the `rarest_word` first; or the most `users` first.
            one_user: Only queries that one person issued.
            flagged: Only queries in which scrubbing finds personal data. The first such page looks at every query.
            contains: Only queries with this text in them; case and spaces do not matter.
            page: The number of the page, from 0.
            size: How many queries a page has.
        """
        for name, value, known in (("which", which, ("released", "held")), ("order", order, ORDERS)):
            if value not in known:
                raise QueryveilError(f"{parameter('browse', name)} must be one of {', '.join(known)}. Got {value!r}.")
        at_least(0, "browse", "page", page)
        at_least(1, "browse", "size", size)
        some = (self._rows > 0) == (which == "released")
        if one_user:
            some &= self._users == 1
        if flagged:
            some &= self._hits > 0
        text = normal_form(pa.array([contains]))[0].as_py()
        if text:
            some &= self._containing(text)
        ids = self._sorted(order)
        ids = ids[some[ids]]
        shown = ids[page * size : (page + 1) * size]
        return Page(self._browsed(shown), len(ids), page, size)

    def prepare(self, *, flagged: bool = False) -> None:
        """Do now what the first page of each order would do, and wait for.

        Args:
            flagged: Also look for personal data in every query, which takes longer; pages show it from then on.
        """
        for order in ORDERS:
            self._sorted(order)
        if flagged:
            _ = self._hits

    def _browsed(self, ids: NDArray[np.integer]) -> tuple[BrowsedQuery, ...]:
        """The queries of one page."""
        texts = self._texts.take(pa.array(ids)).to_pylist()
        events = self._in_log(self._log.events_per_query)
        hits = self._hits[ids].tolist() if "_hits" in self.__dict__ else [None] * len(ids)
        columns = (column[ids].tolist() for column in (self._users, events, self._word_users, self._rows))
        return tuple(
            BrowsedQuery(text, users, times, words, rows, None if bits is None else _kinds(bits))
            for text, users, times, words, rows, bits in zip(texts, *columns, hits, strict=True)
        )

    def _in_log(self, counts: Longs) -> Longs:
        """Counts of the queries of the log, and 0 for those that the log does not have."""
        return np.concatenate([counts, np.zeros(len(self._texts) - len(counts), np.int64)])

    @cached_property
    def _users(self) -> Longs:
        return self._in_log(self._log.users_per_query)

    @cached_property
    def _word_users(self) -> Longs:
        return self._in_log(self._log.rarest_word)

    @cached_property
    def _orders(self) -> dict[Order, NDArray[np.int32]]:
        return {}

    def _sorted(self, order: Order) -> NDArray[np.int32]:
        """The places of all queries in an order, which is found once."""
        if order not in self._orders:
            if order == "random":
                ids = np.random.default_rng(self._seed).permutation(len(self._texts))
            elif order == "longest":
                ids = np.argsort(-pc.utf8_length(self._texts).to_numpy(), kind="stable")
            elif order == "rarest_word":
                ids = np.argsort(self._word_users, kind="stable")
            else:
                ids = np.argsort(-self._users, kind="stable")
            self._orders[order] = ids.astype(np.int32)
        return self._orders[order]

    def _containing(self, text: str) -> Bools:
        """Which queries hold a text; the last answer is kept for the next page."""
        known, found = self._looked_for  # read at once, because other threads ask too
        if known != text:
            found = pc.match_substring(self._texts, text).to_numpy()
            self._looked_for = text, found
        return found

    @cached_property
    def _hits(self) -> Longs:
        """The kinds that are found in each query, as bits."""
        hits = np.zeros(len(self._texts), np.int64)
        with self._log.workspace() as work:
            look = partial(_look, kinds=self._kinds, scope=self._scope)
            found = work.map("SELECT query_id, query FROM queries", look, _HITS, "personal data")
            rows = work.fetch(f"SELECT query_id, hits FROM {found}")  # noqa: S608  # a table of ours
        hits[rows["query_id"].to_numpy()] = rows["hits"].to_numpy()
        rest = self._texts.slice(self._log.n_queries).combine_chunks().cast(pa.string())
        hits[self._log.n_queries :] = mask(rest, self._kinds, self._scope).hits if len(rest) else 0
        return hits


def _look(batch: pa.RecordBatch, *, kinds: tuple[str, ...], scope: Scope) -> pa.RecordBatch:
    """The queries of a batch with personal data, and which kinds."""
    hits = mask(batch["query"], kinds, scope).hits
    there = pa.array(hits > 0)
    columns = [batch["query_id"].cast(pa.int64()).filter(there), pa.array(hits).filter(there)]
    return pa.RecordBatch.from_arrays(columns, schema=_HITS)


def _kinds(bits: int) -> tuple[str, ...]:
    return tuple(kind for place, kind in enumerate(KINDS) if bits & (1 << place))
