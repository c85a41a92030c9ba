"""The files of a release and beside it, of which none is trusted: no links, pipes or devices, and no endless ones."""

import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Any, NoReturn

from queryveil.errors import QueryveilError
from queryveil.files.folders import LocalFolder, local_folder
from queryveil.release import MANIFEST, Release

SUFFIX = ".statement.json"
MOST_BYTES = 16 << 20
"""The largest statement, findings or key that is read."""


class RefusedError(Exception):
    """Something that is wrong with a statement or the files."""


def statement_beside(release: str | Path | Release) -> Path:
    """The default place of the statement of a release."""
    folder = folder_of(release)
    folder = folder if folder.name not in ("", "..") else folder.resolve()
    return folder.with_name(f"{folder.name}{SUFFIX}")


def folder_of(release: str | Path | Release) -> Path:
    """The folder of a release, which must be on this machine."""
    if isinstance(release, Release):
        if not isinstance(release.folder, LocalFolder):
            raise QueryveilError("A statement is about files on this machine; save the release and give its folder.")
        return release.folder.path
    folder = local_folder(release).path
    if not folder.is_dir():
        raise QueryveilError(f"There is no release in {folder}; give the folder that 'queryveil anonymize -o' wrote.")
    return folder


def file_names(folder: Path) -> list[str]:
    """The files in a folder and below; a release has no links, pipes, devices or empty folders."""
    found = []
    for where, folders, names in os.walk(folder, onerror=_unreadable):
        here = Path(where)
        if not folders and not names and here != folder:
            raise RefusedError(f"{here.relative_to(folder)} is an empty folder")
        for name in (*folders, *names):
            inside = (here / name).relative_to(folder).as_posix()
            try:
                mode = (here / name).lstat().st_mode
            except OSError as error:
                _unreadable(error)
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                raise RefusedError(f"{inside} is not a regular file")
            if stat.S_ISREG(mode):
                found.append(inside)
    return found


def _unreadable(error: OSError) -> NoReturn:
    raise RefusedError(f"part of the folder cannot be read ({error.strerror})")


def sha256_of(folder: Path, name: str) -> str:
    """The SHA-256 of a file in a folder."""
    try:
        # If a pipe replaced the file in the meantime, this must not wait for ever.
        handle = os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise RefusedError(f"{name} is not a regular file")
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise RefusedError(f"{name} cannot be read ({error.strerror})") from None


def read_bounded(path: Path, what: str) -> bytes:
    """A file of bounded size."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise QueryveilError(f"The {what} {path} is not a regular file; name another.")
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise QueryveilError(f"The {what} {path} cannot be read: {error.strerror}; name another.") from None
    if len(content) > MOST_BYTES:
        raise QueryveilError(
            f"The {what} {path} is larger than {MOST_BYTES >> 20} MiB, so it is something else; name another."
        )
    return content


def described(folder: Path) -> tuple[str, dict[str, Any], dict[str, Any] | None]:
    """The method, the parameters and the publisher's words, as in the manifest, which may be of an earlier version."""
    try:
        manifest = json.loads(read_bounded(folder / MANIFEST, "manifest"))
        return manifest["method"], manifest["parameters"], manifest.get("about")
    except (ValueError, KeyError, TypeError, RecursionError):
        return "", {}, None
