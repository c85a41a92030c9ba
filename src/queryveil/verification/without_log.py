"""What can be checked about a release without its log: that its files are whole, and agree with each other."""

from collections.abc import Callable
from pathlib import Path

from queryveil.claims import Verdict
from queryveil.errors import QueryveilError
from queryveil.files.folders import Folder
from queryveil.release import Release
from queryveil.release.manifest import FORMAT_VERSION
from queryveil.verification.file_checks import IN_PARTS, bytes_right, files_unchanged, report_right
from queryveil.verification.promises import expected_kind
from queryveil.verification.table_checks import rows_right
from queryveil.verification.verifier import Verification, limits_right

NOT_CHECKED = (
    "What the release promises was not checked, nor its numbers about the log: both need the log.",
    "Who made it was not checked: anyone can write such files. A signature says it.",
)
"""What the files alone do not show."""


def verify_files(release: str | Path | Release) -> Verification:
    """Check the files of a release without its log: complete, unchanged since they were written, and in agreement.

    This is for people who only have the release. It does not show that a promise holds, nor who made the release;
    `verify` does the first, with the log, and `verify_signature` the second.

    Args:
        release: The folder of the release, or a release that was loaded.

    Returns:
        The verdicts, and in `unchecked` what was not checked.

    Raises:
        QueryveilError: If there is no release.
    """
    made = release if isinstance(release, Release) else Release.load(release)
    place = made.folder
    if place is None:
        raise QueryveilError("A release that was just made has no files yet; save it first.")
    if made.manifest.format_version != FORMAT_VERSION:
        raise QueryveilError("Files of version 0.1 are checked together with the log; use 'verify' with it.")
    found: tuple[Verdict, ...] = ()
    for check in _checks(made, place):  # each relies on those before
        found = (*found, check())
        if not found[-1].holds:
            break
    in_parts = () if made.manifest.table in made.manifest.files else (IN_PARTS,)
    return Verification(found, (*in_parts, *NOT_CHECKED))


def _checks(made: Release, place: Folder) -> list[Callable[[], Verdict]]:
    # A report that was changed to say that a promise is refuted would differ from this one as well.
    kept = tuple(Verdict(claim.statement, True, headline=claim.headline) for claim in made.manifest.claims)
    return [
        lambda: files_unchanged(made, place),
        lambda: bytes_right(made, place),
        lambda: _kind_right(made),
        lambda: limits_right(made),
        lambda: rows_right(made),
        lambda: report_right(made, place, kept),
    ]


def _kind_right(made: Release) -> Verdict:
    claim = "The release holds what its method makes."
    try:
        kind = expected_kind(made.manifest)
    except (KeyError, TypeError, ValueError):
        return Verdict(claim, False, "its manifest names no method of this version")
    same = kind == made.manifest.kind
    return Verdict(claim, same, None if same else f"it says that it holds {made.manifest.kind}, and should hold {kind}")
