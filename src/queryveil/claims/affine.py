"""The claim of k-theta-affinity, checked without the method: concepts mined anew, queries compared one by one."""

from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queryveil.claims.base import Claim, Columns, first
from queryveil.log import QueryLog
from queryveil.text import STOP_WORDS


class AffineUsers(Claim):
    """k-theta-affinity: users stand behind each released query and the released queries affine to it."""

    kind: Literal["affine-users"] = "affine-users"
    users: int
    theta: float
    min_users: int
    min_term_users: int
    SAMPLE: ClassVar[int] = 2000
    """How many released queries with a concept are compared with all others; a log of this size is checked whole."""

    @property
    def statement(self) -> str:
        """The promise in one sentence."""
        return (
            f"Behind every released query and the released queries affine to it (cosine of concepts at least"
            f" {self.theta}) stand at least {self.users} users, or that many issued the query itself."
        )

    def check(self, log: QueryLog, columns: Columns) -> str | None:
        """Mine the concepts anew, and count the users of affine released queries, query by query."""
        self._vectors(log)
        # Queries are numbered by a digest of their text, so the first ones are as good as drawn by lot.
        found = first(
            log,
            "WITH ours AS (SELECT DISTINCT q.query_id AS query_id, r.query AS query FROM released r"
            " JOIN queries q ON q.query = r.query),"
            " vec AS (SELECT v.query_id AS query_id, v.concept AS concept, v.w AS w FROM claim_vectors v"
            " JOIN ours ON ours.query_id = v.query_id),"
            " total AS (SELECT query_id, sum(w) AS w FROM vec GROUP BY query_id),"
            " people AS (SELECT DISTINCT query_id, user_id FROM events),"
            " rare AS (SELECT word_id FROM (SELECT DISTINCT t.word_id AS word_id, p.user_id AS user_id FROM tok t"
            f" JOIN people p ON p.query_id = t.query_id) GROUP BY word_id HAVING count(*) < {self.min_term_users}),"
            f" drawn AS (SELECT query_id FROM total ORDER BY query_id LIMIT {self.SAMPLE}),"
            " common AS (SELECT a.query_id AS one, b.query_id AS other, sum(a.w) AS w FROM vec a JOIN drawn"
            " ON drawn.query_id = a.query_id JOIN vec b ON b.concept = a.concept GROUP BY a.query_id, b.query_id),"
            " near AS (SELECT c.one AS one, c.other AS other FROM common c JOIN total x ON x.query_id = c.one"
            " JOIN total y ON y.query_id = c.other WHERE CAST(c.w AS DOUBLE) * CAST(c.w AS DOUBLE) >="
            f" {self.theta * self.theta!r}::DOUBLE * (CAST(x.w AS DOUBLE) * CAST(y.w AS DOUBLE))),"
            " behind AS (SELECT n.one AS query_id, count(DISTINCT p.user_id) AS n FROM near n"
            " JOIN people p ON p.query_id = n.other GROUP BY n.one),"
            " alone AS (SELECT p.query_id AS query_id, count(*) AS n FROM people p JOIN ours"
            " ON ours.query_id = p.query_id LEFT JOIN total t ON t.query_id = p.query_id WHERE t.query_id IS NULL"
            " GROUP BY p.query_id)"
            f" SELECT ours.query, bad.n FROM (SELECT query_id, n FROM behind WHERE n < {self.users} UNION ALL"
            f" SELECT query_id, n FROM alone WHERE n < {self.users} UNION ALL"
            " SELECT t.query_id, 0 FROM tok t JOIN rare ON rare.word_id = t.word_id JOIN total ON total.query_id ="
            " t.query_id) AS bad JOIN ours ON ours.query_id = bad.query_id ORDER BY ours.query LIMIT 1",
        )
        log.engine.drop("claim_vectors")
        return None if found is None else f"the query '{found[0]}' has {found[1]} users behind it"

    def _vectors(self, log: QueryLog) -> None:
        """Make `claim_vectors`: the concepts of each released query with their squared weights, in the plainest way."""
        squared = self._squared_weights(log)
        rows = [(i, *gram, *[-1] * (3 - len(gram)), w) for i, (gram, w) in enumerate(squared.items())]
        columns = list(zip(*rows, strict=True)) if rows else [()] * 5
        names = ["concept", "word_1", "word_2", "word_3", "w"]
        log.engine.read("claim_concepts", pa.table([pa.array(column, pa.int64()) for column in columns], names))
        log.engine.materialize(
            "SELECT t.query_id AS query_id, t.position AS position, t.word_id AS word_id FROM tok t JOIN queries q"
            " ON q.query_id = t.query_id WHERE q.query IN (SELECT query FROM released)",
            "claim_words",
        )
        following = "n{0}.query_id = t.query_id AND n{0}.position = t.position + {0} AND n{0}.word_id = c.word_{1}"
        log.engine.materialize(
            "SELECT DISTINCT query_id, concept, w FROM ("
            " SELECT t.query_id AS query_id, c.concept AS concept, c.w AS w FROM claim_words t JOIN claim_concepts c"
            " ON c.word_1 = t.word_id WHERE c.word_2 < 0 UNION ALL"
            " SELECT t.query_id, c.concept, c.w FROM claim_words t JOIN claim_concepts c ON c.word_1 = t.word_id"
            f" JOIN claim_words n1 ON {following.format(1, 2)} WHERE c.word_2 >= 0 AND c.word_3 < 0 UNION ALL"
            " SELECT t.query_id, c.concept, c.w FROM claim_words t JOIN claim_concepts c ON c.word_1 = t.word_id"
            f" JOIN claim_words n1 ON {following.format(1, 2)} JOIN claim_words n2 ON {following.format(2, 3)}"
            " WHERE c.word_3 >= 0)",
            "claim_vectors",
        )
        log.engine.forget("claim_concepts")
        log.engine.drop("claim_words")

    def _squared_weights(self, log: QueryLog) -> dict[tuple[int, ...], int]:
        """The squared weight of every concept, in fixed point; the formulas of the paper, one n-gram at a time."""
        length, events = np.diff(log.tokens.start), log.events_per_query
        totals = {n: int((np.maximum(length - n + 1, 0) * events).sum()) for n in (1, 2, 3)}
        grams: dict[tuple[int, ...], tuple[int, int]] = {}
        for n in (1, 2, 3):
            frequent_words = np.array([gram[0] for gram in grams if len(gram) == 1], np.int32)
            counted = log.ngrams(n, among=frequent_words if n > 1 else None)
            for row in counted.filter(pc.greater_equal(counted["users"], self.min_users)).to_pylist():
                gram = tuple(row[f"word_{i}"] for i in range(1, n + 1))
                grams[gram] = (row["occurrences"], row["events"])
        share: dict[tuple[int, ...], float] = {gram: found[0] / totals[len(gram)] for gram, found in grams.items()}
        squared = {}
        for gram, (_, holding) in grams.items():
            if all(log.tokens.text[word].as_py() in STOP_WORDS for word in gram):
                continue
            if len(gram) == 1:
                weight = np.log2(holding + 1.0)
            elif len(gram) == 2:
                weight = np.log2(share[gram] / (share[gram[:1]] * share[gram[1:]]) + 1)
            else:
                x, y, z = (share[(word,)] for word in gram)
                apart = x * y * z + x * share[gram[1:]] + share[gram[:2]] * z
                weight = np.log2(share[gram] / apart + 1)
            squared[gram] = int(np.rint(weight * weight * 2.0**20))
        return squared
