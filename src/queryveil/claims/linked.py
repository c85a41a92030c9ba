"""The claim about pseudonyms: what stands under one of them was done by one user, and nothing else follows from it."""

from math import sqrt
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict, Field

from queryveil.claims.base import Claim, Count, Evidence, sizes_of
from queryveil.claims.marks import marks_of
from queryveil.engines import Table, Workspace

_RARE = 1e-9
"""How rarely an honest release is refused because chance ordered its ids as if they followed users or times."""
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
        """The exact promise in one sentence."""
        of = self._owner if self.sessions is None else f"{self._owner} ({self.sessions})"
        if self.items:
            return f"Under every pseudonym stand as many items as {of} has events; ids follow neither users nor times."
        return (
            f"The events under one pseudonym come from {of}, and no two share a pseudonym; ids and order follow neither"
            " users nor times."
        )

    @property
    def headline(self) -> str:
        """The promise in at most fifteen words."""
        if self.items:
            return f"Every pseudonym has as many items as {self._owner} has events."
        return f"All events under one pseudonym are those of {self._owner}."

    @property
    def _owner(self) -> str:
        return "one user" if self.sessions is None else "one session of one user"

    @property
    def _id(self) -> str:
        return "user" if self.sessions is None else "session"

    def check(self, evidence: Evidence) -> str | None:
        """Match what stands under each pseudonym with the users or sessions of the log, then look at ids and order."""
        if self._id not in evidence.columns:
            return f"the release has no column '{self._id}'"
        low, high, n, missing = evidence.work.row(
            f'SELECT min("{self._id}") AS low, max("{self._id}") AS high, count(DISTINCT "{self._id}") AS n,'  # noqa: S608  # parts of this module
            f' count(*) - count("{self._id}") AS missing FROM {evidence.released}'
        )
        if missing or (n and (low, high) != (1, n)):
            return f"the pseudonyms are not the numbers from 1 to {n}"
        with evidence.log.workspace() as work:
            if self.sessions is None:
                owners = work.table("SELECT event_id, user_id AS owner, user_id, time FROM events", "owners of events")
            else:
                owners = sessions_of(work, self.sessions)
            found = self._sizes(evidence, owners) if self.items else self._contents(evidence, owners)
        if found is None and "event" in evidence.columns:
            found = self._order(evidence)
        return found

    def _sizes(self, evidence: Evidence, owners: Table) -> str | None:
        """How many rows stand under each pseudonym, and how many events each user or session has."""
        row = evidence.unequal(
            sizes_of(f'SELECT "{self._id}", count(*) AS n FROM {evidence.released} GROUP BY "{self._id}"'),  # noqa: S608  # parts of this module
            sizes_of(f"SELECT owner, count(*) AS n FROM {owners} GROUP BY owner"),  # noqa: S608  # a table of ours
        )
        if row is None:
            return None
        return f"{row[1]} pseudonyms have {row[0]} items, and {row[2]} {self._id}s of the log have as many events"

    def _contents(self, evidence: Evidence, owners: Table) -> str | None:
        """Compare the released queries under each pseudonym with those that users or sessions of the log issued."""
        key = evidence.log.secret(0, "linked events")
        with evidence.log.workspace() as work:
            marks = work.map(
                f"SELECT query_id FROM {evidence.queries}",  # noqa: S608  # a table of ours
                *marks_of(key, "query_id", "query_id"),
                "marked queries",
            )
            mine, theirs = contents(evidence, work, self._id, owners)
            my_sums = _summed(work, mine, marks)
            their_sums = _summed(work, theirs, marks, ", min(s.user_id) AS user_id, min(s.time) AS time")
            if self.whole:
                found = self._unmatched(evidence, my_sums, their_sums)
            else:
                found = self._not_contained(evidence, mine, theirs, my_sums)
            return self._telling(evidence, my_sums, their_sums) if found is None else found

    def _unmatched(self, evidence: Evidence, my_sums: Table, their_sums: Table) -> str | None:
        """A pseudonym with queries that more pseudonyms have than users or sessions of the log."""
        row = evidence.first(
            f"SELECT m.id AS id FROM (SELECT a, b, c, d, min(id) AS id, count(*) AS n FROM {my_sums}"  # noqa: S608  # tables of ours
            f" GROUP BY a, b, c, d) AS m LEFT JOIN (SELECT a, b, c, d, count(*) AS n FROM {their_sums}"
            " GROUP BY a, b, c, d) AS t ON t.a = m.a AND t.b = m.b AND t.c = m.c AND t.d = m.d"
            " WHERE m.n > coalesce(t.n, 0) ORDER BY m.id LIMIT 1"
        )
        return None if row is None else f"the queries under {self._id} {row[0]} are not those of any {self._id} left"

    def _not_contained(self, evidence: Evidence, mine: Table, theirs: Table, my_sums: Table) -> str | None:
        """A pseudonym with queries that no user or session of the log has all of.

        Pseudonyms with the same queries are looked at once, among the owners of their rarest query.
        """
        with evidence.log.workspace() as work:
            some = work.table(f"SELECT min(id) AS id FROM {my_sums} GROUP BY a, b, c, d", "distinct pseudonyms")  # noqa: S608  # a table of ours
            held = work.table(f"SELECT query_id, count(*) AS n FROM {theirs} GROUP BY query_id", "owners per query")  # noqa: S608  # a table of ours
            to_find = work.table(
                "SELECT m.id AS id, m.query_id AS query_id, m.n AS n, row_number() OVER (PARTITION BY m.id"  # noqa: S608  # tables of ours
                f" ORDER BY h.n, m.query_id) AS place, count(*) OVER (PARTITION BY m.id) AS size FROM {mine} m"
                f" JOIN {some} s ON s.id = m.id JOIN {held} h ON h.query_id = m.query_id",
                "queries to find",
            )
            row = evidence.first(
                f"SELECT s.id AS id FROM {some} s LEFT JOIN (SELECT id FROM (SELECT w.id AS id, c.owner AS owner,"  # noqa: S608  # tables of ours
                f" count(*) AS n, min(w.size) AS size FROM (SELECT w.id AS id, t.id AS owner FROM {to_find} w"
                f" JOIN {theirs} t ON t.query_id = w.query_id WHERE w.place = 1 AND t.n >= w.n) AS c"
                f" JOIN {to_find} w ON w.id = c.id JOIN {theirs} t ON t.id = c.owner AND t.query_id = w.query_id"
                " WHERE t.n >= w.n GROUP BY w.id, c.owner) AS fits WHERE n = size GROUP BY id) AS f ON f.id = s.id"
                " WHERE f.id IS NULL ORDER BY s.id LIMIT 1"
            )
        return None if row is None else f"no {self._id} of the log has all queries under {self._id} {row[0]}"

    def _telling(self, evidence: Evidence, my_sums: Table, their_sums: Table) -> str | None:
        """Whether ids follow users or times, by the pseudonyms whose owner the log gives away."""
        known = evidence.work.fetch(
            'SELECT m.id AS id, t.user_id AS user_id, t.time AS time, u."user" AS name FROM (SELECT a, b, c, d,'  # noqa: S608  # tables of ours
            f" min(id) AS id FROM {my_sums} GROUP BY a, b, c, d HAVING count(*) = 1) AS m JOIN (SELECT a, b, c, d,"
            f" min(user_id) AS user_id, min(time) AS time FROM {their_sums} GROUP BY a, b, c, d"
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

    def _order(self, evidence: Evidence) -> str | None:
        """Events are numbered by pseudonym and query, whatever their times."""
        row = evidence.first(
            "SELECT event FROM (SELECT event, id, query_id, lag(id) OVER (ORDER BY event) AS last_id,"  # noqa: S608  # parts of this module
            " lag(query_id) OVER (ORDER BY event) AS last_query FROM (SELECT r.event AS event,"
            f' min(r."{self._id}") AS id, min(q.query_id) AS query_id FROM {evidence.released} r JOIN queries q'
            " ON q.query = r.query GROUP BY r.event) AS events_) AS pairs WHERE id < last_id"
            " OR (id = last_id AND query_id < last_query) ORDER BY event LIMIT 1"
        )
        return None if row is None else f"event {row[0]} is not in the order of pseudonyms and texts"


def contents(evidence: Evidence, work: Workspace, column: str, owners: Table) -> tuple[Table, Table]:
    """The released queries under each pseudonym, and those of each owner in the log: id, query_id and n, their events.

    Those of the log have a user_id and a time as well.

    Args:
        evidence: What the check sees.
        work: Where the tables are made.
        column: The column of pseudonyms.
        owners: The event_id, owner, user_id and time of every event of the log.
    """
    # Without numbers of events, as in AOL's format, a row may be one of several clicks: then only the query counts.
    counted = "event" in evidence.columns
    mine = work.table(
        f'SELECT r."{column}" AS id, t.query_id AS query_id, {"count(DISTINCT r.event)" if counted else "1"}'  # noqa: S608  # parts of this module
        f" AS n FROM {evidence.released} r JOIN {evidence.queries} t ON t.query = r.query"
        f' GROUP BY r."{column}", t.query_id',
        "queries of pseudonyms",
    )
    theirs = work.table(
        f"SELECT o.owner AS id, e.query_id AS query_id, {'count(*)' if counted else '1'} AS n,"  # noqa: S608  # parts of this module
        f" min(o.user_id) AS user_id, min(o.time) AS time FROM {owners} o JOIN events e"
        f" ON e.event_id = o.event_id JOIN {evidence.queries} t ON t.query_id = e.query_id"
        " GROUP BY o.owner, e.query_id",
        "queries of owners",
    )
    return mine, theirs


def _summed(work: Workspace, some: Table, marks: Table, more: str = "") -> Table:
    """The sums of the marks of all queries under an id, which are the same if the queries are."""
    return work.table(
        f"SELECT s.id AS id, {_SUMS}{more} FROM {some} s JOIN {marks} m ON m.query_id = s.query_id GROUP BY s.id",  # noqa: S608  # parts of this module
        "sums of marks",
    )


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


def sessions_of(work: Workspace, sessions: Sessions) -> Table:
    """The event_id, owner (the session), user_id and time of every event, by the plain definition.

    An event opens a session if no other of its user came in the minutes before it, or if the session is full.
    """
    pauses = work.table(
        "SELECT event_id, user_id, time, coalesce(lag(time) OVER (PARTITION BY user_id ORDER BY time, event_id)"  # noqa: S608  # a checked number
        f" + INTERVAL '{sessions.gap}' MINUTE < time, true) AS late FROM events WHERE time IS NOT NULL",
        "pauses",
    )
    visits = work.table(
        "SELECT event_id, user_id, time, count(CASE WHEN late THEN 1 END) OVER (PARTITION BY user_id ORDER BY time,"  # noqa: S608  # a table of ours
        f" event_id ROWS UNBOUNDED PRECEDING) AS visit FROM {pauses}",
        "visits",
    )
    places = work.table(
        "SELECT event_id, user_id, time, visit, count(*) OVER (PARTITION BY user_id, visit ORDER BY time, event_id"  # noqa: S608  # a table of ours
        f" ROWS UNBOUNDED PRECEDING) AS nth FROM {visits}",
        "places in visits",
    )
    owners = work.number(
        "SELECT event_id, user_id, time, visit, CAST(floor((nth - 1) / CAST("  # noqa: S608  # a checked number
        f"{sessions.events} AS DOUBLE)) AS BIGINT) AS piece FROM {places} UNION ALL"
        " SELECT event_id, user_id, time, -1 - event_id AS visit, 0 AS piece FROM events WHERE time IS NULL",
        ("user_id", "visit", "piece"),
        "owner",
        name="sessions",
    )
    work.drop(pauses, visits, places)
    return owners
