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


ATTACKS: dict[str, Attack] = {
    attack.id: attack
    for attack in (
        Attack("background_knowledge", "background knowledge of n queries", "singling out", (_known,)),
        Attack("unique_queries", "unique queries", "singling out", (lambda on: [unique_queries(on.release, on.log)],)),
        Attack(
            "unique_pairs",
            "unique pairs",
            "singling out",
            (lambda on: [unique_pairs(on.release, on.log, seed=on.seed)],),
        ),
        Attack(
            "reidentification_risk",
            "prosecutor, journalist and marketer risk",
            "singling out",
            (lambda on: [reidentification_risk(on.release, on.log, seed=on.seed)],),
        ),
        Attack(
            "history_linkage",
            "history linkage",
            "linkability",
            (
                lambda on: [history_linkage(on.release, on.log, seed=on.seed, taxonomy=on.taxonomy)],
                lambda on: [older_history(on.release, on.log, seed=on.seed, taxonomy=on.taxonomy)],
            ),
        ),
        Attack(
            "record_linkage",
            "record linkage",
            "linkability",
            (lambda on: [record_linkage(on.release, on.log, seed=on.seed)],),
        ),
        Attack(
            "user_linkage",
            "user linkage between queries",
            "linkability",
            (lambda on: [user_linkage(on.release, on.log, seed=on.seed)],),
        ),
        Attack(
            "attribution",
            "attribution",
            "inference",
            (
                lambda on: [attribution(on.release, on.log, seed=on.seed)],
                lambda on: [attribution_to_one(on.release, on.log, seed=on.seed)],
            ),
        ),
        Attack(
            "disambiguation",
            "disambiguation",
            "inference",
            (lambda on: [disambiguation(on.release, on.log, seed=on.seed)],),
        ),
        Attack(
            "personal_data",
            "residual personal data",
            "inference",
            (lambda on: [personal_data(on.release, on.log, seed=on.seed)],),
        ),
        Attack(
            "differencing",
            "differencing",
            "inference",
            (lambda on: [differencing(on.release, on.log, other=on.other)],),
        ),
        Attack(
            "token_hashing",
            "token hashing",
            "inference",
            (
                lambda on: [token_hashing(on.release, on.log, reference=on.reference, seed=on.seed)],
                lambda on: [token_matching(on.release, on.log, seed=on.seed)],
            ),
        ),
        Attack(
            "sybil",
            "Sybil attack (planted accounts)",
            "inference",
            (lambda on: [sybil(on.release, on.log, seed=on.seed, taxonomy=on.taxonomy)],),
        ),
    )
}
