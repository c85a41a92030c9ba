"""The check of k-theta-affinity by tables, for logs that outgrow a machine: all queries, without a certificate."""

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queryveil.claims.base import Checked, first
from queryveil.claims.grams import fixed_point, frequent_grams
from queryveil.log import QueryLog
from queryveil.text import STOP_WORDS

if TYPE_CHECKING:
    from queryveil.claims.affine import AffineUsers


def check_by_tables(claim: "AffineUsers", log: QueryLog) -> Checked:
    """Weigh concepts and words anew, and count the users of affine released queries for every query."""
    engine = log.engine
    _make_people(log)
    _make_vectors(claim, log)
    log.need("word_users")
    found = _badly_protected(claim, log) or first(
        log,
        f"WITH rare AS (SELECT word_id FROM word_users WHERE users < {claim.min_term_users}),"
        f" alone AS (SELECT p.query_id AS query_id, {_count(claim)} AS n FROM claim_people p LEFT JOIN claim_total t"
        " ON t.query_id = p.query_id WHERE t.query_id IS NULL GROUP BY p.query_id),"
        " bad AS ("
        f" SELECT query_id, n, 'users behind it' AS what FROM alone WHERE n < {claim.users} UNION ALL"
        " SELECT query_id, count(*), 'users who issued it' FROM claim_people GROUP BY query_id"
        f" HAVING count(*) < {claim.min_query_users} UNION ALL"
        f" SELECT t.query_id, {claim.min_term_users - 1}, 'users or fewer who used one of its words' FROM tok t"
        " JOIN rare ON rare.word_id = t.word_id JOIN claim_total ON claim_total.query_id = t.query_id)"
        " SELECT o.query, bad.n, bad.what FROM bad JOIN claim_queries o ON o.query_id = bad.query_id"
        " ORDER BY o.query, bad.n, bad.what LIMIT 1",
    )
    engine.drop("claim_people", "claim_vectors", "claim_total")
    wrong = None if found is None else f"the query '{found[0]}' has {found[1]} {found[2]}"
    return Checked(wrong, "the users behind all released queries were counted by a search of all released queries")


def _count(claim: "AffineUsers") -> str:
    """SQL that counts users, of new accounts only so many."""
    if claim.max_new_users is None:
        return "count(*)"
    return f"count(*) FILTER (WHERE NOT new) + least(count(*) FILTER (WHERE new), {claim.max_new_users})"


def _make_people(log: QueryLog) -> None:
    """Make `claim_people`: who issued each released query, and whether with a history of one or two queries."""
    log.engine.materialize(
        "WITH pairs AS (SELECT DISTINCT query_id, user_id FROM events),"
        " history AS (SELECT user_id, count(*) <= 2 AS new FROM pairs GROUP BY user_id)"
        " SELECT p.query_id AS query_id, p.user_id AS user_id, h.new AS new FROM pairs p"
        " JOIN claim_queries o ON o.query_id = p.query_id JOIN history h ON h.user_id = p.user_id",
        "claim_people",
    )


def _badly_protected(claim: "AffineUsers", log: QueryLog) -> tuple[object, ...] | None:
    """The first query that lacks users behind it and the released queries affine to it.

    A query affine to another lacks at most 1 - theta^2 of its weight. So it holds one of any elements that weigh more
    together, and only queries that hold one of the rarest such, and weigh about as much, are compared.
    """
    square = f"CAST('{claim.theta * claim.theta!r}' AS DOUBLE)"
    engine = log.engine
    engine.materialize("SELECT query_id, sum(w) AS w FROM claim_vectors GROUP BY query_id", "claim_total")
    engine.materialize("SELECT key, concept, count(*) AS n FROM claim_vectors GROUP BY key, concept", "claim_sizes")
    same = "v.key = {0}.key AND v.concept = {0}.concept"
    found = first(
        log,
        "WITH needy AS (SELECT t.query_id AS query_id, t.w AS w FROM claim_total t JOIN"
        f" (SELECT query_id, {_count(claim)} AS n FROM claim_people GROUP BY query_id) AS own"
        f" ON own.query_id = t.query_id WHERE own.n < {claim.users}),"
        " held AS (SELECT v.query_id AS one, v.key AS key, v.concept AS concept, d.w AS total, coalesce(sum(v.w) OVER"
        " (PARTITION BY v.query_id ORDER BY s.n, v.key, v.concept ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),"
        " 0) AS rarer FROM claim_vectors v JOIN needy d ON d.query_id = v.query_id"
        f" JOIN claim_sizes s ON {same.format('s')}),"
        " pairs AS (SELECT DISTINCT h.one AS one, v.query_id AS other FROM held h JOIN claim_vectors v"
        f" ON {same.format('h')} JOIN claim_total t ON t.query_id = v.query_id"
        f" WHERE h.rarer <= (1 - {square}) * h.total * 1.000001"
        f" AND t.w * 1.000001 >= {square} * h.total AND {square} * t.w <= h.total * 1.000001),"
        " common AS (SELECT p.one AS one, p.other AS other, sum(v.w) AS w FROM pairs p JOIN claim_vectors v"
        f" ON v.query_id = p.one JOIN claim_vectors b ON b.query_id = p.other AND {same.format('b')}"
        " GROUP BY p.one, p.other),"
        " near AS (SELECT c.one AS one, c.other AS other FROM common c JOIN claim_total x ON x.query_id = c.one"
        " JOIN claim_total y ON y.query_id = c.other WHERE CAST(c.w AS DOUBLE) * CAST(c.w AS DOUBLE) >="
        f" {square} * (CAST(x.w AS DOUBLE) * CAST(y.w AS DOUBLE))),"
        f" behind AS (SELECT query_id, {_count(claim)} AS n FROM (SELECT DISTINCT n.one AS query_id,"
        " p.user_id AS user_id, p.new AS new FROM near n JOIN claim_people p ON p.query_id = n.other)"
        " GROUP BY query_id)"
        " SELECT o.query, behind.n, 'users behind it' AS what FROM behind JOIN claim_queries o"
        f" ON o.query_id = behind.query_id WHERE behind.n < {claim.users} ORDER BY o.query LIMIT 1",
    )
    engine.drop("claim_sizes")
    return found


def _make_vectors(claim: "AffineUsers", log: QueryLog) -> None:
    """Make `claim_vectors`: what each released query with a concept is compared by, in the plainest way.

    An element is a `concept` with whether it is a `key` concept, a frequent run of words, or a word by itself.
    """
    engine = log.engine
    engine.materialize(
        "SELECT t.query_id AS query_id, t.position AS position, t.word_id AS word_id FROM tok t JOIN claim_queries o"
        " ON o.query_id = t.query_id",
        "claim_words",
    )
    engine.read("claim_stop_text", pa.table({"word": sorted(STOP_WORDS)}))
    stop = engine.table("SELECT w.word_id AS word_id FROM words w JOIN claim_stop_text s ON s.word = w.word")
    engine.drop("claim_stop_text")
    engine.read("claim_stop", stop)
    grams = frequent_grams(log, claim.concept_min_users)
    there = np.arange(3) < grams.size[:, None]
    concept = (there & ~np.isin(grams.word, stop["word_id"].to_numpy())).any(axis=1)
    words = {f"word_{i + 1}": pa.array(grams.word[concept, i], pa.int64(), mask=~there[concept, i]) for i in range(3)}
    ids = pa.array(np.arange(concept.sum()), pa.int64())
    engine.read("claim_concepts", pa.table({"concept": ids, **words, "w": pa.array(grams.squared[concept])}))
    following = "n{0}.query_id = t.query_id AND n{0}.position = t.position + {0} AND n{0}.word_id = c.word_{1}"
    engine.materialize(
        "SELECT DISTINCT query_id, 1 AS key, concept, w FROM ("
        " SELECT t.query_id AS query_id, c.concept AS concept, c.w AS w FROM claim_words t"
        " JOIN claim_concepts c ON c.word_1 = t.word_id WHERE c.word_2 IS NULL UNION ALL"
        " SELECT t.query_id, c.concept, c.w FROM claim_words t JOIN claim_concepts c"
        f" ON c.word_1 = t.word_id JOIN claim_words n1 ON {following.format(1, 2)}"
        " WHERE c.word_2 IS NOT NULL AND c.word_3 IS NULL UNION ALL"
        " SELECT t.query_id, c.concept, c.w FROM claim_words t JOIN claim_concepts c"
        f" ON c.word_1 = t.word_id JOIN claim_words n1 ON {following.format(1, 2)}"
        f" JOIN claim_words n2 ON {following.format(2, 3)} WHERE c.word_3 IS NOT NULL)",
        "claim_held",
    )
    vectors = "SELECT query_id, key, concept, w FROM claim_held"
    if claim.vectors == "words":
        _make_other_words(log)
        vectors += (
            " UNION ALL SELECT DISTINCT t.query_id AS query_id, 0 AS key, o.word_id AS concept, o.w AS w"
            " FROM claim_words t JOIN claim_others o ON o.word_id = t.word_id"
            " JOIN (SELECT DISTINCT query_id FROM claim_held) AS h ON h.query_id = t.query_id"
        )
    engine.materialize(vectors, "claim_vectors")
    engine.drop("claim_concepts", "claim_words", "claim_held", "claim_stop", "claim_others")


def _make_other_words(log: QueryLog) -> None:
    """Make `claim_others`: every word of a released query but stop words and concepts, and its squared weight."""
    schema = pa.schema([("word_id", log.id_type), ("w", pa.int64())])

    def weighed(batch: pa.RecordBatch) -> pa.RecordBatch:
        events = pc.cast(batch["events"], pa.float64()).to_numpy(zero_copy_only=False)
        squared = pa.array(fixed_point(np.log2(events + 1.0)))
        return pa.RecordBatch.from_arrays([batch["word_id"].cast(log_id), squared], schema=schema)

    log_id = log.id_type
    log.engine.map(
        "SELECT held.word_id AS word_id, CAST(sum(n.events) AS BIGINT) AS events FROM"
        " (SELECT DISTINCT t.word_id AS word_id, t.query_id AS query_id FROM tok t JOIN"
        " (SELECT DISTINCT w.word_id AS word_id FROM claim_words w LEFT JOIN claim_stop s ON s.word_id = w.word_id"
        " LEFT JOIN (SELECT word_1 FROM claim_concepts WHERE word_2 IS NULL) AS c ON c.word_1 = w.word_id"
        " WHERE s.word_id IS NULL AND c.word_1 IS NULL) AS ours ON ours.word_id = t.word_id) AS held"
        " JOIN (SELECT query_id, count(*) AS events FROM events GROUP BY query_id) AS n"
        " ON n.query_id = held.query_id GROUP BY held.word_id",
        weighed,
        schema,
        "claim_others",
    )
