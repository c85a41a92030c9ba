"""How many queries and events of the log a decision is about, so that one sees that before and after deciding."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queryveil.arrays import Longs
from queryveil.log import LocalLog
from queryveil.scrubbing.decisions import Decision, Decisions
from queryveil.text import Language, normal_form


class Hits(NamedTuple):
    """What a decision is about."""

    queries: int
    events: int


def hits_of(decision: Decision, log: LocalLog) -> Hits:
    """How many distinct queries of a log a decision names or finds its words in, and their events."""
    text = str(normal_form(pa.array([decision.text]))[0])
    if decision.of == "query":
        place = log.find(text)
        found = np.array([] if place is None else [place], np.int64)
    elif decision.kind == "block":
        found = _with_words(decision, text, log)
    else:
        some = np.flatnonzero(pc.match_substring(log.query_text, text).to_numpy(zero_copy_only=False))
        texts = log.query_text.take(pa.array(some)).to_pylist()
        found = some[[f" {text} " in f" {query} " for query in texts]] if len(some) else some
    return Hits(len(found), int(log.events_per_query[found].sum()))


def read_as(text: str, language: Language) -> str | None:
    """The words that a blocked text is read as, if it has signs around them, which do not count; None otherwise."""
    normal = normal_form(pa.array([text]))
    words = language.words(normal).text.to_pylist()
    same = not words or "".join(words) == str(normal[0]).replace(" ", "")
    return None if same else " ".join(words)


def _with_words(decision: Decision, text: str, log: LocalLog) -> Longs:
    """The queries that a word blocks: those with all of its words are few, and only they are looked at."""
    words = log.language.words(pa.array([text], pa.large_string())).text.unique().cast(pa.string())
    if len(words):
        with log.workspace() as work:
            given = work.read(pa.table({"word": words}), "words of a decision")
            some = work.fetch(
                f"SELECT t.query_id AS query_id FROM query_terms t JOIN words w ON w.word_id = t.word_id JOIN {given} g"  # noqa: S608  # a table of ours
                f" ON g.word = w.word GROUP BY t.query_id HAVING count(DISTINCT t.word_id) = {len(words)}"
            )["query_id"].to_numpy()
    else:
        some = np.flatnonzero(pc.match_substring(log.query_text, text).to_numpy(zero_copy_only=False))
    texts = log.query_text.take(pa.array(some))
    found: Longs = some[Decisions.of([decision]).block(texts, log.language)]
    return found
