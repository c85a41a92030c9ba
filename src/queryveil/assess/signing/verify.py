"""Whether a release is the one that was signed."""

from dataclasses import dataclass
from pathlib import Path

from queryveil.assess.signing.envelope import open_envelope
from queryveil.assess.signing.files import (
    RefusedError,
    described,
    file_names,
    folder_of,
    read_bounded,
    sha256_of,
    statement_beside,
)
from queryveil.assess.signing.keys import public_key as load_public
from queryveil.assess.signing.statement import Statement
from queryveil.claims import Verdict
from queryveil.release import MANIFEST, Release
from queryveil.verification.verifier import Verification


@dataclass(frozen=True)
class SignedVerification:
    """The result of checking a signed release: one verdict for each thing that was checked."""

    verdicts: tuple[Verdict, ...]
    statement: Statement | None
    """What was signed; None if the statement is not to be trusted."""

    @property
    def holds(self) -> bool:
        """Whether everything holds."""
        return all(verdict.holds for verdict in self.verdicts)

    def repeated(self, found: Verification) -> tuple[Verdict, ...]:
        """Whether the checks that were run here agree with the statement; nothing if it states none."""
        stated = () if self.statement is None else self.statement.predicate.checks.verdicts
        here = {verdict.claim: verdict.holds for verdict in found.verdicts}
        # A check that was not run here, such as one that needs the certificate, does not contradict the statement.
        other = next((one.claim for one in stated if here.get(one.claim, one.holds) is not one.holds), None)
        claim = "Every check that was run here agrees with the statement."
        verdict = Verdict(claim, other is None, other and f"it had another result here: {other}")
        return (verdict,) if stated else ()


def verify_signature(
    release: str | Path | Release, public_key: str | Path, *, statement: str | Path | None = None
) -> SignedVerification:
    """Check that a release is, file for file, the one that the owner of a key signed; without the log or a network.

    This does not check what else the statement says; `queryveil.verify` does, with the log.

    Args:
        release: The release, loaded from its folder, or the folder.
        public_key: The file of the signer's public key, from a source that you trust.
        statement: The statement; by default the file next to the release that `sign` writes.

    Raises:
        QueryveilError: If the release, key or statement cannot be read.
    """
    key, folder = load_public(public_key), folder_of(release)
    content = read_bounded(statement_beside(release) if statement is None else Path(statement), "statement")
    signed = "The statement is signed by the given key."
    try:
        stated = open_envelope(content, key)
    except RefusedError as error:
        return SignedVerification((Verdict(signed, False, str(error)),), None)
    unchanged = _same_files(stated, folder)
    manifest = (_same_manifest(stated, folder),) if unchanged.holds else ()
    return SignedVerification((Verdict(signed, True), unchanged, *manifest), stated)


def _same_files(stated: Statement, folder: Path) -> Verdict:
    claim = "The files are those that the statement names, unchanged."
    expected = {subject.name: subject.digest.sha256 for subject in stated.subject}
    try:
        present = set(file_names(folder))
        for name in sorted(present ^ set(expected)):
            return Verdict(claim, False, f"{name} is {'not in the statement' if name in present else 'missing'}")
        changed = next((name for name in sorted(expected) if sha256_of(folder, name) != expected[name]), None)
    except RefusedError as error:
        return Verdict(claim, False, str(error))
    return Verdict(claim, changed is None, changed and f"{changed} was changed")


def _same_manifest(stated: Statement, folder: Path) -> Verdict:
    """The manifest is signed as well, but a reader of the statement alone must not be misled."""
    claim = "The statement names the method and the parameters of the release."
    about = None if stated.predicate.about is None else stated.predicate.about.model_dump()
    same = described(folder) == (stated.predicate.method, stated.predicate.parameters, about)
    return Verdict(claim, same, None if same else f"{MANIFEST} names others")
