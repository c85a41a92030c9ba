"""Disambiguation: split a record that several people share by topic, into the queries of each.

Arnau Erola, Jordi Castellà-Roca, Anonimización de registros de búsqueda mediante la semántica de las consultas, 2012
(in Spanish), future work.
"""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from queryveil.arrays import Floats, Ints, Longs, sampled
from queryveil.assess.attacks.finding import Finding, InapplicableError, mean
from queryveil.assess.attacks.view import View, view
from queryveil.knowledge.vectors import embed
from queryveil.log import LocalLog, QueryLog
from queryveil.release import Release

GROUPS = 300
_QUERIES = 400
_PERMUTED = 10
"""How often the queries of a record are permuted among its people, for the control."""


def disambiguation(release: Release, log: QueryLog, *, seed: int = 0, groups: int = GROUPS) -> Finding:
    """How well the queries of shared records fall apart into those of each person.

    The distinct queries of a record are put into as many clusters as people share it, by average linkage of how alike
    they are: the mean of the cosine of their meanings and that of their words, rare ones counting more. Their agreement
    with who issued each query is the adjusted Rand index, over the queries that only one of these people issued: 1 if
    they agree, 0 as much as chance would.

    Args:
        release: A release with shared records that knows who is who.
        log: Its log.
        seed: Random seed.
        groups: Most groups of people to try; of more, a random sample. Of a long record, 400 queries are drawn.
    """
    seen = view(release, log)
    owner = seen.owners()
    rng = np.random.default_rng(seed)
    group = np.where(owner >= 0, seen.kind[owner], -1)
    members = np.bincount(group[group >= 0], minlength=len(seen.class_size))
    shared = np.flatnonzero(members >= 2)
    if len(shared) == 0:
        raise InapplicableError("no record is shared by several people")
    shared = sampled(shared, groups, rng)
    rarity = rarity_of(seen.log, seen.queries)
    found, permuted = [], []
    for one in shared.tolist():
        query, issuer = _issuers(seen, group, one, rng)
        own = issuer >= 0
        # Where everybody gave one query, or one gave all, there is nothing to find out.
        if not 2 <= len(np.unique(issuer[own])) < own.sum():
            continue
        cluster = _split(seen.log, query, rarity, int(members[one]))[own]
        found.append(adjusted_rand(cluster, issuer[own]))
        others = [adjusted_rand(cluster, rng.permutation(issuer[own])) for _ in range(_PERMUTED)]
        permuted.append(float(np.mean(others)))
    if not found:
        raise InapplicableError("no shared record has queries that only one of its people issued")
    return Finding(
        attack="disambiguation",
        setting="",
        number="agreement of a split by topic with who issued what (adjusted Rand index)",
        unit="index",
        estimate=mean(np.array(found), seed, -1, 1),
        baseline=0.0,
        baseline_text="a random split",
        control=mean(np.array(permuted), seed, -1, 1),
        control_text="the same with the queries of a record permuted among its people",
        trials=len(found),
    )


def _issuers(seen: View, group: Longs, one: int, rng: np.random.Generator) -> tuple[Ints, Longs]:
    """The queries of a shared record, and the one person of the group who issued each; -1 for none or several."""
    record = int(np.flatnonzero(seen.kind == one)[0])
    query = sampled(seen.bags.item[seen.bags.start[record] : seen.bags.start[record + 1]], _QUERIES, rng)
    mine = seen.searches.take(np.flatnonzero(group == one))
    there = np.isin(mine.query, query)
    place = np.searchsorted(query, mine.query[there])
    issuer = np.full(len(query), -1, np.int64)
    issuer[place] = mine.owners[there]
    issuer[np.bincount(place, minlength=len(query)) != 1] = -1
    return query, issuer


def rarity_of(log: LocalLog, queries: Ints) -> Floats:
    """The logarithm of one by the share of released queries that have a word."""
    word = log.tokens.word[log.tokens.positions(queries)]
    return np.asarray(np.log(len(queries) / np.maximum(np.bincount(word, minlength=len(log.tokens.text)), 1)))


def _split(log: LocalLog, query: Ints, rarity: Floats, parts: int) -> Ints:
    """Clusters of queries by meaning and words."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.sparse import csr_matrix
    from scipy.spatial.distance import squareform

    if len(query) <= parts:
        return np.arange(len(query), dtype=np.int32)
    meaning = embed(log.query_text.take(pa.array(query)))[0].astype(np.float64)
    row, word = np.repeat(np.arange(len(query)), log.tokens.sizes[query]), log.tokens.word[log.tokens.positions(query)]
    words = csr_matrix((np.maximum(rarity[word], 0), (row, word)), (len(query), len(rarity)))
    length = np.sqrt(np.asarray(words.multiply(words).sum(axis=1)).ravel())
    shared = (words @ words.T).toarray() / np.maximum(np.outer(length, length), 1e-9)
    # Rounded, so that the last digit of a sum decides nothing.
    apart = np.maximum((1 - (np.maximum(meaning @ meaning.T, 0) + shared) / 2).round(6), 0)
    np.fill_diagonal(apart, 0)
    tree = linkage(squareform(apart, checks=False), "average")
    return np.asarray(fcluster(tree, parts, "maxclust"), np.int32)


def adjusted_rand(one: NDArray[np.integer], other: NDArray[np.integer]) -> float:
    """The adjusted Rand index of two partitions: 1 for equal ones, 0 as expected of chance."""
    a, b = (np.unique(label, return_inverse=True)[1].astype(np.int64) for label in (one, other))
    both = _pairs(np.unique(a * len(b) + b, return_counts=True)[1])
    first, second, whole = _pairs(np.bincount(a)), _pairs(np.bincount(b)), _pairs(np.array([len(a)]))
    chance = first * second / whole if whole else 0.0
    most = (first + second) / 2
    return 1.0 if most == chance else (both - chance) / (most - chance)


def _pairs(sizes: NDArray[np.integer]) -> int:
    return int((sizes * (sizes - 1) // 2).sum())
