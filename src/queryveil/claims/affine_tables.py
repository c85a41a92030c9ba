"""The check of k-theta-affinity by tables, for logs that outgrow a machine: all queries, without a certificate."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queryveil.claims.base import Checked, Evidence
from queryveil.claims.grams import fixed_point, frequent_grams
from queryveil.engines import Table, Workspace
from queryveil.log import QueryLog

if TYPE_CHECKING:
    from queryveil.claims.affine import AffineUsers

LIGHTEST = 32
"""How many of the queries that hold an element are compared first: mostly they have enough users."""


class Compared(NamedTuple):
    """Some queries, as they are compared.

    Attributes:
        people: Who issued each of them: query_id, user_id and whether the account is `new`.
        vectors: What each with a concept holds: query_id, key, concept and w.
        weights: The weight of each with a concept: query_id and w.
    """

    people: Table
    vectors: Table
    weights: Table

    @classmethod
    def of(cls, claim: "AffineUsers", log: QueryLog, work: Workspace, queries: Table) -> "Compared":
        """Weigh concepts and words of some queries."""
        vectors = _vectors(claim, log, work, queries)
        weights = work.table(f"SELECT query_id, sum(w) AS w FROM {vectors} GROUP BY query_id", "weights of queries")
        return cls(_people(work, queries), vectors, weights)

    def without(self, work: Workspace, bad: Table) -> "Compared":
        """The same without some queries."""
        left = [
            work.table(
                f"SELECT t.* FROM {given} t LEFT JOIN (SELECT query_id FROM {bad} GROUP BY query_id) AS bad"
                " ON bad.query_id = t.query_id WHERE bad.query_id IS NULL",
                "compared",
            )
            for given in self
        ]
        work.drop(bad, *self)
        return Compared(*left)


def check_by_tables(claim: "AffineUsers", evidence: Evidence) -> Checked:
    """Weigh concepts and words anew, and count the users of similar queries for every query."""
    log = evidence.log
    log.ensure_tables("word_users")
    with log.workspace() as work:
        if claim.drawn:
            return _check_drawn(claim, evidence, work)
        compared = Compared.of(claim, log, work, evidence.queries)
        few, alone = _badly_protected(claim, log, work, compared), _wrong_alone(claim, work, compared)
        found = evidence.first(
            "SELECT q.query, bad.n, bad.what FROM"
            f" (SELECT query_id, 0 AS alone, n, 'users behind it' AS what FROM {few} UNION ALL"
            f" SELECT query_id, 1, n, what FROM {alone}) AS bad JOIN {evidence.queries} q"
            " ON q.query_id = bad.query_id ORDER BY bad.alone, q.query, bad.n, bad.what LIMIT 1"
        )
    wrong = None if found is None else f"the query '{found[0]}' has {found[1]} {found[2]}"
    return Checked(wrong, "the users behind all released queries were counted by a search of all released queries")


def _check_drawn(claim: "AffineUsers", evidence: Evidence, work: Workspace) -> Checked:
    """Remove queries of the log with too few users until none is left, and look for released ones among them."""
    log = evidence.log
    compared = Compared.of(claim, log, work, work.table("SELECT query_id FROM queries", "queries"))
    bad = _wrong_alone(claim, work, compared)  # for which no other query matters, so once is enough
    more = 1
    while more:
        compared = compared.without(work, bad)
        bad = _badly_protected(claim, log, work, compared)
        (more,) = work.row(f"SELECT count(*) AS n FROM {bad}")
    found = evidence.first(
        f"SELECT q.query AS query FROM {evidence.queries} q LEFT JOIN (SELECT query_id FROM {compared.people}"
        " GROUP BY query_id) AS p ON p.query_id = q.query_id WHERE p.query_id IS NULL ORDER BY q.query LIMIT 1"
    )
    wrong = None if found is None else f"the query '{found[0]}' has too few users behind it"
    return Checked(wrong, "queries with too few users behind them were removed from the log until none was left")


def _wrong_alone(claim: "AffineUsers", work: Workspace, compared: Compared) -> Table:
    """The queries that lack users by themselves, or have a rare word: query_id, n and what."""
    people, _, weights = compared
    return work.table(
        f"WITH rare AS (SELECT word_id FROM word_users WHERE users < {claim.min_term_users}),"
        f" alone AS (SELECT p.query_id AS query_id, {_count(claim)} AS n FROM {people} p LEFT JOIN {weights} t"
        " ON t.query_id = p.query_id WHERE t.query_id IS NULL GROUP BY p.query_id)"
        f" SELECT query_id, n, 'users behind it' AS what FROM alone WHERE n < {claim.users} UNION ALL"
        f" SELECT query_id, count(*), 'users who issued it' FROM {people} GROUP BY query_id"
        f" HAVING count(*) < {claim.min_query_users} UNION ALL"
        f" SELECT t.query_id, {claim.min_term_users - 1}, 'users or fewer who used one of its words'"
        f" FROM query_terms t JOIN rare ON rare.word_id = t.word_id JOIN {weights} w ON w.query_id = t.query_id",
        "wrong alone",
    )


def _count(claim: "AffineUsers") -> str:
    """SQL that counts users, including at most `max_new_users` new accounts."""
    if claim.max_new_users is None:
        return "count(*)"
    return f"count(*) FILTER (WHERE NOT new) + least(count(*) FILTER (WHERE new), {claim.max_new_users})"


def _people(work: Workspace, queries: Table) -> Table:
    """Who issued each of some queries, and whether with a history of one or two queries."""
    return work.table(
        "WITH pairs AS (SELECT DISTINCT query_id, user_id FROM events),"
        " history AS (SELECT user_id, count(*) <= 2 AS new FROM pairs GROUP BY user_id)"
        " SELECT p.query_id AS query_id, p.user_id AS user_id, h.new AS new FROM pairs p"
        f" JOIN {queries} o ON o.query_id = p.query_id JOIN history h ON h.user_id = p.user_id",
        "users of queries",
    )


def _badly_protected(claim: "AffineUsers", log: QueryLog, work: Workspace, compared: Compared) -> Table:
    """The queries that lack users behind them and the queries similar to them, and how many there are.

    Of two similar queries, what only one of them holds is at most 1 - theta^2 of its weight. So before the rarest
    element that they share, each holds only so much, and only queries that share an element at such a place, and weigh
    about the same, are compared. A frequent element may be shared by a large part of all queries. So the lightest that
    hold it come first, and only for queries that still lack users then, all of them.
    """
    people, vectors, weights = compared
    square = _square(claim)
    same = "v.key = s.key AND v.concept = s.concept"
    with log.workspace() as steps:
        elements = steps.table(
            f"SELECT key, concept, count(*) AS n FROM {vectors} GROUP BY key, concept", "sizes of elements"
        )
        rarest = steps.table(
            "SELECT query_id, key, concept, total FROM (SELECT v.query_id AS query_id, v.key AS key,"
            " v.concept AS concept, t.w AS total, coalesce(sum(v.w) OVER (PARTITION BY v.query_id"
            " ORDER BY s.n, v.key, v.concept ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS rarer"
            f" FROM {vectors} v JOIN {weights} t ON t.query_id = v.query_id JOIN {elements} s ON {same}) AS held"
            f" WHERE rarer <= (1 - {square}) * total * 1.000001",
            "rarest elements",
        )
        lightest = steps.table(
            "SELECT query_id, key, concept, total FROM (SELECT query_id, key, concept, total, row_number() OVER"
            f" (PARTITION BY key, concept ORDER BY total, query_id) AS place FROM {rarest}) AS placed"
            f" WHERE place <= {LIGHTEST}",
            "lightest queries",
        )
        needy = steps.table(
            f"SELECT query_id FROM {people} GROUP BY query_id HAVING {_count(claim)} < {claim.users}", "own users"
        )
        some = _users_behind(claim, steps, compared, rarest, needy, lightest)
        left = steps.table(f"SELECT query_id FROM {some} WHERE n < {claim.users}", "still few users")
        found = _users_behind(claim, steps, compared, rarest, left, rarest)
        return work.table(
            f"SELECT query_id, n FROM {found} WHERE n < {claim.users}", "queries with few users behind them"
        )


def _users_behind(
    claim: "AffineUsers", work: Workspace, compared: Compared, rarest: Table, asked: Table, others: Table
) -> Table:
    """How many users are behind each of some queries and the others that are similar to it: query_id and n.

    Args:
        claim: The claim.
        work: Where the table is made.
        compared: All queries.
        rarest: The rarest elements of all queries.
        asked: The query_id of the queries to count for.
        others: The rarest elements of the queries that may be similar; a query always is to itself.
    """
    people, vectors, weights = compared
    square = _square(claim)
    return work.table(
        f"WITH pairs AS (SELECT DISTINCT h.query_id AS one, v.query_id AS other FROM {rarest} h"
        f" JOIN {asked} d ON d.query_id = h.query_id JOIN {others} v ON v.key = h.key AND v.concept = h.concept"
        f" WHERE v.total * 1.000001 >= {square} * h.total AND {square} * v.total <= h.total * 1.000001),"
        f" common AS (SELECT p.one AS one, p.other AS other, sum(v.w) AS w FROM pairs p JOIN {vectors} v"
        f" ON v.query_id = p.one JOIN {vectors} b ON b.query_id = p.other AND v.key = b.key AND v.concept = b.concept"
        " GROUP BY p.one, p.other),"
        f" near AS (SELECT c.one AS one, c.other AS other FROM common c JOIN {weights} x ON x.query_id = c.one"
        f" JOIN {weights} y ON y.query_id = c.other WHERE CAST(c.w AS DOUBLE) * CAST(c.w AS DOUBLE) >="
        f" {square} * (CAST(x.w AS DOUBLE) * CAST(y.w AS DOUBLE))),"
        f" itself AS (SELECT d.query_id AS one, d.query_id AS other FROM {asked} d"
        f" JOIN {weights} t ON t.query_id = d.query_id)"
        f" SELECT query_id, {_count(claim)} AS n FROM (SELECT DISTINCT n.one AS query_id, p.user_id AS user_id,"
        f" p.new AS new FROM (SELECT one, other FROM near UNION ALL SELECT one, other FROM itself) AS n"
        f" JOIN {people} p ON p.query_id = n.other) AS seen GROUP BY query_id",
        "users behind queries",
    )


def _square(claim: "AffineUsers") -> str:
    """The square of theta, to the last bit, as SQL."""
    return f"CAST('{claim.theta * claim.theta!r}' AS DOUBLE)"


def _vectors(claim: "AffineUsers", log: QueryLog, work: Workspace, queries: Table) -> Table:
    """What each of some queries with a concept is compared by, in the simplest way.

    An element is a `concept` with whether it is a `key` concept, a frequent run of words, or a word by itself.
    """
    with log.workspace() as steps:
        terms = steps.table(
            "SELECT t.query_id AS query_id, t.position AS position, t.word_id AS word_id FROM query_terms t"
            f" JOIN {queries} o ON o.query_id = t.query_id",
            "words of queries",
        )
        stop = steps.fetch(
            "SELECT w.word_id AS word_id FROM words w"
            f" JOIN {steps.read(pa.table({'word': sorted(log.language.stop_words)}))} s ON s.word = w.word"
        )
        concepts = steps.read(_concepts(log, claim.concept_min_users, stop), "concepts")
        held = _held_concepts(steps, terms, concepts)
        vectors = f"SELECT query_id, key, concept, w FROM {held}"
        if claim.vectors == "words":
            others = _other_words(log, steps, terms, steps.read(stop), concepts)
            vectors += (
                " UNION ALL SELECT DISTINCT t.query_id AS query_id, 0 AS key, o.word_id AS concept, o.w AS w"
                f" FROM {terms} t JOIN {others} o ON o.word_id = t.word_id"
                f" JOIN (SELECT DISTINCT query_id FROM {held}) AS h ON h.query_id = t.query_id"
            )
        return work.table(vectors, "vectors")


def _concepts(log: QueryLog, min_users: int, stop: pa.Table) -> pa.Table:
    """The words of each frequent run that is not of stop words alone, and its squared weight."""
    grams = frequent_grams(log, min_users)
    there = np.arange(3) < grams.size[:, None]
    concept = (there & ~np.isin(grams.word, stop["word_id"].to_numpy())).any(axis=1)
    words = {f"word_{i + 1}": pa.array(grams.word[concept, i], pa.int64(), mask=~there[concept, i]) for i in range(3)}
    ids = pa.array(np.arange(concept.sum()), pa.int64())
    return pa.table({"concept": ids, **words, "w": pa.array(grams.squared[concept])})


def _held_concepts(work: Workspace, terms: Table, concepts: Table) -> Table:
    """The concepts in each released query."""
    begun = (
        f"SELECT t.query_id AS query_id, c.concept AS concept, c.w AS w FROM {terms} t"
        f" JOIN {concepts} c ON c.word_1 = t.word_id"
    )
    second, third = (
        f" JOIN {terms} n{i} ON n{i}.query_id = t.query_id AND n{i}.position = t.position + {i}"
        f" AND n{i}.word_id = c.word_{i + 1}"
        for i in (1, 2)
    )
    return work.table(
        f"SELECT DISTINCT query_id, 1 AS key, concept, w FROM ({begun} WHERE c.word_2 IS NULL"
        f" UNION ALL {begun}{second} WHERE c.word_2 IS NOT NULL AND c.word_3 IS NULL"
        f" UNION ALL {begun}{second}{third} WHERE c.word_3 IS NOT NULL)",
        "concepts of released queries",
    )


def _other_words(log: QueryLog, work: Workspace, terms: Table, stop: Table, concepts: Table) -> Table:
    """Every word of a released query except stop words and concepts, and its squared weight."""
    id_type = log.id_type
    schema = pa.schema([("word_id", id_type), ("w", pa.int64())])

    def weighed(batch: pa.RecordBatch) -> pa.RecordBatch:
        events = pc.cast(batch["events"], pa.float64()).to_numpy(zero_copy_only=False)
        squared = pa.array(fixed_point(np.log2(events + 1.0)))
        return pa.RecordBatch.from_arrays([batch["word_id"].cast(id_type), squared], schema=schema)

    return work.map(
        "SELECT held.word_id AS word_id, CAST(sum(n.events) AS BIGINT) AS events FROM"
        " (SELECT DISTINCT t.word_id AS word_id, t.query_id AS query_id FROM query_terms t JOIN"
        f" (SELECT DISTINCT w.word_id AS word_id FROM {terms} w LEFT JOIN {stop} s ON s.word_id = w.word_id"
        f" LEFT JOIN (SELECT word_1 FROM {concepts} WHERE word_2 IS NULL) AS c ON c.word_1 = w.word_id"
        " WHERE s.word_id IS NULL AND c.word_1 IS NULL) AS ours ON ours.word_id = t.word_id) AS held"
        " JOIN (SELECT query_id, count(*) AS events FROM events GROUP BY query_id) AS n"
        " ON n.query_id = held.query_id GROUP BY held.word_id",
        weighed,
        schema,
        "other words",
    )
