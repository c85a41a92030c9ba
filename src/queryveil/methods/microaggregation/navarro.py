"""The distance of users by features of their queries, and the record that keeps the frequencies of queries.

Guillermo Navarro-Arribas, Vicenç Torra, Arnau Erola, Jordi Castellà-Roca, User k-anonymity for privacy preserving data
mining of query logs, Information Processing and Management 48 (2012).

The five parts of the distance are those of the paper: time, domain of clicks, edit distance of strings, edit distance
over terms, and length. The paper compares queries; here each user has one value of each, so that a pair costs little.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from queryveil.arrays import Ragged, offsets
from queryveil.kernels import edits
from queryveil.kernels.semantic import ONE
from queryveil.knowledge.hosts import domains_of, hosts_of
from queryveil.log import LocalLog
from queryveil.methods.microaggregation.common import Profiles, Searches, by_main_interests
from queryveil.methods.microaggregation.interests import Distances

Longs = NDArray[np.int64]
Ints = NDArray[np.int32]

TYPICAL = 3
"""How many queries of a user are compared as strings and terms, those repeated most."""
MISSING = -1
"""The time of a user without one."""
_FINE = 1 << 10
"""Mean lengths are whole numbers of 1 / _FINE characters."""


@dataclass(frozen=True, eq=False)
class Features(Ragged):
    """What the users of a log are compared by; times, lengths and shares are whole numbers."""

    time: Longs | None
    """The mean time of a user's events in the span of the log; `MISSING` if none has a time. None if no event has."""
    domain: Ints
    clicks: Longs
    """How often user u clicked on domain[start[u]:start[u + 1]]."""
    domains: int
    """How many domains were clicked."""
    length: Longs
    """The mean length of a user's queries."""
    typical: Longs
    """A row for each user: queries, `MISSING` after the last."""
    text: pa.Array
    """The text of every query."""
    words: tuple[Longs, Ints]
    """The terms of query q are words[1][words[0][q]:words[0][q + 1]]."""

    @classmethod
    def of(cls, log: LocalLog, searches: Searches) -> "Features":
        """The features of the users of a log."""
        clicked, names = _domains(log)
        start = np.searchsorted(clicked["user_id"].to_numpy(), np.arange(log.n_users + 1))
        long = pc.utf8_length(log.query_text).to_numpy(zero_copy_only=False).astype(np.int64)
        characters = searches.sums(long[searches.query] * searches.times)
        query_terms = log.engine.fetch("SELECT query_id, word_id FROM query_terms ORDER BY query_id, position")
        return cls(
            start,
            _times(log),
            clicked["domain"].to_numpy(),
            clicked["n"].to_numpy(),
            names,
            mean_length(characters, searches.events),
            typical_of(searches),
            log.query_text,
            (
                np.searchsorted(query_terms["query_id"].to_numpy(), np.arange(log.n_queries + 1)),
                query_terms["word_id"].to_numpy().astype(np.int32),
            ),
        )

    def order(self) -> Longs:
        """The users, those who click most on the same domain next to each other; without clicks, by time and length."""
        if self.domains == 0:
            time = np.zeros_like(self.length) if self.time is None else self.time
            return np.lexsort((self.length, time))
        return by_main_interests(
            Profiles(self.start, self.domain, self.clicks.astype(np.int32), np.ones(self.domains, np.int32))
        )

    def rows_of(self, users: Longs) -> Distances:
        """The distances of some users, in units of 2**-32.

        The distance is the mean of its parts, without those for which the log has nothing: times, or clicks. Who has
        no time or no click is far from those who have, and near to those who have not.
        """
        typical = self.typical[users]
        some = np.unique(typical[typical >= 0])
        places = np.where(typical < 0, MISSING, np.searchsorted(some, typical))
        parts = [
            _lengths(self.length[users]),
            _edits(places, self.text.take(pa.array(some)).to_pylist()),
            _edits(places, _as_letters(*self.words, some)),
        ]
        if self.time is not None:
            parts.append(_apart(self.time[users]))
        if self.domains:
            parts.append(self._clicks(users))

        def row(v: int) -> Longs:
            total = parts[0](v)
            for part in parts[1:]:
                total += part(v)
            return total // len(parts)

        return Distances(len(users), row)

    def _clicks(self, users: Longs) -> Callable[[int], Longs]:
        """Half of what the shares of domains differ by."""
        some, place = Ragged(offsets(self.sizes[users])), self.positions(users)
        names, domain = np.unique(self.domain[place], return_inverse=True)
        share = self.clicks[place] * ONE // some.sums(self.clicks[place])[some.owners]
        every, start = some.sums(share), some.start

        def row(v: int) -> Longs:
            mine = np.zeros(len(names), np.int64)
            mine[domain[start[v] : start[v + 1]]] = share[start[v] : start[v + 1]]
            both = some.sums(np.minimum(mine[domain], share))
            return np.asarray(np.maximum(every, every[v]) - both)

        return row


def _lengths(length: Longs) -> Callable[[int], Longs]:
    """By how much the shorter mean length falls short of the longer."""

    def row(v: int) -> Longs:
        return np.asarray(np.abs(length - length[v]) * ONE // np.maximum(np.maximum(length, length[v]), 1))

    return row


def _apart(time: Longs) -> Callable[[int], Longs]:
    """How far apart in the span of the log."""

    def row(v: int) -> Longs:
        known = time >= 0
        if time[v] < 0:
            return np.where(known, ONE, 0)
        return np.where(known, np.abs(time - time[v]), ONE)

    return row


def _edits(places: Longs, strings: list[str]) -> Callable[[int], Longs]:
    """The edit distance of each typical query to the nearest of the other user, as a share of the longer; the mean."""
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cdist

    size = np.array([len(string) for string in strings], np.int64)
    count = (places >= 0).sum(axis=1)

    def row(v: int) -> Longs:
        mine = places[v][: count[v]]
        steps = cdist([strings[i] for i in mine], strings, scorer=Levenshtein.distance, dtype=np.int32)
        return edits.nearest(steps, mine, places, count, size)

    return row


def _as_letters(start: Longs, word: Ints, queries: Longs) -> list[str]:
    """Queries as strings whose letters stand for terms, so that their edit distance is that over terms."""
    of_query = Ragged(start)
    _, letter = np.unique(word[of_query.positions(queries)], return_inverse=True)
    # Half of a pair of surrogates is no letter.
    code = np.where(letter < 0xD800, letter, letter + 0x800).astype("<u4")
    text = code.tobytes().decode("utf-32-le")
    cut = offsets(of_query.sizes[queries]).tolist()
    return [text[a:b] for a, b in pairwise(cut)]


def clicked_domains(urls: pa.Array) -> pa.Array:
    """The domain of every address; a host that is a number or a suffix has none, and stands for itself."""
    host = pc.dictionary_encode(hosts_of(urls))
    return pc.coalesce(domains_of(host.dictionary), host.dictionary).take(host.indices)


def mean_time(total: Longs, events: Longs, span: int) -> Longs:
    """The mean time of users' events as a share of the span of the log, from the seconds after its beginning."""
    return np.asarray((total / events / max(span, 1) * ONE).astype(np.int64))


def mean_length(characters: Longs, events: Longs) -> Longs:
    """The mean length of users' queries."""
    return np.asarray(characters * _FINE // events)


def typical_of(searches: Searches) -> Longs:
    """The queries that each user repeats most, `MISSING` after the last."""
    place = searches.start[:-1, None] + np.arange(TYPICAL)
    there = place < searches.start[1:, None]
    return np.where(there, searches.query[np.where(there, place, 0)], MISSING).astype(np.int64)


def _domains(log: LocalLog) -> tuple[pa.Table, int]:
    """How often each user clicked on each domain (user_id, domain, n), and how many domains there are."""
    urls = log.engine.fetch("SELECT url_id, url FROM urls ORDER BY url_id")
    domain = pc.dictionary_encode(clicked_domains(urls["url"].combine_chunks()))
    of_url = domain.indices.fill_null(MISSING).cast(pa.int32())
    with log.workspace() as work:
        domains = work.read(pa.table({"url_id": urls["url_id"], "domain": of_url}), "domains of urls")
        found = work.fetch(
            f"SELECT c.user_id AS user_id, d.domain AS domain, count(*) AS n FROM clicks c JOIN {domains} d"
            " ON d.url_id = c.url_id WHERE d.domain >= 0 GROUP BY c.user_id, d.domain ORDER BY c.user_id, d.domain"
        )
    return found, len(domain.dictionary)


def _times(log: LocalLog) -> Longs | None:
    if not log.has_times:
        return None
    seconds = "CAST(epoch_us(time) // 1000000 AS BIGINT)"
    first, last = log.engine.row(f"SELECT min({seconds}) AS first, max({seconds}) AS last FROM events")
    found = log.engine.fetch(
        f"SELECT user_id, CAST(sum({seconds} - {first}) AS BIGINT) AS total, count(*) AS n FROM events"
        " WHERE time IS NOT NULL GROUP BY user_id ORDER BY user_id"
    )
    time = np.full(log.n_users, MISSING, np.int64)
    time[found["user_id"].to_numpy()] = mean_time(found["total"].to_numpy(), found["n"].to_numpy(), last - first)
    return time


def prototypes(searches: Searches, group: Ints, draw: NDArray[np.uint64]) -> tuple[Ints, Ints]:
    """The queries of the record of every group, as often as its users issued them on average: the group, and the query.

    A record is as long as the logs of its users are on average. What is left over by rounding goes to the queries that
    lost most, and of equals to those that the draw favours.

    Args:
        searches: Who issued what.
        group: The group of each user.
        draw: A random number for every query of the log.
    """
    pairs, place = np.unique(group[searches.owners].astype(np.int64) << 32 | searches.query, return_inverse=True)
    times = np.bincount(place, weights=searches.times).astype(np.int64)
    of, query = (pairs >> 32).astype(np.int32), (pairs & 0xFFFFFFFF).astype(np.int32)
    users = np.bincount(group)
    size = np.bincount(group, weights=searches.events).astype(np.int64)
    whole, rest = np.divmod(times, users[of])
    left = (2 * size + users) // (2 * users) - np.bincount(of, weights=whole).astype(np.int64)
    order = np.lexsort((query, draw[query], -rest, of))
    first = np.searchsorted(of, np.arange(len(users)))
    taken = whole[order] + (np.arange(len(of)) - first[of] < left[of])
    return np.repeat(of, taken), np.repeat(query[order], taken)
