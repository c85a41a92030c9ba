"""A statement about a release, signed by its publisher: an in-toto statement in a DSSE envelope, by Ed25519.

It names the SHA-256 of every file of the release, and says what the signer checked and was given: verdicts, findings
of attacks, a policy, lists. The formats are https://in-toto.io/Statement/v1 and DSSE 1.0, in one spelling only: a
statement that `sign` would not write byte for byte the same is refused.
"""

import base64
import binascii
import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NoReturn

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from queryveil import __version__
from queryveil.assess.attacks import Finding, Findings
from queryveil.assess.attacks.run import Skipped
from queryveil.assess.policy import Policy, gather, judge
from queryveil.claims import Verdict
from queryveil.claims.certificates import Certificate
from queryveil.errors import QueryveilError, require
from queryveil.files.folders import LocalFolder, check_file, local_folder, write_whole
from queryveil.log import QueryLog
from queryveil.release import MANIFEST, Release, loaded_release
from queryveil.verification import verify
from queryveil.verification.verifier import Verification

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

STATEMENT: Final = "https://in-toto.io/Statement/v1"
PREDICATE: Final = "urn:queryveil:release-statement:1"
PAYLOAD: Final = "application/vnd.in-toto+json"
SUFFIX = ".statement.json"
_MOST_BYTES = 16 << 20
"""The largest statement, findings or key that is read."""
_LISTS = ("allow_list", "block_list")

CHECKED: Final = "checked by the signer against the original log"
UNCHECKED: Final = "not checked by the signer"
GIVEN: Final = "given to the signer, not run again"
WITHHELD: Final = "given to the signer; the numbers are exact, so a differentially private release withholds them"
JUDGED: Final = "judged by the signer by the checks and the attacks stated here"

Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class NotSignedError(QueryveilError):
    """A release that is not signed, because a check refutes it or it does not meet the policy."""


class _Part(BaseModel):
    """A part of a statement: it has every key, and no other."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, ser_json_inf_nan="constants"
    )


class StatedVerdict(_Part):
    """A check and how it went."""

    claim: str
    holds: bool


class Checks(_Part):
    """What the verifier found when the signer ran it."""

    state: Literal["checked by the signer against the original log", "not checked by the signer"]
    verdicts: tuple[StatedVerdict, ...]


class StatedEstimate(_Part):
    """A number with its interval."""

    value: float
    low: float
    high: float


class StatedFinding(_Part):
    """What an attack found, without examples."""

    attack: str
    setting: str
    number: str
    unit: str
    estimate: StatedEstimate
    baseline: float
    control: StatedEstimate | None
    trials: int
    succeeds: bool


class StatedSkip(_Part):
    """An attack that was not tried."""

    attack: str
    why: str


class Attacks(_Part):
    """One file of findings."""

    state: Literal[
        "given to the signer, not run again",
        "given to the signer; the numbers are exact, so a differentially private release withholds them",
    ]
    sha256: Sha256 | None
    """Of the file, for people who get it; None if numbers are withheld."""
    findings: tuple[StatedFinding, ...]
    skipped: tuple[StatedSkip, ...]


class StatedCriterion(_Part):
    """A line of a policy."""

    id: str
    limit: float
    met: bool


class StatedPolicy(_Part):
    """A policy, and that it is met."""

    state: Literal["judged by the signer by the checks and the attacks stated here"]
    rules: dict[str, Any]
    criteria: tuple[StatedCriterion, ...]
    meets: Literal[True]


class StatedList(_Part):
    """A list that the release was made with."""

    name: str
    sha256: Sha256 | None
    """None if the signer was not given the list."""


class Predicate(_Part):
    """What the signer says about a release."""

    software: str
    """What made the statement."""
    method: str
    parameters: dict[str, Any]
    checks: Checks
    attacks: tuple[Attacks, ...]
    policy: StatedPolicy | None
    lists: dict[str, StatedList]
    """By what they are for."""

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is stated, in sentences that say that it was not checked again."""
        held = sum(verdict.holds for verdict in self.checks.verdicts)
        counted = f": {held} of {len(self.checks.verdicts)} hold" if self.checks.verdicts else ""
        found = [finding for attacks in self.attacks for finding in attacks.findings]
        won = f"{sum(one.succeeds for one in found)} of {len(found)} succeed, " if found else ""
        return (
            f"Method and promises: {self.method}, {self.checks.state}{counted}.",
            *(f"Attacks: {won}{attacks.state}." for attacks in self.attacks[:1]),
            *([f"Policy: met, {self.policy.state}."] if self.policy is not None else []),
            *(f"List: {one.name}, SHA-256 {one.sha256 or 'not stated'}." for one in self.lists.values()),
        )


class Digest(_Part):
    """A digest by its algorithm."""

    sha256: Sha256


class Subject(_Part):
    """A file of the release."""

    name: str
    digest: Digest


class Statement(_Part):
    """An in-toto statement about a release."""

    type: Literal["https://in-toto.io/Statement/v1"] = Field(alias="_type")
    subject: tuple[Subject, ...]
    predicate_type: Literal["urn:queryveil:release-statement:1"] = Field(alias="predicateType")
    predicate: Predicate


class _Signature(_Part):
    keyid: Sha256
    sig: str


class _Envelope(_Part):
    payload: str
    payload_type: Literal["application/vnd.in-toto+json"] = Field(alias="payloadType")
    signatures: tuple[_Signature]


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


def new_key(path: str | Path) -> Path:
    """Make a key to sign with: a private key that only its owner can read, and a public key to give to others.

    Args:
        path: The file of the private key; the public key goes to the same name with `.pub`.

    Returns:
        The file of the public key.

    Raises:
        QueryveilError: If one of the two exists already or cannot be written.
    """
    _ensure_cryptography()
    from cryptography.hazmat.primitives import serialization as forms
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    private = Path(path)
    public = private.with_name(f"{private.name}.pub")
    _outside_release(private)
    key = Ed25519PrivateKey.generate()
    secret = key.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.NoEncryption())
    shown = key.public_key().public_bytes(forms.Encoding.PEM, forms.PublicFormat.SubjectPublicKeyInfo)
    _write_new(public, shown, 0o666)
    try:
        _write_new(private, secret, 0o600)
    except BaseException:
        public.unlink()
        raise
    return public


def sign(
    release: str | Path | Release,
    key: str | Path,
    *,
    log: QueryLog | Callable[[], QueryLog] | None = None,
    certificate: Certificate | None = None,
    attacks: Sequence[str | Path] = (),
    policy: Policy | None = None,
    lists: Sequence[str | Path] = (),
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
        lists: The files of the allow-list and the block-list of `rules`, whose SHA-256 is stated.
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
    private = _private_key(key)
    made, folder = loaded_release(release), _folder(release)
    digests = _unchanged(made, folder)
    given = [_findings(path, digests[MANIFEST]) for path in attacks]
    stated_lists = _stated_lists(made, lists)
    method, parameters = _described(folder)
    log = log() if callable(log) else log
    found = None if log is None else verify(made, log, certificate=certificate, lists=lists)
    if found is not None and not found.holds:
        wrong = next(verdict.claim for verdict in found.verdicts if not verdict.holds)
        raise NotSignedError(f"The release was not signed, because a check refutes what it promises: {wrong}")
    predicate = Predicate(
        software=f"queryveil {__version__}",
        method=method,
        parameters=parameters,
        checks=_checks(found),
        attacks=tuple(_attacks(findings, digest, made.manifest.private) for findings, digest in given),
        policy=_judged(policy, made, log, [findings for findings, _ in given], found),
        lists=stated_lists,
    )
    subjects = tuple(Subject(name=name, digest=Digest(sha256=digest)) for name, digest in sorted(digests.items()))
    statement = Statement(_type=STATEMENT, subject=subjects, predicateType=PREDICATE, predicate=predicate)
    try:
        content = _sealed(statement, private)
        _opened(content, private.public_key())
    except (ValueError, _RefusedError):
        raise QueryveilError(f"The parameters of {folder} cannot be stated in JSON; make the release again.") from None
    write_whole(place, content, overwrite=overwrite)
    return place


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
    key, folder = _public_key(public_key), _folder(release)
    content = _read(statement_beside(release) if statement is None else Path(statement), "statement")
    signed = "The statement is signed by the given key."
    try:
        stated = _opened(content, key)
    except _RefusedError as error:
        return SignedVerification((Verdict(signed, False, str(error)),), None)
    unchanged = _same_files(stated, folder)
    described = (_same_manifest(stated, folder),) if unchanged.holds else ()
    return SignedVerification((Verdict(signed, True), unchanged, *described), stated)


def statement_beside(release: str | Path | Release) -> Path:
    """The default place of the statement of a release."""
    folder = _folder(release)
    folder = folder if folder.name not in ("", "..") else folder.resolve()
    return folder.with_name(f"{folder.name}{SUFFIX}")


class _RefusedError(Exception):
    """Something that is wrong with a statement or the files."""


def _sealed(statement: Statement, key: "Ed25519PrivateKey") -> bytes:
    """A statement in its envelope, signed."""
    payload = _encoded(statement)
    signature = _Signature(keyid=_key_id(key.public_key()), sig=_base64(key.sign(_to_sign(PAYLOAD, payload))))
    return _encoded(_Envelope(payload=_base64(payload), payloadType=PAYLOAD, signatures=(signature,)))


def _opened(content: bytes, key: "Ed25519PublicKey") -> Statement:
    """The statement in an envelope, which must be signed by a key and written as `sign` writes it."""
    from cryptography.exceptions import InvalidSignature

    shape = "it is not written as 'queryveil sign' writes it"
    with _refusing(shape):
        envelope = _Envelope.model_validate_json(content)
        (signature,) = envelope.signatures
        payload = base64.b64decode(envelope.payload, validate=True)
        sealed = base64.b64decode(signature.sig, validate=True)
        respelt = envelope.model_copy(
            update={
                "payload": _base64(payload),
                "signatures": (signature.model_copy(update={"sig": _base64(sealed)}),),
            }
        )
        if _encoded(respelt) != content:
            raise _RefusedError(shape)
    if signature.keyid != _key_id(key):
        raise _RefusedError("it names another key")
    try:
        key.verify(sealed, _to_sign(envelope.payload_type, payload))
    except InvalidSignature:
        raise _RefusedError("the signature does not fit what it says") from None
    with _refusing("what is signed is not a statement that this version can read"):
        statement = Statement.model_validate_json(payload)
        names = [subject.name for subject in statement.subject]
        if _encoded(statement) != payload or names != sorted(set(names)):
            raise _RefusedError(shape)
    return statement


@contextmanager
def _refusing(why: str) -> Iterator[None]:
    """Turn any error that a bad file causes into one."""
    try:
        yield
    except (ValidationError, binascii.Error, ValueError, RecursionError):
        raise _RefusedError(why) from None


def _same_files(stated: Statement, folder: Path) -> Verdict:
    claim = "The files are those that the statement names, unchanged."
    expected = {subject.name: subject.digest.sha256 for subject in stated.subject}
    try:
        present = set(_file_names(folder))
        for name in sorted(present ^ set(expected)):
            return Verdict(claim, False, f"{name} is {'not in the statement' if name in present else 'missing'}")
        changed = next((name for name in sorted(expected) if _sha256(folder, name) != expected[name]), None)
    except _RefusedError as error:
        return Verdict(claim, False, str(error))
    return Verdict(claim, changed is None, changed and f"{changed} was changed")


def _same_manifest(stated: Statement, folder: Path) -> Verdict:
    """The manifest is signed as well, but a reader of the statement alone must not be misled."""
    claim = "The statement names the method and the parameters of the release."
    same = _described(folder) == (stated.predicate.method, stated.predicate.parameters)
    return Verdict(claim, same, None if same else f"{MANIFEST} names others")


def _described(folder: Path) -> tuple[str, dict[str, Any]]:
    """The method and the parameters as in the manifest, which may have the names of an earlier version."""
    try:
        manifest = json.loads(_read(folder / MANIFEST, "manifest"))
        return manifest["method"], manifest["parameters"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return "", {}


def _checks(found: Verification | None) -> Checks:
    if found is None:
        return Checks(state=UNCHECKED, verdicts=())
    verdicts = tuple(StatedVerdict(claim=verdict.claim, holds=verdict.holds) for verdict in found.verdicts)
    return Checks(state=CHECKED, verdicts=verdicts)


def _findings(path: str | Path, manifest: str) -> tuple[Findings, str]:
    """Findings of attacks on a release with this manifest, and the SHA-256 of their file."""
    content = _read(Path(path), "file of findings")
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


def _attacks(given: Findings, digest: str, private: bool) -> Attacks:
    if private:
        return Attacks(state=WITHHELD, sha256=None, findings=(), skipped=())
    return Attacks(
        state=GIVEN,
        sha256=digest,
        findings=tuple(_stated(finding) for finding in given.findings),
        skipped=tuple(_skip(skipped) for skipped in given.skipped),
    )


def _stated(finding: Finding) -> StatedFinding:
    control = finding.control
    return StatedFinding(
        attack=finding.attack,
        setting=finding.setting,
        number=finding.number,
        unit=finding.unit,
        estimate=StatedEstimate(**vars(finding.estimate)),
        baseline=finding.baseline,
        control=None if control is None else StatedEstimate(**vars(control)),
        trials=finding.trials,
        succeeds=finding.succeeds,
    )


def _skip(skipped: Skipped) -> StatedSkip:
    return StatedSkip(attack=skipped.attack, why=skipped.why)


def _judged(
    policy: Policy | None,
    release: Release,
    log: QueryLog | None,
    given: Sequence[Findings],
    verification: Verification | None,
) -> StatedPolicy | None:
    if policy is None or log is None:
        return None
    together = Findings(
        release.manifest.method,
        tuple(finding for findings in given for finding in findings.findings),
        tuple(skipped for findings in given for skipped in findings.skipped),
    )
    judgement = judge(policy, gather(release, log, together, verification))
    if judgement.meets is not True:
        raise NotSignedError(f"The release was not signed: {judgement.summary}")
    criteria = tuple(StatedCriterion(id=one.id, limit=one.limit, met=True) for one in judgement.criteria)
    return StatedPolicy(state=JUDGED, rules=policy.model_dump(mode="json"), criteria=criteria, meets=True)


def _stated_lists(release: Release, given: Sequence[str | Path]) -> dict[str, StatedList]:
    """The lists that a release was made with; those of the publisher by their names in the manifest."""
    digests = {Path(path).name: hashlib.sha256(_read(Path(path), "list")).hexdigest() for path in given}
    parameters = release.manifest.parameters
    named = {use: str(parameters[use]) for use in _LISTS if parameters.get(use) is not None}
    strange = next((name for name in digests if name not in named.values()), None)
    if strange is not None:
        raise QueryveilError(f"The release was made without a list '{strange}'; leave it out.")
    found = {use: StatedList(name=name, sha256=digests.get(name)) for use, name in named.items()}
    if release.manifest.scrub is not None:
        shipped = files("queryveil.scrubbing") / "data" / "names.parquet"
        found["scrubbing"] = StatedList(name=shipped.name, sha256=hashlib.sha256(shipped.read_bytes()).hexdigest())
    return found


def _unchanged(release: Release, folder: Path) -> dict[str, str]:
    """The SHA-256 of all files of a release, which must be those of its manifest."""
    try:
        found = {name: _sha256(folder, name) for name in _file_names(folder)}
    except _RefusedError as error:
        raise QueryveilError(f"The release {folder} cannot be signed, because {error}; make it again.") from None
    if {name: digest for name, digest in found.items() if name != MANIFEST} != release.manifest.files:
        raise QueryveilError(f"The files of {folder} are not those that its manifest names; make the release again.")
    return found


def _folder(release: str | Path | Release) -> Path:
    if isinstance(release, Release):
        if not isinstance(release.folder, LocalFolder):
            raise QueryveilError("A statement is about files on this machine; save the release and give its folder.")
        return release.folder.path
    folder = local_folder(release).path
    if not folder.is_dir():
        raise QueryveilError(f"There is no release in {folder}; give the folder that 'queryveil anonymize -o' wrote.")
    return folder


def _file_names(folder: Path) -> list[str]:
    """The files in a folder and below; a release has no links, pipes, devices or empty folders."""
    found = []
    for where, folders, names in os.walk(folder, onerror=_unreadable):
        here = Path(where)
        if not folders and not names and here != folder:
            raise _RefusedError(f"{here.relative_to(folder)} is an empty folder")
        for name in (*folders, *names):
            inside = (here / name).relative_to(folder).as_posix()
            try:
                mode = (here / name).lstat().st_mode
            except OSError as error:
                _unreadable(error)
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                raise _RefusedError(f"{inside} is not a regular file")
            if stat.S_ISREG(mode):
                found.append(inside)
    return found


def _unreadable(error: OSError) -> NoReturn:
    raise _RefusedError(f"part of the folder cannot be read ({error.strerror})")


def _sha256(folder: Path, name: str) -> str:
    try:
        # If a pipe replaced the file in the meantime, this must not wait for ever.
        handle = os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise _RefusedError(f"{name} is not a regular file")
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise _RefusedError(f"{name} cannot be read ({error.strerror})") from None


def _read(path: Path, what: str) -> bytes:
    """A file of bounded size."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise QueryveilError(f"The {what} {path} is not a regular file; name another.")
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise QueryveilError(f"The {what} {path} cannot be read: {error.strerror}; name another.") from None
    if len(content) > _MOST_BYTES:
        raise QueryveilError(
            f"The {what} {path} is larger than {_MOST_BYTES >> 20} MiB, so it is something else; name another."
        )
    return content


def _private_key(path: str | Path) -> "Ed25519PrivateKey":
    _ensure_cryptography()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    content = _read(Path(path), "private key")
    if Path(path).stat().st_mode & 0o077:
        raise QueryveilError(f"Other users can read the private key {path}; run 'chmod 600' on it first.")
    try:
        key = load_pem_private_key(content, None)
    except TypeError:
        raise QueryveilError(f"The private key {path} has a passphrase; save it without one first.") from None
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise QueryveilError(f"{path} is not an Ed25519 private key in PEM; make one with 'queryveil keygen'.")
    return key


def _public_key(path: str | Path) -> "Ed25519PublicKey":
    _ensure_cryptography()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(_read(Path(path), "public key"))
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise QueryveilError(f"{path} is not an Ed25519 public key in PEM; give the .pub file of the signer.")
    return key


def _ensure_cryptography() -> None:
    require("A signature", "cryptography")


def _key_id(key: "Ed25519PublicKey") -> str:
    """The name of a key in a statement: the SHA-256 of its standard form."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()


def _to_sign(kind: str, payload: bytes) -> bytes:
    """What DSSE signs (its PAE): the kind and the content, each with its length."""
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind.encode(), len(payload), payload)


def _encoded(part: _Part) -> bytes:
    """The only way to write a statement or an envelope."""
    values = part.model_dump(mode="json", by_alias=True)
    return json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _outside_release(path: Path) -> None:
    if (path.parent / MANIFEST).exists():
        raise QueryveilError(f"{path.parent} is a release, so nothing may be added to it; name another folder.")


def _write_new(path: Path, content: bytes, mode: int) -> None:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:
        raise QueryveilError(f"{path} exists already, and keys are not replaced; name another.") from None
    except OSError as error:
        raise QueryveilError(f"The key cannot be written to {path}: {error.strerror}; name another place.") from None
    with os.fdopen(handle, "wb") as file:
        file.write(content)
