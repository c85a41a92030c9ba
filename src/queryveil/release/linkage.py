"""Linkage by background knowledge: does half of what people searched for lead to the rest of it?

The attacker has a random half of the events of some people and wants to learn the other half from a release. They score
every released record against what they know of each person, link it to the person of the highest score, and so learn
its other queries. What they know already is no finding, so only texts count that are not in the known half.

`queryveil.release.scoring` has the two attackers that are tried. The better of them counts, by what it learns.

The records are those of a random sample of people, and so is the world of the attacker: up to 50,000 people are
candidates for each record. In a log of more people there are more wrong ones to choose from, so the number is an upper
estimate for attackers of this kind. Another attacker may know more or compare better.
"""

from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from queryveil.engines import Table
from queryveil.log import QueryLog
from queryveil.log.draws import drawn, keyed
from queryveil.release.scoring import (
    NOBODY,
    Bags,
    Compared,
    Ints,
    Longs,
    Truth,
    half,
    histories,
    interval,
    learn,
    unknown_texts,
)

USERS, EVENTS = 2_000, 500_000
"""Most people whose records are examined, and most events of these people."""
CANDIDATES, THEIR_EVENTS = 50_000, 3_000_000
"""Most people among whom their owner is searched for, and most events of these people."""
HEAVY = 20_000
"""People with more events than this are skipped."""
_PURPOSE = "background knowledge"
_NO_WORDS = np.empty(0, np.int32)


class Linkage(BaseModel):
    """What background knowledge reveals in a release, measured on a sample of its people."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    link: Literal["user", "session"]
    """What a pseudonym stands for."""
    users: int
    """People in the sample."""
    candidates: int
    """People among whom each of them is looked for."""
    pseudonyms: int
    """Released ids of the people in the sample."""
    linked: float
    """Share of these ids that the attacker links to the right person."""
    texts: int
    """Released query texts of these people that the attacker did not know, counted once per person."""
    learned: float
    """Share of these texts that the attacker attributes to the right person."""
    low: float
    """The low end of the 95 % interval of `learned`."""
    high: float
    """Its high end."""
    baseline: float
    """The baseline: the share that a guess among the candidates would attribute."""


def measure_linkage(
    log: QueryLog,
    rows: str,
    truth: Table,
    *,
    column: Literal["user", "session"],
    seed: int,
    issued: str | None = None,
) -> Linkage | None:
    """What an attacker with half of people's queries learns from a release of queries under pseudonyms.

    Costs a few scans of the events, the released rows and the words of the log; everything else is bounded by the
    sample. The same on every engine.

    Args:
        log: The log.
        rows: SQL of released rows: "user" (the released id), query_id, and event, which is the same in all rows of
            an event with several clicks.
        truth: The table of user_id and "user".
        column: What a released id stands for.
        seed: Random seed.
        issued: SQL of event_id, user_id and query_id, if items or tokens with ids of their own are released instead of
            queries. The attacker then knows the items of their half, and there are no words to compare.

    Returns:
        What was measured; None if fewer than two people are released, or none of their released texts is unknown.
    """
    key = log.secret(seed, _PURPOSE)
    users, looked_for = _sample(log, truth, key)
    if len(users) < 2:
        return None
    events, pairs, released = _of_sample(log, users, users[looked_for], rows, truth, issued)
    user = np.searchsorted(users, events["user_id"].to_numpy())
    order = np.argsort(user, kind="stable")
    draw = keyed(key, events["event_id"].to_numpy().astype(np.uint64))
    ids, query = np.unique(
        np.concatenate([events["query_id"].to_numpy(), released["query_id"].to_numpy()]), return_inverse=True
    )
    known, all_of_them = histories(user[order], query[: len(user)][order], half(user[order], draw[order]), len(users))
    record_ids, record = np.unique(pairs["record"].to_numpy(), return_inverse=True)
    records = Bags.of(
        np.searchsorted(record_ids, released["record"].to_numpy()),
        query[len(user) :],
        released["n"].to_numpy(),
        len(record_ids),
    )
    who = Truth(record, np.searchsorted(users, pairs["user_id"].to_numpy()))
    unknown = unknown_texts(known, all_of_them, records, who)
    if not len(unknown[0]):
        return None
    words, n_words = _words(log, ids) if issued is None else ((np.zeros(len(ids) + 1, np.int64), _NO_WORDS), 0)
    compared = Compared(
        known.with_words(words, len(ids)), records.with_words(words, len(ids)), len(ids) + n_words, NOBODY
    )
    found = learn(compared, who, unknown)
    low, high = interval(found.hits, found.texts, seed)
    return Linkage(
        link=column,
        users=int(looked_for.sum()),
        candidates=len(users),
        pseudonyms=len(record_ids),
        linked=float(found.credit.mean()),
        texts=int(found.texts.sum()),
        learned=found.share,
        low=low,
        high=high,
        baseline=1 / len(users),
    )


def _of_sample(
    log: QueryLog,
    users: NDArray[np.integer],
    looked_for: NDArray[np.integer],
    rows: str,
    truth: Table,
    issued: str | None,
) -> tuple[pa.Table, pa.Table, pa.Table]:
    """The events of people, the released ids of some of them, and what is released under these, with its events."""
    with log.workspace() as work:
        people, sample = (work.read(pa.table({"user_id": pa.array(some, log.id_type)})) for some in (users, looked_for))
        events = work.fetch(
            "SELECT e.event_id AS event_id, e.user_id AS user_id, e.query_id AS query_id FROM"
            f" {'events' if issued is None else f'({issued})'} AS e"
            f" JOIN {people} b ON b.user_id = e.user_id ORDER BY event_id"
        )
        pairs = work.fetch(
            f'SELECT t."user" AS record, t.user_id AS user_id FROM {truth} t'
            f" JOIN {sample} b ON b.user_id = t.user_id ORDER BY record, user_id"
        )
        released = work.fetch(
            'SELECT record, query_id, count(*) AS n FROM (SELECT r."user" AS record, r.query_id AS query_id,'
            f' r.event AS event FROM ({rows}) AS r JOIN (SELECT t."user" AS record FROM {truth} t'
            f' JOIN {sample} b ON b.user_id = t.user_id GROUP BY t."user") AS ids ON ids.record = r."user"'
            ' GROUP BY r."user", r.query_id, r.event) AS kept GROUP BY record, query_id'
        )
    return events, pairs, released


def _sample(log: QueryLog, truth: Table, key: bytes) -> tuple[NDArray[np.integer], NDArray[np.bool_]]:
    """Some released people, ascending, and whether their records are examined: those of the lowest draws.

    There are fewer if their events would be too many.
    """
    with log.workspace() as work:
        draws = work.map(
            "SELECT u.user_id AS user_id, u.digest AS digest FROM users u"
            f" JOIN (SELECT user_id FROM {truth} GROUP BY user_id) AS t ON t.user_id = u.user_id",
            *drawn(pa.schema([("user_id", log.id_type)]), "digest", key),
            "drawn users",
        )
        lowest = work.read(work.fetch(f"SELECT user_id, draw FROM {draws} ORDER BY draw, user_id LIMIT {CANDIDATES}"))
        counted = work.fetch(
            f"SELECT b.draw AS draw, b.user_id AS user_id, count(*) AS n FROM {lowest} b"
            " JOIN events e ON e.user_id = b.user_id GROUP BY b.draw, b.user_id ORDER BY draw, user_id"
        )
    # Somebody with very many events, such as a robot, would displace all others.
    counted = counted.filter(pa.array(counted["n"].to_numpy() <= HEAVY))
    so_far = np.cumsum(counted["n"].to_numpy())
    user = counted["user_id"].to_numpy()[so_far <= THEIR_EVENTS]
    looked_for = (so_far <= EVENTS) & (np.arange(len(so_far)) < USERS)
    order = np.argsort(user)
    return user[order], looked_for[: len(user)][order]


def _words(log: QueryLog, queries: NDArray[np.integer]) -> tuple[tuple[Longs, Ints], int]:
    """Where the words of each query start, the words numbered from 0, and how many different ones there are."""
    with log.workspace() as work:
        ours = work.read(pa.table({"query_id": pa.array(queries, log.id_type)}))
        found = work.fetch(
            "SELECT t.query_id AS query_id, t.word_id AS word_id FROM query_terms t"
            f" JOIN {ours} b ON b.query_id = t.query_id ORDER BY query_id, word_id"
        )
    start = np.searchsorted(found["query_id"].to_numpy(), queries)
    ids, word = np.unique(found["word_id"].to_numpy(), return_inverse=True)
    return (np.append(start, len(word)).astype(np.int64), word.astype(np.int32)), len(ids)
