"""Whether a release meets a policy, line by line, and the risk that a reader should see first."""

from dataclasses import dataclass
from typing import Any, Literal

from queryveil.assess.attacks.finding import shown

HIGH = 1 / 3
"""A risk above this is high: one in three is the largest chance that custodians of health data accept (groups of 3;
Khaled El Emam, Guide to the De-Identification of Personal Health Information, 2013, on precedents for cell sizes)."""

Unit = Literal["share", "rate", "accounts", "queries", "people", "epsilon", "promises"]
Grade = Literal["low", "elevated", "high"]


@dataclass(frozen=True)
class Criterion:
    """One line of a policy, and whether a release meets it.

    Attributes:
        id: Its name.
        label: What is counted, in words.
        limit: The most, or the least, that the policy allows.
        least: Whether the limit is the least.
        found: What was found; None if it was not measured, or does not apply.
        high: The upper end of the 95 % interval of what was found, where it is an estimate.
        unit: What kind of number it is.
        met: Whether it is met; None if that is unknown.
        why: The reason, or what to run to find out.
    """

    id: str
    label: str
    limit: float
    least: bool
    found: float | None
    high: float | None
    unit: Unit
    met: bool | None
    why: str

    @property
    def sentence(self) -> str:
        """What was found and what is allowed, without a full stop."""
        return f"{self.label}: {self.found_text}; {self.limit_text} {'required' if self.least else 'allowed'}"

    @property
    def limit_text(self) -> str:
        """The limit, in words."""
        return f"at {'least' if self.least else 'most'} {_worded(self.limit, self.unit)}"

    @property
    def found_text(self) -> str:
        """What was found, in words."""
        if self.found is None:
            return "not measured" if self.met is None else "does not apply"
        upper = "" if self.high is None or self.found == self.high else f" (up to {_worded(self.high, self.unit)})"
        return _worded(self.found, self.unit) + upper


@dataclass(frozen=True)
class Judgement:
    """Whether a release meets a policy.

    Attributes:
        meets: True if every criterion is met, False if one is not, None if that is unknown. Only True is a pass.
        criteria: The lines of the policy.
    """

    meets: bool | None
    criteria: tuple[Criterion, ...]

    @property
    def verdict(self) -> str:
        """The outcome in a few words."""
        if self.meets is None:
            return "It is not known whether the release meets the policy."
        return "The release meets the policy." if self.meets else "The release does not meet the policy."

    @property
    def summary(self) -> str:
        """The outcome in words: the verdict, the headline risk, and a line for each criterion that is not met."""
        worst = self.headline
        risk = "Risk: not measured." if worst is None else f"{str(self.grade).capitalize()} risk: {worst.sentence}."
        lines = (f"{'not met' if one.met is False else 'open'}: {one.sentence}. {one.why}" for one in self.unmet)
        return "\n".join([self.verdict, risk, *(f"  {line.rstrip()}" for line in lines)])

    @property
    def unmet(self) -> tuple[Criterion, ...]:
        """The criteria that are not met, and then those for which that is unknown."""
        return (*self.missed, *self.open)

    @property
    def missed(self) -> tuple[Criterion, ...]:
        """The criteria that are not met."""
        return tuple(one for one in self.criteria if one.met is False)

    @property
    def open(self) -> tuple[Criterion, ...]:
        """The criteria for which it is unknown whether they are met."""
        return tuple(one for one in self.criteria if one.met is None)

    @property
    def headline(self) -> Criterion | None:
        """What a reader should see first.

        A share that misses its limit, the largest of linkage, attribution and recovered tokens; else another criterion
        that is missed; else the largest share.
        """
        found = [one for one in self.criteria if one.unit == "share" and one.found is not None]
        missed = [one for one in found if one.met is False]
        if not missed and self.missed:
            return self.missed[0]
        return max(missed or found, key=lambda one: one.found or 0.0, default=None)

    @property
    def grade(self) -> Grade | None:
        """How large the headline risk is; None if nothing was measured.

        Low if the upper end of its interval is within the policy, high if the upper end is above 1/3, else elevated. A
        missed criterion that is not a share is a high risk.
        """
        worst = self.headline
        if worst is None:
            return None
        if worst.unit != "share":
            return "high"
        upper = upper_end(worst.found or 0.0, worst.high)
        if upper <= worst.limit:
            return "low"
        return "high" if upper > max(HIGH, worst.limit) else "elevated"

    def as_dict(self) -> dict[str, Any]:
        """The judgement as plain values, for JSON."""
        return {
            "meets": self.meets,
            "grade": self.grade,
            "headline": None if self.headline is None else self.headline.id,
            "criteria": [vars(one) for one in self.criteria],
        }


def upper_end(value: float, high: float | None) -> float:
    """The upper end of the interval of a number, if it has one."""
    return value if high is None else max(value, high)


def _worded(value: float, unit: Unit) -> str:
    """A number in words."""
    if unit in ("share", "rate", "accounts"):
        return shown(value, unit)
    return f"{value:g}" if unit == "epsilon" else f"{value:,.0f}"
