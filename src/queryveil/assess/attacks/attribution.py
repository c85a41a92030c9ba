"""Attribution: inside a record that several people share, which of them issued which query?

A record shared by k people hides who is behind it, and not who issued what: someone who has half of the members' own
logs compares every other query of the record to these. Only queries count that are in none of the known halves.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from queryveil.arrays import Bools, Floats, Ints, ranges, sampled
from queryveil.assess.attacks.disambiguation import rarity_of
from queryveil.assess.attacks.finding import Estimate, Finding, InapplicableError, surest_loss
from queryveil.assess.attacks.view import View, events_of, view
from queryveil.knowledge.vectors import embed
from queryveil.log import LocalLog, QueryLog
from queryveil.log.draws import keyed
from queryveil.release import Release
from queryveil.release.scoring import half, interval
from queryveil.text.show import percent

GROUPS = 300
_QUERIES = 400
_KNOWN = 1_000
"""Most known queries of a member that a query is compared to."""
_PERMUTED = 10
_SAME = 1e-9
_PURPOSE = "background knowledge"


@dataclass(frozen=True, eq=False)
class _Group:
    """A shared record.

    Attributes:
        query: Its queries that a member issued.
        issued: Whether each member issued each of them, a row a query.
        known: The queries of each member that the attacker knows.
    """

    query: Ints
    issued: Bools
    known: list[Ints]

    def only(self, queries: Bools) -> "_Group":
        return _Group(self.query[queries], self.issued[queries], self.known)


def attribution(release: Release, log: QueryLog, *, seed: int = 0, groups: int = GROUPS) -> Finding:
    """How often an attacker with half of every member's log attributes a query to a member who issued it.

    A query goes to the member it is most like: how alike it is to the nearest of their known queries (the mean of the
    cosines of meaning and of words), and the share of its words that they are known to use, rare words counting more.
    Of several equally like members each gets an equal part of the credit.

    Args:
        release: A release with shared records that knows who is who.
        log: Its log.
        seed: Random seed.
        groups: Most shared records to try; of more, a random sample. Of a long record, 400 queries are drawn.
    """
    seen = view(release, log)
    seen.owners()
    rng, rarity = np.random.default_rng(seed), rarity_of(seen.log, seen.queries)
    right, sure, chance, permuted = [], [], [], []
    for group in _groups(seen, seed, groups, rng):
        new = group.only(~np.isin(group.query, np.concatenate(group.known)))
        if not len(new.query):
            continue
        score = _likeness(seen.log, new.query, new.known, rarity)
        best = score >= score.max(axis=1, keepdims=True) - _SAME
        credit = best / best.sum(axis=1, keepdims=True)
        ordered = np.sort(score, axis=1)
        right.append((credit * new.issued).sum(axis=1))
        sure.append(ordered[:, -1] - ordered[:, -2])
        chance.append(new.issued.mean(axis=1))
        others = [(credit * new.issued[rng.permutation(len(credit))]).sum(axis=1) for _ in range(_PERMUTED)]
        permuted.append(np.mean(others, axis=0))
    if not right:
        raise InapplicableError("no shared record has a query that the attacker does not know already")
    return _finding(
        ("half of all members", "unknown queries of a shared record attributed to a member who issued them"),
        (right, sure, chance, permuted),
        ("a member at random", "the same with the queries of a record permuted among its members"),
        seed,
    )


def attribution_to_one(release: Release, log: QueryLog, *, seed: int = 0, groups: int = GROUPS) -> Finding:
    """How many of the queries that an attacker with half of one member's log takes for theirs are theirs.

    If k members share the record in equal parts, and half of one part is known, the member issued one in 2 k - 1 of the
    other queries. So many the attacker takes, those most like what they know.

    Args:
        release: A release with shared records that knows who is who.
        log: Its log.
        seed: Random seed.
        groups: Most shared records to try, with one random member of each; of more, a random sample.
    """
    seen = view(release, log)
    seen.owners()
    rng, rarity = np.random.default_rng(seed), rarity_of(seen.log, seen.queries)
    right, sure, chance, strangers = [], [], [], []
    before: Ints | None = None
    for group in _groups(seen, seed, groups, rng):
        member = int(rng.integers(len(group.known)))
        mine = group.known[member]
        new = group.only(~np.isin(group.query, mine))
        theirs = new.issued[:, member]
        if not len(mine) or not 0 < theirs.sum() < len(theirs):
            continue
        taken = max(round(len(theirs) / (2 * len(group.known) - 1)), 1)
        score = _likeness(seen.log, new.query, [mine], rarity)[:, 0]
        tie = rng.permutation(len(score))
        chosen = np.lexsort((tie, -score))[:taken]
        right.append(theirs[chosen].astype(np.float64))
        sure.append(score[chosen])
        chance.append(np.full(taken, theirs.mean()))
        if before is not None:
            stranger = np.lexsort((tie, -_likeness(seen.log, new.query, [before], rarity)[:, 0]))[:taken]
            strangers.append(theirs[stranger].astype(np.float64))
        before = mine
    if not right:
        raise InapplicableError(
            "no shared record has queries of a member and of others that the attacker does not know"
        )
    control_text = "the same with half of a stranger's log" if strangers else "none: there is one record"
    return _finding(
        ("half of one member", "queries of a shared record taken for one member's that are theirs"),
        (right, sure, chance, strangers),
        ("queries of the record at random", control_text),
        seed,
    )


def _finding(
    what: tuple[str, str],
    tried: tuple[list[Floats], list[Floats], list[Floats], list[Floats]],
    compared: tuple[str, str],
    seed: int,
) -> Finding:
    """The finding from what was right, how sure the attacker was, the baseline and the control, record by record."""
    right, sure, chance, others = tried
    every, surest = np.concatenate(right), np.argsort(-np.concatenate(sure), kind="stable")
    half_right = float(every[surest[: (len(every) + 1) // 2]].mean())
    baseline, control = float(np.concatenate(chance).mean()), _estimate(others, seed) if others else None
    return Finding(
        attack="attribution",
        setting=what[0],
        number=what[1],
        unit="share",
        estimate=_estimate(right, seed),
        baseline=baseline,
        baseline_text=compared[0],
        control=control,
        control_text=compared[1],
        trials=len(right),
        beside=f"{percent(half_right)} of the half that the attacker is surest of",
        details={"surest_half": half_right, "queries": len(every), "records": len(right)},
        loss=surest_loss(every, np.concatenate(sure), max(baseline, control.value if control else 0.0)),
    )


def _groups(seen: View, seed: int, most: int, rng: np.random.Generator) -> Iterator[_Group]:
    """Shared records, and half of the events of each member."""
    owner = seen.owners()
    there = np.flatnonzero(owner >= 0)
    order = there[np.argsort(seen.kind[owner[there]], kind="stable")]
    kind = seen.kind[owner[order]]
    begin, size = np.unique(kind, return_index=True, return_counts=True)[1:]
    shared = np.flatnonzero(size >= 2)
    if 2 * len(size) > len(there):  # two people may have the same short record by chance
        raise InapplicableError("records are not shared by several people")
    shared = sampled(shared, most, rng)
    key, all_queries = seen.log.secret(seed, _PURPOSE), seen.log.events["query_id"].to_numpy()
    for one in shared.tolist():
        members = order[begin[one] : begin[one] + size[one]]
        record = owner[members[0]]
        query = sampled(seen.bags.item[seen.bags.start[record] : seen.bags.start[record + 1]], _QUERIES, rng)
        event, user = events_of(seen.log, members)
        issued = all_queries[event]
        chosen = half(user, keyed(key, event.astype(np.uint64)))
        known = [sampled(np.unique(issued[chosen & (user == i)]), _KNOWN, rng) for i in range(len(members))]
        by = np.stack([np.isin(query, issued[user == i]) for i in range(len(members))], axis=1)
        yield _Group(query, by, known).only(by.sum(axis=1) > 0)


def _likeness(log: LocalLog, query: Ints, known: Sequence[Ints], rarity: Floats) -> Floats:
    """How like the known queries of each member each query is: a row a query, a column a member."""
    from scipy.sparse import csr_matrix

    size = np.array([len(some) for some in known])
    queries = np.concatenate([query, *known])
    begin = log.tokens.start[queries]
    length = log.tokens.start[queries + 1] - begin
    vocabulary, word = np.unique(log.tokens.word[ranges(begin, length)], return_inverse=True)
    weight = np.maximum(rarity[vocabulary], 0)[word]
    row = np.repeat(np.arange(len(queries)), length)
    words = csr_matrix((weight, (row, word)), (len(queries), len(vocabulary)))
    norm = np.maximum(np.sqrt(np.asarray(words.multiply(words).sum(axis=1)).ravel()), _SAME)
    meaning = embed(log.query_text.take(pa.array(queries)))[0].astype(np.float64)
    n = len(query)
    shared = (words[:n] @ words[n:].T).toarray() / np.outer(norm[:n], norm[n:])
    alike = (np.maximum(meaning[:n] @ meaning[n:].T, 0) + shared) / 2
    there, first = size > 0, np.cumsum(size) - size
    found = np.zeros((n, len(known)))
    if there.any():
        found[:, there] = np.maximum.reduceat(alike, first[there], axis=1)
    member = np.repeat(np.arange(len(known)), size)
    uses = csr_matrix((np.ones(len(member)), (member, np.arange(len(member)))), (len(known), len(member))) @ words[n:]
    whole = np.maximum(np.asarray(words[:n].sum(axis=1)), _SAME)
    return np.asarray((found + (words[:n] @ (uses > 0).T).toarray() / whole).round(9))


def _estimate(right: list[Floats], seed: int) -> Estimate:
    """The share, with the bootstrap over records, because the queries of one record go together."""
    hits, size = np.array([one.sum() for one in right]), np.array([len(one) for one in right])
    value = float(hits.sum() / size.sum())
    low, high = interval(hits, size, seed)
    return Estimate(value, min(low, value), max(high, value))
