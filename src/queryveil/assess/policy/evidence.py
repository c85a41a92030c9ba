"""What a policy needs to know about a release."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from queryveil.assess.attacks import Findings
from queryveil.claims import (
    AffineUsers,
    BagUsers,
    CellUsers,
    Claim,
    ConceptUsers,
    DifferentialPrivacy,
    QueryUsers,
    RecordUsers,
    RowUsers,
)
from queryveil.log import QueryLog
from queryveil.release import Release, loaded, scrub_again
from queryveil.release.manifest import Kind
from queryveil.verification.verifier import Verification

FEW = 5
"""The k for a release that promises none."""
NO_QUERIES = {
    "items": "Items of a taxonomy are released instead of queries.",
    "tokens": "Tokens are released instead of words; the criterion is how many of them are recovered.",
}
"""Kinds of releases without queries, and why a criterion about queries does not apply to them."""


@dataclass(frozen=True)
class Number:
    """What one attack found.

    Attributes:
        attack: The attack.
        setting: What the attacker knows.
        value: What it found; None if it was not run.
        high: The upper end of the 95 % interval.
        why: Why it was not run.
        needs_user_map: Whether it was not run because the user map was not given.
    """

    attack: str
    setting: str
    value: float | None
    high: float | None = None
    why: str = ""
    needs_user_map: bool = False


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
    private = next((claim for claim in claims if isinstance(claim, DifferentialPrivacy)), None)
    return Evidence(
        kind=kind,
        shared=any(isinstance(claim, RecordUsers) for claim in claims),
        k=k,
        epsilon=None if private is None else private.epsilon,
        few=issued_by_few(release, log, k or FEW) if "query" in release.schema.names and kind not in NO_QUERIES else 0,
        covered=any(isinstance(claim, QueryUsers | AffineUsers | DifferentialPrivacy) for claim in claims),
        delta=0.0 if private is None else private.delta,
        refuted=None if verification is None else refuted(verification),
        numbers=numbers(findings),
    )


def numbers(findings: Findings) -> tuple[Number, ...]:
    """What a policy needs of attacks."""
    return (
        *(Number(one.attack, one.setting, one.estimate.value, one.estimate.high) for one in findings.findings),
        *(Number(one.attack, "", None, None, one.why, one.needs_user_map) for one in findings.skipped),
    )


def refuted(verification: Verification) -> int:
    """How many statements of a release the verifier refutes."""
    return sum(not verdict.holds for verdict in verification.verdicts)


def promised_k(claims: Sequence[Claim]) -> int | None:
    """How many people a release promises behind each query or record; None if it promises no such number.

    A promise about words, or about metadata, does not say how many people issued a query, so it does not count. Where
    both queries and records are promised to have users, the smaller number counts.
    """
    queries = [claim.users for claim in claims if isinstance(claim, QueryUsers | AffineUsers)]
    queries += [claim.users for claim in claims if isinstance(claim, RowUsers) and not claim.clicked]
    records = [claim.users for claim in claims if isinstance(claim, RecordUsers | BagUsers | ConceptUsers | CellUsers)]
    return min((max(found) for found in (queries, records) if found), default=None)


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
    scrubbed = scrub_again(release, log)
    try:
        yield scrubbed
    finally:
        scrubbed.close()
