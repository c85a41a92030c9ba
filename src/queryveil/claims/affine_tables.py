"""The check of k-theta-affinity by tables, for logs that outgrow a machine: all queries, without a certificate."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from queryveil.arrays import Ints, Longs, ranges
from queryveil.claims.affine_vectors import Issuers, Vectors, counted_users, merged
from queryveil.claims.base import Checked, Evidence
from queryveil.claims.grams import fixed_point, frequent_grams
from queryveil.engines import Table, Workspace
from queryveil.log import QueryLog

if TYPE_CHECKING:
    from queryveil.claims.affine import AffineUsers
    from queryveil.kernels.witnesses import Weighed

QUERIES_OF_PART = 50_000
"""About so many of the compared queries come to a part, before some of them are sent to several; fewer if more than 10
users may come with a query."""

LISTED = 4_000_000
"""About so many users are listed at a time, which bounds the memory."""

_FOUND = pa.schema([("query_id", pa.int64()), ("user_id", pa.int64()), ("new", pa.bool_()), ("enough", pa.bool_())])
"""Whether enough users were found behind a query in a part, with no user; if not, a row for each who was."""


class Compared(NamedTuple):
    """Some queries, as they are compared.

    Attributes:
        people: Who issued each of them: query_id, user_id and whether the account is `new`.
        vectors: What each with a concept holds: query_id, key, concept, w, and in how many events it is.
        weights: The weight of each with a concept: query_id and w.
    """

    people: Table
    vectors: Table
    weights: Table

    @classmethod
    def of(cls, claim: "AffineUsers", log: QueryLog, work: Workspace, queries: Table) -> "Compared":
        """Weigh concepts and words of some queries."""
        vectors = _vectors(claim, log, work, queries)
        weights = work.table(
            f"SELECT query_id, CAST(sum(w) AS BIGINT) AS w FROM {vectors} GROUP BY query_id", "weights of queries"
        )
        return cls(_people(claim, log, work, queries), vectors, weights)

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
    wrong = [
        f"SELECT query_id, n, 'users behind it' AS what FROM (SELECT p.query_id AS query_id, {_count(claim)} AS n"
        f" FROM {people} p LEFT JOIN {weights} t ON t.query_id = p.query_id WHERE t.query_id IS NULL"
        f" GROUP BY p.query_id) AS alone WHERE n < {claim.users}",
        # Words of these queries first: all words of the log that are rare are many more.
        f"SELECT t.query_id, {claim.min_term_users - 1}, 'users or fewer who used one of its words' FROM query_terms t"
        f" JOIN {weights} w ON w.query_id = t.query_id JOIN word_users u ON u.word_id = t.word_id"
        f" WHERE u.users < {claim.min_term_users} GROUP BY t.query_id",
    ]
    if claim.min_query_users > 1:
        wrong.append(
            f"SELECT query_id, count(*), 'users who issued it' FROM {people} GROUP BY query_id"
            f" HAVING count(*) < {claim.min_query_users}"
        )
    return work.table(" UNION ALL ".join(wrong), "wrong alone")


def _count(claim: "AffineUsers") -> str:
    """SQL that counts users, including at most `max_new_users` new accounts."""
    if claim.max_new_users is None:
        return "count(user_id)"
    return f"count(*) FILTER (WHERE NOT new) + least(count(*) FILTER (WHERE new), {claim.max_new_users})"


def _people(claim: "AffineUsers", log: QueryLog, work: Workspace, queries: Table) -> Table:
    """Who issued each of some queries, and whether with a history of one or two queries, if that matters."""
    log.ensure_tables("query_users")
    if claim.max_new_users is None:
        return work.table(
            "SELECT p.query_id AS query_id, p.user_id AS user_id, CAST(0 AS BOOLEAN) AS new FROM query_users p"
            f" JOIN {queries} o ON o.query_id = p.query_id",
            "users of queries",
        )
    return work.table(
        "WITH history AS (SELECT user_id, count(*) <= 2 AS new FROM query_users GROUP BY user_id)"
        " SELECT p.query_id AS query_id, p.user_id AS user_id, h.new AS new FROM query_users p"
        f" JOIN {queries} o ON o.query_id = p.query_id JOIN history h ON h.user_id = p.user_id",
        "users of queries",
    )


def _badly_protected(claim: "AffineUsers", log: QueryLog, work: Workspace, compared: Compared) -> Table:
    """The queries that lack users behind them and the queries similar to them, and how many there are.

    Of two similar queries, what only one of them holds is at most 1 - theta^2 of its weight. So before the rarest
    element that they share, each holds only so much. Every query is sent to the parts of its elements up to there, and
    meets in one of them every query that is similar to it.
    """
    people, vectors, weights = compared
    with log.workspace() as steps:
        (n,) = steps.row(f"SELECT count(*) AS n FROM {weights}")
        # With each query come up to that many users, so with more of them a part has fewer queries.
        parts = 1 + n * max(claim.users, 10) // (10 * QUERIES_OF_PART)
        sent = steps.table(
            "SELECT query_id, part FROM (SELECT v.query_id AS query_id,"
            f" CAST(abs(v.concept % {parts}) AS INTEGER) AS part, t.w AS total,"
            " coalesce(sum(v.w) OVER (PARTITION BY v.query_id ORDER BY v.events, v.key, v.concept"
            " ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS rarer"
            f" FROM {vectors} v JOIN {weights} t ON t.query_id = v.query_id) AS held"
            f" WHERE rarer <= (1 - {_square(claim)}) * total * 1.000001 GROUP BY query_id, part",
            "parts of queries",
        )
        # Of the users of a query that are new, and of the others, as many as are asked for are enough.
        some = (
            "SELECT query_id, user_id, new FROM (SELECT p.query_id AS query_id, p.user_id AS user_id, p.new AS new,"
            " row_number() OVER (PARTITION BY p.query_id, p.new ORDER BY p.user_id) AS place"
            f" FROM {people} p) AS placed WHERE place <= {claim.users}"
        )
        found = steps.map_groups(
            f"SELECT s.part AS part, s.query_id AS query_id, v.key AS kind, v.concept AS id, v.w AS w FROM {sent} s"
            f" JOIN {vectors} v ON v.query_id = s.query_id UNION ALL SELECT s.part AS part, s.query_id AS query_id,"
            " CASE WHEN p.new THEN 3 ELSE 2 END AS kind, p.user_id AS id, 0 AS w"
            f" FROM {sent} s JOIN ({some}) AS p ON p.query_id = s.query_id",
            "part",
            _Search(claim),
            _FOUND,
            "users behind queries",
        )
        return work.table(
            f"WITH enough AS (SELECT DISTINCT query_id FROM {found} WHERE enough) SELECT query_id, {_count(claim)} AS n"
            f" FROM (SELECT DISTINCT f.query_id AS query_id, f.user_id AS user_id, f.new AS new FROM {found} f"
            " LEFT JOIN enough e ON e.query_id = f.query_id WHERE e.query_id IS NULL) AS seen GROUP BY query_id"
            f" HAVING {_count(claim)} < {claim.users}",
            "queries with few users behind them",
        )


@dataclass(frozen=True)
class _Search:
    """The users behind the queries of a part that lack users of their own, from a row for each element and user."""

    claim: "AffineUsers"

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = (batch[name].to_numpy() for name in ("kind", "query_id", "id", "w"))
        kind, query, named, w = (column.astype(np.int64) for column in columns)
        queries, place = np.unique(query, return_inverse=True)
        vectors = _numbered(kind, place, named, w, len(queries))
        users, user = self._issuers(kind, place, named, len(queries))
        of_query, sets = merged(vectors, users, apart=False)
        behind_itself, most_new = counted_users(sets, self.claim.max_new_users)
        needy = np.flatnonzero(behind_itself < self.claim.users)
        behind, owner, seen = self._search(sets, needy, most_new)
        place_of = np.full(len(behind_itself) + 1, -1, np.int64)  # the last for queries without an element
        place_of[needy] = np.arange(len(needy))
        asked = np.flatnonzero(place_of[of_query] >= 0)
        at = place_of[of_query[asked]]
        enough = behind[at] >= self.claim.users
        # Of queries of one set, each has the users who were found behind it.
        lacks, at = asked[~enough], at[~enough]
        first, last = (np.searchsorted(owner, at, side) for side in ("left", "right"))
        who = seen[ranges(first, last - first)]
        nobody = np.arange(len(asked) + len(who)) < len(asked)
        row = np.zeros(len(nobody), np.int64)
        row[len(asked) :] = who
        return pa.RecordBatch.from_arrays(
            [
                pa.array(np.append(queries[asked], np.repeat(queries[lacks], last - first))),
                pa.array(user[row], mask=nobody),
                pa.array(users.new[row], mask=nobody),
                pa.array(np.append(enough, np.zeros(len(who), np.bool_))),
            ],
            schema=_FOUND,
        )

    def _search(self, sets: "Weighed", needy: Longs, most_new: int) -> tuple[Longs, Longs, Ints]:
        """How many users are behind some sets; and if they are too few, who: the place of a set, and a user."""
        from queryveil.kernels.witnesses import holders_of, search

        k, theta2 = self.claim.users, self.claim.theta * self.claim.theta
        postings = holders_of(sets.start, sets.element, len(sets.weight))
        width = min(k, len(sets.new))
        behind, owners, users, done = [], [], [], 0
        for some in np.array_split(needy, 1 + len(needy) * width // LISTED):
            listed = np.full((len(some), width), -1, np.int32)
            near = np.zeros(len(some) + 1, np.int64)
            found = search(some, near, near[:0], sets, *postings, k, most_new, theta2, listed)
            behind.append(found)
            listed[found >= k] = -1
            row, column = np.nonzero(listed >= 0)
            owners.append(row + done)
            users.append(listed[row, column])
            done += len(some)
        return np.concatenate(behind), np.concatenate(owners), np.concatenate(users)

    def _issuers(self, kind: NDArray[Any], place: Longs, named: NDArray[Any], queries: int) -> tuple[Issuers, Longs]:
        """Who issued each query of the part, numbered; and the ids of these users."""
        ours = kind > 1
        user, number = np.unique(named[ours], return_inverse=True)
        new = np.zeros(len(user), np.bool_)
        new[number[kind[ours] == 3]] = True
        owner = place[ours]
        return Issuers.counting(owner, number.astype(np.int32), new, queries, self.claim.max_new_users), user


def _numbered(kind: NDArray[Any], place: Longs, named: NDArray[Any], w: Longs, queries: int) -> Vectors:
    """What each query of a part is compared by, with numbers for its words and concepts."""
    weights, owners, elements, before = [], [], [], 0
    for which in (0, 1):
        ours = kind == which
        found, first, number = np.unique(named[ours], return_index=True, return_inverse=True)
        weights.append(w[ours][first])
        owners.append(place[ours])
        elements.append(number + before)
        before += len(found)
    owner, element = np.concatenate(owners), np.concatenate(elements).astype(np.int32)
    order = np.lexsort((element, owner))
    start = np.searchsorted(owner[order], np.arange(queries + 1))
    return Vectors(start, element[order], np.concatenate(weights))


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
        vectors = f"SELECT query_id, key, concept, w, events FROM {held}"
        if claim.vectors == "words":
            others = _other_words(log, steps, terms, steps.read(stop), concepts)
            vectors += (
                " UNION ALL SELECT DISTINCT t.query_id AS query_id, 0 AS key, o.word_id AS concept, o.w AS w,"
                " o.events AS events"
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
    weights = {"w": pa.array(grams.squared[concept]), "events": pa.array(grams.events[concept])}
    return pa.table({"concept": ids, **words, **weights})


def _held_concepts(work: Workspace, terms: Table, concepts: Table) -> Table:
    """The concepts in each released query."""
    runs = (
        "SELECT query_id, word_id AS word_1, lead(word_id) OVER (PARTITION BY query_id ORDER BY position) AS word_2,"
        f" lead(word_id, 2) OVER (PARTITION BY query_id ORDER BY position) AS word_3 FROM {terms}"
    )
    held = [
        f"SELECT r.query_id AS query_id, c.concept AS concept, c.w AS w, c.events AS events FROM runs r JOIN {concepts}"
        " c ON " + " AND ".join(f"c.word_{i} = r.word_{i}" for i in range(1, n + 1))
        + (f" WHERE c.word_{n + 1} IS NULL" if n < 3 else "")
        for n in (1, 2, 3)
    ]  # fmt: skip
    return work.table(
        f"WITH runs AS ({runs}) SELECT DISTINCT query_id, 1 AS key, concept, w, events FROM"
        f" ({' UNION ALL '.join(held)}) AS held",
        "concepts of released queries",
    )


def _other_words(log: QueryLog, work: Workspace, terms: Table, stop: Table, concepts: Table) -> Table:
    """Every word of a released query except stop words and concepts, and its squared weight."""
    log.ensure_tables("per_query")
    id_type = log.id_type
    schema = pa.schema([("word_id", id_type), ("w", pa.int64()), ("events", pa.int64())])

    def weighed(batch: pa.RecordBatch) -> pa.RecordBatch:
        events = pc.cast(batch["events"], pa.float64()).to_numpy(zero_copy_only=False)
        squared = pa.array(fixed_point(np.log2(events + 1.0)))
        columns = [batch["word_id"].cast(id_type), squared, batch["events"].cast(pa.int64())]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    # Counted where the words of queries are: what is sent around is a number a word.
    events = (
        "SELECT t.word_id AS word_id, CAST(sum(p.events) AS BIGINT) AS events FROM"
        " (SELECT query_id, word_id FROM query_terms GROUP BY query_id, word_id) AS t"
        " JOIN per_query p ON p.query_id = t.query_id GROUP BY t.word_id"
    )
    return work.map(
        f"SELECT n.word_id AS word_id, n.events AS events FROM ({events}) AS n JOIN"
        f" (SELECT word_id FROM {terms} GROUP BY word_id) AS ours ON ours.word_id = n.word_id"
        f" LEFT JOIN {stop} s ON s.word_id = n.word_id"
        f" LEFT JOIN (SELECT word_1 FROM {concepts} WHERE word_2 IS NULL) AS c ON c.word_1 = n.word_id"
        " WHERE s.word_id IS NULL AND c.word_1 IS NULL",
        weighed,
        schema,
        "other words",
    )
