"""The claim of differential privacy: what a verifier can recompute of it."""

import math
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from queryveil.claims.base import Claim, Evidence
from queryveil.claims.consistent import Consistent
from queryveil.claims.contributed import Keep

MOST = 10_000
"""The most things that a user may give."""
SLACK = 1e-9
"""By how much, relatively, a stated number may be below the recomputed one: the rounding of floating point."""


class NoisyStep(BaseModel):
    """One use of the budget: what every user gives, and the noise on the sums.

    Attributes:
        of: What is counted.
        noise: Discrete Laplace or discrete Gaussian noise.
        d: Most things per user.
        scale: The parameter b of Laplace, sigma of Gaussian noise.
        weight: What a user spreads evenly over their things, as a vector of this length, where weights are summed up
            under Gaussian noise; None where things are counted, and a user gives 1 to each.
        pre_threshold: Sums below it are dropped before there is any noise.
        threshold: The least noisy sum that is released; None where the things that are counted were public before.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    of: Literal["queries", "clicks", "n-grams", "counts", "rows"]
    noise: Literal["laplace", "gaussian"]
    d: int = Field(ge=1, le=MOST)
    scale: float = Field(ge=1e-6, le=1e18)
    weight: int | None = Field(None, ge=1, le=1 << 40)
    pre_threshold: int = Field(1, ge=1, le=1 << 60)
    threshold: int | None = Field(None, ge=1, le=1 << 62)

    @model_validator(mode="after")
    def _counted_or_weighed(self) -> "NoisyStep":
        if self.weight is not None and (self.noise == "laplace" or self.of == "counts"):
            raise ValueError("counts and Laplace noise have no weight")
        return self

    def gives(self, n: int) -> int:
        """What a user of n things gives each of them, at most."""
        return 1 if self.weight is None else math.isqrt(self.weight**2 // n)


class DifferentialPrivacy(Claim):
    """The released table is (epsilon, delta)-differentially private.

    Attributes:
        epsilon: How much more likely any set of tables may become by one user, as a power of e.
        delta: With which probability it may be more.
        unit: What is added or removed.
        steps: How the budget was spent.
        keep: Which things of a user count.
        ngrams: How many words an n-gram has, if a step released some.
    """

    kind: Literal["differential-privacy"] = "differential-privacy"
    epsilon: float
    delta: float
    unit: Literal["one user's whole log"] = "one user's whole log"
    steps: tuple[NoisyStep, ...]
    keep: Keep = "frequent"
    ngrams: int = Field(0, ge=0, le=3)
    exact: ClassVar[str] = (
        "The table is ({epsilon:g}, {delta:g})-differentially private; the unit of privacy is {unit}, added or removed."
    )
    short: ClassVar[str] = "The table is ({epsilon:g}, {delta:g})-differentially private for every user's whole log."

    @property
    def needed(self) -> str:
        """The lowest threshold that a query can be released by, in users, in words."""
        step = min((step for step in self.steps if step.of == "queries"), key=lambda step: step.threshold or 0)
        threshold = step.threshold or 0
        if step.weight is None:
            return f"the threshold of {threshold} users, each counting for at most {step.d} queries"
        least, most = (math.ceil(threshold / step.gives(n)) for n in (1, step.d))
        return f"the threshold, which is the weight of {least} users of one query or {most} users of {step.d} queries"

    def check(self, evidence: Evidence) -> str | None:
        """Recompute epsilon and delta from the steps, and refuse a table that such steps would not make.

        An honest release is refused with probability below 1e-6; see `consistent`.
        """
        epsilon, delta = spent(self.steps, self.epsilon)
        if not epsilon <= self.epsilon * (1 + SLACK):
            return f"the noise is worth epsilon {epsilon:g}"
        if not delta <= self.delta * (1 + SLACK):
            return f"the thresholds and the noise are worth delta {delta:g}"
        columns = evidence.columns
        wrong = next((name for name in columns if name not in ("query", "url", "count")), None)
        if wrong is not None:
            return f"the column '{wrong}' has no part in it"
        by: dict[str, NoisyStep] = {step.of: step for step in self.steps}
        if "queries" not in by or ("url" in columns) > ("clicks" in by):
            return "no step of it released what is in the table"
        if any(step.threshold is None for step in self.steps if step.of != "counts"):
            return "a step of it has no threshold"
        wrong = _rows_wrong(evidence, by)
        if wrong is not None:
            return wrong
        with evidence.log.workspace() as work:
            return Consistent(evidence, work, self.keep).look(self.steps, self.ngrams)


def _rows_wrong(evidence: Evidence, by: dict[str, NoisyStep]) -> str | None:
    columns, released = evidence.columns, evidence.released
    keys = ", ".join(name for name in ("query", "url") if name in columns)
    found = evidence.first(
        f"SELECT query FROM {released} GROUP BY {keys} HAVING count(*) > 1 ORDER BY query LIMIT 1"  # noqa: S608  # parts of this module
    )
    if found is not None:
        return f"the query '{found[0]}' stands twice"
    if "url" in columns:
        found = evidence.first(
            f"SELECT r.query AS query FROM {released} r LEFT JOIN (SELECT q.query AS query, u.url AS url FROM clicks c"  # noqa: S608  # a table of ours
            " JOIN queries q ON q.query_id = c.query_id JOIN urls u ON u.url_id = c.url_id GROUP BY q.query, u.url)"
            " AS o ON o.query = r.query AND o.url = r.url WHERE r.url IS NOT NULL AND o.url IS NULL"
            " ORDER BY r.query LIMIT 1"
        )
        if found is not None:
            return f"a click for '{found[0]}' that nobody made"
    if "count" not in columns:
        return None
    if by["queries"].noise == "gaussian" and "counts" not in by:
        return "no step of it counted anything"
    least = {"IS NULL": 1 if "counts" in by else by["queries"].threshold}
    if "clicks" in by and "url" in columns:
        least["IS NOT NULL"] = by["clicks"].threshold
    for which, threshold in least.items():
        rows = f"url {which}" if "url" in columns else "1 = 1"
        found = evidence.first(
            f"SELECT query, count FROM {released} WHERE {rows} AND (count IS NULL OR count < {threshold})"  # noqa: S608  # checked numbers, and parts of this module
            " ORDER BY query LIMIT 1"
        )
        if found is not None:
            return f"the count {found[1]} of '{found[0]}' is below the threshold {threshold}"
    return None


def spent(steps: tuple[NoisyStep, ...], epsilon: float) -> tuple[float, float]:
    """What the steps cost together.

    Laplace noise costs the sum of d / b. The rest of epsilon is for all Gaussian noise: its rho adds up (Bun and
    Steinke 2016), and is turned into a delta. The delta of thresholds adds up as well.

    Args:
        steps: The steps.
        epsilon: What they may cost.

    Returns:
        Epsilon, which is the given one where there is Gaussian noise, and delta.
    """
    if any(not (step.scale > 0 and step.d >= 1 and step.pre_threshold >= 1) for step in steps):
        return math.inf, 1.0
    plain = sum(step.d / step.scale for step in steps if step.noise == "laplace")
    delta = sum(_crossed(step) for step in steps)
    rho = sum(_length(step) ** 2 / (2 * step.scale**2) for step in steps if step.noise == "gaussian")
    if rho == 0:
        return plain, delta
    return max(epsilon, plain), delta + _delta(rho, epsilon - plain)


def _length(step: NoisyStep) -> float:
    """How far, in Euclid's distance, one user moves the sums."""
    return math.sqrt(step.d) if step.weight is None else float(step.weight)


def _crossed(step: NoisyStep) -> float:
    """The probability that something is released which without one user would not even get noise.

    A user lifts at most d sums to where they get noise, each from below `pre_threshold` by what they give.
    """
    if step.threshold is None:
        return 0.0 if step.of == "counts" else 1.0
    if step.noise == "laplace":
        p = math.exp(-1 / step.scale)
        above = step.threshold - step.pre_threshold
        tail = 1.0 if above < 1 else math.exp(-above / step.scale) / (1 + p)
        return _any(tail, step.d)
    return max(_lifted(step, step.threshold, n) for n in range(1, step.d + 1))


def _lifted(step: NoisyStep, threshold: int, n: int) -> float:
    """The same if a user lifts n sums, each by an even part of what they have."""
    above = threshold - (step.pre_threshold - 1) - step.gives(n)
    # The tail of discrete Gaussian noise is below the continuous one, one step earlier (Canonne et al. 2020).
    return _any(1.0 if above < 2 else math.erfc((above - 1) / (step.scale * math.sqrt(2))) / 2, n)


def _any(tail: float, n: int) -> float:
    return 1.0 if tail >= 1 else -math.expm1(n * math.log1p(-tail))


def _delta(rho: float, epsilon: float) -> float:
    """The delta of rho-zCDP at epsilon (Canonne, Kamath and Steinke 2020, proposition 12), minimal over alpha."""
    if epsilon <= 0:
        return 1.0

    def log_delta(alpha: float) -> float:
        return (alpha - 1) * (alpha * rho - epsilon) + (alpha - 1) * math.log1p(-1 / alpha) - math.log(alpha)

    # Convex in alpha, so a ternary search finds the minimum; every alpha gives a bound that holds.
    low, high = 1 + 1e-9, 2 + (epsilon + 1) / rho
    for _ in range(300):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, b) if log_delta(a) < log_delta(b) else (a, high)
    return min(1.0, math.exp(log_delta(low)))
