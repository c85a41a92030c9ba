"""Ten released queries, masked: enough to see the shape of a release, too little to read what few people typed."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from queryveil.arrays import Longs
from queryveil.assess.measures.counts import counted
from queryveil.log import QueryLog
from queryveil.release import Release, loaded
from queryveil.release.bands import Band
from queryveil.scrubbing import KINDS, mask, scope_of
from queryveil.text.show import printable

SHOWN = 10
COMMON = 20
"""Users of the log from whom on a word is shown, and a query may be shown whole."""
_WORDS, _LETTERS = 8, 8


@dataclass(frozen=True)
class Example:
    """A released query as it is shown, and how many users issued it."""

    text: str
    issued: str


def examples(release: Release, log: QueryLog, bands: tuple[Band, ...]) -> list[Example]:
    """Some released queries of each frequency band, masked.

    What scrubbing finds is named by its kind. Of other words only those stay that at least 20 users of the log typed;
    of the rest one sees the first letter and about how long they are. A query of fewer users is never shown whole.
    Those of a band are spread evenly over it in the order of the log's ids, which follow from texts.

    Args:
        release: The release. One of generalized items or tokens shows those, the latter cut off.
        log: Its log.
        bands: Its frequency bands.
    """
    if "query" not in release.schema.names:
        return [Example(printable(text)[:60], "") for text in _items(release, log)]
    if release.manifest.kind == "tokens":
        return [
            Example(" ".join(word[:4] + "…" for word in printable(text).split()[:_WORDS]), "")
            for text in _tokens(release, log)
        ]
    chosen = _chosen(release, log, bands)
    texts = masked(log, [query for query, _ in chosen])
    return [Example(text, band) for text, (_, band) in zip(texts, chosen, strict=True)]


def _chosen(release: Release, log: QueryLog, bands: tuple[Band, ...]) -> list[tuple[int, str]]:
    """Some released queries of each band, evenly spread, by their ids, and the name of the band."""
    log.ensure_tables("per_query")
    edges = "".join(
        f" WHEN p.users >= {band.least} AND p.users <= {band.most or log.n_users} THEN {place}"
        for place, band in enumerate(bands)
    )
    with loaded(release, log) as released, log.workspace() as work:
        kept = work.number(
            f"SELECT CASE{edges} ELSE -1 END AS band, p.query_id AS query_id FROM per_query p"
            f" JOIN ({counted(release, released)}) AS c ON c.query_id = p.query_id WHERE c.n > 0",
            ("band", "query_id"),
            "n",
        )
        some = work.fetch(
            f"SELECT band, min(n) AS first_n, count(*) AS queries FROM {kept} WHERE band >= 0 GROUP BY band"
            " ORDER BY band"
        ).to_pylist()
        places: list[int] = []
        for i, band in enumerate(some):
            room = -(-(SHOWN - len(places)) // (len(some) - i))
            places += (band["first_n"] + _even(band["queries"], room)).tolist()
        if not places:
            return []
        wanted = ", ".join(map(str, places))
        found = work.fetch(f"SELECT query_id, band FROM {kept} WHERE n IN ({wanted}) ORDER BY n")
    return [(row["query_id"], bands[row["band"]].label) for row in found.to_pylist()]


def _even(n: int, most: int) -> Longs:
    """At most so many places of n, evenly spread."""
    return np.unique(np.linspace(0, n - 1, min(most, n)).astype(np.int64))


def _items(release: Release, log: QueryLog) -> list[str]:
    """Ten distinct items, evenly spread; there are no more than the taxonomy has."""
    with loaded(release, log) as released:
        found = log.engine.fetch(f"SELECT item AS text FROM {released} GROUP BY item ORDER BY item")["text"]
    return [str(text) for text in found.take(pa.array(_even(len(found), SHOWN))).to_pylist()]


def _tokens(release: Release, log: QueryLog) -> list[str]:
    """Ten distinct texts of tokens, the first in their order, which is random."""
    with loaded(release, log) as released:
        found = log.engine.fetch(
            f"SELECT query AS text FROM {released} WHERE query IS NOT NULL GROUP BY query ORDER BY query LIMIT {SHOWN}"
        )
    return [str(text) for text in found["text"].to_pylist()]


def masked(log: QueryLog, queries: Sequence[int]) -> list[str]:
    """Queries of a log by their ids, masked as those of `examples` are."""
    if not queries:
        return []
    ids = ", ".join(str(int(query)) for query in queries)
    log.ensure_tables("word_users", "per_query")
    found = log.engine.fetch(f"SELECT query_id, query FROM queries WHERE query_id IN ({ids})")
    texts = dict(
        zip(
            found["query_id"].to_pylist(),
            mask(_text(found), KINDS, scope_of(log.language, None)).texts.to_pylist(),
            strict=True,
        )
    )
    common = log.engine.fetch(
        "SELECT w.word AS word FROM query_terms t JOIN words w ON w.word_id = t.word_id JOIN word_users u"
        f" ON u.word_id = t.word_id WHERE t.query_id IN ({ids}) AND u.users >= {COMMON} GROUP BY w.word"
    )
    known = set(common["word"].to_pylist())
    often = log.engine.fetch(f"SELECT query_id FROM per_query WHERE query_id IN ({ids}) AND users >= {COMMON}")
    whole = set(often["query_id"].to_pylist())
    return [shape(texts[query], known, whole=query in whole) for query in queries]


def masked_texts(log: QueryLog, texts: Sequence[str]) -> list[str]:
    """Texts that are no queries of the log, such as those in which scrubbing masked something, masked further."""
    log.ensure_tables("word_users")
    words = sorted({word for text in texts for word in printable(text).split()})
    with log.workspace() as work:
        given = work.read(pa.table({"word": pa.array(words, pa.large_string())}))
        common = work.fetch(
            f"SELECT w.word AS word FROM {given} g JOIN words w ON w.word = g.word"  # a table of ours
            f" JOIN word_users u ON u.word_id = w.word_id WHERE u.users >= {COMMON} GROUP BY w.word"
        )
    known = set(common["word"].to_pylist())
    scrubbed = mask(pa.array(texts, pa.string()), KINDS, scope_of(log.language, None)).texts.to_pylist()
    return [shape(text, known, whole=False) for text in scrubbed]


def _text(found: pa.Table) -> pa.Array:
    return pa.array(found["query"].to_pylist(), pa.string())


def shape(text: str, known: set[str], *, whole: bool) -> str:
    """A text with its unknown words masked, and at least one of them unless it may be shown whole.

    Args:
        text: The text, scrubbed.
        known: Words that may be shown.
        whole: Whether all of them may be.

    Example:
        >>> shape("cheap zanzibar hotels <email>", {"cheap", "hotels"}, whole=False)
        'cheap z······· hotels <email>'
        >>> shape("cheap hotels", {"cheap", "hotels"}, whole=False)
        'cheap h·····'
    """
    masks = {f"<{kind}>" for kind in KINDS}
    words = printable(text).split()
    stay = [word in masks or word in known for word in words]
    if not whole and all(stay):
        last = next((i for i in reversed(range(len(words))) if words[i] not in masks), None)
        if last is not None:
            stay[last] = False
    parts = [word if stays else _hidden(word) for word, stays in zip(words, stay, strict=True)]
    return " ".join(parts[:_WORDS]) + (" …" if len(parts) > _WORDS else "")


def _hidden(word: str) -> str:
    first = "#" if word[0].isdigit() else word[0] if len(word) > 1 else "·"
    return first + "·" * min(len(word) - 1, _LETTERS)
