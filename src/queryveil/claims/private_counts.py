"""The claim of differential privacy for tables of counts: what a verifier can recompute of it."""

import math
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal, Self

import pyarrow as pa
from pydantic import Field, model_validator

from queryveil.claims.base import ColumnNames, Evidence
from queryveil.claims.consistent import DOUBT, Consistent
from queryveil.claims.likelihood import Noise
from queryveil.claims.private import SLACK, DifferentialPrivacy, NoisyStep, spent
from queryveil.claims.recount import NOT_METADATA, TAKEN
from queryveil.engines import Table, Workspace, identifier

_NOTHING = -1


class PrivateCounts(DifferentialPrivacy):
    """A table of noisy numbers of users is (epsilon, delta)-differentially private.

    Attributes:
        columns: The columns that rows are counted by.
        period: The unit of periods.
    """

    kind: Literal["private-counts"] = "private-counts"  # type: ignore[assignment]
    columns: Annotated[ColumnNames, Field(min_length=1)]
    period: Literal["day", "week", "month"] | None = None
    short: ClassVar[str] = "The table is ({epsilon:g}, {delta:g})-differentially private for every user's whole log."

    @model_validator(mode="after")
    def _one_step(self) -> Self:
        if ("period" in self.columns) != (self.period is not None):
            raise ValueError("a period has a length")
        if any(name.casefold() in TAKEN for name in self.columns):
            raise ValueError("a column has a name that the table needs itself")
        return self

    @property
    def needed(self) -> str:
        """The lowest threshold that a row can be released by, in users, in words."""
        threshold, d = (self.steps[0].threshold or 0, self.steps[0].d) if self.steps else (0, 0)
        return f"the threshold of {threshold} users, each counting in at most {d} rows"

    def check(self, evidence: Evidence) -> str | None:
        """Recompute epsilon and delta from the steps, and refuse a table that such steps would not make."""
        if len(self.steps) != 1 or self.steps[0].of != "rows" or self.steps[0].noise != "laplace":
            return "no step of it released what is in the table"
        (step,) = self.steps
        epsilon, delta = spent(self.steps, self.epsilon)
        if not epsilon <= self.epsilon * (1 + SLACK):
            return f"the noise is worth epsilon {epsilon:g}"
        if not delta <= self.delta * (1 + SLACK):
            return f"the thresholds and the noise are worth delta {delta:g}"
        missing = next((name for name in (*self.columns, "users") if name not in evidence.columns), None)
        wrong = next((name for name in evidence.columns if name not in (*self.columns, "users")), None)
        if missing is not None or wrong is not None or step.threshold is None:
            return f"the column '{missing or wrong}'" if missing or wrong else "a step of it has no threshold"
        metadata = [name for name in self.columns if name not in NOT_METADATA]
        strange = next((name for name in metadata if name not in evidence.log.stats.extras), None)
        if strange is not None:
            return f"the log has no column '{strange}'"
        with evidence.log.workspace() as work:
            return _Rows(evidence, work, self).look_at(step)


class _Rows(Consistent):
    """A look at the rows of one table, and at all that the log could have."""

    def __init__(self, evidence: Evidence, work: Workspace, claim: PrivateCounts) -> None:
        super().__init__(evidence, work, claim.keep)
        self.evidence, self.claim = evidence, claim
        self.metadata = [name for name in claim.columns if name not in NOT_METADATA]

    @property
    def keys(self) -> Sequence[str]:
        """The columns that make a row."""
        chosen = self.claim.columns
        named = {"query": "query_id", "url": "url_id", "rank": "rank", "period": "day"}
        return [*(key for name, key in named.items() if name in chosen), *(f"m_{n}" for n in range(len(self.metadata)))]

    def look_at(self, step: NoisyStep) -> str | None:
        """What is wrong with the table, or None."""
        things, released = self._things(), self._released()
        names = ", ".join(self.keys)
        (rows, low) = self.work.row(
            f"SELECT count(*) AS n, coalesce(min(n), {step.threshold}) AS low FROM {released}"  # noqa: S608  # a table of ours
        )
        (different,) = self.work.row(
            f"SELECT count(*) AS n FROM (SELECT {names} FROM {released} GROUP BY {names}) AS different"  # noqa: S608  # names of this module
        )
        if different < rows:
            return "a row stands twice"
        if low is None or low < (step.threshold or 0):
            return f"a number of {low} users is below the threshold {step.threshold}"
        (n,) = self.work.row(
            f"SELECT count(*) AS n FROM (SELECT {names} FROM ({things}) AS t GROUP BY {names}) AS rows_"  # noqa: S608  # names of this module
        )
        summed = self._sum(self.work, things, self.keys, step, n)
        found = self._of_released(summed, released, self.keys)
        if len(found) < rows:
            return "a row is none of the log"
        noise = Noise(step.noise, step.scale)
        high = found["high"].to_numpy().astype(float)
        reached = noise.log_tail((step.threshold or 0) - high)
        reached[high < step.pre_threshold] = -math.inf
        if reached.min(initial=0.0) < math.log(DOUBT / max(1, n)):
            least = found["users"].to_pylist()[int(reached.argmin())]
            return f"a row of {least} users could not be released by such noise"
        self._chosen(step, found["free"], reached, "u.low", f"{summed} u", released, self.keys, 0.0)
        self._noisy(step, found, step.threshold)
        return self.wrong or self._judged()

    def _of_released(self, summed: Table, released: Table, keys: Sequence[str]) -> pa.Table:
        same = " AND ".join(f"u.{key} = p.{key}" for key in keys)
        return self.work.fetch(
            "SELECT u.low AS low, u.high AS high, u.free AS free, u.users AS users, u.times AS times, p.n AS n,"  # noqa: S608  # names of this module
            f" p.place AS text FROM {summed} u JOIN {released} p ON {same} ORDER BY p.place"
        )

    def _things(self) -> str:
        """SQL of the rows that each user has a part in."""
        chosen = self.claim.columns
        given = {"query_id": "e.query_id"} if "query" in chosen else {}
        for name, key in (("url", "url_id"), ("rank", "rank")):
            given |= {key: f"coalesce(r.{key}, {_NOTHING})"} if name in chosen else {}
        given |= {"day": f"CAST(date_trunc('{self.claim.period}', e.time) AS DATE)"} if self.claim.period else {}
        for place, name in enumerate(self.metadata):
            given[f"m_{place}"] = f"e.{identifier(f'{name} id')}"
        results = {"url", "rank"} & set(chosen)
        joined = (
            f" LEFT JOIN {self.log.results} r ON r.query_id = e.query_id AND r.event_id = e.event_id" if results else ""
        )
        timed = " WHERE e.time IS NOT NULL" if self.claim.period else ""
        named = ", ".join(f"{sql} AS {key}" for key, sql in given.items())
        return (
            f"SELECT user_id, {', '.join(given)}, count(*) AS times, min(event_id) AS began, 1 AS may, 1 AS sure,"  # noqa: S608  # names are escaped
            f" 1 AS free FROM (SELECT e.user_id AS user_id, e.event_id AS event_id, {named}"
            f" FROM events e{joined}{timed}) AS rows_ GROUP BY user_id, {', '.join(given)}"
        )

    def _released(self) -> Table:
        """The released rows: the keys, n, and place, a number for each row; a text of no log has the key NULL."""
        chosen, selected, joins = self.claim.columns, ['CAST(r."users" AS BIGINT) AS n'], ""
        if "query" in chosen:
            joins += f" LEFT JOIN {self.evidence.queries} q ON q.query = r.query"
            selected.append("q.query_id AS query_id")
        if "url" in chosen:
            joins += f" LEFT JOIN {self.evidence.urls} a ON a.url = r.url"
            selected.append(f"CASE WHEN r.url IS NULL THEN {_NOTHING} ELSE a.url_id END AS url_id")
        if "rank" in chosen:
            selected.append(f"coalesce(r.rank, {_NOTHING}) AS rank")
        if self.claim.period:
            day = f"CAST(date_trunc('{self.claim.period}', e.time) AS DATE)"
            days = self.work.fetch(f"SELECT {day} AS day FROM events e WHERE e.time IS NOT NULL GROUP BY {day}")["day"]  # noqa: S608  # one of three words
            texts = pa.array([one.isoformat() for one in days.to_pylist()], pa.string())
            known = self.work.read(pa.table({"day": days.cast(pa.date32()), "text": texts}), "days")
            joins += f" LEFT JOIN {known} d ON d.text = r.period"
            selected.append("d.day AS day")
        for place, name in enumerate(self.metadata):
            table, column = identifier(f"extra {name}"), identifier(name)
            joins += f" LEFT JOIN {table} x{place} ON x{place}.value = r.{column}"
            selected.append(f"CASE WHEN r.{column} IS NULL THEN {_NOTHING} ELSE x{place}.id END AS m_{place}")
        names = ", ".join(self.keys)
        rows = f"SELECT {', '.join(selected)} FROM {self.released} r{joins}"  # noqa: S608  # names are escaped
        return self.work.table(
            f"SELECT {names}, n, row_number() OVER (ORDER BY {names}, n) AS place FROM ({rows}) AS rows_",  # noqa: S608  # names of this module
            "released rows",
        )
