"""Claims about the content of a release: nothing is invented, and queries and times are as promised."""

from typing import Any, ClassVar, Literal

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import SerializerFunctionWrapHandler, model_serializer

from queryveil.claims.base import Claim, Count, Evidence
from queryveil.claims.listed import given_list
from queryveil.claims.lists import rest_of
from queryveil.engines import Table
from queryveil.scrubbing.decisions import Decisions, read_decisions


class PartOfLog(Claim):
    """Nothing is invented: no event, row, click or view of a query occurs more often than in the log."""

    kind: Literal["part-of-log"] = "part-of-log"
    exact: ClassVar[str] = "No query and no click occurs in the release more often than in the log."

    def check(self, evidence: Evidence) -> str | None:
        """Compare rows and events per query, and clicks or views per query, address and rank."""
        unknown = evidence.unknown_query()
        if unknown is not None:
            return f"the query '{unknown[0]}' has {unknown[1]} rows in the release and 0 in the log"
        found = self._too_often(evidence, "rows", evidence.rows)
        found = found or (self._events(evidence) if "event" in evidence.columns else None)
        return found or (self._clicked_too_often(evidence) if "url" in evidence.columns else None)

    def _events(self, evidence: Evidence) -> str | None:
        """An event that is not one, or a query with too many of them."""
        row = evidence.first(f"SELECT event FROM {evidence.events} WHERE several ORDER BY event LIMIT 1")  # noqa: S608  # parts of this module, checked numbers and escaped names
        if row is not None:
            return f"event {row[0]} has several pseudonyms or queries"
        return self._too_often(evidence, "events", evidence.events)

    def _too_often(self, evidence: Evidence, what: Literal["rows", "events"], released: Table) -> str | None:
        """A query with more rows or events than in the log; there an event has a row, or one for each result."""
        ours, results = f"JOIN {evidence.queries} q ON q.query_id =", evidence.log.results
        log_rows = f"SELECT e.query_id AS query_id, 1 AS n FROM events e {ours} e.query_id"  # noqa: S608  # parts of this module, checked numbers and escaped names
        if what == "rows":
            log_rows += (
                f" UNION ALL SELECT c.query_id AS query_id, count(*) - 1 AS n FROM {results} c {ours} c.query_id"  # noqa: S608  # parts of this module, checked numbers and escaped names
                " GROUP BY c.event_id, c.query_id HAVING count(*) > 1"
            )
        found = evidence.first(
            f"SELECT q.query AS query, r.n AS n, coalesce(o.n, 0) AS original FROM {evidence.queries} q"  # noqa: S608  # parts of this module, checked numbers and escaped names
            f" JOIN (SELECT query_id, count(*) AS n FROM {released} GROUP BY query_id) AS r"
            " ON r.query_id = q.query_id LEFT JOIN (SELECT l.query_id AS query_id, CAST(sum(l.n) AS BIGINT) AS n"
            f" FROM ({log_rows}) AS l GROUP BY l.query_id) AS o ON o.query_id = q.query_id"
            " WHERE r.n > coalesce(o.n, 0) ORDER BY q.query LIMIT 1"
        )
        if found is None:
            return None
        return f"the query '{found[0]}' has {found[1]} {what} in the release and {found[2]} in the log"

    def _clicked_too_often(self, evidence: Evidence) -> str | None:
        """An address that was clicked, or shown, more often for a query than in the log, or at a rank."""
        found = None
        if evidence.has_unknown("url"):
            found = evidence.first(
                f"SELECT r.query AS query, r.url AS url, count(*) AS n, 0 AS original FROM {evidence.released} r"  # noqa: S608  # parts of this module, checked numbers and escaped names
                f" LEFT JOIN {evidence.urls} u ON u.url = r.url WHERE r.url IS NOT NULL AND u.url_id IS NULL"
                " GROUP BY r.query, r.url ORDER BY query, url LIMIT 1"
            )
        where, results = "", evidence.log.results
        alike = ["query_id, url_id", "query_id, url_id, rank"]
        if "clicked" in evidence.columns and evidence.log.has_views:
            alike += [f"{keys}, clicked" for keys in alike]
        for keys in alike:
            if found is not None:
                break
            given = " AND ".join(f"{key} IS NOT NULL" for key in keys.split(", "))
            same = " AND ".join(f"c.{key} = r.{key}" for key in keys.split(", "))
            grouped = ", ".join(f"c.{key}" for key in keys.split(", "))
            named = ", ".join(f"c.{key} AS {key}" for key in keys.split(", "))
            found = evidence.first(
                f"WITH r AS (SELECT {keys}, count(*) AS n FROM {evidence.rows} WHERE {given} GROUP BY {keys}),"  # noqa: S608  # parts of this module, checked numbers and escaped names
                f" c AS (SELECT {named}, count(*) AS n FROM {results} c JOIN r ON {same} GROUP BY {grouped})"
                " SELECT q.query AS query, u.url AS url, r.n AS n, coalesce(c.n, 0) AS original FROM r"
                f" LEFT JOIN c ON {same} JOIN {evidence.queries} q ON q.query_id = r.query_id"
                f" JOIN {evidence.urls} u ON u.url_id = r.url_id WHERE r.n > coalesce(c.n, 0)"
                " ORDER BY q.query, u.url LIMIT 1"
            )
            where = " at its rank" if "rank" in keys else ""
            where += " and clicked or not" if "clicked" in keys else ""
        if found is None:
            return None
        what = "view of" if evidence.log.has_views else "click on"
        click = f"the {what} '{found[1]}' for '{found[0]}'{where}"
        return f"{click} occurs {found[2]} times in the release, {found[3]} in the log"


class QuerySpelling(Claim):
    """What released queries look like."""

    kind: Literal["query-spelling"] = "query-spelling"
    of_words: ClassVar[bool] = True
    max_characters: Count | None = None
    max_terms: Count | None = None
    no_digits: bool = False
    no_at: bool = False
    lifted: str | None = None
    """The file of decisions that allow other queries too."""

    @model_serializer(mode="wrap")
    def _written(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """As it is written in a manifest: nothing about decisions if there are none, as ever."""
        made: dict[str, Any] = write(self)
        return {name: value for name, value in made.items() if name != "lifted" or value is not None}

    @property
    def statement(self) -> str:
        """The exact promise in one sentence."""
        has, holds = self._parts
        lifted = ", or so does the rest of it without what a reviewer allowed" if self.lifted is not None else ""
        what = _listed([f"has {what}" for what in has] + [f"holds {what}" for what in holds])
        return f"Every released query {what}{lifted}."

    @property
    def headline(self) -> str:
        """The promise in at most fifteen words."""
        if self.lifted is not None:
            return "Queries keep the rules about length and characters, or a reviewer allowed them."
        return f"Queries have {_listed([what for parts in self._parts for what in parts])}."

    @property
    def _parts(self) -> tuple[list[str], list[str]]:
        most = {"characters": self.max_characters, "words": self.max_terms}
        has = [f"at most {number} {unit}" for unit, number in most.items() if number is not None]
        return has, ["no digit"] * self.no_digits + ["no @"] * self.no_at

    def check(self, evidence: Evidence) -> str | None:
        """Look at every released query."""
        with evidence.log.workspace() as work:
            odd = work.map(
                f"SELECT query FROM {evidence.released} GROUP BY query",  # noqa: S608  # parts of this module, checked numbers and escaped names
                self._wrong,
                pa.schema([("query", pa.string())]),
                "odd queries",
            )
            wrong = f"SELECT query FROM {odd}"  # noqa: S608  # parts of this module, checked numbers and escaped names
            if self.max_terms is not None:
                wrong += (
                    f" UNION ALL SELECT q.query AS query FROM {evidence.queries} q JOIN"  # noqa: S608  # parts of this module, checked numbers and escaped names
                    " (SELECT query_id, count(*) AS n FROM query_terms GROUP BY query_id) AS t"
                    f" ON t.query_id = q.query_id WHERE t.n > {self.max_terms}"
                )
            if self.lifted is not None:
                found = work.fetch(f"SELECT query FROM ({wrong}) AS wrong GROUP BY query ORDER BY query")  # noqa: S608  # as above
                return self._not_allowed(found["query"].to_pylist(), evidence)
            first = evidence.first(f"SELECT query FROM ({wrong}) AS wrong ORDER BY query LIMIT 1")  # noqa: S608  # parts of this module, checked numbers and escaped names
        return None if first is None else f"the query '{first[0]}'"

    def _not_allowed(self, queries: list[str], evidence: Evidence) -> str | None:
        """The first of some queries that the decisions do not allow, in whole or by their words."""
        decided = Decisions.of(read_decisions(given_list(evidence, self.lifted or "")))
        allowed = set(decided.allowed_queries.to_pylist())
        phrases = {tuple(text.split(" ")) for text in decided.allowed_words.to_pylist()}
        left = [query for query in queries if query not in allowed]
        rest = pa.array([rest_of(query, phrases) for query in left], pa.string())
        wrong = set(self._wrong(pa.RecordBatch.from_arrays([rest], names=["query"]))["query"].to_pylist())
        words = evidence.log.language.words(rest).per_query.tolist()
        for query, text, n in zip(left, rest.to_pylist(), words, strict=True):
            if text in wrong or (self.max_terms is not None and n > self.max_terms):
                return f"the query '{query}', which no decision allows"
        return None

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


def _listed(parts: list[str]) -> str:
    return ", ".join(parts[:-1]) + " and " + parts[-1] if len(parts) > 1 else parts[0]


class TimesRounded(Claim):
    """Times are rounded down to a day or a week."""

    kind: Literal["times-rounded"] = "times-rounded"
    unit: Literal["day", "week"]
    exact: ClassVar[str] = "Every released time is rounded down to the {unit}."

    def check(self, evidence: Evidence) -> str | None:
        """Look at every released time."""
        found = evidence.first(
            f"SELECT time FROM {evidence.released} WHERE time IS NOT NULL"  # noqa: S608  # one of two words
            f" AND time <> date_trunc('{self.unit}', time) ORDER BY time LIMIT 1"
        )
        return None if found is None else f"the time {found[0]}"
