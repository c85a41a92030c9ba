"""All attacks on a release, and what they say together."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast, get_args

import pyarrow as pa

from queryveil.assess.arguments import several
from queryveil.assess.attacks.background_knowledge import Known, check_known
from queryveil.assess.attacks.finding import (
    Finding,
    InapplicableError,
    NoUserMapError,
    Question,
    Tried,
    estimated,
    shown,
)
from queryveil.assess.attacks.registry import ATTACKS, BY_TABLES, ON_SAMPLES, Attack, Attempt
from queryveil.errors import Progress, QueryveilError, Step, did_you_mean, old_names, option
from queryveil.log import LocalLog, QueryLog, check_is_log
from queryveil.release import Release, as_of, loaded_release
from queryveil.text.tabular import Tabular, html_list, html_rows

if TYPE_CHECKING:
    from queryveil.log.spark import SparkLog

QUESTIONS: tuple[Question, ...] = get_args(Question)
MEANING = {
    "singling out": "can one person be picked out",
    "linkability": "can records or queries of one person be brought together",
    "inference": "can something be learnt about a person",
}


@dataclass(frozen=True)
class Skipped(Tried):
    """An attack that was not run, and why."""

    why: str
    needs_user_map: bool = False


@dataclass(frozen=True)
class Findings(Tabular):
    """What all attacks found."""

    method: str
    findings: tuple[Finding, ...]
    skipped: tuple[Skipped, ...]
    sample: str = ""
    """Which of its users it was tried on, if not on all."""
    of: ClassVar[str] = "this release"
    """What was attacked."""

    @property
    def summary(self) -> str:
        """What a reader should take away, with the numbers behind it."""
        number = "1 attack was" if len(self.findings) == 1 else f"{len(self.findings)} attacks were"
        parts = [f"{number} tried on {self.of} by '{self.method}'."]
        if self.sample:
            parts.append(self.bound)
        for question in QUESTIONS:
            tried = [finding for finding in self.findings if finding.question == question]
            won = [finding for finding in tried if finding.succeeds]
            asked = f"{question.capitalize()} ({MEANING[question]}):"
            if won:
                parts.append(
                    f"{asked} yes, by {len(won)} of {len(tried)}. "
                    + " ".join(_sentence(finding) for finding in _strongest(won))
                )
            elif tried:
                best = " ".join(_sentence(finding) for finding in _strongest(tried))
                parts.append(f"{asked} no attack was above its baseline and its control. {best}")
            else:
                parts.append(f"{asked} not tried.")
        parts.append("An attack that fails here does not show that no other would succeed.")
        return "\n".join(parts)

    @property
    def bound(self) -> str:
        """What a sample of users means for the numbers; empty if all users were at hand."""
        if not self.sample:
            return ""
        whole = " and ".join(ATTACKS[name].label for name in BY_TABLES)
        return (
            f"Tried on {self.sample}: among all users a person is harder to find, so shares of persons and records that"
            f" are found are upper bounds. Only {whole} count users in the whole log."
        )

    def as_dict(self) -> dict[str, Any]:
        """The findings as plain values, for JSON."""
        return {
            "method": self.method,
            "summary": self.summary,
            **({"sample": self.sample} if self.sample else {}),
            "findings": [finding.as_dict() for finding in self.findings],
            "skipped": [vars(skipped) | {"question": skipped.question} for skipped in self.skipped],
        }

    def to_arrow(self) -> pa.Table:
        """One row per finding."""
        rows = [
            one.as_dict() | asdict(one.estimate) | {"control": None if one.control is None else one.control.value}
            for one in self.findings
        ]
        return pa.Table.from_pylist(rows, schema=_SCHEMA)

    def _repr_html_(self) -> str:
        rows = [
            (
                one.question,
                one.label,
                one.setting,
                estimated(one.estimate, one.unit),
                shown(one.baseline, one.unit),
                None if one.control is None else shown(one.control.value, one.unit),
                one.succeeds,
            )
            for one in self.findings
        ]
        numbers = ("found (95 %)", "baseline", "control")
        names = ("question", "attack", "setting", *numbers, "succeeds")
        skipped = (f"{one.label}: {one.why}" for one in self.skipped)
        title = f"Attacks on a release by {self.method}"
        return html_rows(title, names, rows, numbers) + html_list("Not tried", skipped)


_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("attack", "label", "question", "setting")),
        *((name, pa.float64()) for name in ("value", "low", "high", "baseline", "control")),
        ("succeeds", pa.bool_()),
        ("trials", pa.int64()),
    ]
)


@old_names(m="n_known", knowledge="taxonomy", read=None)
def attack(
    release: str | Path | Release,
    log: QueryLog,
    *,
    n_known: int | Sequence[int] = (1, 2, 3, 4, 5),
    known: Known = "random",
    seed: int = 0,
    other: str | Path | Release | None = None,
    reference: QueryLog | None = None,
    taxonomy: str | None = None,
    progress: Progress | None = None,
    only: str | Collection[str] | None = None,
) -> Findings:
    """Try every attack on a release.

    Args:
        release: The release, or its folder. Attacks that need to know who is who are skipped for one that was loaded
            without its user map; see `Release.load`.
        log: Its log. Of a large one on Spark, a sample of users is brought here, and attacks run that mean something
            there.
        n_known: How many queries of a person the attacker saw; each number is an attack of its own.
        known: Which queries: `random`, the `rarest`, or `half` of all, whatever n_known is.
        seed: Random seed.
        other: Another release to compare with, or its folder.
        reference: A log of the same kind that the attacker has, to read hashed words; by default what half of the users
            typed.
        taxonomy: Where the taxonomy lies that the release was made with, to run its method again.
        progress: Called with the name of each attack as it begins.
        only: The ids of the attacks to try; by default all.

    Raises:
        QueryveilError: If there is no such attack, or the release was made from another log.
    """
    check_is_log(log, "attack")
    chosen = list(ATTACKS) if only is None else several(only)
    wrong = next((name for name in chosen if name not in ATTACKS), None)
    if wrong is not None:
        raise QueryveilError(f"There is no attack '{wrong}'; {did_you_mean(wrong, ATTACKS)}.")
    made = as_of(loaded_release(release), log)
    attempt = Attempt(
        made,
        log,
        tuple(sorted(set(several(n_known)))),
        check_known(known),
        seed,
        None if other is None else loaded_release(other),
        reference,
        taxonomy,
    )
    sample, skipped, findings = "", list[Skipped](), list[Finding]()
    planned = [_Planned(one, one.settings, attempt) for one in ATTACKS.values() if one.id in chosen]
    if not isinstance(log, LocalLog):
        planned, skipped, sample = _on_spark(planned, attempt)
    for place, (one, settings, on) in enumerate(planned):
        if progress is not None:
            progress(Step(one.label, place, len(planned)))
        for setting in settings:
            try:
                findings.extend(setting(on))
            except InapplicableError as why:
                skipped.append(Skipped(one.id, str(why), isinstance(why, NoUserMapError)))
    return Findings(made.manifest.method, tuple(findings), tuple(dict.fromkeys(skipped)), sample)


class _Planned(NamedTuple):
    """An attack to try, in which ways, and on what."""

    attack: Attack
    settings: tuple[Callable[[Attempt], Iterable[Finding]], ...]
    on: Attempt


def _on_spark(planned: Sequence[_Planned], attempt: Attempt) -> tuple[list[_Planned], list[Skipped], str]:
    """Attacks on a log on Spark: on all of a small one, which is brought here; of a large one on tables or a sample.

    Returns:
        What to try, what not, and which users it is tried on if not on all.

    Raises:
        QueryveilError: If another release or another log is to be compared.
    """
    from queryveil.assess.sampling import NoSampleError, bring

    if attempt.other is not None or attempt.reference is not None:
        raise QueryveilError(
            f"{option('other')} and {option('reference')} compare with all of a log, which must be on one machine;"
            " leave them out, or attack without Spark."
        )
    try:
        some = bring(attempt.release, cast("SparkLog", attempt.log), attempt.seed)
    except NoSampleError as error:
        some, why = None, str(error)
    if some is not None:
        here = replace(attempt, release=some.release, log=some.log)
        if not some.share:
            return [_Planned(one, settings, here) for one, settings, _ in planned], [], ""
        why = "on Spark, attacks run on a sample of users, which is not enough for this one"
    tried = [
        one if one.attack.id in BY_TABLES else _Planned(one.attack, ON_SAMPLES[one.attack.id], here)
        for one in planned
        if one.attack.id in BY_TABLES or (some is not None and one.attack.id in ON_SAMPLES)
    ]
    begun = {one.attack.id for one in tried}
    skipped = [Skipped(one.attack.id, why) for one in planned if one.attack.id not in begun]
    return tried, skipped, "" if some is None else some.share


def _strongest(findings: Sequence[Finding]) -> list[Finding]:
    """One finding of each attack: the one with the largest number."""
    found: dict[str, Finding] = {}
    for finding in findings:
        if finding.attack not in found or finding.estimate.value > found[finding.attack].estimate.value:
            found[finding.attack] = finding
    return list(found.values())


def _sentence(finding: Finding) -> str:
    if finding.unit == "accounts":
        return f"{finding.number[0].upper()}{finding.number[1:]}: {shown(finding.estimate.value, finding.unit)}."
    text = f"{finding.number[0].upper()}{finding.number[1:]}: {estimated(finding.estimate, finding.unit)}"
    text += f"; baseline: {shown(finding.baseline, finding.unit)}"
    if finding.control is not None:
        text += f"; control: {shown(finding.control.value, finding.unit)}"
    return f"{text}."
