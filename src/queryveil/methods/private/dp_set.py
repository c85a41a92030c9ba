"""DpSet: as many queries as differential privacy allows, as a set.

Marika Swanberg, Damien Desfontaines, Samuel Haney, DP-SIPS: A simpler, more scalable mechanism for differentially
private partition selection, PoPETs 2023; each round is the weighted Gaussian mechanism of Sivakanth Gopi, Pankaj
Gulhane, Janardhan Kulkarni, Judy Hanwen Shen, Milad Shokouhi, Sergey Yekhanin, Differentially private set union, ICML
2020. The first threshold is that of ZEALOUS (Götz et al. 2012); n-grams first is our own.
"""

import math
from functools import cached_property
from typing import ClassVar, Literal

from pydantic import Field

from queryveil.claims import DifferentialPrivacy, IssuedQueries
from queryveil.claims.limits import LIMITS
from queryveil.claims.private import NoisyStep
from queryveil.log import LocalLog, QueryLog
from queryveil.methods.base import Method, Reason
from queryveil.methods.private.common import UNSEEDED, meaningless, refuse_rare_terms
from queryveil.methods.private.contributions import PAIRS, Keep, bound, counted, lots, publish, weighed
from queryveil.methods.private.noise import WHOLE, gaussian_threshold, opendp, rho_of
from queryveil.release import Release

GROWTH = 20
"""How much more of the budget each round has than the one before."""
FIRST = 0.1
"""The first threshold, in standard deviations of the noise: lower sums would hardly ever be released."""
NGRAMS, COUNTS = 0.3, 0.2
"""The shares of the budget of rho that n-grams and noisy counts have."""


class DpSet(Method):
    """Release a differentially private set of queries: private set union in rounds (DP-SIPS 2023).

    In each round a user spreads one unit of weight over at most d of his queries that are not released yet, evenly in
    the Euclidean sense. Sums of weights get Gaussian noise, and those that reach a threshold are released. What popular
    queries do not need any more, rarer ones get in the next round.
    """

    name: ClassVar[str] = "dp-set"
    limits: ClassVar[tuple[str, ...]] = LIMITS["dp-set"]

    epsilon: float = Field(1.0, gt=0, allow_inf_nan=False, description="the promise of differential privacy")
    delta: float = Field(1e-6, gt=0, lt=1, description="with which probability it may fail")
    d: int = Field(20, ge=1, le=10_000, description="at most so many distinct queries a user and round (d)")
    keep: Keep = Field(
        "frequent",
        description="which d queries of a user: those they repeated most, their first ones, or some at random",
    )
    rounds: int = Field(2, ge=1, le=10, description="how many rounds share the budget")
    ngrams: int = Field(
        0,
        ge=0,
        le=3,
        description="release a private set of runs of so many words first, and only queries built of them",
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
            first = max(math.isqrt(WHOLE**2 // self.d) + 1, round(FIRST * scale))
            threshold = gaussian_threshold(self.d, scale, self.delta / 2 / len(shares), first)
            of = "n-grams" if self.ngrams and i == 0 else "queries"
            steps.append(
                NoisyStep.model_validate({"of": of, "weight": WHOLE, **_gauss(self.d, scale, first, threshold)})
            )
        if self.counts:
            scale = math.sqrt(self.d / (2 * rho * COUNTS))
            steps.append(NoisyStep.model_validate({"of": "counts", **_gauss(self.d, scale, 1, None)}))
        return tuple(steps)

    @property
    def claim(self) -> DifferentialPrivacy:
        """What a release promises."""
        return DifferentialPrivacy(
            epsilon=self.epsilon, delta=self.delta, steps=self.steps, keep=self.keep, ngrams=self.ngrams
        )

    @property
    def repeats(self) -> Literal["always", "seed", "never"]:
        """Never: noise is drawn anew."""
        return "never"

    def _anonymize(self, log: QueryLog, *, seed: int) -> Release:
        """Release queries round after round; the noise is not seeded."""
        opendp()
        refuse_rare_terms(log)
        engine, key = log.engine, ["query_id"]
        engine.materialize(PAIRS, "things")
        engine.materialize("SELECT query_id FROM things WHERE query_id IS NULL", "public queries")
        released: list[int] = []
        for step in self.steps:
            if step.of == "n-grams":
                self._use_ngrams(log, step)
            if step.of == "queries":
                if self.keep == "random" and not released:
                    lots(log, "SELECT user_id, query_id FROM things", key, "drawn things")
                self._round(log, step)
                released.append(int(engine.row('SELECT count(*) AS n FROM "public queries"')[0]))
        rows = 'SELECT query_id FROM "public queries"'
        if self.counts:
            self._count(log, self.steps[-1])
            rows = 'SELECT query_id, n AS "count" FROM "public counts"'
        release = Release.of_counts(
            log,
            rows,
            columns=("query", *(["count"] if self.counts else [])),
            method=self.name,
            parameters=self.parameters(),
            claims=(IssuedQueries(), self.claim),
            limits=self.limits,
            seed=seed,
            notes=[self._accounting(), _told(released), UNSEEDED],
        )
        engine.drop("things", "drawn things", "public queries", "public ngrams", "public counts", "weights")
        return release

    def _things(self, joined: str) -> str:
        """SQL of what users may give, with some condition."""
        source, order = ('"drawn things"', "t.draw AS draw") if self.keep == "random" else ("things", _ORDER)
        return f"SELECT t.user_id AS user_id, t.query_id AS query_id, {order} FROM {source} t {joined}"

    def _round(self, log: QueryLog, step: NoisyStep) -> None:
        """Release what reaches the threshold with the weight of users who do not need it elsewhere."""
        key = ["query_id"]
        left = self._things('LEFT JOIN "public queries" p ON p.query_id = t.query_id WHERE p.query_id IS NULL')
        sums = weighed(log, bound(left, key, self.d, self.keep), key, self.d, step.first)
        assert step.threshold is not None  # noqa: S101  # every round has one
        publish(log, sums, key, step.noise, step.scale, step.threshold, "new queries")
        both = 'SELECT query_id FROM "public queries" UNION ALL SELECT query_id FROM "new queries"'
        log.engine.materialize(both, "more queries")
        log.engine.materialize('SELECT query_id FROM "more queries"', "public queries")
        log.engine.drop("new queries", "more queries")

    def _use_ngrams(self, log: QueryLog, step: NoisyStep) -> None:
        """Release runs of words, and keep in `things` only queries all of whose runs of so many words are released."""
        engine, n = log.engine, range(1, self.ngrams + 1)
        keys = [f"word_{i}" for i in n]
        runs = " ".join(
            f"JOIN tok t{i} ON t{i}.query_id = t1.query_id AND t{i}.position = t1.position + {i - 1}" for i in n[1:]
        )
        named = ", ".join(f"t{i}.word_id AS word_{i}" for i in n)
        engine.materialize(f"SELECT t1.query_id AS query_id, {named} FROM tok t1 {runs}", "runs")
        grams = (
            f"SELECT p.user_id AS user_id, {', '.join(f'r.{key} AS {key}' for key in keys)},"
            " CAST(sum(p.times) AS BIGINT) AS times, min(p.began) AS began FROM things p JOIN runs r"
            f" ON r.query_id = p.query_id GROUP BY p.user_id, {', '.join(f'r.{key}' for key in keys)}"
        )
        if self.keep == "random":
            grams = lots(log, grams, keys, "drawn runs")
        sums = weighed(log, bound(grams, keys, self.d, self.keep), keys, self.d, step.first)
        assert step.threshold is not None  # noqa: S101
        publish(log, sums, keys, step.noise, step.scale, step.threshold, "public ngrams")
        same = " AND ".join(f"g.{key} = r.{key}" for key in keys)
        engine.materialize(
            f'SELECT r.query_id AS query_id FROM runs r LEFT JOIN "public ngrams" g ON {same}'
            " WHERE g.word_1 IS NULL GROUP BY r.query_id",
            "unbuilt",
        )
        engine.materialize(
            f"SELECT t.user_id AS user_id, t.query_id AS query_id, {_ORDER} FROM things t LEFT JOIN unbuilt u"
            " ON u.query_id = t.query_id WHERE u.query_id IS NULL",
            "built",
        )
        engine.materialize("SELECT user_id, query_id, times, began FROM built", "things")
        engine.drop("runs", "unbuilt", "built", "drawn runs")

    def _count(self, log: QueryLog, step: NoisyStep) -> None:
        """Count the users of released queries, each user for at most d of them."""
        mine = self._things('JOIN "public queries" p ON p.query_id = t.query_id')
        users = counted(bound(mine, ["query_id"], self.d, self.keep), ["query_id"], 1)
        sums = (
            'SELECT p.query_id AS query_id, coalesce(c.n, 0) AS n FROM "public queries" p'
            f" LEFT JOIN ({users}) AS c ON c.query_id = p.query_id"
        )
        publish(log, sums, ["query_id"], step.noise, step.scale, None, "public counts")

    def _accounting(self) -> str:
        steps = [step for step in self.steps if step.threshold is not None]
        rho = rho_of(self.epsilon, self.delta / 2)
        parts = "; ".join(
            f"{step.of}: sigma {step.scale / WHOLE:.3g}, threshold {(step.threshold or 0) / WHOLE:.3g}"
            for step in steps
        )
        counts = f"; counts: sigma {self.steps[-1].scale:.3g}" if self.counts else ""
        return (
            f"Accounting: in each step one user gives a vector of length 1, and all Gaussian noise together is"
            f" {rho:.3g}-zCDP, which is (epsilon {self.epsilon:g}, delta {self.delta / 2:g}); that something of his"
            f" alone reaches a threshold by noise costs another {self.delta / 2:g}. In units of a user's weight:"
            f" {parts}{counts}."
        )

    def warnings(self, log: QueryLog) -> list[str]:
        """What whoever makes a release should know, and nobody else: it tells something exact of the log."""
        return meaningless(self.delta, log)

    def explain(self, log: LocalLog, query_id: int) -> list[Reason]:
        """How much weight the query may have had, and where the thresholds are; noise decides."""
        users = int(log.users_per_query[query_id])
        return [
            Reason(
                f"in round {i} the weight reaches {(step.threshold or 0) / WHOLE:.3g} with noise of sigma"
                f" {step.scale / WHOLE:.3g}",
                None,
                f"its weight is at most that of {users} users, 1 each; the noise is not known any more",
            )
            for i, step in enumerate((step for step in self.steps if step.of == "queries"), 1)
        ]


_ORDER = "t.times AS times, t.began AS began"


def _gauss(d: int, scale: float, first: int, threshold: int | None) -> dict[str, object]:
    return {"noise": "gaussian", "d": d, "scale": scale, "first": first, "threshold": threshold}


def _told(released: list[int]) -> str:
    """How the release grew; it follows from what was released in each round, so that it may be told."""
    return "Distinct queries after each round: " + ", ".join(f"{n:,}" for n in released) + "."
