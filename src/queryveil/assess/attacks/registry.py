"""All attacks: an entry each, which everything else looks up by its id."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from queryveil.assess.attacks.attribution import attribution, attribution_to_one
from queryveil.assess.attacks.background_knowledge import Known, background_knowledge
from queryveil.assess.attacks.differencing import differencing
from queryveil.assess.attacks.disambiguation import disambiguation
from queryveil.assess.attacks.finding import Finding, Question
from queryveil.assess.attacks.history_linkage import history_linkage, older_history
from queryveil.assess.attacks.personal_data import personal_data
from queryveil.assess.attacks.record_linkage import record_linkage
from queryveil.assess.attacks.reidentification_risk import reidentification_risk
from queryveil.assess.attacks.sybil import sybil
from queryveil.assess.attacks.token_hashing import token_hashing, token_matching
from queryveil.assess.attacks.uniqueness import unique_pairs, unique_queries
from queryveil.assess.attacks.user_linkage import user_linkage
from queryveil.log import QueryLog
from queryveil.release import Release


@dataclass(frozen=True)
class Attempt:
    """A release, and what the attacker has; see `queryveil.attack`."""

    release: Release
    log: QueryLog
    n_known: tuple[int, ...]
    known: Known
    seed: int
    other: Release | None
    reference: QueryLog | None
    taxonomy: str | None


@dataclass(frozen=True)
class Attack:
    """An attack, as everybody else knows it.

    Attributes:
        id: What it is called in code, JSON and on the command line.
        label: What it is called in tables and reports.
        question: Which of the three questions it asks.
        settings: Each tries the attack in one way, and raises `InapplicableError` where it does not apply.
    """

    id: str
    label: str
    question: Question
    settings: tuple[Callable[[Attempt], Iterable[Finding]], ...]


def _known(on: Attempt) -> Iterable[Finding]:
    numbers = (1,) if on.known == "half" else on.n_known
    for n in numbers:
        yield background_knowledge(on.release, on.log, n_known=n, known=on.known, seed=on.seed)


def _differencing(on: Attempt) -> Iterable[Finding]:
    yield differencing(on.release, on.log, other=on.other)


def _tokens(on: Attempt) -> Iterable[Finding]:
    yield token_hashing(on.release, on.log, reference=on.reference, seed=on.seed)


def _seeded(one: Callable[..., Finding]) -> Callable[[Attempt], Iterable[Finding]]:
    """An attack that needs nothing but a seed."""
    return lambda on: [one(on.release, on.log, seed=on.seed)]


def _rerun(one: Callable[..., Finding]) -> Callable[[Attempt], Iterable[Finding]]:
    """An attack that needs the taxonomy of the release as well."""
    return lambda on: [one(on.release, on.log, seed=on.seed, taxonomy=on.taxonomy)]


_RISK = "prosecutor, journalist and marketer risk"

ATTACKS: dict[str, Attack] = {
    attack.id: attack
    for attack in (
        Attack("background_knowledge", "background knowledge of n queries", "singling out", (_known,)),
        Attack("unique_queries", "unique queries", "singling out", (lambda on: [unique_queries(on.release, on.log)],)),
        Attack("unique_pairs", "unique pairs", "singling out", (_seeded(unique_pairs),)),
        Attack("reidentification_risk", _RISK, "singling out", (_seeded(reidentification_risk),)),
        Attack("history_linkage", "history linkage", "linkability", (_rerun(history_linkage), _rerun(older_history))),
        Attack("record_linkage", "record linkage", "linkability", (_seeded(record_linkage),)),
        Attack("user_linkage", "user linkage between queries", "linkability", (_seeded(user_linkage),)),
        Attack("attribution", "attribution", "inference", (_seeded(attribution), _seeded(attribution_to_one))),
        Attack("disambiguation", "disambiguation", "inference", (_seeded(disambiguation),)),
        Attack("personal_data", "residual personal data", "inference", (_seeded(personal_data),)),
        Attack("differencing", "differencing", "inference", (_differencing,)),
        Attack("token_hashing", "token hashing", "inference", (_tokens, _seeded(token_matching))),
        Attack("sybil", "Sybil attack (planted accounts)", "inference", (_rerun(sybil),)),
    )
}
