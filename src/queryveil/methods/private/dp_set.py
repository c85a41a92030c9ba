"""DpSet: as many queries as differential privacy allows, as a set.

Marika Swanberg, Damien Desfontaines, Samuel Haney, DP-SIPS: A simpler, more scalable mechanism for differentially
private partition selection, PoPETs 2023; each round is the weighted Gaussian mechanism of Sivakanth Gopi, Pankaj
Gulhane, Janardhan Kulkarni, Judy Hanwen Shen, Milad Shokouhi, Sergey Yekhanin, Differentially private set union, ICML
2020. The first threshold is that of ZEALOUS (Götz et al. 2012); n-grams first is our own.
"""

import math
from functools import cached_property
from typing import ClassVar

from pydantic import Field

from queryveil.claims import DifferentialPrivacy, IssuedQueries
from queryveil.claims.private import NoisyStep
from queryveil.engines import Table, Workspace
from queryveil.kernels.types import Bools
from queryveil.log import LocalLog, QueryLog
from queryveil.methods.base import Reason
from queryveil.methods.private.common import UNSEEDED, PrivateMethod, prepare
from queryveil.methods.private.contributions import PAIRS, Keep, bound, counted, publish, random_keys, weighed
from queryveil.methods.private.noise import WHOLE, gaussian_threshold, rho_of
from queryveil.release import Release
from queryveil.release.making import of_counts

GROWTH = 20
"""How many times the budget of the previous round each round has."""
FIRST = 0.1
"""The first threshold, in standard deviations of the noise: lower sums would hardly ever be released."""
NGRAMS, COUNTS = 0.3, 0.2
"""The shares of the budget rho for n-grams and noisy counts."""


class DpSet(PrivateMethod):
    """Release a differentially private set of queries: private set union in rounds (DP-SIPS 2023).

    In each round a user spreads one unit of weight over at most d of their queries that are not released yet, evenly in
    the Euclidean sense. Sums of weights get Gaussian noise, and those that reach a threshold are released. In the next
    round, rarer queries get the weight that popular ones no longer need.
    """

    name: ClassVar[str] = "dp-set"
    plain: ClassVar[str] = (
        "It holds a set of queries that was chosen with random noise. Whether one person is in the log or not changes "
        "little of what can be seen."
    )
    summary: ClassVar[str] = "release a differentially private set of queries"

    epsilon: float = Field(1.0, gt=0, allow_inf_nan=False, description="the promise of differential privacy")
    delta: float = Field(1e-6, gt=0, lt=1, description="probability that the promise fails")
    max_queries_per_user: int = Field(
        20, ge=1, le=10_000, description="most distinct queries that count per user and round (d)"
    )
    keep: Keep = Field(
        "frequent",
        description="which queries of a user count: those they repeated most, their first ones, or random ones",
    )
    rounds: int = Field(2, ge=1, le=10, description="how many rounds share the budget")
    ngrams: int = Field(
        0,
        ge=0,
        le=3,
        description="first release a private set of n-grams of this many words, and then only queries made of them",
    )
    counts: bool = Field(False, description="release noisy counts of users too, for a part of the budget")

    @cached_property
    def steps(self) -> tuple[NoisyStep, ...]:
        """How the budget is spent: one half of delta for the noise, the other for thresholds, evenly."""
        rho = rho_of(self.epsilon, self.delta / 2)
        rounds = [GROWTH**i for i in range(self.rounds)]
        left = 1 - (NGRAMS if self.ngrams else 0) - (COUNTS if self.counts else 0)
        shares = [*([NGRAMS] if self.ngrams else []), *(left * part / sum(rounds) for part in rounds)]
        steps = []
        for i, share in enumerate(shares):
            scale = WHOLE / math.sqrt(2 * rho * share)
            first = max(math.isqrt(WHOLE**2 // self._d) + 1, round(FIRST * scale))
            threshold = gaussian_threshold(self._d, scale, self.delta / 2 / len(shares), first)
            of = "n-grams" if self.ngrams and i == 0 else "queries"
            steps.append(
                NoisyStep.model_validate({"of": of, "weight": WHOLE, **_gauss(self._d, scale, first, threshold)})
            )
        if self.counts:
            scale = math.sqrt(self._d / (2 * rho * COUNTS))
            steps.append(NoisyStep.model_validate({"of": "counts", **_gauss(self._d, scale, 1, None)}))
        return tuple(steps)

    @property
    def claim(self) -> DifferentialPrivacy:
        """What a release promises."""
        return DifferentialPrivacy(
            epsilon=self.epsilon, delta=self.delta, steps=self.steps, keep=self.keep, ngrams=self.ngrams
        )

    @property
    def _d(self) -> int:
        """The papers' d."""
        return self.max_queries_per_user

    def _anonymize(self, log: QueryLog, *, seed: int) -> Release:
        """Release queries round after round; the noise is not seeded."""
        prepare(log)
        with log.workspace() as work:
            things = self._things(log, work)
            public, released = self._select(log, work, things)
            rows = f"SELECT query_id FROM {public}"
            if self.counts:
                counts = self._count(log, work, things, public, self.steps[-1])
                rows = f'SELECT query_id, n AS "count" FROM {counts}'
            notes = [self._accounting(), _progress(released), UNSEEDED]
            columns = ("query", *(["count"] if self.counts else []))
            return of_counts(log, rows, columns=columns, **self.describe((IssuedQueries(), self.claim), seed, notes))

    def _things(self, log: QueryLog, work: Workspace) -> str:
        """SQL of what users may contribute: user_id, query_id, and times and began, or draw."""
        things = work.table(PAIRS, "things")
        if self.ngrams:
            built = self._built(log, work, things, self.steps[0])
            work.drop(things)
            things = built
        if self.keep == "random":
            return random_keys(log, work, f"SELECT user_id, query_id FROM {things}", ["query_id"])
        return f"SELECT user_id, query_id, times, began FROM {things}"

    def _built(self, log: QueryLog, work: Workspace, things: Table, step: NoisyStep) -> Table:
        """Release n-grams; the things without those queries that have an n-gram that is not released."""
        n = range(1, self.ngrams + 1)
        keys = [f"word_{i}" for i in n]
        joins = " ".join(
            f"JOIN query_terms t{i} ON t{i}.query_id = t1.query_id AND t{i}.position = t1.position + {i - 1}"
            for i in n[1:]
        )
        named = ", ".join(f"t{i}.word_id AS word_{i}" for i in n)
        with log.workspace() as steps:
            runs = steps.table(f"SELECT t1.query_id AS query_id, {named} FROM query_terms t1 {joins}", "runs")
            grams = (
                f"SELECT p.user_id AS user_id, {', '.join(f'r.{key} AS {key}' for key in keys)},"
                f" CAST(sum(p.times) AS BIGINT) AS times, min(p.began) AS began FROM {things} p JOIN {runs} r"
                f" ON r.query_id = p.query_id GROUP BY p.user_id, {', '.join(f'r.{key}' for key in keys)}"
            )
            if self.keep == "random":
                grams = random_keys(log, steps, grams, keys)
            public = self._publish(log, steps, grams, keys, step, "public ngrams")
            same = " AND ".join(f"g.{key} = r.{key}" for key in keys)
            unbuilt = steps.table(
                f"SELECT r.query_id AS query_id FROM {runs} r LEFT JOIN {public} g ON {same}"
                " WHERE g.word_1 IS NULL GROUP BY r.query_id",
                "unbuilt",
            )
            return work.table(
                "SELECT t.user_id AS user_id, t.query_id AS query_id, t.times AS times, t.began AS began"
                f" FROM {things} t LEFT JOIN {unbuilt} u ON u.query_id = t.query_id WHERE u.query_id IS NULL",
                "built things",
            )

    def _select(self, log: QueryLog, work: Workspace, things: str) -> tuple[Table, list[int]]:
        """The table of the query_id of released queries, and how many there are after each round."""
        public = work.table(f"SELECT query_id FROM ({things}) AS t WHERE query_id IS NULL", "no queries")
        released = []
        for step in self.steps:
            if step.of == "queries":
                public = self._round(log, work, things, public, step)
                released.append(int(work.row(f"SELECT count(*) AS n FROM {public}")[0]))
        return public, released

    def _round(self, log: QueryLog, work: Workspace, things: str, public: Table, step: NoisyStep) -> Table:
        """Release what reaches the threshold with the weight that users do not need for released queries."""
        left = self._joined(things, f"LEFT JOIN {public} p ON p.query_id = t.query_id WHERE p.query_id IS NULL")
        with log.workspace() as steps:
            new = self._publish(log, steps, left, ["query_id"], step, "new queries")
            return work.table(f"SELECT query_id FROM {public} UNION ALL SELECT query_id FROM {new}", "public queries")

    def _publish(
        self, log: QueryLog, work: Workspace, things: str, keys: list[str], step: NoisyStep, name: str
    ) -> Table:
        """The things whose noisy weight reaches the threshold of a step."""
        sums = weighed(
            work,
            bound(things, keys, self._d, self.keep),
            keys,
            self._d,
            step.pre_threshold,
        )
        assert step.threshold is not None  # noqa: S101  # every step with weights has one
        return publish(log, work, sums, keys, step.noise, step.scale, step.threshold, name)

    def _count(self, log: QueryLog, work: Workspace, things: str, public: Table, step: NoisyStep) -> Table:
        """Count the users of released queries, each user for at most d of them."""
        mine = self._joined(things, f"JOIN {public} p ON p.query_id = t.query_id")
        users = counted(bound(mine, ["query_id"], self._d, self.keep), ["query_id"], 1)
        sums = (
            f"SELECT p.query_id AS query_id, coalesce(c.n, 0) AS n FROM {public} p"
            f" LEFT JOIN ({users}) AS c ON c.query_id = p.query_id"
        )
        return publish(log, work, sums, ["query_id"], step.noise, step.scale, None, "public counts")

    def _joined(self, things: str, joined: str) -> str:
        """SQL of some of the things that users may contribute."""
        order = "t.draw AS draw" if self.keep == "random" else "t.times AS times, t.began AS began"
        return f"SELECT t.user_id AS user_id, t.query_id AS query_id, {order} FROM ({things}) AS t {joined}"

    def _accounting(self) -> str:
        steps = [step for step in self.steps if step.threshold is not None]
        rho = rho_of(self.epsilon, self.delta / 2)
        parts = "; ".join(
            f"{step.of}: sigma {step.scale / WHOLE:.3g}, threshold {(step.threshold or 0) / WHOLE:.3g}"
            for step in steps
        )
        counts = f"; counts: sigma {self.steps[-1].scale:.3g}" if self.counts else ""
        return (
            f"Accounting: in each step one user contributes a vector of length 1, and all Gaussian noise together is"
            f" {rho:.3g}-zCDP, which is (epsilon {self.epsilon:g}, delta {self.delta / 2:g}); that a query of one user"
            f" only reaches a threshold by noise costs another {self.delta / 2:g}. In units of a user's weight:"
            f" {parts}{counts}."
        )

    def explain(self, log: LocalLog, query_id: int, within: Bools | None = None) -> list[Reason]:
        """How much weight the query may have had, and where the thresholds are; noise decides."""
        users = int(log.users_per_query[query_id])
        return [
            Reason(
                f"in round {i} the weight reaches {(step.threshold or 0) / WHOLE:.3g} with noise of sigma"
                f" {step.scale / WHOLE:.3g}",
                None,
                f"its weight is at most that of {users} users, 1 each; the noise was not kept",
            )
            for i, step in enumerate((step for step in self.steps if step.of == "queries"), 1)
        ]


def _gauss(d: int, scale: float, first: int, threshold: int | None) -> dict[str, object]:
    return {"noise": "gaussian", "d": d, "scale": scale, "pre_threshold": first, "threshold": threshold}


def _progress(released: list[int]) -> str:
    """How the release grew; it follows from what was released in each round, so it may be published."""
    return "Distinct queries after each round: " + ", ".join(f"{n:,}" for n in released) + "."
