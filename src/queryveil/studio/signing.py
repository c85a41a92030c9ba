"""Signing a release, as the one who signs has seen it."""

from dataclasses import replace
from pathlib import Path

from queryveil.assess.signing import Review
from queryveil.assess.signing import sign as sign_release
from queryveil.claims.certificates import load_certificate
from queryveil.errors import QueryveilError
from queryveil.studio.jobs import Job, Update
from queryveil.studio.project import Signed
from queryveil.studio.session import Session


def sign(session: Session, key: Path, review: Review, manifest: str, *, with_policy: bool) -> Job:
    """Sign the release.

    Args:
        session: The app.
        key: The file of the private key.
        review: Who signs, and what they did.
        manifest: The SHA-256 of the manifest of the release that they saw.
        with_policy: Whether to sign only if the policy is met, and to state that.

    Raises:
        QueryveilError: If there is nothing to sign, or something else than they saw.
    """
    session.check_writable()
    _check(session, manifest)
    if session.found.findings is None and with_policy:
        raise QueryveilError("The policy was not judged yet; evaluate and attack the release first.")

    def work(update: Update) -> None:
        _check(session, manifest)  # another one may have been made meanwhile
        update("verifying, then signing")
        certificate, lists = session.evidence
        attacked = session.found.findings is not None
        place = sign_release(
            session.release_folder,
            key,
            log=session.open_log,
            certificate=None if certificate is None else load_certificate(certificate),
            attacks=[session.run / "attacks.json"] if attacked else [],
            policy=session.policy if with_policy else None,
            lists=lists,
            review=review,
            overwrite=True,
        )
        with session.lock:
            session.found = replace(session.found, statement=place)
            session.change(signed=Signed(key=str(key), **review.model_dump(), policy=with_policy, attacks=attacked))
        session.note("signed the release", by=review.name, about=f"run {session.state.release}")

    return session.jobs.start("sign", "Signing the release", work)


def _check(session: Session, manifest: str) -> None:
    """Refuse to sign another release than the one that was seen, or one that what is chosen has left behind."""
    if session.release is None:
        raise QueryveilError("There is no release yet; make one first.")
    if manifest != session.manifest_sha256:
        raise QueryveilError("The release is another one than the page showed; load the page and look at it first.")
    if session.outdated:
        raise QueryveilError(
            "The choice or the decisions changed since the release was made, so it is not signed; make it again."
        )
