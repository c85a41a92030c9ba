"""What queries are compared by beside their words: what they mean, and which addresses were clicked for them.

This only defines what is compared. Methods and checks find similar queries each in their own way.

A vector puts names near names and towns near towns, and would let one person's query vouch for another's. So a query is
compared by meaning or clicks only if many people use each of its words, and none of them is a number, the name of a
person or a small place. Every other query is compared by its words alone.
"""

import hashlib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from queryveil.arrays import Bools, Ints, Longs
from queryveil.engines.memory import reserve
from queryveil.log import LocalLog
from queryveil.log.local import Tokens
from queryveil.scrubbing.lists import CITY, FIRST, LAST, MAINLY, REGION, WORD, Lists, lists_of, plain

Similarity = Literal["words", "meaning", "clicks"]
SIMILARITIES: tuple[Similarity, ...] = ("words", "meaning", "clicks")

PLACE_SHARE = 0.01
"""The share of all users who must name a place before it is large, or type a family name before it is a brand."""

FEWEST = 50
"""The least such users in a small log, where that share is a few people."""

TITLES = ("attorney", "dr", "judge", "miss", "mr", "mrs", "ms", "pastor", "prof", "professor", "rev", "sir")
"""Words before a name of a person, even of one that is also another word (`mr brown`)."""

USERS_PER_QUERY = 2
"""An address that has fewer users for each query that leads to it is a hub, which says nothing about these queries."""

MAIN = 3
"""An address is one of the main ones of a query if one in so many of those who clicked chose it."""

_TOGETHER = 50_000
"""How many queries have their vectors made at a time, which bounds the memory."""


@cache
def tables_digest() -> str:
    """A digest of the embedding and the lists of names and places, with which other versions may have others."""
    found = hashlib.sha256()
    for package, name in (("knowledge", "embedding"), ("scrubbing", "names"), ("scrubbing", "local_names")):
        kind = "npz" if name == "embedding" else "parquet"
        found.update(
            hashlib.sha256(files(f"queryveil.{package}").joinpath("data", f"{name}.{kind}").read_bytes()).digest()
        )
    return found.hexdigest()[:32]


class Meanings(NamedTuple):
    """Queries whose words are all known, ascending, and the vector of each in whole numbers."""

    query: Longs
    vector: NDArray[np.int16]


class Clicked(NamedTuple):
    """The main addresses of queries: pairs in the order of queries, then addresses, which are numbered from 0."""

    query: Longs
    address: Ints


def comparable(log: LocalLog, least: int) -> Bools:
    """Which queries may be compared by more than their words.

    Args:
        log: The log.
        least: The least users of each word.
    """
    tokens = log.tokens
    known = lists_of(log.language.ids)
    kind = _kinds(tokens.text, known)
    digit = pc.match_substring_regex(tokens.text, r"\p{Nd}").to_numpy(zero_copy_only=False)
    users = log.users_per_word
    large = max(least, FEWEST, int(np.ceil(PLACE_SHARE * log.n_users)))
    is_large = (kind & REGION > 0) | ((kind & CITY > 0) & (users >= large))
    part_of_place, in_small = _places(log, known.kinds.items(), large)
    word = tokens.word
    placed = is_large[word] | part_of_place
    # Many family names are also brands or languages (`nissan`, `english`), which many people type.
    name = (kind & FIRST > 0) | ((kind & LAST > 0) & (users < large))
    named = name & (kind & WORD == 0) | (kind & MAINLY > 0)
    small = (kind & CITY > 0) & (kind & WORD == 0)
    bad = digit[word] | (users[word] < least) | in_small | ((named | small)[word] & ~placed)
    bad |= _pairs(tokens, kind, part_of_place)
    found: Bools = (tokens.sums(bad) == 0) & (tokens.sizes > 0)
    return found


def _kinds(words: pa.Array, known: Lists) -> NDArray[np.uint8]:
    """What each word can be; a form such as `john's` or `johns` can be a name like `john`."""
    of_text = np.append(known.of_text, np.uint8(0))
    kind = of_text[_looked_up(plain(words), known.texts)]
    base = of_text[_looked_up(plain(pc.replace_substring_regex(words, r"(['’]s|s['’]|s)$", "")), known.texts)]
    may_be = ((kind | base) & WORD == 0) | (base & MAINLY > 0)
    name = np.where(may_be, base & (FIRST | LAST | MAINLY), 0)
    found: NDArray[np.uint8] = (kind | name).astype(np.uint8)
    return found


def _pairs(tokens: Tokens, kind: NDArray[np.uint8], of_place: Bools) -> Bools:
    """Which words may be a first and a family name together, or a title and a name, even if both are also other words.

    An initial may stand between the names. Words of a large place of several words are no names; a single word such as
    `georgia` may be.
    """
    word, bad = tokens.word, np.zeros(len(tokens.word), np.bool_)
    first, last = (kind[word] & bit > 0 for bit in (FIRST, LAST))
    title = pc.is_in(tokens.text, pa.array(TITLES, tokens.text.type)).to_numpy(zero_copy_only=False)[word]
    initial = pc.equal(pc.utf8_length(tokens.text), 1).to_numpy(zero_copy_only=False)[word]
    for step in (1, 2):
        n = max(0, len(word) - step)
        one, other = slice(n), slice(len(word) - n, None)
        named = (first[one] & last[other]) | (last[one] & first[other]) | (title[one] & (first | last)[other])
        near = (tokens.owners[one] == tokens.owners[other]) & ~of_place[one] & ~of_place[other]
        if step == 2:
            near &= initial[1 : n + 1]
        bad[other] |= named & near
    return bad


def _places(log: LocalLog, listed: Iterable[tuple[str, int]], large: int) -> tuple[Bools, Bools]:
    """For each word of each query whether it is part of a large place of two or three words, and of a small one."""
    tokens = log.tokens
    of_large, of_small = np.zeros(len(tokens.word), np.bool_), np.zeros(len(tokens.word), np.bool_)
    named = [(text.split(" "), kind & REGION > 0) for text, kind in listed if " " in text and kind & (CITY | REGION)]
    number = {part: place for place, part in enumerate(sorted({part for parts, _ in named for part in parts}))}
    # Words of places have numbers of their own, so small that three of them fit into one.
    of_word = _looked_up(plain(tokens.text), pa.array(list(number), pa.large_string()))
    word = of_word[tokens.word]
    for n in (2, 3):
        rows = [(*(number[part] for part in parts), region) for parts, region in named if len(parts) == n]
        *words, region = np.array(rows, np.int64).reshape(-1, n + 1).T
        found = log.ngrams(n, min_users=large)
        frequent = _packed([of_word[found[f"word_{i}"].to_numpy()] for i in range(1, n + 1)])
        key = _packed(words)
        is_large = (region > 0) | np.isin(key, frequent)
        run = _packed([word[i : max(i, len(word) - n + 1 + i)] for i in range(n)])
        run = np.where(tokens.owners[: len(run)] == tokens.owners[n - 1 :], run, -1)
        for marked, keys in ((of_large, key[is_large]), (of_small, key[~is_large])):
            hit = np.flatnonzero(np.isin(run, keys))
            for i in range(n):
                marked[hit + i] = True
    return of_large, of_small & ~of_large


def _looked_up(texts: pa.Array, listed: pa.Array) -> Longs:
    """The place of each text in a list, -1 for one that is not there."""
    found: Longs = pc.fill_null(pc.index_in(texts, listed), -1).to_numpy().astype(np.int64)
    return found


def _packed(words: list[Longs]) -> Longs:
    """Runs of two or three words of places as one number each, -1 for a run with another word."""
    found = words[0].copy()
    for following in words[1:]:
        found = np.where((found < 0) | (following < 0), -1, found << 20 | following)
    return found


def meanings(log: LocalLog, queries: Longs) -> Meanings:
    """The vectors of some queries, ascending; one with a word that the embedding does not know is left out."""
    from queryveil.kernels.close import whole
    from queryveil.knowledge.vectors import embed, width

    reserve(2 * width() * len(queries), "The meanings of queries")
    kept, vectors = [np.empty(0, np.int64)], [np.empty((0, width()), np.int16)]
    for begin in range(0, len(queries), _TOGETHER):
        part = queries[begin : begin + _TOGETHER]
        found = embed(log.query_text.take(pa.array(part)))
        sure = found.confidence >= 1
        kept.append(part[sure])
        vectors.append(whole(found.vectors[sure]))
    return Meanings(np.concatenate(kept), np.concatenate(vectors))


def clicked(log: LocalLog, users: int) -> Clicked:
    """The main addresses of each query: those that a third of its clicking users chose.

    Args:
        log: The log.
        users: The least users who clicked an address, for whatever query. Hubs do not count.
    """
    with log.workspace() as work:
        each = work.table(
            "SELECT DISTINCT query_id AS query_id, url_id AS url_id, user_id AS user_id FROM clicks"
            " WHERE url_id IS NOT NULL",
            "clicks of users",
        )
        address = work.table(
            f"SELECT url_id AS url_id FROM {each} GROUP BY url_id"  # noqa: S608  # checked numbers and tables of ours
            f" HAVING count(DISTINCT user_id) >= greatest({users}, {USERS_PER_QUERY} * count(DISTINCT query_id))",
            "addresses that count",
        )
        found = work.fetch(
            "SELECT e.query_id AS query_id, e.url_id AS url_id"  # noqa: S608  # checked numbers and tables of ours
            f" FROM {each} e JOIN {address} a ON a.url_id = e.url_id"
            f" JOIN (SELECT query_id, count(DISTINCT user_id) AS users FROM {each} GROUP BY query_id) AS q"
            " ON q.query_id = e.query_id GROUP BY e.query_id, e.url_id"
            f" HAVING {MAIN} * count(*) >= max(q.users) ORDER BY e.query_id, e.url_id"
        )
    _, number = np.unique(found["url_id"].to_numpy(), return_inverse=True)
    return Clicked(found["query_id"].to_numpy().astype(np.int64), number.astype(np.int32))
