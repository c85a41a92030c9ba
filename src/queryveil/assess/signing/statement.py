"""What a signed statement says: an in-toto statement about a release (https://in-toto.io/Statement/v1)."""

import datetime
import json
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

from queryveil.errors import QueryveilError
from queryveil.release.about import About

STATEMENT: Final = "https://in-toto.io/Statement/v1"
PREDICATE: Final = "urn:queryveil:release-statement:1"
CHECKED: Final = "checked by the signer against the original log"
UNCHECKED: Final = "not checked by the signer"
GIVEN: Final = "given to the signer, not run again"
WITHHELD: Final = "given to the signer; the numbers are exact, so a differentially private release withholds them"
JUDGED: Final = "judged by the signer by the checks and the attacks stated here"

Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class Part(BaseModel):
    """A part of a statement: it has every key, and no other."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        ser_json_inf_nan="constants",
        from_attributes=True,  # what was checked and found is stated as it is
    )


class StatedVerdict(Part):
    """A check and how it went."""

    claim: str
    holds: bool


class Checks(Part):
    """What the verifier found when the signer ran it."""

    state: Literal["checked by the signer against the original log", "not checked by the signer"]
    verdicts: tuple[StatedVerdict, ...]


class StatedEstimate(Part):
    """A number with its interval."""

    value: float
    low: float
    high: float


class StatedFinding(Part):
    """What an attack found, without examples."""

    attack: str
    setting: str
    number: str
    unit: str
    estimate: StatedEstimate
    baseline: float
    control: StatedEstimate | None
    trials: int
    succeeds: bool


class StatedSkip(Part):
    """An attack that was not tried."""

    attack: str
    why: str


class Attacks(Part):
    """One file of findings."""

    state: Literal[
        "given to the signer, not run again",
        "given to the signer; the numbers are exact, so a differentially private release withholds them",
    ]
    sha256: Sha256 | None
    """Of the file, for people who get it; None if numbers are withheld."""
    findings: tuple[StatedFinding, ...]
    skipped: tuple[StatedSkip, ...]


class StatedCriterion(Part):
    """A line of a policy."""

    id: str
    limit: float
    met: bool


class StatedPolicy(Part):
    """A policy, and that it is met."""

    state: Literal["judged by the signer by the checks and the attacks stated here"]
    rules: dict[str, Any]
    criteria: tuple[StatedCriterion, ...]
    meets: Literal[True]


class StatedList(Part):
    """A list that the release was made with."""

    name: str
    sha256: Sha256 | None
    """None if the signer was not given the list, and for decisions, which the manifest binds under a key."""
    entries: Annotated[int, Field(ge=0)] | None = None
    """How many the manifest says that it has."""

    @model_serializer(mode="wrap")
    def _without_entries(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without the key if the manifest does not say it, as statements were written before manifests did."""
        found: dict[str, Any] = handler(self)
        if self.entries is None:
            found.pop("entries", None)
        return found


class Review(Part):
    """Who reviewed the release before it was signed, as they say themselves."""

    name: Annotated[str, Field(min_length=1, max_length=1000)]
    date: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]
    comment: Annotated[str, Field(max_length=1000)]

    @classmethod
    def by(cls, name: str, comment: str = "", date: str | None = None) -> "Review":
        """The review of a person.

        Args:
            name: Who they are.
            comment: What they say about the release.
            date: When they reviewed it, such as `2026-05-01`; by default today.

        Raises:
            QueryveilError: If the name is empty or too long, or the date is none.
        """
        day = date or datetime.datetime.now(datetime.UTC).date().isoformat()
        try:
            if datetime.date.fromisoformat(day).isoformat() != day:
                raise ValueError
            return cls(name=name.strip(), date=day, comment=comment.strip())
        except ValueError:
            raise QueryveilError(
                "A review has a name and a comment of at most 1,000 characters, and a date such as 2026-05-01."
            ) from None


class Predicate(Part):
    """What the signer says about a release."""

    software: str
    """What made the statement."""
    method: str
    parameters: dict[str, Any]
    checks: Checks
    attacks: tuple[Attacks, ...]
    policy: StatedPolicy | None
    lists: dict[str, StatedList]
    """By what they are for."""
    review: Review | None = None
    about: About | None = None
    """What the publisher says about the release, as its manifest has it."""

    @model_serializer(mode="wrap")
    def _without_review(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without the keys for which there is nothing to say, as statements were written before there were any."""
        found: dict[str, Any] = handler(self)
        return {name: value for name, value in found.items() if name not in ("review", "about") or value is not None}

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is stated, in sentences that say that it was not checked again."""
        held = sum(verdict.holds for verdict in self.checks.verdicts)
        counted = f": {held} of {len(self.checks.verdicts)} hold" if self.checks.verdicts else ""
        found = [finding for attacks in self.attacks for finding in attacks.findings]
        won = f"{sum(one.succeeds for one in found)} of {len(found)} succeed, " if found else ""
        return (
            f"Method and promises: {self.method}, {self.checks.state}{counted}.",
            *(f"Attacks: {won}{attacks.state}." for attacks in self.attacks[:1]),
            *([f"Policy: met, {self.policy.state}."] if self.policy is not None else []),
            *([] if self.about is None else _words(self.about)),
            *([] if self.review is None else [_reviewed(self.review)]),
            *(_listed(one) for one in self.lists.values()),
        )


def _words(about: About) -> list[str]:
    """What the publisher says, a sentence each."""
    title = [] if about.title is None else [("title", about.title)]
    return [f"{name.capitalize()}: {text}" for name, text in (*title, *about.rows)]


def _reviewed(review: Review) -> str:
    """Who reviewed, in a sentence."""
    comment = f" Comment: {review.comment}" if review.comment else ""
    return f"Reviewed by {review.name} on {review.date}.{comment}"


def _listed(one: StatedList) -> str:
    """A list, in a sentence."""
    counted = "" if one.entries is None else f"{one.entries:,} {'entry' if one.entries == 1 else 'entries'}, "
    return f"List: {one.name}, {counted}SHA-256 {one.sha256 or 'not stated'}."


class Digest(Part):
    """A digest by its algorithm."""

    sha256: Sha256


class Subject(Part):
    """A file of the release."""

    name: str
    digest: Digest


class Statement(Part):
    """An in-toto statement about a release."""

    type: Literal["https://in-toto.io/Statement/v1"] = Field(alias="_type")
    subject: tuple[Subject, ...]
    predicate_type: Literal["urn:queryveil:release-statement:1"] = Field(alias="predicateType")
    predicate: Predicate


def encoded(part: Part) -> bytes:
    """The only way to write a statement or an envelope."""
    values = part.model_dump(mode="json", by_alias=True)
    return json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False).encode() + b"\n"
