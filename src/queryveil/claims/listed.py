"""Claims about lists of texts: what is released is on an allow-list, and nothing of a block-list or of decisions is.

The checks share nothing with the rules that apply the lists but how a file is read.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queryveil.arrays import Bools, offsets
from queryveil.claims.base import Claim, Evidence
from queryveil.claims.lists import read_texts
from queryveil.errors import QueryveilError, option
from queryveil.scrubbing.decisions import Decisions, read_decisions
from queryveil.text import Language

_QUERY = pa.schema([("query", pa.string())])
_BETWEEN = "\x1f"
"""What no word has."""


def given_list(evidence: Evidence, name: str) -> Path:
    """The file of a list that a release was made with.

    Raises:
        QueryveilError: If it was not given.
    """
    if name not in evidence.lists:
        raise missing_list(name)
    return evidence.lists[name]


def missing_list(name: str) -> QueryveilError:
    """What to say about a list that was not given."""
    given = option("list", name, python=f"lists=['{name}']")
    return QueryveilError(f"The release was made with a list that is not part of it; give {given}.")


class AllowedQueries(Claim):
    """Each released query is on an allow-list."""

    kind: Literal["allowed-queries"] = "allowed-queries"
    listed: str
    exact: ClassVar[str] = "Every released query is on the publisher's allow-list."

    def check(self, evidence: Evidence) -> str | None:
        """Look every released query up."""
        with evidence.log.workspace() as work:
            texts = pa.table({"entry": read_texts(given_list(evidence, self.listed)).unique().cast(pa.string())})
            listed = work.read(texts, "allowed queries")
            found = evidence.first(
                f"SELECT r.query AS query FROM {evidence.released} r LEFT JOIN {listed} l ON l.entry = r.query"  # noqa: S608  # tables of ours
                " WHERE r.query IS NOT NULL AND l.entry IS NULL ORDER BY r.query LIMIT 1"
            )
        return None if found is None else f"the query '{found[0]}' is not on the list"


class BlockedWords(Claim):
    """No released query holds a word or phrase of a block-list."""

    kind: Literal["blocked-words"] = "blocked-words"
    listed: str
    of_words: ClassVar[bool] = True
    exact: ClassVar[str] = "No released query holds a word or phrase of the publisher's block-list."

    def check(self, evidence: Evidence) -> str | None:
        """Look for the list in every released query."""
        words = read_texts(given_list(evidence, self.listed))
        found = _first_of(evidence, partial(holds, phrases=words, language=evidence.log.language))
        return found and f"the query '{found}' holds an entry of the list"


class DecidedQueries(Claim):
    """No released query is blocked, or holds a blocked word, by what a person decided."""

    kind: Literal["decided-queries"] = "decided-queries"
    listed: str
    of_words: ClassVar[bool] = True
    exact: ClassVar[str] = "No released query is one that a reviewer blocked, or holds a word that they blocked."
    short: ClassVar[str] = "Nothing that a reviewer blocked is released."

    def check(self, evidence: Evidence) -> str | None:
        """Look for what is blocked in every released query."""
        decided = Decisions.of(read_decisions(given_list(evidence, self.listed)))
        language = evidence.log.language

        def blocked(queries: pa.Array) -> Bools:
            found = holds(queries, decided.blocked_words, language)
            found |= pc.is_in(queries, value_set=decided.blocked_queries).to_numpy(zero_copy_only=False)
            return found

        found = _first_of(evidence, blocked)
        return found and f"the query '{found}' is blocked, or holds a word that is"


def _first_of(evidence: Evidence, wrong: Callable[[pa.Array], Bools]) -> str | None:
    """The first released query that is wrong."""

    def look(batch: pa.RecordBatch) -> pa.RecordBatch:
        queries = batch["query"].cast(pa.large_string())
        return pa.RecordBatch.from_arrays([queries.filter(pa.array(wrong(queries))).cast(pa.string())], schema=_QUERY)

    with evidence.log.workspace() as work:
        asked = f"SELECT query FROM {evidence.released} WHERE query IS NOT NULL GROUP BY query"  # noqa: S608  # a table of ours
        made = work.map(asked, look, _QUERY, "queries of a list")
        found = work.fetch(f"SELECT query FROM {made} ORDER BY query LIMIT 1").to_pylist()  # noqa: S608  # a table of ours
    return str(found[0]["query"]) if found else None


def holds(queries: pa.Array, phrases: pa.Array, language: Language) -> Bools:
    """Which queries hold one of the phrases as a run of whole words; a phrase without a word is looked for as it is."""
    found = np.zeros(len(queries), np.bool_)
    split = language.words(phrases)
    starts, parts = offsets(split.per_query), split.text.to_pylist()
    runs: dict[int, list[str]] = {}
    for place, text in enumerate(phrases.to_pylist()):
        words = parts[starts[place] : starts[place + 1]]
        runs.setdefault(len(words), []).append(_BETWEEN.join(words) if words else text)
    for mark in runs.pop(0, []):
        found |= pc.match_substring(queries, mark).to_numpy(zero_copy_only=False)
    held = language.words(queries)
    word, owner = held.text.cast(pa.large_string()), np.repeat(np.arange(len(queries)), held.per_query)
    for size, known in runs.items():
        many = len(word) - size + 1
        if many < 1:
            continue
        texts = pc.binary_join_element_wise(
            *(word.slice(at, many) for at in range(size)), pa.scalar(_BETWEEN, pa.large_string())
        )
        there = pc.is_in(texts, value_set=pa.array(known, pa.large_string())).to_numpy(zero_copy_only=False)
        found[owner[:many][there & (owner[:many] == owner[size - 1 :])]] = True
    return found
