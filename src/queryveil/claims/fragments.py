"""The claim about fragments of queries: words, runs of words and noun phrases.

The check knows a fragment by the digest of its text. It shares neither the word ids nor the steps of the rule with the
method, so that users can be counted on another log just as well.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field

from queryveil.arrays import offsets
from queryveil.claims.base import MOST, Claim, Count, Evidence
from queryveil.claims.fragment_list import read_fragments
from queryveil.errors import QueryveilError, option
from queryveil.kernels.chunks import join_words
from queryveil.kernels.digest import digests
from queryveil.kernels.types import Longs
from queryveil.knowledge.phrases import noun_phrase_places
from queryveil.log import QueryLog
from queryveil.text import language
from queryveil.text.arrays import byte_spans, from_offsets

MOST_WORDS = 5
"""The longest run of words that can be asked for."""

_PLACE = pa.schema([("place", pa.int64()), ("size", pa.int64()), ("low", pa.int64()), ("high", pa.int64())])
_FOUND = pa.schema([("low", pa.int64()), ("high", pa.int64()), ("users", pa.int64())])


class FragmentUsers(Claim):
    """Each fragment of a released query was used by at least `users` users."""

    kind: Literal["fragment-users"] = "fragment-users"
    users: Count
    words: Annotated[int, Field(ge=1, le=MOST_WORDS)]
    """Every run of up to so many words is a fragment."""
    noun_phrases: bool = False
    """Whether every noun phrase is one too."""
    counted_on: bool = False
    """Whether users were counted on another log than the one released."""
    listed: str | None = None
    """The file with fragments that were allowed earlier and stay allowed."""
    of_words: ClassVar[bool] = True
    LIST: ClassVar[str] = "on the publisher's list of fragments that were allowed earlier"

    @property
    def statement(self) -> str:
        """The exact promise in one sentence."""
        runs = "word" if self.words == 1 else f"run of up to {self.words} words"
        phrases = " and every noun phrase" if self.noun_phrases else ""
        stays = f", or is {self.LIST}" if self.listed is not None else ""
        return (
            f"Every released query has a word, and every {runs}{phrases} in it was used by at least {self.users} users"
            f" of the log{' on which users were counted' if self.counted_on else ''}{stays}."
        )

    @property
    def headline(self) -> str:
        """The promise in at most fifteen words."""
        where, stays = " of another log" * self.counted_on, ", or were listed" * (self.listed is not None)
        return f"Fragments of queries have at least {self.users} users{where}{stays}."

    def check(self, evidence: Evidence) -> str | None:
        """Count the distinct users of every fragment of every released query."""
        unknown = evidence.unknown_query()
        if unknown is not None:
            return f"the query '{unknown[0]}' was issued by nobody"
        with evidence.log.workspace() as work:
            schema = pa.schema([("query_id", evidence.log.id_type), *_PLACE])
            mine = work.map(
                f"SELECT query_id, query FROM {evidence.queries}",  # noqa: S608  # a table of ours
                lambda batch: _of_queries(batch, schema, self.words, self.noun_phrases),
                schema,
                "released fragments",
            )
            empty = evidence.first(
                f"SELECT q.query AS query FROM {evidence.queries} q LEFT JOIN {mine} f ON f.query_id = q.query_id"  # noqa: S608  # tables of ours
                " WHERE f.query_id IS NULL ORDER BY q.query LIMIT 1"
            )
            if empty is not None:
                return f"the query '{empty[0]}' has no word"
            wanted = work.fetch(f"SELECT low, high, min(size) AS size FROM {mine} GROUP BY low, high")  # noqa: S608  # a table of ours
            allowed = [users_of(evidence.log.counted, wanted), *self._stays(evidence)]
            given = work.read(pa.concat_tables(allowed), "users of fragments")
            users = f"SELECT low, high, max(users) AS users FROM {given} GROUP BY low, high"  # noqa: S608  # a table of ours
            found = evidence.first(
                "SELECT q.query AS query, f.place AS place, f.size AS size, coalesce(u.users, 0) AS users"  # noqa: S608  # tables of ours, and a checked number
                f" FROM {mine} f JOIN {evidence.queries} q ON q.query_id = f.query_id"
                f" LEFT JOIN ({users}) AS u ON u.low = f.low AND u.high = f.high"
                f" WHERE coalesce(u.users, 0) < {self.users} ORDER BY q.query, f.place, f.size LIMIT 1"
            )
        if found is None:
            return None
        query, place, size, counted = found
        words = language().words(pa.array([str(query)])).text.to_pylist()
        fragment = " ".join(words[place : place + size])  # type: ignore[operator]
        return f"the fragment '{fragment}' of '{query}' was used by {counted} users"

    def _stays(self, evidence: Evidence) -> list[pa.Table]:
        """What is on the list, as if everybody had used it."""
        if self.listed is None:
            return []
        if self.listed not in evidence.lists:
            given = option("list", self.listed, python=f"lists=['{self.listed}']")
            raise QueryveilError(
                f"The release was made with a list of fragments that stay allowed and is not part of it; give {given}."
            )
        low, high = digests_of(read_fragments(evidence.lists[self.listed])["fragment"].combine_chunks())
        return [pa.table([low, high, np.full(len(low), MOST)], schema=_FOUND)]


def users_of(log: QueryLog, wanted: pa.Table) -> pa.Table:
    """How many distinct users of a log used each fragment; one that nobody used is left out.

    Args:
        log: The log.
        wanted: The `low` and `high` half of the digest of each fragment, and its `size` in words.
    """
    if not len(wanted):
        return _FOUND.empty_table()
    sizes = sorted(set(wanted["size"].to_pylist()))
    known = np.unique(wanted["low"].to_numpy())
    schema = pa.schema([("query_id", log.id_type), ("low", pa.int64()), ("high", pa.int64())])

    def look(batch: pa.RecordBatch) -> pa.RecordBatch:
        return _among(batch, schema, sizes, known)

    with log.workspace() as work:
        held = work.map("SELECT query_id, query FROM queries", look, schema, "fragments of queries")
        asked = work.read(wanted, "fragments asked for")
        return work.fetch(
            "SELECT low, high, count(*) AS users FROM (SELECT h.low AS low, h.high AS high, e.user_id AS user_id"  # noqa: S608  # tables of ours
            f" FROM {held} h JOIN {asked} w ON w.low = h.low AND w.high = h.high"
            " JOIN events e ON e.query_id = h.query_id GROUP BY h.low, h.high, e.user_id) AS pairs GROUP BY low, high"
        ).cast(_FOUND)


def fragments_in(texts: pa.Array, words: int, noun_phrases: bool) -> pa.Table:
    """The fragments of queries in normal form.

    Returns:
        For each fragment the place of its `query` in the array, its `place` among the words of the query, its `size` in
        words, its `text`, and the `low` and `high` half of the digest of that.
    """
    cut = _Cut.of(texts)
    runs = [(begin, size) for size in range(1, words + 1) for begin in [cut.run_places(size)]]
    begin, size = (np.concatenate(part) for part in zip(*((one, np.full(len(one), n)) for one, n in runs), strict=True))
    query = cut.owner(begin)
    if noun_phrases:
        more, first, sizes = noun_phrase_places(texts, language())
        query, size = np.append(query, more), np.append(size, sizes)
        begin = np.append(begin, cut.start[more] + first)
    text = cut.texts(begin, begin + size)
    low, high = digests_of(text)
    place = begin - cut.start[query]
    return pa.table({"query": query, "place": place, "size": size, "text": text, "low": low, "high": high})


class _Cut(NamedTuple):
    """The words of queries."""

    start: Longs
    word: NDArray[np.int32]
    known: pa.Array

    @classmethod
    def of(cls, texts: pa.Array) -> "_Cut":
        split = language().words(texts)
        distinct = split.text.dictionary_encode()
        return cls(offsets(split.per_query), distinct.indices.to_numpy(), distinct.dictionary)

    def run_places(self, size: int) -> Longs:
        """Where each run of so many words begins."""
        last = np.repeat(self.start[1:], np.diff(self.start)) - size
        places = np.arange(len(self.word))
        return places[places <= last]

    def owner(self, places: Longs) -> Longs:
        """The query of each word."""
        return np.searchsorted(self.start, places, "right") - 1

    def texts(self, begin: Longs, end: Longs) -> pa.Array:
        """The texts of runs, with a blank between words."""
        return from_offsets(*join_words(*byte_spans(self.known), self.word, begin, end))


def _of_queries(batch: pa.RecordBatch, schema: pa.Schema, words: int, noun_phrases: bool) -> pa.RecordBatch:
    """All fragments of some queries."""
    found = fragments_in(batch["query"].cast(pa.large_string()), words, noun_phrases).combine_chunks()
    ids = batch["query_id"].take(found["query"].combine_chunks())
    columns = [ids, *(found[name].combine_chunks() for name in schema.names[1:])]
    return pa.RecordBatch.from_arrays(columns, names=schema.names).cast(schema)


def _among(batch: pa.RecordBatch, schema: pa.Schema, sizes: Sequence[int], known: Longs) -> pa.RecordBatch:
    """The runs of some sizes in some queries, as far as the lower half of their digest is known."""
    cut = _Cut.of(batch["query"].cast(pa.large_string()))
    parts = []
    for size in sizes:
        begin = cut.run_places(size)
        low, high = digests_of(cut.texts(begin, begin + size))
        some = np.flatnonzero(np.isin(low, known))
        parts.append((cut.owner(begin[some]), low[some], high[some]))
    query, low, high = (np.concatenate(part) for part in zip(*parts, strict=True))
    return pa.RecordBatch.from_arrays(
        [batch["query_id"].take(pa.array(query)), pa.array(low), pa.array(high)], names=schema.names
    ).cast(schema)


def digests_of(texts: pa.Array) -> tuple[Longs, Longs]:
    """The halves of the digest of each text."""
    low, high = digests(*byte_spans(texts))
    return low.view(np.int64), high.view(np.int64)
