"""Zealous: noisy counts of the queries that many users issued.

Aleksandra Korolova, Krishnaram Kenthapadi, Nina Mishra, Alexandros Ntoulas, Releasing Search Queries and Clicks
Privately, WWW 2009; and with two thresholds Michaela Götz, Ashwin Machanavajjhala, Guozhang Wang, Xiaokui Xiao,
Johannes Gehrke, Publishing Search Logs: A Comparative Study of Privacy Guarantees, IEEE TKDE 24 (2012).
"""

from typing import Any, ClassVar, NamedTuple

from pydantic import Field, model_validator

from queryveil.claims import DifferentialPrivacy, IssuedQueries, QueryUsers
from queryveil.claims.private import NoisyStep
from queryveil.engines import Table, Workspace
from queryveil.errors import QueryveilError, option, parameter
from queryveil.kernels.types import Bools
from queryveil.log import LocalLog, QueryLog
from queryveil.methods.base import Reason
from queryveil.methods.private.common import UNSEEDED, PrivateMethod, prepare
from queryveil.methods.private.contributions import PAIRS, Keep, bound, counted, publish, random_keys
from queryveil.methods.private.noise import laplace_delta, laplace_threshold
from queryveil.release import Release
from queryveil.release.making import of_counts

EPSILON, DELTA = 1.0, 1e-6


class Budget(NamedTuple):
    """Noise, the second threshold, and the privacy that both give."""

    scale: float
    threshold: int
    epsilon: float
    delta: float


class Zealous(PrivateMethod):
    """Release queries of many users with noisy counts, differentially private (Korolova et al. 2009, ZEALOUS 2012).

    Every user counts for at most d distinct queries, for each of them once. Queries of fewer than `min_users` users are
    dropped, the counts of the others get Laplace noise, and those whose noisy count is below the threshold are dropped.
    With `clicks`, the same is done for the pairs of released queries and clicked addresses, and both cost one half.
    """

    name: ClassVar[str] = "zealous"
    plain: ClassVar[str] = (
        "It holds frequent queries with counts that were blurred by random noise. Whether one person is in the log or "
        "not changes little of what can be seen."
    )
    summary: ClassVar[str] = "release frequent queries with differentially private counts"

    max_queries_per_user: int = Field(20, ge=1, le=10_000, description="most distinct queries that count per user (d)")
    keep: Keep = Field(
        "frequent",
        description="which queries of a user count: those they repeated most, their first ones, or random ones",
    )
    epsilon: float | None = Field(
        None, gt=0, allow_inf_nan=False, description=f"the promise; {EPSILON:g} unless threshold and scale are given"
    )
    delta: float | None = Field(
        None,
        gt=0,
        lt=1,
        description=f"probability that the promise fails; {DELTA:g} unless threshold and scale are given",
    )
    threshold: int | None = Field(None, ge=2, description="least noisy count that is released (K)")
    scale: float | None = Field(None, gt=0, allow_inf_nan=False, description="scale of the Laplace noise (b)")
    min_users: int = Field(2, ge=1, description="least users who count for a query before noise is added (tau)")
    clicks: bool = Field(False, description="release noisy counts of clicked addresses too, for half of the budget")

    @model_validator(mode="before")
    @classmethod
    def _one_way(cls, given: Any) -> Any:
        promise = [name for name in ("epsilon", "delta") if given.get(name) is not None]
        noise = [name for name in ("threshold", "scale") if given.get(name) is not None]
        if promise and noise:
            raise ValueError(
                "Zealous takes either epsilon and delta or threshold and scale, because each pair follows from the"
                f" other; leave {option(promise[0])} or {option(noise[0])} out."
            )
        if len(noise) == 1:
            other = "scale" if noise == ["threshold"] else "threshold"
            raise ValueError(f"Zealous needs {option(other)} with {option(noise[0])}; give both, or epsilon and delta.")
        if not noise:
            named = {name: value for name, value in given.items() if value is not None}
            return {"epsilon": EPSILON, "delta": DELTA, **named}
        return given

    @model_validator(mode="after")
    def _thresholds_apart(self) -> "Zealous":
        if self.threshold is not None and self.threshold <= self.min_users:
            raise ValueError(
                f"{parameter('Zealous', 'threshold')} must be above {option('min_users')}, which is {self.min_users}."
                f" Got {self.threshold} instead."
            )
        return self

    @property
    def budget(self) -> Budget:
        """The noise, the threshold, and the privacy that they give."""
        parts = 2 if self.clicks else 1
        if self.scale is not None and self.threshold is not None:
            delta = laplace_delta(self._d, self.scale, self.threshold, self.min_users)
            return Budget(self.scale, self.threshold, parts * self._d / self.scale, parts * delta)
        # Both were filled in when it was made.
        assert self.epsilon is not None  # noqa: S101
        assert self.delta is not None  # noqa: S101
        scale = parts * self._d / self.epsilon
        threshold = laplace_threshold(self._d, scale, self.delta / parts, self.min_users)
        return Budget(scale, threshold, self.epsilon, self.delta)

    @property
    def _d(self) -> int:
        """The papers' d."""
        return self.max_queries_per_user

    def _anonymize(self, log: QueryLog, *, seed: int) -> Release:
        """Count, add noise, and release what reaches the threshold; the noise is not seeded."""
        prepare(log)
        if self.clicks and not log.has_clicks:
            raise QueryveilError(f"{parameter('Zealous', 'clicks')} is on, but the log has no clicks; leave it off.")
        made = self.budget
        shared = [QueryUsers(users=self.min_users)] if self.min_users > 1 else []
        with log.workspace() as work:
            return of_counts(
                log,
                self._counts(log, work, made),
                columns=("query", *(["url"] if self.clicks else []), "count"),
                **self.describe((IssuedQueries(), *shared, self.claim), seed, [self._accounting(made), UNSEEDED]),
            )

    def _counts(self, log: QueryLog, work: Workspace, made: Budget) -> str:
        """SQL of what is released, with its noisy counts."""
        queries = self._publish(log, work, PAIRS, ["query_id"], made, "public queries")
        if not self.clicks:
            return f'SELECT query_id, n AS "count" FROM {queries}'
        pairs = (
            "SELECT c.user_id AS user_id, c.query_id AS query_id, c.url_id AS url_id, count(*) AS times,"
            f" min(c.event_id) AS began FROM clicks c JOIN {queries} p ON p.query_id = c.query_id"
            " WHERE c.url_id IS NOT NULL GROUP BY c.user_id, c.query_id, c.url_id"
        )
        clicks = self._publish(log, work, pairs, ["query_id", "url_id"], made, "public clicks")
        return (
            f'SELECT query_id, NULL AS url_id, n AS "count" FROM {queries}'
            f' UNION ALL SELECT query_id, url_id, n AS "count" FROM {clicks}'
        )

    def _publish(self, log: QueryLog, work: Workspace, things: str, keys: list[str], made: Budget, name: str) -> Table:
        with log.workspace() as steps:
            if self.keep == "random":
                things = random_keys(log, steps, things, keys)
            sums = counted(bound(things, keys, self._d, self.keep), keys, self.min_users)
            return publish(log, work, sums, keys, "laplace", made.scale, made.threshold, name)

    @property
    def claim(self) -> DifferentialPrivacy:
        """What a release promises."""
        made = self.budget
        step = {
            "noise": "laplace",
            "d": self._d,
            "scale": made.scale,
            "pre_threshold": self.min_users,
        }
        steps = [
            NoisyStep.model_validate({"of": of, **step, "threshold": made.threshold})
            for of in ("queries", *(["clicks"] if self.clicks else []))
        ]
        return DifferentialPrivacy(epsilon=made.epsilon, delta=made.delta, steps=tuple(steps), keep=self.keep)

    def _accounting(self, made: Budget) -> str:
        crossed = laplace_delta(self._d, made.scale, made.threshold, self.min_users)
        twice = " Queries and clicks cost one half each." if self.clicks else ""
        return (
            f"Accounting: one user changes at most {self._d} counts by 1 each, and discrete Laplace noise of scale"
            f" {made.scale:g} makes that cost epsilon {self._d / made.scale:g}. Counts below {self.min_users} get no"
            f" noise; that one of a user's {self._d} counts crosses this line and then reaches the threshold"
            f" {made.threshold} by noise costs delta {crossed:.3g}.{twice}"
        )

    def explain(self, log: LocalLog, query_id: int, within: Bools | None = None) -> list[Reason]:
        """How many users issued the query, and where the threshold is; noise decides."""
        users, made = int(log.users_per_query[query_id]), self.budget
        return [
            Reason(
                f"at least {self.min_users} users count for the query, each for at most {self._d} queries",
                None if users >= self.min_users else False,
                f"at most {users} do",
            ),
            Reason(
                f"with noise of scale {made.scale:g} the count reaches {made.threshold}",
                None,
                f"the count is at most {users}; the noise was not kept",
            ),
        ]
