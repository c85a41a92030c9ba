"""Can a table have been made by the noise that is stated? A test of differentially private releases.

The log gives everything that the noise was added to, or bounds of it. So the probability of what was released is known
too, and it is compared with other ways to make the table (`likelihood`). A release that was made as stated is refused
with probability below 1e-6, which is the sum of:

- `1 / REFUSED` = 5e-7 that the e-value of all tests together is so large,
- `DOUBT` = 1e-8 for each step that a single released thing is so unlikely that it is refused alone,
- `DOUBT` for each step and each side that a sum is out of its bounds: what early rounds and n-grams surely or possibly
  released, and what a random choice took.

There are at most 12 steps (n-grams, ten rounds, counts), so the sum is below 5e-7 + 4 * 12 * 1e-8 < 1e-6.

The converse does not hold: a table that passes need not have been made as stated. Noise cannot be seen in one number.
Some hundred things show that noise is missing, halved, doubled or left out for a part; three things show next to
nothing.
"""

import math
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queryveil.claims.base import Evidence
from queryveil.claims.contributed import SEARCHED, Keep, number, runs, sums
from queryveil.claims.likelihood import FINE, REACH, Chosen, Counted, Floats, Longs, Noise, evidence_of_counts, log_mean
from queryveil.engines import Table, Workspace

if TYPE_CHECKING:
    from queryveil.claims.private import NoisyStep

REFUSED = 2e6
"""A table is refused if it is this many times likelier under another way to make it."""
DOUBT = 1e-8
"""The probability that any other part of the check refuses an honest release."""
_STRATA = 256
"""Step, in scales, in which the sums of things that were not released are distinguished."""
_ALONE = "1 AS may, 1 AS sure, 1 AS free"
_QUERY, _CLICK = ("query_id",), ("query_id", "url_id")
"""The columns that make a thing."""


class Consistent:
    """A look at one table.

    Attributes:
        evidence: The log and the released table.
        work: Where tables live until the look ends.
        keep: Which things of a user count.
    """

    def __init__(self, evidence: Evidence, work: Workspace, keep: Keep) -> None:
        self.log, self.columns, self.released = evidence.log, evidence.columns, evidence.released
        self.work, self.keep = work, keep
        self.e_values: list[float] = []
        self.counted: list[Counted] = []
        self.wrong: str | None = None

    def look(self, steps: "tuple[NoisyStep, ...]", ngrams: int) -> str | None:
        """What is wrong with the table, or None."""
        self._rounds([step for step in steps if step.of == "queries"], _only(steps, "n-grams"), ngrams)
        if "url" in self.columns:
            self._clicks(_only(steps, "clicks"))
        self._counts(_only(steps, "counts"))
        return self.wrong or self._judged()

    @cached_property
    def _queries(self) -> Table:
        """The released queries: query_id and maybe n, their count."""
        queries = "url IS NULL" if "url" in self.columns else "1 = 1"
        return self.work.table(
            f"SELECT q.query_id AS query_id{self._count} FROM {self.released} r JOIN queries q ON q.query = r.query"  # noqa: S608  # parts of this module and checked numbers
            f" WHERE {queries}",
            "released queries",
        )

    @cached_property
    def _searched(self) -> Table:
        """What each user searched for."""
        return self.work.table(SEARCHED, "queries of users")

    @property
    def _count(self) -> str:
        return ', CAST(r."count" AS BIGINT) AS n' if "count" in self.columns else ""

    def _judged(self) -> str | None:
        counts = [evidence_of_counts(self.counted)] if sum(len(part.count) for part in self.counted) else []
        found = [*self.e_values, *counts]
        if log_mean(np.array(found)) < math.log(REFUSED):
            return None
        if counts and counts[0] == max(found):
            return "the counts are off from those of the log otherwise than such noise would make them"
        return "such noise and such a threshold would choose other queries, but for one release in a million"

    def _refuse(self, what: str) -> None:
        self.wrong = self.wrong or what

    def _too_unlikely(self, log_released: Floats, n: int, found: pa.Table, what: str) -> bool:
        """Whether one of n things was released against all odds; then the table is refused."""
        if log_released.min(initial=0.0) >= math.log(DOUBT / max(1, n)):
            return False
        row = found.slice(int(log_released.argmin()), 1).to_pylist()[0]
        self._refuse(f"{what} '{row['text']}' of {row['users']} users could not be released by such noise")
        return True

    def _rounds(self, rounds: "list[NoisyStep]", grams: "NoisyStep | None", ngrams: int) -> None:
        """The set of queries: in some round each released one reached the threshold, and no other in any."""
        with self.log.workspace() as work:
            state, log_before = self._first_state(work, grams, ngrams)
            log_released: Floats = np.empty(0)
            for i, step in enumerate(rounds):
                things = (
                    "SELECT t.user_id AS user_id, t.query_id AS query_id, t.times AS times, t.began AS began,"  # noqa: S608  # parts of this module and checked numbers
                    f" s.may AS may, s.sure AS sure, s.free AS free FROM {self._searched} t JOIN {state} s"
                    " ON s.query_id = t.query_id"
                )
                summed = self._sum(work, things, _QUERY, step, self.log.n_queries if i == 0 and grams is None else None)
                found = self._of_released(summed, self._queries, _QUERY)
                log_now = _log_reached(_noise(step), step, found["high"])
                log_released = log_now if i == 0 else np.minimum(np.logaddexp(log_released, log_now), 0.0)
                if i < len(rounds) - 1:
                    before, state = state, self._next_state(work, state, summed, step)
                    work.drop(before, summed)
            if self._too_unlikely(log_released, self.log.n_queries, found, "the query"):
                return
            low = "CASE WHEN s.built = 1 THEN u.low ELSE 0 END"
            joined = f"{summed} u JOIN {state} s ON s.query_id = u.query_id"
            self._chosen(step, found["free"], log_released, low, joined, self._queries, _QUERY, log_before)
            if "count" in self.columns and step.noise == "laplace":
                self._noisy(step, found, step.threshold)

    def _first_state(self, work: Workspace, grams: "NoisyStep | None", ngrams: int) -> tuple[Table, float]:
        """For each query whether it competes in the first round, by `WORLDS`, and whether it was surely built.

        Returns:
            The table, and the logarithm of how likely those runs of words are that must be there.
        """
        if grams is not None:
            return self._ngrams(work, grams, ngrams)
        all_compete = "SELECT query_id, 1 AS may, 1 AS sure, 1 AS free, 1 AS built FROM queries GROUP BY query_id"
        return work.table(all_compete, "competing queries"), 0.0

    def _next_state(self, work: Workspace, state: Table, summed: Table, step: "NoisyStep") -> Table:
        """The same for the next round, in which queries that were released do not compete."""
        threshold, away = step.threshold or 0, _noise(step).beyond(DOUBT / self.log.n_queries)
        surely = f"p.query_id IS NOT NULL AND u.low >= {max(step.pre_threshold, threshold - 1 + away)}"
        maybe = f"p.query_id IS NOT NULL AND u.high >= {max(step.pre_threshold, threshold - away + 1)}"
        return work.table(
            f"SELECT s.query_id AS query_id, CASE WHEN {surely} THEN 0 ELSE s.may END AS may,"  # noqa: S608  # parts of this module and checked numbers
            f" CASE WHEN {maybe} THEN 0 ELSE s.sure END AS sure,"
            f" CASE WHEN u.free >= {threshold} THEN 0 ELSE s.free END AS free, s.built AS built"
            f" FROM {state} s JOIN {summed} u ON u.query_id = s.query_id"
            f" LEFT JOIN {self._queries} p ON p.query_id = s.query_id",
            "competing queries",
        )

    def _ngrams(self, work: Workspace, step: "NoisyStep", n: int) -> tuple[Table, float]:
        """Which queries can have been built; the logarithm of how likely those runs of words are that must be there."""
        noise, threshold = _noise(step), step.threshold or 0
        keys = [f"word_{i}" for i in range(1, n + 1)]
        names, same = ", ".join(f"r.{key}" for key in keys), " AND ".join(f"g.{key} = r.{key}" for key in keys)
        named = ", ".join(f"r.{key} AS {key}" for key in keys)
        with self.log.workspace() as steps:
            held = steps.table(runs(n), "runs of words")
            (number_of_runs,) = steps.row(
                f"SELECT count(*) AS n FROM (SELECT {names} FROM {held} r GROUP BY {names}) AS grams"  # noqa: S608  # parts of this module and checked numbers
            )
            things = (
                f"SELECT t.user_id AS user_id, {named}, CAST(sum(t.times) AS BIGINT) AS times, min(t.began) AS began,"  # noqa: S608  # parts of this module and checked numbers
                f" {_ALONE} FROM {self._searched} t JOIN {held} r ON r.query_id = t.query_id"
                f" GROUP BY t.user_id, {names}"
            )
            summed = self._sum(steps, things, keys, step, number_of_runs)
            away = noise.beyond(DOUBT / max(1, number_of_runs))
            columns = ", ".join(f"u.{key} AS {key}" for key in keys)
            needed = f"SELECT {named} FROM {held} r JOIN {self._queries} p ON p.query_id = r.query_id GROUP BY {names}"  # noqa: S608  # parts of this module and checked numbers
            used = " AND ".join(f"r.{key} = u.{key}" for key in keys)
            least = step.pre_threshold
            grams = steps.table(
                f"SELECT {columns}, u.high AS high, CASE WHEN r.word_1 IS NULL THEN 0 ELSE 1 END AS needed,"  # noqa: S608  # parts of this module and checked numbers
                f" CASE WHEN r.word_1 IS NOT NULL OR u.high >= {max(least, threshold - away + 1)} THEN 1 ELSE 0"
                f" END AS may, CASE WHEN r.word_1 IS NOT NULL OR u.low >= {max(least, threshold - 1 + away)}"
                f" THEN 1 ELSE 0 END AS sure, CASE WHEN u.free >= {max(least, threshold)} THEN 1 ELSE 0 END"
                f" AS free FROM {summed} u LEFT JOIN ({needed}) AS r ON {used}",
                "n-grams",
            )
            state = work.table(
                "SELECT q.query_id AS query_id, coalesce(b.may, 1) AS may, coalesce(b.sure, 1) AS sure,"  # noqa: S608  # parts of this module and checked numbers
                " coalesce(b.free, 1) AS free, coalesce(b.sure, 1) AS built FROM queries q LEFT JOIN (SELECT"
                " r.query_id AS query_id, min(g.may) AS may, min(g.sure) AS sure, min(g.free) AS free"
                f" FROM {held} r JOIN {grams} g ON {same} GROUP BY r.query_id) AS b ON b.query_id = q.query_id",
                "competing queries",
            )
            high = steps.fetch(f"SELECT high FROM {grams} WHERE needed = 1")["high"]  # noqa: S608  # a table of ours
        log_reached = _log_reached(noise, step, high)
        if log_reached.min(initial=0.0) < math.log(DOUBT / max(1, number_of_runs)):
            self._refuse("a released query holds words that could not be released by such noise")
        return state, float(log_reached.sum())

    def _clicks(self, step: "NoisyStep | None") -> None:
        """The pairs of released queries and addresses."""
        if step is None:
            return
        pairs = (
            "SELECT c.user_id AS user_id, c.query_id AS query_id, c.url_id AS url_id, count(*) AS times,"  # noqa: S608  # parts of this module and checked numbers
            f" min(c.event_id) AS began, {_ALONE} FROM clicks c JOIN {self._queries} p ON p.query_id = c.query_id"
            " WHERE c.url_id IS NOT NULL GROUP BY c.user_id, c.query_id, c.url_id"
        )
        with self.log.workspace() as work:
            clicks = work.table(
                f"SELECT q.query_id AS query_id, u.url_id AS url_id{self._count} FROM {self.released} r JOIN queries q"  # noqa: S608  # parts of this module and checked numbers
                " ON q.query = r.query JOIN urls u ON u.url = r.url",
                "released clicks",
            )
            (n,) = work.row(
                f"SELECT count(*) AS n FROM (SELECT query_id, url_id FROM ({pairs}) AS pairs"  # noqa: S608  # parts of this module and checked numbers
                " GROUP BY query_id, url_id) AS things"
            )
            summed = self._sum(work, pairs, _CLICK, step, n)
            found = self._of_released(summed, clicks, _CLICK)
            (released,) = work.row(f"SELECT count(*) AS n FROM {clicks}")  # noqa: S608  # a table of ours
            if len(found) < released:
                self._refuse("a click is released whose query is not")
                return
            log_released = _log_reached(_noise(step), step, found["high"])
            if self._too_unlikely(log_released, n, found, "a click for"):
                return
            self._chosen(step, found["free"], log_released, "u.low", f"{summed} u", clicks, _CLICK, 0.0)
        if "count" in self.columns:
            self._noisy(step, found, step.threshold)

    def _counts(self, step: "NoisyStep | None") -> None:
        """Counts of released queries that have noise of their own."""
        if step is None or "count" not in self.columns or self.wrong is not None:
            return
        things = (
            "SELECT t.user_id AS user_id, t.query_id AS query_id, t.times AS times, t.began AS began,"  # noqa: S608  # parts of this module and checked numbers
            f" {_ALONE} FROM {self._searched} t JOIN {self._queries} p ON p.query_id = t.query_id"
        )
        with self.log.workspace() as work:
            summed = self._sum(work, things, _QUERY, step, None)
            self._noisy(step, self._of_released(summed, self._queries, _QUERY), None)

    def _sum(
        self, work: Workspace, things: str, keys: Sequence[str], step: "NoisyStep", chosen_for: int | None
    ) -> Table:
        """The sums of things; `chosen_for` is how many there are, if random choices were made for them alone."""
        doubt = None if chosen_for is None else DOUBT / max(1, chosen_for)
        gives = [step.gives(n) for n in range(1, step.d + 1)]
        return sums(work, things, keys, step.d, gives, self.keep, doubt)

    def _of_released(self, summed: Table, released: Table, keys: Sequence[str]) -> pa.Table:
        """The sums of released things, with their counts and texts."""
        same = " AND ".join(f"u.{key} = p.{key}" for key in keys)
        count = "p.n" if "count" in self.columns else "0"
        return self.work.fetch(
            f"SELECT u.low AS low, u.high AS high, u.free AS free, u.users AS users, u.times AS times, {count} AS n,"  # noqa: S608  # parts of this module and checked numbers
            f" q.query AS text FROM {summed} u JOIN {released} p ON {same}"
            f" JOIN queries q ON q.query_id = u.query_id ORDER BY {', '.join(f'u.{key}' for key in keys)}"
        )

    def _chosen(
        self,
        step: "NoisyStep",
        free: pa.ChunkedArray,
        log_released: Floats,
        low: str,
        joined: str,
        released: Table,
        keys: Sequence[str],
        log_before: float,
    ) -> None:
        """Compare which things were released with which would be; the others are brought here as a histogram."""
        noise, threshold = _noise(step), step.threshold or 0
        same = " AND ".join(f"p.{name} = u.{name}" for name in keys)
        place = f"floor((u.free - {threshold}) / {number(step.scale / FINE)})"
        bounded = f"CAST(greatest(least({place}, {REACH * FINE - 1}), {-REACH * FINE}) AS BIGINT)"
        stratum = f"floor({low} / {number(step.scale / _STRATA)})"
        dropped = self.work.fetch(
            f"SELECT {bounded} AS place, min({low}) AS low, count(*) AS n FROM {joined} LEFT JOIN {released} p"  # noqa: S608  # parts of this module and checked numbers
            f" ON {same} WHERE p.{keys[0]} IS NULL GROUP BY {bounded}, {stratum}"
        )
        size = 2 * REACH * FINE
        at = np.floor((free.to_numpy() - threshold) / (step.scale / FINE))
        at = np.clip(at, -REACH * FINE, REACH * FINE - 1).astype(np.int64) + REACH * FINE
        chosen = np.bincount(at, minlength=size)
        log_stated: Floats = np.bincount(at, log_released, minlength=size).astype(np.float64)
        at, n = dropped["place"].to_numpy() + REACH * FINE, dropped["n"].to_numpy()
        least = dropped["low"].to_numpy().astype(float)
        log_dropped = np.where(least >= step.pre_threshold, noise.log_tail(1 - threshold + least), 0.0)
        log_stated = log_stated + np.bincount(at, n * log_dropped, minlength=size)
        things = chosen + np.bincount(at, n, minlength=size).astype(np.int64)
        self.e_values.append(Chosen(noise, things, chosen, log_stated, log_before).evidence())

    def _noisy(self, step: "NoisyStep", found: pa.Table, threshold: int | None) -> None:
        columns = {name: found[name].to_numpy().astype(float) for name in ("n", "low", "high", "users", "times")}
        self.counted.append(
            Counted(
                _noise(step),
                columns["n"],
                columns["low"],
                columns["high"],
                1 if threshold is None else threshold,
                threshold is None,
                (columns["users"], columns["times"]),
                _ranked(found["text"]),
            )
        )


def _only(steps: "tuple[NoisyStep, ...]", of: str) -> "NoisyStep | None":
    return next((step for step in steps if step.of == of), None)


def _noise(step: "NoisyStep") -> Noise:
    return Noise(step.noise, step.scale)


def _log_reached(noise: Noise, step: "NoisyStep", most: pa.ChunkedArray) -> Floats:
    """The logarithm of the probability that things of at most these sums are released."""
    high: Floats = most.to_numpy().astype(np.float64)
    reached: Floats = np.where(high >= step.pre_threshold, noise.log_tail((step.threshold or 0) - high), -np.inf)
    return reached


def _ranked(texts: pa.ChunkedArray) -> Longs:
    ranks: Longs = pc.rank(texts.combine_chunks(), tiebreaker="min").to_numpy().astype(np.int64)
    return ranks
