"""The claim of k-theta-affinity, checked without the method: concepts and words weighed anew, queries compared."""

import secrets
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field

from queryveil.claims.base import MOST, Claim, Columns, Count, first
from queryveil.draws import drawn
from queryveil.log import LocalLog, QueryLog
from queryveil.text import STOP_WORDS


class AffineUsers(Claim):
    """k-theta-affinity: users stand behind each released query and the released queries affine to it."""

    kind: Literal["affine-users"] = "affine-users"
    users: int = Field(ge=2, le=MOST)
    theta: float = Field(gt=0, le=1)
    vectors: Literal["words", "concepts"]
    concept_min_users: int = Field(ge=2, le=MOST)
    min_term_users: Count
    min_query_users: Count = 1
    max_new_users: int | None = Field(None, ge=0, le=MOST)
    SAMPLE: ClassVar[int] = 10_000
    """How many of the released queries that need others are compared with all others; up to here, all of them are."""

    TOGETHER: ClassVar[int] = 500
    """How many are compared at a time on one machine, so that the comparison fits into its memory."""

    @property
    def statement(self) -> str:
        """The promise in one sentence."""
        new = ""
        if self.max_new_users is not None:
            new = f", counting at most {self.max_new_users} accounts whose history is one or two queries"
        own = f"; at least {self.min_query_users} users issued each released query" if self.min_query_users > 1 else ""
        alike = "concepts and other words" if self.vectors == "words" else "concepts, other words left out,"
        return (
            f"Behind every released query and the released queries similar to it (cosine of {alike} at least"
            f" {self.theta}) stand at least {self.users} users, or that many issued the query itself{new}; each word of"
            f" a released query with a concept, a run of words that {self.concept_min_users} users or more typed, has"
            f" at least {self.min_term_users} users{own} (users behind a query are counted for up to {self.SAMPLE:,}"
            " queries that need others, drawn at random)."
        )

    def check(self, log: QueryLog, columns: Columns) -> str | None:
        """Weigh concepts and words anew, and count the users of affine released queries, query by query."""
        engine = log.engine
        engine.materialize(
            "SELECT q.query_id AS query_id, q.query AS query FROM queries q"
            " JOIN (SELECT DISTINCT query FROM released) r ON r.query = q.query",
            "claim_ours",
        )
        self._people(log)
        self._vectors(log)
        found = self._badly_protected(log) or first(
            log,
            "WITH rare AS (SELECT word_id FROM (SELECT DISTINCT t.word_id AS word_id, e.user_id AS user_id FROM tok t"
            " JOIN (SELECT DISTINCT query_id, user_id FROM events) e ON e.query_id = t.query_id) GROUP BY word_id"
            f" HAVING count(*) < {self.min_term_users}),"
            f" alone AS (SELECT p.query_id AS query_id, {self._count} AS n FROM claim_people p LEFT JOIN claim_total t"
            " ON t.query_id = p.query_id WHERE t.query_id IS NULL GROUP BY p.query_id),"
            " bad AS ("
            f" SELECT query_id, n, 'users behind it' AS what FROM alone WHERE n < {self.users} UNION ALL"
            " SELECT query_id, count(*), 'users who issued it' FROM claim_people GROUP BY query_id"
            f" HAVING count(*) < {self.min_query_users} UNION ALL"
            f" SELECT t.query_id, {self.min_term_users - 1}, 'users or fewer who used one of its words' FROM tok t"
            " JOIN rare ON rare.word_id = t.word_id JOIN claim_total ON claim_total.query_id = t.query_id)"
            " SELECT o.query, bad.n, bad.what FROM bad JOIN claim_ours o ON o.query_id = bad.query_id"
            " ORDER BY o.query, bad.n LIMIT 1",
        )
        engine.drop("claim_ours", "claim_people", "claim_vectors", "claim_total")
        return None if found is None else f"the query '{found[0]}' has {found[1]} {found[2]}"

    @property
    def _count(self) -> str:
        """SQL that counts users, of new accounts only so many."""
        if self.max_new_users is None:
            return "count(*)"
        return f"count(*) FILTER (WHERE NOT new) + least(count(*) FILTER (WHERE new), {self.max_new_users})"

    def _people(self, log: QueryLog) -> None:
        """Make `claim_people`: who issued each released query, and whether with a history of one or two queries."""
        log.engine.materialize(
            "WITH pairs AS (SELECT DISTINCT query_id, user_id FROM events),"
            " history AS (SELECT user_id, count(*) <= 2 AS new FROM pairs GROUP BY user_id)"
            " SELECT p.query_id AS query_id, p.user_id AS user_id, h.new AS new FROM pairs p"
            " JOIN claim_ours o ON o.query_id = p.query_id JOIN history h ON h.user_id = p.user_id",
            "claim_people",
        )

    def _badly_protected(self, log: QueryLog) -> tuple[object, ...] | None:
        """The first query of a sample that lacks users behind it and the released queries affine to it.

        A query affine to another lacks less than 1 - theta^2 of its weight. So it holds one of any concepts that weigh
        more together, and only queries that hold one of the rarest such are compared.
        """
        square = f"CAST('{self.theta * self.theta!r}' AS DOUBLE)"
        engine = log.engine
        engine.materialize("SELECT query_id, sum(w) AS w FROM claim_vectors GROUP BY query_id", "claim_total")
        engine.materialize("SELECT concept, count(*) AS n FROM claim_vectors GROUP BY concept", "claim_sizes")
        # At random, in a way that nobody knows beforehand, so that nothing can be hidden where no check looks.
        engine.map(
            f"SELECT t.query_id AS query_id FROM claim_total t JOIN (SELECT query_id, {self._count} AS n"
            f" FROM claim_people GROUP BY query_id) AS own ON own.query_id = t.query_id WHERE own.n < {self.users}",
            *drawn(pa.schema([("query_id", log.id_type)]), "query_id", secrets.token_bytes(16)),
            "claim_drawn",
        )
        needy = engine.table(f"SELECT query_id FROM claim_drawn ORDER BY draw, query_id LIMIT {self.SAMPLE}")
        together = self.TOGETHER if isinstance(log, LocalLog) else self.SAMPLE
        found = None
        for start in range(0, len(needy), together):
            engine.read("claim_needy", needy.slice(start, together))
            found = found or first(
                log,
                "WITH drawn AS (SELECT t.query_id AS query_id, t.w AS w FROM claim_total t JOIN claim_needy n"
                " ON n.query_id = t.query_id),"
                " held AS (SELECT v.query_id AS one, v.concept AS concept, d.w AS total, coalesce(sum(v.w) OVER"
                " (PARTITION BY v.query_id ORDER BY s.n, v.concept ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),"
                " 0) AS rarer FROM claim_vectors v JOIN drawn d ON d.query_id = v.query_id"
                " JOIN claim_sizes s ON s.concept = v.concept),"
                " pairs AS (SELECT DISTINCT h.one AS one, v.query_id AS other FROM held h JOIN claim_vectors v"
                f" ON v.concept = h.concept WHERE h.rarer <= (1 - {square}) * h.total * 1.000001),"
                " common AS (SELECT p.one AS one, p.other AS other, sum(a.w) AS w FROM pairs p JOIN claim_vectors a"
                " ON a.query_id = p.one JOIN claim_vectors b ON b.query_id = p.other AND b.concept = a.concept"
                " GROUP BY p.one, p.other),"
                " near AS (SELECT c.one AS one, c.other AS other FROM common c JOIN claim_total x ON x.query_id = c.one"
                " JOIN claim_total y ON y.query_id = c.other WHERE CAST(c.w AS DOUBLE) * CAST(c.w AS DOUBLE) >="
                f" {square} * (CAST(x.w AS DOUBLE) * CAST(y.w AS DOUBLE))),"
                f" behind AS (SELECT query_id, {self._count} AS n FROM (SELECT DISTINCT n.one AS query_id,"
                " p.user_id AS user_id, p.new AS new FROM near n JOIN claim_people p ON p.query_id = n.other)"
                " GROUP BY query_id)"
                " SELECT o.query, behind.n, 'users behind it' AS what FROM behind JOIN claim_ours o"
                f" ON o.query_id = behind.query_id WHERE behind.n < {self.users} ORDER BY o.query LIMIT 1",
            )
            engine.drop("claim_needy")
        engine.drop("claim_sizes", "claim_drawn")
        return found

    def _vectors(self, log: QueryLog) -> None:
        """Make `claim_vectors`: what each released query with a concept is compared by, in the plainest way."""
        engine = log.engine
        engine.materialize(
            "SELECT t.query_id AS query_id, t.position AS position, t.word_id AS word_id FROM tok t JOIN claim_ours o"
            " ON o.query_id = t.query_id",
            "claim_words",
        )
        stop = self._stop_words(log)
        grams = self._squared_weights(log, stop)
        key = len(grams)
        if self.vectors == "words":
            grams |= {gram: w for gram, w in self._squared_words(log, stop).items() if gram not in grams}
        rows = [(i, *gram, *[None] * (3 - len(gram)), w, int(i < key)) for i, (gram, w) in enumerate(grams.items())]
        columns = list(zip(*rows, strict=True)) if rows else [()] * 6
        names = ["concept", "word_1", "word_2", "word_3", "w", "key"]
        engine.read("claim_concepts", pa.table([pa.array(column, pa.int64()) for column in columns], names))
        following = "n{0}.query_id = t.query_id AND n{0}.position = t.position + {0} AND n{0}.word_id = c.word_{1}"
        engine.materialize(
            "SELECT DISTINCT query_id, concept, w, key FROM ("
            " SELECT t.query_id AS query_id, c.concept AS concept, c.w AS w, c.key AS key FROM claim_words t"
            " JOIN claim_concepts c ON c.word_1 = t.word_id WHERE c.word_2 IS NULL UNION ALL"
            " SELECT t.query_id, c.concept, c.w, c.key FROM claim_words t JOIN claim_concepts c"
            f" ON c.word_1 = t.word_id JOIN claim_words n1 ON {following.format(1, 2)}"
            " WHERE c.word_2 IS NOT NULL AND c.word_3 IS NULL UNION ALL"
            " SELECT t.query_id, c.concept, c.w, c.key FROM claim_words t JOIN claim_concepts c"
            f" ON c.word_1 = t.word_id JOIN claim_words n1 ON {following.format(1, 2)}"
            f" JOIN claim_words n2 ON {following.format(2, 3)} WHERE c.word_3 IS NOT NULL)",
            "claim_held",
        )
        engine.materialize(
            "SELECT h.query_id AS query_id, h.concept AS concept, h.w AS w FROM claim_held h JOIN"
            " (SELECT DISTINCT query_id FROM claim_held WHERE key = 1) AS with_concept"
            " ON with_concept.query_id = h.query_id",
            "claim_vectors",
        )
        engine.drop("claim_concepts", "claim_words", "claim_held")

    def _stop_words(self, log: QueryLog) -> set[int]:
        """The ids of stop words."""
        log.engine.read("claim_stop", pa.table({"word": sorted(STOP_WORDS)}))
        found = log.engine.table("SELECT w.word_id AS word_id FROM words w JOIN claim_stop s ON s.word = w.word")
        log.engine.drop("claim_stop")
        return set(found["word_id"].to_pylist())

    def _squared_words(self, log: QueryLog, stop: set[int]) -> dict[tuple[int, ...], int]:
        """The squared weight of every word of a released query but stop words, however rare, in fixed point."""
        holding = log.engine.table(
            "SELECT held.word_id AS word_id, CAST(sum(n.events) AS BIGINT) AS events FROM"
            " (SELECT DISTINCT t.word_id AS word_id, t.query_id AS query_id FROM tok t JOIN"
            " (SELECT DISTINCT word_id FROM claim_words) AS ours ON ours.word_id = t.word_id) AS held"
            " JOIN (SELECT query_id, count(*) AS events FROM events GROUP BY query_id) AS n"
            " ON n.query_id = held.query_id GROUP BY held.word_id"
        )
        word, events = (holding[name].to_numpy() for name in ("word_id", "events"))
        weight = np.log2(events + 1.0)
        squared = np.rint(weight * weight * 2.0**20).astype(np.int64)
        return {(w,): s for w, s in zip(word.tolist(), squared.tolist(), strict=True) if w not in stop}

    def _squared_weights(self, log: QueryLog, stop: set[int]) -> dict[tuple[int, ...], int]:
        """The squared weight of every concept, in fixed point; the formulas of the paper, one n-gram at a time."""
        length, events = (log.lengths[name].to_numpy() for name in ("words", "events"))
        totals = {n: int((np.maximum(length - n + 1, 0) * events).sum()) for n in (1, 2, 3)}
        grams: dict[tuple[int, ...], tuple[int, int]] = {}
        for n in (1, 2, 3):
            for row in log.ngrams(n, min_users=self.concept_min_users).to_pylist():
                gram = tuple(row[f"word_{i}"] for i in range(1, n + 1))
                grams[gram] = (row["occurrences"], row["events"])
        share: dict[tuple[int, ...], float] = {gram: found[0] / totals[len(gram)] for gram, found in grams.items()}
        squared = {}
        for gram, (_, holding) in grams.items():
            if all(word in stop for word in gram):
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
