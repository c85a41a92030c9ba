"""Files and folders that are written whole or not at all, and never over another unless told."""

import errno
import hashlib
import os
import shutil
import stat
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from queryveil.errors import QueryveilError

_SMALL = 16 * 2**20
"""No manifest or report is longer."""


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


class Folder(ABC):
    """A folder that a release lies in: on this machine, or wherever a cluster reaches."""

    @abstractmethod
    def uri(self, name: str) -> str:
        """The address of a file in it."""

    @abstractmethod
    def exists(self) -> bool:
        """Whether there is anything at its place."""

    @abstractmethod
    def parent(self) -> str | None:
        """The folder around it, if that exists."""

    @abstractmethod
    def files(self) -> list[str]:
        """The files in it and below, by name."""

    @abstractmethod
    def odd(self) -> str | None:
        """Something in it that no release has: a link, a device, or a folder without files."""

    @abstractmethod
    def read(self, name: str) -> bytes:
        """The content of a small file."""

    @abstractmethod
    def write(self, name: str, content: bytes) -> None:
        """Write a small file."""

    @abstractmethod
    def sha256(self) -> dict[str, str]:
        """The SHA-256 of every file, in hexadecimal."""

    @abstractmethod
    def rename(self, name: str, new: str) -> None:
        """Give a file another name."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Remove a file."""

    @abstractmethod
    def stage(self) -> "Folder":
        """A new folder beside it that only its owner may read."""

    @abstractmethod
    def take(self, stage: "Folder") -> None:
        """Become what is staged, in place of what was here."""

    @abstractmethod
    def remove(self) -> None:
        """Remove it and all in it."""


class RemoteFolder(Folder):
    """A folder that only what reaches it can read tables from."""

    @abstractmethod
    def open_table(self, name: str) -> tuple[Any, Any]:
        """The columns of a released table in it, and a way to read its batches."""


class LocalFolder(Folder):
    """A folder on this machine."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def __str__(self) -> str:
        return str(self.path)

    def uri(self, name: str) -> str:
        """The address of a file in it."""
        return f"file://{(self.path / name).absolute()}"  # not encoded, because Hadoop does not decode

    def exists(self) -> bool:
        """Whether there is anything at its place."""
        return self.path.exists()

    def parent(self) -> str | None:
        """The folder around it, if that exists."""
        return str(self.path.parent) if self.path.parent.is_dir() else None

    def files(self) -> list[str]:
        """The files in it and below, by name."""
        found = (file for file in self.path.rglob("*") if file.is_symlink() or not file.is_dir())
        return sorted(file.relative_to(self.path).as_posix() for file in found)

    def odd(self) -> str | None:
        """Something in it that no release has: a link, a device, or a folder without files."""
        for found in sorted(self.path.rglob("*")):
            mode = found.lstat().st_mode
            if not stat.S_ISREG(mode) and not (stat.S_ISDIR(mode) and any(found.iterdir())):
                return found.relative_to(self.path).as_posix()
        return None

    def read(self, name: str) -> bytes:
        """The content of a small file."""
        # Neither through a link nor from a pipe or a device, which may never end.
        handle = os.open(self.path / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            about = os.fstat(handle)
            if not stat.S_ISREG(about.st_mode) or about.st_size > _SMALL:
                raise OSError(errno.EINVAL, "it is no small file")
            return file.read()

    def write(self, name: str, content: bytes) -> None:
        """Write a small file."""
        (self.path / name).write_bytes(content)

    def sha256(self) -> dict[str, str]:
        """The SHA-256 of every file, in hexadecimal."""
        found = {}
        for name in self.files():
            with (self.path / name).open("rb") as file:
                found[name] = hashlib.file_digest(file, "sha256").hexdigest()
        return found

    def rename(self, name: str, new: str) -> None:
        """Give a file another name."""
        (self.path / name).rename(self.path / new)

    def delete(self, name: str) -> None:
        """Remove a file."""
        (self.path / name).unlink()

    def stage(self) -> "LocalFolder":
        """A new folder beside it that only its owner may read."""
        return LocalFolder(tempfile.mkdtemp(prefix=".queryveil-", dir=self.path.parent))

    def take(self, stage: Folder) -> None:
        """Become what is staged, in place of what was here."""
        assert isinstance(stage, LocalFolder)  # noqa: S101
        for name in stage.files():
            with (stage.path / name).open("rb") as file:
                os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        stage.path.chmod(0o777 & ~mask)  # the staging folder was private; a release is meant to be handed on
        if not self.path.exists():
            stage.path.rename(self.path)
            return
        old = Path(tempfile.mkdtemp(prefix=".queryveil-old-", dir=self.path.parent))
        self.path.rename(old / "release")
        try:
            stage.path.rename(self.path)
        except BaseException:
            (old / "release").rename(self.path)
            raise
        finally:
            shutil.rmtree(old, ignore_errors=True)

    def remove(self) -> None:
        """Remove it and all in it."""
        shutil.rmtree(self.path, ignore_errors=True)


def is_address(path: str | Path) -> bool:
    """Whether a place is named by an address that is not of this machine, such as `hdfs://host/path`."""
    return "://" in str(path) and not str(path).startswith("file://")


def local_folder(path: str | Path) -> LocalFolder:
    """A folder on this machine; an address is refused."""
    if is_address(path):
        raise QueryveilError(f"{path} is not on this machine; reach it with Spark (--engine spark).")
    return LocalFolder(str(path).removeprefix("file://"))
