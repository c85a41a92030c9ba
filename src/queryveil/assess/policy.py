"""Policies: what a release must meet before it is published, and whether it does.

max_linkage = 0.05      # a TOML file holds what differs from the shipped default
min_planted_accounts = 10
"""

import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from queryveil.assess.attacks import Findings, attack
from queryveil.assess.attacks.finding import shown
from queryveil.claims import (
    AffineUsers,
    BagUsers,
    Claim,
    ConceptUsers,
    DifferentialPrivacy,
    QueryUsers,
    RecordUsers,
    RowUsers,
)
from queryveil.errors import Progress, QueryveilError, did_you_mean, old_names, option
from queryveil.log import QueryLog
from queryveil.release import Release, loaded, loaded_release
from queryveil.release.manifest import Kind
from queryveil.scrubbing import repeat_scrub
from queryveil.verification.verifier import Verification

DEFAULT = "default"
FEW = 5
"""The k for a release that promises none."""
HIGH = 1 / 3
"""A risk above this is high: one in three is the largest chance that custodians of health data accept (groups of 3;
Khaled El Emam, Guide to the De-Identification of Personal Health Information, 2013, on precedents for cell sizes)."""

LINKAGE, ATTRIBUTION, TOKENS = "history_linkage", "attribution", "token_hashing"
PLANTING, PERSONAL = "sybil", "personal_data"
ATTACKS = (LINKAGE, ATTRIBUTION, TOKENS, PLANTING, PERSONAL)
"""The attacks that a policy asks for."""

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
_SHARE = "a number from 0 to 1"


class Policy(BaseModel):
    """What a release must meet. The shipped file policies/default.toml has the source of every number."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    max_linkage: Share = Field(0.09, description=_SHARE)
    max_attribution: Share = Field(0.09, description=_SHARE)
    max_token_recovery: Share = Field(0.09, description=_SHARE)
    max_exposed_queries: int = Field(0, ge=0, description="a whole number of at least 0")
    min_planted_accounts: Literal["k"] | Annotated[int, Field(ge=0)] = Field(
        "k", description='a whole number of at least 0, or "k"'
    )
    max_residual_pii: float = Field(0.0, ge=0, allow_inf_nan=False, description="a number of at least 0")
    min_k: int = Field(5, ge=1, description="a whole number of at least 1")
    max_epsilon: float = Field(10.0, gt=0, allow_inf_nan=False, description="a number above 0")
    max_delta: Share = Field(1e-4, description=_SHARE)


def load_policy(path: str | Path | None = None) -> Policy:
    """Read a policy.

    Args:
        path: A TOML file with what differs from the built-in default; None or `default` for the default itself.

    Raises:
        QueryveilError: If the file cannot be read, or has an unknown key or a wrong value.
    """
    if path is None or str(path) == DEFAULT:
        return Policy.model_validate(tomllib.loads(shipped()))
    try:
        given = tomllib.loads(Path(path).read_text("utf-8"))
    except UnicodeDecodeError:
        raise QueryveilError(f"The policy {path} is not UTF-8; convert it first.") from None
    except OSError:
        raise QueryveilError(
            f"There is no readable policy file '{path}'; give a TOML file, or '{DEFAULT}' for the built-in policy."
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise QueryveilError(
            f"The policy {path} is not TOML: {error}; write lines such as max_linkage = 0.09."
        ) from None
    try:
        return Policy.model_validate(given)
    except ValidationError as error:
        raise QueryveilError(_fault(path, given, error)) from None


def shipped() -> str:
    """The text of the built-in policy, with the source of every number."""
    return (files("queryveil.assess") / "policies" / f"{DEFAULT}.toml").read_text("utf-8")


def _fault(path: str | Path, given: dict[str, Any], error: ValidationError) -> str:
    """What is wrong with a policy, in one sentence."""
    known = Policy.model_fields
    strange = next((name for name in given if name not in known), None)
    if strange is not None:
        return f"The policy {path} has an unknown key '{strange}'; {did_you_mean(strange, known)}."
    name = str(error.errors()[0]["loc"][0])
    return f"The '{name}' of the policy {path} must be {known[name].description}. Got {given[name]!r} instead."


Unit = Literal["share", "rate", "accounts", "queries", "people", "epsilon", "promises"]
Grade = Literal["low", "elevated", "high"]


@dataclass(frozen=True)
class Number:
    """What one attack found.

    Attributes:
        attack: The attack.
        setting: What the attacker knows.
        value: What it found; None if it was not run.
        high: The upper end of the 95 % interval.
        why: Why it was not run.
    """

    attack: str
    setting: str
    value: float | None
    high: float | None = None
    why: str = ""


@dataclass(frozen=True)
class Evidence:
    """What a policy needs to know about a release.

    Attributes:
        kind: What is released; see `queryveil.release.manifest.Kind`.
        shared: Whether several people share a record.
        k: How many people it promises behind each query or record; None if it promises no such number.
        epsilon: That of its differential privacy, if it promises any.
        few: Released distinct queries that fewer than k people issued, or fewer than 5 if there is no k.
        covered: Whether a promise about queries covers them.
        refuted: Statements that the verifier refutes; None if it did not run.
        numbers: What attacks found.
        delta: That of its differential privacy.
    """

    kind: Kind
    shared: bool
    k: int | None
    epsilon: float | None
    few: int
    covered: bool
    refuted: int | None
    numbers: tuple[Number, ...]
    delta: float = 0.0


def gather(release: Release, log: QueryLog, findings: Findings, verification: Verification | None = None) -> Evidence:
    """Collect what a policy needs to know.

    Args:
        release: The release.
        log: Its log.
        findings: What attacks found in it.
        verification: What the verifier found; without it, whether the promises hold is unknown.
    """
    claims = release.manifest.claims
    kind = release.manifest.kind
    k = promised_k(claims)
    refuted = None if verification is None else sum(not verdict.holds for verdict in verification.verdicts)
    return Evidence(
        kind=kind,
        shared=any(isinstance(claim, RecordUsers) for claim in claims),
        k=k,
        epsilon=promised_epsilon(claims),
        few=issued_by_few(release, log, k or FEW) if kind not in _NO_QUERIES else 0,
        covered=any(isinstance(claim, QueryUsers | AffineUsers | DifferentialPrivacy) for claim in claims),
        delta=next((claim.delta for claim in claims if isinstance(claim, DifferentialPrivacy)), 0.0),
        refuted=refuted,
        numbers=(
            *(Number(one.attack, one.setting, one.estimate.value, one.estimate.high) for one in findings.findings),
            *(Number(one.attack, "", None, why=one.why) for one in findings.skipped),
        ),
    )


def promised_k(claims: Sequence[Claim]) -> int | None:
    """How many people a release promises behind each query or record; None if it promises no such number.

    A promise about words, or about metadata, does not say how many people issued a query, so it does not count.
    """
    people = QueryUsers | AffineUsers | RecordUsers | BagUsers | ConceptUsers
    found = [claim.users for claim in claims if isinstance(claim, people)]
    found += [claim.users for claim in claims if isinstance(claim, RowUsers) and not claim.clicked]
    return max(found, default=None)


def promised_epsilon(claims: Sequence[Claim]) -> float | None:
    """The epsilon of a release's differential privacy, if it promises any."""
    return next((claim.epsilon for claim in claims if isinstance(claim, DifferentialPrivacy)), None)


def issued_by_few(release: Release, log: QueryLog, k: int) -> int:
    """How many of the distinct released queries fewer than k users of the log issued.

    Args:
        release: A release of queries.
        log: Its log; if the release was made from a scrubbed one, it is scrubbed the same way.
        k: How many users are enough.
    """
    with _as_anonymized(release, log) as here, loaded(release, here) as released:
        here.ensure_tables("per_query")
        (found,) = here.engine.row(
            f"SELECT count(*) AS n FROM (SELECT query FROM {released} WHERE query IS NOT NULL GROUP BY query) AS r"
            " LEFT JOIN queries q ON q.query = r.query LEFT JOIN per_query p ON p.query_id = q.query_id"
            f" WHERE coalesce(p.users, 0) < {k}"
        )
    return int(found)


@contextmanager
def _as_anonymized(release: Release, log: QueryLog) -> Iterator[QueryLog]:
    """The log that the method was run on."""
    stated = release.manifest.scrub
    if stated is None or log.stats.scrub is not None:
        yield log
        return
    scrubbed = repeat_scrub(log, stated)
    try:
        yield scrubbed
    finally:
        scrubbed.close()


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
        upper = _upper(worst.found or 0.0, worst.high)
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


def judge(policy: Policy, known: Evidence) -> Judgement:
    """Whether a release meets a policy.

    A share is an estimate: it is within the limit if the upper end of its interval is, and above the limit if the
    estimate is; between the two the result is unknown. What was not measured is not met.

    Args:
        policy: The policy.
        known: What is known of the release.
    """
    criteria = (
        _promises(known),
        _people(policy, known),
        _estimated(
            known,
            LINKAGE,
            "linkage",
            "unknown query texts attributed to the right person",
            policy.max_linkage,
        ),
        _attribution(policy, known),
        _tokens(policy, known),
        _exposed(policy, known),
        _planted(policy, known),
        _personal(policy, known),
    )
    states = {one.met for one in criteria}
    return Judgement(False if False in states else None if None in states else True, criteria)


@old_names(knowledge="taxonomy")
def judge_release(
    policy: Policy,
    release: str | Path | Release,
    log: QueryLog,
    *,
    taxonomy: str | None = None,
    verification: Verification | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Judgement:
    """Run the attacks that a policy asks for, on bounded samples, and judge a release by them.

    Args:
        policy: The policy.
        release: The release, or its folder; just made, or loaded with its user map.
        log: Its log.
        taxonomy: The folder of the web directory that the release was made with.
        verification: What the verifier found, for a release that is published already. One that was just made counts as
            checked, because `Release.save` refuses it otherwise.
        seed: The random seed.
        progress: Called with the name of each attack as it begins.
    """
    release = loaded_release(release)
    found = attack(release, log, seed=seed, taxonomy=taxonomy, progress=progress, only=ATTACKS)
    # A new release is checked when it is saved, and not saved if a check fails.
    checked = Verification(()) if verification is None and release.folder is None else verification
    return judge(policy, gather(release, log, found, checked))


def _promises(known: Evidence) -> Criterion:
    label = "promises that the verifier refutes"
    met, why = (None, "Run 'queryveil verify'.") if known.refuted is None else (known.refuted == 0, "")
    if known.refuted:
        why = "The release does not keep its promises."
    return Criterion("promises", label, 0, False, known.refuted, None, "promises", met, why)


def _people(policy: Policy, known: Evidence) -> Criterion:
    if known.epsilon is not None:
        met = known.epsilon <= policy.max_epsilon
        why = "" if met else "Its differential privacy is too weak."
        if known.delta > policy.max_delta:
            met = False
            why = f"Its delta of {known.delta:g} is above {policy.max_delta:g}, so it promises next to nothing."
        label = "epsilon of its differential privacy"
        return Criterion("epsilon", label, policy.max_epsilon, False, known.epsilon, None, "epsilon", met, why)
    k = known.k or 1
    why = ""
    if k < policy.min_k:
        why = "A query or record has too few people behind it." if known.k else "It promises nothing about people."
    label = "people promised behind each query or record"
    return Criterion("k", label, policy.min_k, True, k, None, "people", k >= policy.min_k, why)


def _estimated(known: Evidence, attack: str, id: str, label: str, limit: float) -> Criterion:
    """A criterion about a share that an attack estimates in one setting or several, the worst of which counts."""
    tried = [one for one in known.numbers if one.attack == attack]
    found = [one for one in tried if one.value is not None]
    missing = next((one.why for one in tried if one.value is None), "")
    if not found:
        return Criterion(id, label, limit, False, None, None, "share", None, _missing(missing))
    worst = max(found, key=lambda one: (_beyond(one, limit), one.value or 0.0))
    met = (True, None, False)[_beyond(worst, limit)]
    setting = f"Worst setting: {worst.setting}." if worst.setting else ""
    why = {
        True: "",
        None: "The estimate is within the limit but its interval is not: a log of more people would decide.",
        False: _WHY[attack],
    }[met]
    if met is not False and not any(one.setting.endswith(_NEEDED[attack]) for one in found):
        met, why = None, _missing(missing)  # a weaker attacker shows nothing
    reason = " ".join(part for part in (why, setting) if part)
    return Criterion(id, label, limit, False, worst.value, worst.high, "share", met, reason)


_NEEDED = {LINKAGE: "random half", ATTRIBUTION: "half of all members", TOKENS: ""}
"""The setting without which an attack says too little."""

_WHY = {
    LINKAGE: "Too much is attributed to the right person: link fewer events, or ask for a larger k.",
    ATTRIBUTION: "An attacker who knows part of a member's history can split the record.",
    TOKENS: "How often a token occurs, and next to which others, says which word it is.",
}


def _beyond(one: Number, limit: float) -> int:
    """0 if a number is within a limit, 2 if it is above it, 1 if that is unknown."""
    value = one.value or 0.0
    if value > limit:
        return 2
    return int(_upper(value, one.high) > limit)


def _upper(value: float, high: float | None) -> float:
    return value if high is None else max(value, high)


def _attribution(policy: Policy, known: Evidence) -> Criterion:
    label = "unknown queries of a shared record attributed to the right member"
    if not known.shared:
        return _outside("attribution", label, policy.max_attribution, "share", "No record is shared by several people.")
    return _estimated(known, ATTRIBUTION, "attribution", label, policy.max_attribution)


def _tokens(policy: Policy, known: Evidence) -> Criterion:
    label = "hashed words that are recovered"
    if known.kind != "tokens":
        return _outside("tokens", label, policy.max_token_recovery, "share", "No word is hashed.")
    return _estimated(known, TOKENS, "tokens", label, policy.max_token_recovery)


_NO_QUERIES = {
    "items": "Items of a taxonomy are released instead of queries.",
    "tokens": "Tokens are released instead of words; the criterion is how many of them are recovered.",
}


def _exposed(policy: Policy, known: Evidence) -> Criterion:
    k = known.k or FEW
    label = f"queries of fewer than {k} people that no promise covers"
    if known.kind in _NO_QUERIES:
        return _outside("exposed_queries", label, policy.max_exposed_queries, "queries", _NO_QUERIES[known.kind])
    count = 0 if known.covered else known.few
    why = ""
    if known.covered and known.few:
        why = f"{known.few:,} released queries of fewer than {k} people are covered by a promise about queries."
    met = count <= policy.max_exposed_queries
    if not met:
        why = f"Nothing protects these queries; ask for at least {k} people behind each."
    return Criterion("exposed_queries", label, policy.max_exposed_queries, False, count, None, "queries", met, why)


def _planted(policy: Policy, known: Evidence) -> Criterion:
    limit = (known.k or FEW) if policy.min_planted_accounts == "k" else policy.min_planted_accounts
    label = "planted accounts that bring a chosen query into the release"
    if known.kind in _NO_QUERIES:
        return _outside("planted_accounts", label, limit, "accounts", _NO_QUERIES[known.kind], least=True)
    found, why = _exact(known, PLANTING)
    met = None if found is None else found >= limit
    if met is False:
        why = (
            "This few accounts of one attacker bring a query of their choice into the release: ask for more people"
            " behind each query itself (min_query_users), or allow fewer accounts in your own policy."
        )
    return Criterion("planted_accounts", label, limit, True, found, None, "accounts", met, why)


def _personal(policy: Policy, known: Evidence) -> Criterion:
    limit = policy.max_residual_pii / 100_000
    label = "queries of fewer than 3 people that hold personal data"
    if known.kind in _NO_QUERIES:
        return _outside("residual_pii", label, limit, "rate", _NO_QUERIES[known.kind])
    found, why = _exact(known, PERSONAL)
    met = None if found is None else found <= limit
    if met is False:
        scrub = option("scrub", "remove", python="scrub(log, 'remove')")
        why = f"Scrub the log first: {scrub}."
    return Criterion("residual_pii", label, limit, False, found, None, "rate", met, why)


def _exact(known: Evidence, attack: str) -> tuple[float | None, str]:
    """What an attack counted, or why it did not run."""
    tried = [one for one in known.numbers if one.attack == attack]
    found = next((one.value for one in tried if one.value is not None), None)
    return found, "" if found is not None else _missing(tried[0].why if tried else "")


def _missing(why: str) -> str:
    """Why something was not measured, and what to run for it."""
    if "user map" in why:
        given = option("user_map", "FILE", python="Release.load(path, log=log, user_map=FILE)")
        return f"Run again with the user map: {given}."
    return f"The attack was not tried: {why.removesuffix('.')}." if why else "Run 'queryveil attack'."


def _outside(id: str, label: str, limit: float, unit: Unit, why: str, *, least: bool = False) -> Criterion:
    """A criterion that does not apply to a kind of release."""
    return Criterion(id, label, limit, least, None, None, unit, True, why)


def _worded(value: float, unit: Unit) -> str:
    """A number in words."""
    if unit in ("share", "rate", "accounts"):
        return shown(value, unit)
    return f"{value:g}" if unit == "epsilon" else f"{value:,.0f}"
