"""The independent checker: is a release what its manifest says, and does every claim hold against the original log?"""

from dataclasses import dataclass
from pathlib import Path

from queryveil.claims import Verdict
from queryveil.log import QueryLog
from queryveil.release import MANIFEST, REPORT, Release, check_claims, loaded, sha256


@dataclass(frozen=True)
class Verification:
    """What the verifier found: one verdict for each thing it checked."""

    verdicts: tuple[Verdict, ...]

    @property
    def holds(self) -> bool:
        """Whether everything holds."""
        return all(verdict.holds for verdict in self.verdicts)


def verify(release: str | Path | Release, log: QueryLog) -> Verification:
    """Check a release against the log it was made from.

    Args:
        release: The release directory, or a release that was loaded or made in this session.
        log: The original log.

    Returns:
        The verdicts: files unchanged, made from this log, numbers right, and each claim of the manifest. Where the
        files or the log are not the right ones, the claims mean nothing and are not looked at.

    Raises:
        QueryveilError: If there is no release to be checked.
    """
    if not isinstance(release, Release):
        release = Release.load(release)
    sound = (*([] if release.path is None else [_files_unchanged(release, release.path)]), _same_log(release, log))
    if not all(verdict.holds for verdict in sound):
        return Verification(sound)
    return Verification((*sound, _counts_right(release, log), *check_claims(release, log)))


def _files_unchanged(release: Release, place: Path) -> Verdict:
    claim = "The files are those that the manifest names, unchanged."
    listed = release.manifest.files
    for name in sorted({release.manifest.table, REPORT} - set(listed)):
        return Verdict(claim, False, f"{name} has no SHA-256 in the manifest")
    present = {file.name for file in place.iterdir()} - {MANIFEST}
    for name in sorted(present ^ set(listed)):
        return Verdict(claim, False, f"{name} is {'not in the manifest' if name in present else 'missing'}")
    changed = next((name for name in sorted(listed) if sha256(place / name) != listed[name]), None)
    return Verdict(claim, changed is None, changed and f"{changed} was changed")


def _same_log(release: Release, log: QueryLog) -> Verdict:
    same = release.manifest.input_fingerprint == log.fingerprint
    return Verdict(
        "The release was made from this log.", same, None if same else "the fingerprints of the two logs differ"
    )


def _counts_right(release: Release, log: QueryLog) -> Verdict:
    columns = release.schema.names
    count = {
        "rows": "count(*)",
        "events": "count(DISTINCT event)" if "event" in columns else None,
        "users": 'count(DISTINCT "user")' if "user" in columns else None,
        "queries": "count(DISTINCT query)",
        "clicks": "count(url)" if "url" in columns else None,
    }
    asked = {name: sql for name, sql in count.items() if sql is not None}
    with loaded(release, log):
        found = log.engine.row(f"SELECT {', '.join(f'{sql} AS {name}' for name, sql in asked.items())} FROM released")
    for name, number in zip(asked, found, strict=True):
        stated = getattr(release.manifest.counts, name)
        if stated != number:
            return Verdict("The manifest counts right.", False, f"it says {stated} {name}, the table has {number}")
    return Verdict("The manifest counts right.", True)
