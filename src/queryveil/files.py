"""Single files for people to look at: written whole or not at all, and never over another unless told."""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from queryveil.errors import QueryveilError


def check_file(path: str | Path, endings: Sequence[str], overwrite: bool) -> Path:
    """Refuse a place where a file cannot or must not be written, before any work is done."""
    place = Path(path)
    if place.suffix.lower() not in endings:
        raise QueryveilError(f"{place} must end with {' or '.join(endings)}, which tells the format.")
    if place.is_dir() or (place.exists() and not overwrite):
        raise QueryveilError(f"{place} exists already; choose another name, or replace it with --overwrite.")
    if not place.parent.is_dir():
        raise QueryveilError(f"The folder {place.parent} does not exist; make it first.")
    if (place.parent / "manifest.json").exists():
        raise QueryveilError(f"{place.parent} is a release, which holds nothing but what was checked; name another.")
    return place


def write_whole(place: Path, content: bytes, *, private: bool = False) -> None:
    """Write a file under another name, then rename it.

    Args:
        place: What `check_file` gave.
        content: All of the file.
        private: Whether only its owner may read it.
    """
    try:
        handle, name = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.", suffix=".part")
    except OSError as error:
        raise QueryveilError(f"{place} cannot be written: {error.strerror}; name another place.") from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        if not private:
            mask = os.umask(0)
            os.umask(mask)
            Path(name).chmod(0o666 & ~mask)
        Path(name).replace(place)
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        raise QueryveilError(f"{place} cannot be written: {error.strerror}; name another place.") from None
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
