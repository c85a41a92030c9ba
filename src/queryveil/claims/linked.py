"""The claim about pseudonyms: what stands under one of them was done by one user, and nothing else follows from it."""

from math import sqrt
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict, Field

from queryveil.claims.base import Claim, Columns, Count, first
from queryveil.log import QueryLog

_RARE = 1e-9
"""How rarely an honest release is refused because chance ordered its ids as if they followed users or times."""
_MARKED = pa.schema([("query_id", pa.int64()), *((name, pa.int64()) for name in "abcd")])
_SUMS = ", ".join(f"CAST(sum(s.n * m.{name}) AS BIGINT) AS {name}" for name in "abcd")


class Sessions(BaseModel):
    """What a session is."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    gap: int = Field(ge=1, le=1_000_000)
    """Minutes without an event after which a new session begins."""
    events: Count
    """The most events of a session."""

    def __str__(self) -> str:
        return f"a pause of more than {self.gap} minutes ends it, and it has at most {self.events} events"


class LinkedEvents(Claim):
    """Events under one pseudonym are of one user, or of one session; ids and order follow neither users nor times."""

    kind: Literal["linked-events"] = "linked-events"
    sessions: Sessions | None = None
    """What a session is; None if a pseudonym stands for a user."""
    whole: bool = True
    """Whether all events of a released query are released. If not, the events under a pseudonym are part of those."""
    items: bool = False
    """Whether an item stands in the place of each event, so that only how many there are can be compared."""

    @property
    def statement(self) -> str:
        """The promise in one sentence."""
        of = "one user" if self.sessions is None else f"one session of one user ({self.sessions})"
        if self.items:
            return f"Under every pseudonym stand as many items as {of} has events; ids follow neither users nor times."
        return (
            f"The events under one pseudonym come from {of}, and no two share a pseudonym; ids and order follow neither"
            " users nor times."
        )

    @property
    def _id(self) -> str:
        return "user" if self.sessions is None else "session"

    def check(self, log: QueryLog, columns: Columns) -> str | None:
        """Match what stands under each pseudonym with the users or sessions of the log, then look at ids and order."""
        if self._id not in columns:
            return f"the release has no column '{self._id}'"
        low, high, n, missing = log.engine.row(
            f'SELECT min("{self._id}") AS low, max("{self._id}") AS high, count(DISTINCT "{self._id}") AS n,'  # noqa: S608  # parts of this module
            f' count(*) - count("{self._id}") AS missing FROM released'
        )
        if missing or (n and (low, high) != (1, n)):
            return f"the pseudonyms are not the numbers from 1 to {n}"
        if self.sessions is None:
            log.engine.materialize("SELECT event_id, user_id AS owner, user_id, time FROM events", "claim_owners")
        else:
            sessions_of(log, self.sessions, "claim_owners")
        found = self._sizes(log) if self.items else self._contents(log, columns)
        log.engine.drop("claim_owners")
        if found is None and "event" in columns:
            found = self._order(log)
        return found

    def _sizes(self, log: QueryLog) -> str | None:
        """How many rows stand under each pseudonym, and how many events each user or session has."""
        row = first(
            log,
            "SELECT size, CAST(sum(released) AS BIGINT) AS released, CAST(sum(original) AS BIGINT) AS original FROM"  # noqa: S608  # parts of this module
            " (SELECT n AS size, count(*) AS released, 0 AS original FROM"
            f' (SELECT "{self._id}" AS id, count(*) AS n FROM released GROUP BY "{self._id}") AS r GROUP BY n'
            " UNION ALL SELECT n AS size, 0 AS released, count(*) AS original FROM"
            " (SELECT owner, count(*) AS n FROM claim_owners GROUP BY owner) AS o GROUP BY n) AS both_ GROUP BY size"
            " HAVING sum(released) <> sum(original) ORDER BY size LIMIT 1",
        )
        if row is None:
            return None
        return f"{row[1]} pseudonyms have {row[0]} items, and {row[2]} {self._id}s of the log have so many events"

    def _contents(self, log: QueryLog, columns: Columns) -> str | None:
        """Compare the released queries under each pseudonym with those that users or sessions of the log issued."""
        engine = log.engine
        engine.materialize(
            "SELECT q.query_id AS query_id, q.query AS query FROM queries q JOIN (SELECT query FROM released"
            " GROUP BY query) AS r ON r.query = q.query",
            "claim_texts",
        )
        key = np.frombuffer(log.secret(0, "linked events"), np.uint64)
        engine.map("SELECT query_id FROM claim_texts", _Marks(int(key[0]), int(key[1])), _MARKED, "claim_marks")
        # Without numbers of events, as in AOL's format, a row may be one of several clicks: then only the query counts.
        counted = "event" in columns
        n = "count(DISTINCT r.event)" if counted else "1"
        engine.materialize(
            f'SELECT r."{self._id}" AS id, t.query_id AS query_id, {n} AS n FROM released r JOIN claim_texts t'  # noqa: S608  # parts of this module
            f' ON t.query = r.query GROUP BY r."{self._id}", t.query_id',
            "claim_mine",
        )
        engine.materialize(
            f"SELECT o.owner AS id, e.query_id AS query_id, {'count(*)' if counted else '1'} AS n,"  # noqa: S608  # parts of this module
            " min(o.user_id) AS user_id, min(o.time) AS time FROM claim_owners o JOIN events e"
            " ON e.event_id = o.event_id JOIN claim_texts t ON t.query_id = e.query_id GROUP BY o.owner, e.query_id",
            "claim_theirs",
        )
        for name in ("mine", "theirs"):
            more = ", min(s.user_id) AS user_id, min(s.time) AS time" if name == "theirs" else ""
            engine.materialize(
                f"SELECT s.id AS id, {_SUMS}{more} FROM claim_{name} s JOIN claim_marks m"  # noqa: S608  # parts of this module
                " ON m.query_id = s.query_id GROUP BY s.id",
                f"claim_all_{name}",
            )
        found = self._unmatched(log) if self.whole else self._not_contained(log)
        if found is None:
            found = self._telling(log)
        engine.drop("claim_texts", "claim_marks", "claim_mine", "claim_theirs", "claim_all_mine", "claim_all_theirs")
        return found

    def _unmatched(self, log: QueryLog) -> str | None:
        """A pseudonym with queries that more pseudonyms have than users or sessions of the log."""
        row = first(
            log,
            "SELECT m.id AS id FROM (SELECT a, b, c, d, min(id) AS id, count(*) AS n FROM claim_all_mine"
            " GROUP BY a, b, c, d) AS m LEFT JOIN (SELECT a, b, c, d, count(*) AS n FROM claim_all_theirs"
            " GROUP BY a, b, c, d) AS t ON t.a = m.a AND t.b = m.b AND t.c = m.c AND t.d = m.d"
            " WHERE m.n > coalesce(t.n, 0) ORDER BY m.id LIMIT 1",
        )
        return None if row is None else f"the queries under {self._id} {row[0]} are not those of any {self._id} left"

    def _not_contained(self, log: QueryLog) -> str | None:
        """A pseudonym with queries that no user or session of the log has all of.

        Pseudonyms with the same queries are looked at once, among the owners of their rarest query.
        """
        engine = log.engine
        engine.materialize("SELECT min(id) AS id FROM claim_all_mine GROUP BY a, b, c, d", "claim_some")
        engine.materialize("SELECT query_id, count(*) AS n FROM claim_theirs GROUP BY query_id", "claim_held")
        engine.materialize(
            "SELECT m.id AS id, m.query_id AS query_id, m.n AS n, row_number() OVER (PARTITION BY m.id"
            " ORDER BY h.n, m.query_id) AS place, count(*) OVER (PARTITION BY m.id) AS size FROM claim_mine m"
            " JOIN claim_some s ON s.id = m.id JOIN claim_held h ON h.query_id = m.query_id",
            "claim_wanted",
        )
        row = first(
            log,
            "SELECT s.id AS id FROM claim_some s LEFT JOIN (SELECT id FROM (SELECT w.id AS id, c.owner AS owner,"
            " count(*) AS n, min(w.size) AS size FROM (SELECT w.id AS id, t.id AS owner FROM claim_wanted w"
            " JOIN claim_theirs t ON t.query_id = w.query_id WHERE w.place = 1 AND t.n >= w.n) AS c"
            " JOIN claim_wanted w ON w.id = c.id JOIN claim_theirs t ON t.id = c.owner AND t.query_id = w.query_id"
            " WHERE t.n >= w.n GROUP BY w.id, c.owner) AS fits WHERE n = size GROUP BY id) AS f ON f.id = s.id"
            " WHERE f.id IS NULL ORDER BY s.id LIMIT 1",
        )
        engine.drop("claim_some", "claim_held", "claim_wanted")
        return None if row is None else f"no {self._id} of the log has all queries under {self._id} {row[0]}"

    def _telling(self, log: QueryLog) -> str | None:
        """Whether ids follow users or times, by the pseudonyms whose owner the log gives away."""
        known = log.engine.table(
            'SELECT m.id AS id, t.user_id AS user_id, t.time AS time, u."user" AS name FROM (SELECT a, b, c, d,'
            " min(id) AS id"
            " FROM claim_all_mine GROUP BY a, b, c, d HAVING count(*) = 1) AS m JOIN (SELECT a, b, c, d,"
            " min(user_id) AS user_id, min(time) AS time FROM claim_all_theirs GROUP BY a, b, c, d"
            " HAVING count(*) = 1) AS t ON t.a = m.a AND t.b = m.b AND t.c = m.c AND t.d = m.d"
            " JOIN users u ON u.user_id = t.user_id ORDER BY m.id"
        )
        user = np.unique(known["user_id"].to_numpy(), return_inverse=True)[1]
        # Also in the order that somebody with a list of the users would sort it in: as texts, and as numbers.
        text = pc.rank(known["name"], tiebreaker="dense").to_numpy().astype(np.int64)
        length = pc.utf8_length(known["name"]).to_numpy().astype(np.int64)
        if follows(user) or follows(text) or follows((length << 40) + text):
            return f"the numbers of {self._id}s follow users"
        if clustered(user):
            return f"{self._id}s of one user have neighbouring numbers"
        timed = known.filter(pc.is_valid(known["time"]))["time"].cast(pa.int64()).to_numpy()
        return f"the numbers of {self._id}s follow times" if follows(timed) else None

    def _order(self, log: QueryLog) -> str | None:
        """Events are numbered by pseudonym and query, whatever their times."""
        row = first(
            log,
            "SELECT event FROM (SELECT event, id, query_id, lag(id) OVER (ORDER BY event) AS last_id,"  # noqa: S608  # parts of this module
            " lag(query_id) OVER (ORDER BY event) AS last_query FROM (SELECT r.event AS event,"
            f' min(r."{self._id}") AS id, min(q.query_id) AS query_id FROM released r JOIN queries q'
            " ON q.query = r.query GROUP BY r.event) AS events_) AS pairs WHERE id < last_id"
            " OR (id = last_id AND query_id < last_query) ORDER BY event LIMIT 1",
        )
        return None if row is None else f"event {row[0]} is not in the order of pseudonyms and texts"


def follows(values: np.ndarray) -> bool:
    """Whether values rise or fall with their place by more than chance (Spearman's rank correlation)."""
    from scipy.special import ndtri
    from scipy.stats import rankdata

    n = len(values)
    if n < 10 or len(np.unique(values)) == 1:
        return False
    ranks = rankdata(values)
    correlation = float(np.corrcoef(np.arange(n), ranks)[0, 1])
    return abs(correlation) * sqrt(n - 1) > float(-ndtri(_RARE / 2))


def clustered(groups: np.ndarray) -> bool:
    """Whether neighbours are of one group more often than chance has it (a Poisson tail)."""
    from scipy.special import gammainc

    n = len(groups)
    if n < 10:
        return False
    sizes = np.bincount(groups).astype(np.float64)
    expected = float((sizes * (sizes - 1)).sum()) / n
    together = int((groups[1:] == groups[:-1]).sum())
    return together > 0 and expected < n / 10 and float(gammainc(together, expected)) < _RARE


def sessions_of(log: QueryLog, sessions: Sessions, name: str) -> None:
    """Keep event_id, owner (the session), user_id and time of every event, by the plain definition.

    An event opens a session if no other of its user came in the minutes before it, or if the session is full.
    """
    log.engine.materialize(
        "SELECT event_id, user_id, time, coalesce(lag(time) OVER (PARTITION BY user_id ORDER BY time, event_id)"  # noqa: S608  # a checked number
        f" + INTERVAL '{sessions.gap}' MINUTE < time, true) AS late FROM events WHERE time IS NOT NULL",
        "claim_pauses",
    )
    log.engine.materialize(
        "SELECT event_id, user_id, time, count(CASE WHEN late THEN 1 END) OVER (PARTITION BY user_id ORDER BY time,"
        " event_id ROWS UNBOUNDED PRECEDING) AS visit FROM claim_pauses",
        "claim_visits",
    )
    log.engine.materialize(
        "SELECT event_id, user_id, time, visit, count(*) OVER (PARTITION BY user_id, visit ORDER BY time, event_id"
        " ROWS UNBOUNDED PRECEDING) AS nth FROM claim_visits",
        "claim_places",
    )
    log.engine.number(
        "SELECT event_id, user_id, time, visit, CAST(floor((nth - 1) / CAST("  # noqa: S608  # a checked number
        f"{sessions.events} AS DOUBLE)) AS BIGINT) AS piece FROM claim_places UNION ALL"
        " SELECT event_id, user_id, time, -1 - event_id AS visit, 0 AS piece FROM events WHERE time IS NULL",
        ("user_id", "visit", "piece"),
        name,
        "owner",
    )
    log.engine.drop("claim_pauses", "claim_visits", "claim_places")


class _Marks:
    """Marks every query by four numbers of 31 bits, so that their sums tell one set of queries from another."""

    def __init__(self, one: int, other: int) -> None:
        self.keys = (one, other)

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        from queryveil.log.draws import keyed

        key = np.array(self.keys, np.uint64).tobytes()
        query = batch["query_id"].cast(pa.int64())
        numbers = [keyed(key, query.to_numpy().view(np.uint64))]
        numbers.append(keyed(key, ~query.to_numpy().view(np.uint64)))
        marks = [part.astype(np.int64) for n in numbers for part in (n >> np.uint64(33), n & np.uint64(0x7FFFFFFF))]
        return pa.RecordBatch.from_arrays([query, *map(pa.array, marks)], schema=_MARKED)
