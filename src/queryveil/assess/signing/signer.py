"""Sign a release: say what is known about it, and seal that."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from queryveil import __version__
from queryveil.assess.attacks import Findings
from queryveil.assess.policy import Policy, gather, judge
from queryveil.assess.signing.envelope import open_envelope, seal
from queryveil.assess.signing.files import (
    RefusedError,
    described,
    file_names,
    folder_of,
    read_bounded,
    sha256_of,
    statement_beside,
)
from queryveil.assess.signing.keys import private_key
from queryveil.assess.signing.statement import (
    CHECKED,
    GIVEN,
    JUDGED,
    PREDICATE,
    STATEMENT,
    UNCHECKED,
    WITHHELD,
    Review,
    StatedList,
    Statement,
)
from queryveil.claims.certificates import Certificate
from queryveil.errors import QueryveilError
from queryveil.files.folders import check_file, write_whole
from queryveil.log import QueryLog
from queryveil.release import MANIFEST, Release, loaded_release
from queryveil.release.manifest import LISTS
from queryveil.release.release import by_name
from queryveil.verification import verify
from queryveil.verification.verifier import OTHER_LOG, Verification


class NotSignedError(QueryveilError):
    """A release that is not signed, because a check refutes it or it does not meet the policy."""


def sign(
    release: str | Path | Release,
    key: str | Path,
    *,
    log: QueryLog | Callable[[], QueryLog] | None = None,
    certificate: Certificate | None = None,
    attacks: Sequence[str | Path] = (),
    policy: Policy | None = None,
    lists: Sequence[str | Path] = (),
    review: Review | None = None,
    output: str | Path | None = None,
    overwrite: bool = False,
) -> Path:
    """Sign a release: write a statement with the SHA-256 of its files and what is known about it.

    The same key and the same input give the same bytes.

    Args:
        release: The release, loaded from its folder, or the folder.
        key: The file of the private key, as `new_key` writes it.
        log: The original log, or a function that reads it, called after all other checks. The release is checked
            against it, and not signed if a check fails. Without it the statement says that nothing was checked.
        certificate: What `load_certificate` read; with it the release is checked byte for byte.
        attacks: Files with findings, as `queryveil attack --json` prints them for this release.
        policy: A policy that the release must meet; it needs the log and findings.
        lists: The files of the lists that the release was made with, whose SHA-256 is stated.
        review: Who reviewed the release, and what they decided, which the statement then says.
        output: The statement, ending with `.json`; by default next to the release, with `.statement.json` after its
            name.
        overwrite: Whether an earlier statement may be replaced.

    Returns:
        The file of the statement.

    Raises:
        NotSignedError: If a check refutes the release, or it does not meet the policy.
        QueryveilError: If something cannot be read or written, or does not belong to the release.
    """
    place = check_file(statement_beside(release) if output is None else output, [".json"], overwrite)
    if policy is not None and (log is None or not attacks):
        raise QueryveilError("A policy needs checks and attacks; give the original log and findings of attacks.")
    private = private_key(key)
    made, folder = loaded_release(release), folder_of(release)
    if lists:
        made = replace(made, lists=by_name(lists))
    digests = _unchanged(made, folder)
    given = [_findings(path, digests[MANIFEST]) for path in attacks]
    stated_lists = _stated_lists(made, lists)
    method, parameters, _ = described(folder)
    log = log() if callable(log) else log
    found = None if log is None else verify(made, log, certificate=certificate, lists=lists)
    if found is not None and not found.holds:
        wrong = next(verdict.claim for verdict in found.verdicts if not verdict.holds)
        why = OTHER_LOG if found.other_log else f"a check refutes what it promises: {wrong}"
        raise NotSignedError(f"The release was not signed, because {why}", code=found.code or "refuted")
    state, verdicts = (UNCHECKED, ()) if found is None else (CHECKED, found.verdicts)
    statement = Statement.model_validate(
        {
            "_type": STATEMENT,
            "subject": tuple({"name": name, "digest": {"sha256": digest}} for name, digest in sorted(digests.items())),
            "predicateType": PREDICATE,
            "predicate": {
                "software": f"queryveil {__version__}",
                "method": method,
                "parameters": parameters,
                "checks": {"state": state, "verdicts": verdicts},
                "attacks": tuple(_attacks(findings, digest, made.manifest.private) for findings, digest in given),
                "policy": _judged(policy, made, log, [findings for findings, _ in given], found),
                "lists": stated_lists,
                "review": review,
                "about": made.manifest.about,
            },
        }
    )
    try:
        content = seal(statement, private)
        open_envelope(content, private.public_key())
    except (ValueError, RefusedError):
        raise QueryveilError(f"The parameters of {folder} cannot be stated in JSON; make the release again.") from None
    write_whole(place, content, overwrite=overwrite)
    return place


def _findings(path: str | Path, manifest: str) -> tuple[Findings, str]:
    """Findings of attacks on a release with this manifest, and the SHA-256 of their file."""
    content = read_bounded(Path(path), "file of findings")
    try:
        given = json.loads(content)
        attacked = given["manifest_sha256"]
        for one in given["findings"]:
            one.pop("details", None)  # numbers of all kinds, which are not stated
        findings = TypeAdapter(Findings).validate_python(given)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise QueryveilError(
            f"{path} has no findings of attacks; give the output of 'queryveil attack --json'."
        ) from None
    if attacked != manifest:
        raise QueryveilError(
            f"The findings in {path} are those of another release; run 'queryveil attack' on this one."
        )
    return findings, hashlib.sha256(content).hexdigest()


def _attacks(given: Findings, digest: str, private: bool) -> dict[str, Any]:
    """What is stated of findings and the SHA-256 of their file: nothing, if the release is differentially private."""
    if private:
        return {"state": WITHHELD, "sha256": None, "findings": (), "skipped": ()}
    return {"state": GIVEN, "sha256": digest, "findings": given.findings, "skipped": given.skipped}


def _judged(
    policy: Policy | None,
    release: Release,
    log: QueryLog | None,
    given: Sequence[Findings],
    verification: Verification | None,
) -> dict[str, Any] | None:
    """A policy that the release must meet, as it is stated."""
    if policy is None or log is None:
        return None
    together = Findings(
        release.manifest.method,
        tuple(finding for findings in given for finding in findings.findings),
        tuple(skipped for findings in given for skipped in findings.skipped),
    )
    judgement = judge(policy, gather(release, log, together, verification))
    if judgement.meets is not True:
        raise NotSignedError(f"The release was not signed: {judgement.summary}", code="policy-not-met")
    return {"state": JUDGED, "rules": policy.model_dump(mode="json"), "criteria": judgement.criteria, "meets": True}


def _stated_lists(release: Release, given: Sequence[str | Path]) -> dict[str, StatedList]:
    """The lists that a release was made with; those of the publisher by their names in the manifest."""
    digests = {Path(path).name: hashlib.sha256(read_bounded(Path(path), "list")).hexdigest() for path in given}
    steps = [step.parameters for step in release.manifest.steps]
    named = {use: str(step[use]) for step in steps for use in LISTS if step.get(use) is not None}
    strange = next((name for name in digests if name not in named.values()), None)
    if strange is not None:
        raise QueryveilError(f"The release was made without a list '{strange}'; leave it out.")
    # Decisions are about queries that were not released: the manifest has their digest under a key, and that is enough.
    known = {name: one.entries for name, one in release.manifest.lists.items()}
    found = {
        use: StatedList(name=name, sha256=None if use == "decisions" else digests.get(name), entries=known.get(name))
        for use, name in named.items()
    }
    if release.manifest.scrub is not None:
        shipped = files("queryveil.scrubbing") / "data" / "names.parquet"
        found["scrubbing"] = StatedList(name=shipped.name, sha256=hashlib.sha256(shipped.read_bytes()).hexdigest())
    return found


def _unchanged(release: Release, folder: Path) -> dict[str, str]:
    """The SHA-256 of all files of a release, which must be those of its manifest."""
    try:
        found = {name: sha256_of(folder, name) for name in file_names(folder)}
    except RefusedError as error:
        raise QueryveilError(f"The release {folder} cannot be signed, because {error}; make it again.") from None
    if {name: digest for name, digest in found.items() if name != MANIFEST} != release.manifest.files:
        raise QueryveilError(f"The files of {folder} are not those that its manifest names; make the release again.")
    return found
