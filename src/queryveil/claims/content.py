"""Claims about what is in a release at all: nothing invented, nothing that looks wrong."""

from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from queryveil.claims.base import Claim, Columns, Count, first
from queryveil.log import QueryLog


class PartOfLog(Claim):
    """Nothing is invented: no event, row or click of a query occurs more often than in the log."""

    kind: Literal["part-of-log"] = "part-of-log"

    @property
    def statement(self) -> str:
        """The promise in one sentence."""
        return "No query and no click occurs in the release more often than in the log."

    def check(self, log: QueryLog, columns: Columns) -> str | None:
        """Compare rows and events a query, and clicks a query, address and rank."""
        rows = (
            "SELECT e.query_id AS query_id, e.event_id AS event_id, greatest(1, count(c.event_id)) AS n FROM events e"
            " LEFT JOIN clicks c ON c.event_id = e.event_id GROUP BY e.event_id, e.query_id"
        )
        checks = [("rows", "count(*)", f"SELECT query_id, sum(n) AS n FROM ({rows}) GROUP BY query_id")]  # noqa: S608  # parts of this module
        if "event" in columns:
            checks.append(
                ("events", "count(DISTINCT event)", "SELECT query_id, count(*) AS n FROM events GROUP BY query_id")
            )
        for what, number, original in checks:
            found = first(
                log,
                f"SELECT r.query, r.n, coalesce(o.n, 0) FROM (SELECT query, {number} AS n FROM released GROUP BY query)"  # noqa: S608  # parts of this module
                f" r LEFT JOIN (SELECT q.query AS query, o.n AS n FROM ({original}) o JOIN queries q"
                " ON q.query_id = o.query_id) o ON o.query = r.query WHERE r.n > coalesce(o.n, 0)"
                " ORDER BY r.query LIMIT 1",
            )
            if found is not None:
                return f"the query '{found[0]}' has {found[1]} {what} in the release and {found[2]} in the log"
        if "event" in columns:
            one = [f'min("{name}") <> max("{name}")' for name in ("user", "session", "query") if name in columns]
            found = first(
                log,
                f"SELECT event FROM released GROUP BY event HAVING {' OR '.join(one)} ORDER BY event LIMIT 1",  # noqa: S608  # parts of this module
            )
            if found is not None:
                return f"event {found[0]} has several pseudonyms or queries"
        if "url" not in columns:
            return None
        for keys in (("url",), ("url", "rank")):
            names = ", ".join(keys)
            given = " AND ".join(f"{key} IS NOT NULL" for key in keys)
            same = " AND ".join(f"o.{key} = r.{key}" for key in keys)
            found = first(
                log,
                f"SELECT r.query, r.url, r.n, coalesce(o.n, 0) FROM (SELECT query, {names}, count(*) AS n FROM released"  # noqa: S608  # parts of this module
                f" WHERE {given} GROUP BY query, {names}) r LEFT JOIN (SELECT query, {names}, count(*) AS n FROM"
                " (SELECT q.query AS query, u.url AS url, c.rank AS rank FROM clicks c JOIN queries q"
                " ON q.query_id = c.query_id JOIN urls u ON u.url_id = c.url_id)"
                f" GROUP BY query, {names}) o ON o.query = r.query AND {same}"
                " WHERE r.n > coalesce(o.n, 0) ORDER BY r.query, r.url LIMIT 1",
            )
            if found is not None:
                where = f"the click on '{found[1]}' for '{found[0]}'" + (" at its rank" if "rank" in keys else "")
                return f"{where} occurs {found[2]} times in the release, {found[3]} in the log"
        return None


class QuerySpelling(Claim):
    """What released queries look like."""

    kind: Literal["query-spelling"] = "query-spelling"
    max_characters: Count | None = None
    max_terms: Count | None = None
    no_digits: bool = False
    no_at: bool = False

    @property
    def statement(self) -> str:
        """The promise in one sentence."""
        parts = []
        if self.max_characters is not None:
            parts.append(f"has at most {self.max_characters} characters")
        if self.max_terms is not None:
            parts.append(f"has at most {self.max_terms} words")
        parts += ["holds no digit"] * self.no_digits + ["holds no @"] * self.no_at
        listed = ", ".join(parts[:-1]) + " and " + parts[-1] if len(parts) > 1 else parts[0]
        return f"Every released query {listed}."

    def check(self, log: QueryLog, columns: Columns) -> str | None:
        """Look at every released query."""
        engine = log.engine
        engine.map("SELECT query FROM released GROUP BY query", self._wrong, pa.schema([("query", pa.string())]), "odd")
        wrong = "SELECT query FROM odd"
        if self.max_terms is not None:
            wrong += (
                " UNION ALL SELECT q.query AS query FROM queries q JOIN (SELECT query FROM released GROUP BY query)"  # noqa: S608  # a checked number
                " AS r ON r.query = q.query JOIN (SELECT query_id, count(*) AS n FROM tok GROUP BY query_id) AS t"
                f" ON t.query_id = q.query_id WHERE t.n > {self.max_terms}"
            )
        found = first(log, f"SELECT query FROM ({wrong}) AS wrong ORDER BY query LIMIT 1")  # noqa: S608  # parts of this module
        engine.drop("odd")
        return None if found is None else f"the query '{found[0]}'"

    def _wrong(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The queries that are too long, or hold what they should not."""
        query = batch["query"].cast(pa.string())
        wrong = pa.repeat(pa.scalar(False), len(query))
        if self.max_characters is not None:
            wrong = pc.or_(wrong, pc.greater(pc.utf8_length(query), self.max_characters))
        if self.no_digits:
            wrong = pc.or_(wrong, pc.match_substring_regex(query, r"\p{Nd}"))
        if self.no_at:
            wrong = pc.or_(wrong, pc.match_substring(query, "@"))
        return pa.RecordBatch.from_arrays([query.filter(wrong)], names=["query"])


class TimesRounded(Claim):
    """Times are rounded down to a day or a week."""

    kind: Literal["times-rounded"] = "times-rounded"
    unit: Literal["day", "week"]

    @property
    def statement(self) -> str:
        """The promise in one sentence."""
        return f"Every released time is rounded down to the {self.unit}."

    def check(self, log: QueryLog, columns: Columns) -> str | None:
        """Look at every released time."""
        found = first(
            log,
            f"SELECT time FROM released WHERE time IS NOT NULL AND time <> date_trunc('{self.unit}', time)"  # noqa: S608  # one of two words
            " ORDER BY time LIMIT 1",
        )
        return None if found is None else f"the time {found[0]}"
