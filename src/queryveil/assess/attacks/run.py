"""All attacks on a release, and what they say together."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, get_args

import pyarrow as pa

from queryveil.assess.attacks.again import NO_READ
from queryveil.assess.attacks.attribution import attribution, attribution_to_one
from queryveil.assess.attacks.differencing import differencing
from queryveil.assess.attacks.disambiguation import disambiguation
from queryveil.assess.attacks.finding import Finding, InapplicableError, Question, estimated, shown
from queryveil.assess.attacks.groups import classic_risks
from queryveil.assess.attacks.hashing import token_hashing, token_matching
from queryveil.assess.attacks.history import history_linkage, older_history
from queryveil.assess.attacks.known import Known, check_known, known_queries
from queryveil.assess.attacks.linkage import record_linkage
from queryveil.assess.attacks.personal import personal_data
from queryveil.assess.attacks.planting import planting
from queryveil.assess.attacks.same_user import same_user
from queryveil.assess.attacks.uniqueness import unique_pairs, unique_queries
from queryveil.log import LocalLog, QueryLog
from queryveil.release import Release

QUESTIONS: tuple[Question, ...] = get_args(Question)
_MEANING = {
    "singling out": "can one person be picked out",
    "linkability": "can records or queries of one person be brought together",
    "inference": "can something be learnt about a person",
}


@dataclass(frozen=True)
class Skipped:
    """An attack that was not run, and why."""

    attack: str
    question: Question
    why: str


@dataclass(frozen=True)
class Findings:
    """What all attacks found."""

    method: str
    findings: tuple[Finding, ...]
    skipped: tuple[Skipped, ...]

    @property
    def summary(self) -> str:
        """What a reader should take away, with the numbers behind it."""
        number = "1 attack was" if len(self.findings) == 1 else f"{len(self.findings)} attacks were"
        parts = [f"{number} tried on this release by '{self.method}'."]
        for question in QUESTIONS:
            tried = [finding for finding in self.findings if finding.question == question]
            won = [finding for finding in tried if finding.succeeds]
            asked = f"{question.capitalize()} ({_MEANING[question]}):"
            if won:
                parts.append(
                    f"{asked} yes, by {len(won)} of {len(tried)}. "
                    + " ".join(_sentence(finding) for finding in _strongest(won))
                )
            elif tried:
                best = " ".join(_sentence(finding) for finding in _strongest(tried))
                parts.append(f"{asked} no attack did better than guessing and its control. {best}")
            else:
                parts.append(f"{asked} not tried.")
        parts.append("An attack that fails here does not show that no other would succeed.")
        return "\n".join(parts)

    def as_dict(self) -> dict[str, Any]:
        """The findings as plain values, for JSON."""
        return {
            "method": self.method,
            "summary": self.summary,
            "findings": [finding.as_dict() for finding in self.findings],
            "skipped": [vars(skipped) for skipped in self.skipped],
        }


def attack(
    release: Release,
    log: QueryLog,
    *,
    m: Sequence[int] = (1, 2, 3, 4, 5),
    known: Known = "random",
    seed: int = 0,
    other: Release | None = None,
    reference: QueryLog | None = None,
    read: Callable[[pa.Table], LocalLog] | None = None,
    taxonomy: str | None = None,
    progress: Callable[[str], None] | None = None,
    only: Collection[str] | None = None,
) -> Findings:
    """Try every attack on a release.

    Args:
        release: The release. Attacks that need to know who is who are skipped for one that was loaded, unless
            `queryveil.release.with_user_map` told it.
        log: Its log.
        m: How many queries of a person the attacker saw; each number is an attack of its own.
        known: Which queries: `random`, the `rarest`, or `half` of all, whatever m is.
        seed: Decides what is drawn.
        other: Another release to compare with.
        reference: A log of the same kind that the attacker has, to read hashed words; by default what half of the users
            typed.
        read: Reads a log from a table, such as `queryveil.read_log`; without it no method is run again, so nothing is
            planted and no older half of a history is tried.
        taxonomy: Where the taxonomy lies that the release was made with, to run its method again.
        progress: Called with the name of each attack as it begins.
        only: The names of the attacks to try; by default all.
    """
    check_known(known)
    wanted = (1,) if known == "half" else tuple(dict.fromkeys(m))
    todo: list[tuple[str, Question, Callable[[], Finding]]] = [
        *(
            ("known queries", "singling out", partial(known_queries, release, log, m=n, known=known, seed=seed))
            for n in wanted
        ),
        ("unique queries", "singling out", partial(unique_queries, release, log)),
        ("unique pairs", "singling out", partial(unique_pairs, release, log, seed=seed)),
        ("classic risks", "singling out", partial(classic_risks, release, log, seed=seed)),
        (
            "history linkage",
            "linkability",
            partial(history_linkage, release, log, seed=seed, taxonomy=taxonomy),
        ),
        (
            "history linkage",
            "linkability",
            partial(older_history, release, log, read, seed=seed, taxonomy=taxonomy),
        ),
        ("record linkage", "linkability", partial(record_linkage, release, log, seed=seed)),
        ("same user", "linkability", partial(same_user, release, log, seed=seed)),
        ("attribution", "inference", partial(attribution, release, log, seed=seed)),
        ("attribution", "inference", partial(attribution_to_one, release, log, seed=seed)),
        ("disambiguation", "inference", partial(disambiguation, release, log, seed=seed)),
        ("vanity and PII", "inference", partial(personal_data, release, log, seed=seed)),
        ("differencing", "inference", partial(differencing, release, log, other=other)),
        ("token hashing", "inference", partial(token_hashing, release, log, reference=reference, seed=seed)),
        ("token hashing", "inference", partial(token_matching, release, log, seed=seed)),
        ("planting", "inference", partial(_planted, release, log, read, taxonomy, seed)),
    ]
    findings: list[Finding] = []
    skipped: list[Skipped] = []
    for name, question, run in todo:
        if only is not None and name not in only:
            continue
        if progress is not None:
            progress(name)
        try:
            findings.append(run())
        except InapplicableError as why:
            skipped.append(Skipped(name, question, str(why)))
    return Findings(release.manifest.method, tuple(findings), tuple(dict.fromkeys(skipped)))


def _planted(
    release: Release,
    log: QueryLog,
    read: Callable[[pa.Table], LocalLog] | None,
    taxonomy: str | None,
    seed: int,
) -> Finding:
    if read is None:
        raise InapplicableError(NO_READ)
    return planting(release, log, read, seed=seed, taxonomy=taxonomy)


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
    told = f"{finding.number[0].upper()}{finding.number[1:]}: {estimated(finding.estimate, finding.unit)}"
    told += f"; guessing: {shown(finding.baseline, finding.unit)}"
    if finding.control is not None:
        told += f"; control: {shown(finding.control.value, finding.unit)}"
    return f"{told}."
