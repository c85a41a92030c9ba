"""All attacks: an entry each, which everything else looks up by its id."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from queryveil.assess.attacks.attribution import attribution, attribution_to_one
from queryveil.assess.attacks.background_knowledge import Known, background_knowledge
from queryveil.assess.attacks.differencing import differencing
from queryveil.assess.attacks.disambiguation import disambiguation
from queryveil.assess.attacks.finding import Finding, Question
from queryveil.assess.attacks.history_linkage import history_linkage, older_history
from queryveil.assess.attacks.margins import margins, margins_of_users
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
        summary: What the attacker does, in the help.
        question: Which of the three questions it asks.
        settings: Each tries the attack in one way, and raises `InapplicableError` where it does not apply.
        short: What it is called where there is little room; its label if empty.
    """

    id: str
    label: str
    summary: str
    question: Question
    settings: tuple[Callable[[Attempt], Iterable[Finding]], ...]
    short: str = ""


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


ATTACKS: dict[str, Attack] = {
    attack.id: attack
    for attack in (
        Attack(
            "background_knowledge",
            "background knowledge of n queries",
            "find a person's record by a few queries that they issued",
            "singling out",
            (_known,),
            "background",
        ),
        Attack(
            "unique_queries",
            "unique queries",
            "find released queries that only one user issued",
            "singling out",
            (lambda on: [unique_queries(on.release, on.log)],),
        ),
        Attack(
            "unique_pairs",
            "unique pairs",
            "find pairs of queries in one record that only one user issued both of",
            "singling out",
            (_seeded(unique_pairs),),
        ),
        Attack(
            "reidentification_risk",
            "prosecutor, journalist and marketer risk",
            "find a person by their whole record, if few people share it",
            "singling out",
            (_seeded(reidentification_risk),),
            "re-identification",
        ),
        Attack(
            "history_linkage",
            "history linkage",
            "find the rest of a person's queries by half of their history",
            "linkability",
            (_rerun(history_linkage), _rerun(older_history)),
            "history",
        ),
        Attack(
            "record_linkage",
            "record linkage",
            "link each record to the user of the log with the most queries in common",
            "linkability",
            (_seeded(record_linkage),),
        ),
        Attack(
            "user_linkage",
            "user linkage between queries",
            "train a classifier to say whether one user issued two queries",
            "linkability",
            (_seeded(user_linkage),),
            "user linkage",
        ),
        Attack(
            "attribution",
            "attribution",
            "attribute the queries of a shared record to its people",
            "inference",
            (_seeded(attribution), _seeded(attribution_to_one)),
        ),
        Attack(
            "disambiguation",
            "disambiguation",
            "split a shared record into the queries of each person",
            "inference",
            (_seeded(disambiguation),),
        ),
        Attack(
            "personal_data",
            "residual personal data",
            "look for personal data in released queries",
            "inference",
            (_seeded(personal_data),),
            "personal data",
        ),
        Attack(
            "differencing",
            "differencing",
            "find queries that are in one of two releases and not in the other",
            "inference",
            (_differencing,),
        ),
        Attack(
            "margins",
            "differencing of totals",
            "subtract published rows of a table of counts from their total",
            "inference",
            (_seeded(margins), _seeded(margins_of_users)),
            "totals",
        ),
        Attack(
            "token_hashing",
            "token hashing",
            "read hashed words with the help of another log",
            "inference",
            (_tokens, _seeded(token_matching)),
            "tokens",
        ),
        Attack(
            "sybil",
            "Sybil attack (planted accounts)",
            "plant accounts until a secret query is released",
            "inference",
            (_rerun(sybil),),
            "Sybil",
        ),
    )
}

ON_SAMPLES: dict[str, tuple[Callable[[Attempt], Iterable[Finding]], ...]] = {
    "history_linkage": (_rerun(history_linkage),),
    **{
        name: ATTACKS[name].settings
        for name in ("background_knowledge", "record_linkage", "user_linkage", "attribution", "disambiguation")
    },
}
"""Ways to try attacks that mean something when all that is known is some users and their records: no count of all
users, and no method that runs again."""
BY_TABLES = ("unique_queries", "personal_data")
"""Attacks that count in tables of the whole log, however large it is."""
