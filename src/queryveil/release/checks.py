"""Whether a release was made from a log, and whether what it claims holds there."""

import hmac
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from queryveil.claims import Verdict
from queryveil.claims.base import Evidence
from queryveil.claims.certificates import Certificate
from queryveil.claims.listed import missing_list
from queryveil.engines import Table
from queryveil.errors import QueryveilError
from queryveil.log import QueryLog, Size
from queryveil.release.manifest import UNPUBLISHED, Counts
from queryveil.scrubbing import repeat_scrub

if TYPE_CHECKING:
    from queryveil.release.release import Release


def made_from(release: "Release", log: QueryLog) -> bool:
    """Whether a release may have been made from a log.

    A release that was just made knows its log, and its seed reveals the fingerprint. One that was loaded says only how
    much there was in its log, and a differentially private one not even that.
    """
    manifest = release.manifest
    if release.log is not None and (release.folder is None or release.log.fingerprint != log.fingerprint):
        return release.log.fingerprint == log.fingerprint  # who loaded a release may name any log as its own
    if release.seed is not None and manifest.input_fingerprint is not None:
        return hmac.compare_digest(manifest.input_fingerprint, log.keyed_fingerprint(release.seed))
    stated: Counts | Size | None = manifest.input_counts
    if manifest.scrub is not None and log.stats.scrub is None:
        stated = manifest.scrub.log
    if stated is None or stated == UNPUBLISHED:
        return True
    stats = log.stats
    return (stated.events, stated.users, stated.queries, stated.clicks, stated.views or 0) == (
        stats.events,
        stats.users,
        stats.queries,
        stats.clicks,
        stats.views,
    )


def check_log(release: "Release", log: QueryLog) -> None:
    """Refuse a log that the release was not made from."""
    if not made_from(release, log):
        raise QueryveilError(
            "The release was made from another log than this one; give the log it was made from.", code="other-log"
        )


def scrub_again(release: "Release", log: QueryLog) -> QueryLog:
    """A log scrubbed as that of a release was.

    Raises:
        QueryveilError: If it cannot have been scrubbed in this way, or the decisions are not at hand.
    """
    done = release.manifest.scrub
    assert done is not None  # noqa: S101
    if done.decisions is not None and done.decisions not in release.lists:
        raise missing_list(done.decisions)
    return repeat_scrub(log, done, None if done.decisions is None else release.lists[done.decisions])


def is_click(release: "Release") -> str:
    """SQL of whether a row `r` of a release with addresses is a click; a view may be none, or not say."""
    return "r.clicked" if "clicked" in release.schema.names else "r.url IS NOT NULL"


def loaded_release(release: "str | Path | Release") -> "Release":
    """The release, opened if it is given by its folder."""
    from queryveil.release.release import Release

    return release if isinstance(release, Release) else Release.load(release)


@contextmanager
def loaded(release: "Release", log: QueryLog) -> Iterator[Table]:
    """The released table, next to the log's own tables."""
    with log.workspace() as work:
        yield work.load(release.schema, release.batches, "released")


@contextmanager
def evidence_of(release: "Release", log: QueryLog, certificate: Certificate | None = None) -> Iterator[Evidence]:
    """What checks of a release see; a certificate makes them quicker, and is not trusted."""
    with loaded(release, log) as released, log.workspace() as work:
        yield Evidence(log, work, tuple(release.schema.names), released, certificate, release.lists)


def check_claims(release: "Release", log: QueryLog, certificate: Certificate | None = None) -> tuple[Verdict, ...]:
    """Check every claim of a release against the original log."""
    with evidence_of(release, log, certificate) as evidence:
        return tuple(claim.verdict(evidence) for claim in release.manifest.claims)


def checked(release: "Release", log: QueryLog, certificate: Certificate | None) -> tuple[Verdict, ...]:
    """The verdicts, all of which hold."""
    verdicts = check_claims(release, log, certificate)
    wrong = next((verdict for verdict in verdicts if not verdict.holds), None)
    if wrong is not None:
        # The counter-example is not published, so the message must not show it either.
        raise QueryveilError(
            f"The release was not written, because a check refutes what it promises: {wrong.claim}", code="refuted"
        )
    return verdicts
