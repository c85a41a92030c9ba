"""Files and folders that are written completely or not at all, and replace nothing unless the caller says so."""

import errno
import hashlib
import os
import re
import shutil
import stat
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from queryveil.errors import QueryveilError, option
from queryveil.files.scratch import OLD, STAGED, Scratch, clear_leftovers, exchange, move_new, share, sync_folder

_SMALL = 16 * 2**20
"""No manifest or report is longer."""


def check_file(path: str | Path, endings: Sequence[str], overwrite: bool) -> Path:
    """Refuse a place where a file cannot or must not be written, before any work is done."""
    place = local_file(path)
    if place.suffix.lower() not in endings:
        raise QueryveilError(f"{place} must end with {' or '.join(endings)}, which decides the format.")
    if place.is_dir() or (os.path.lexists(place) and not overwrite):
        raise _exists(place)
    if not place.parent.is_dir():
        raise QueryveilError(f"The folder {place.parent} does not exist; make it first.")
    if (place.parent / "manifest.json").exists():
        raise QueryveilError(f"{place.parent} is a release, so nothing may be added to it; name another folder.")
    return place


def local_file(path: str | Path) -> Path:
    """The place of a file on this machine; an address is refused."""
    if is_address(path):
        raise QueryveilError(f"{shown(path)} is not on this machine, where this file must be; name another place.")
    return Path(path)


def _exists(place: Path) -> QueryveilError:
    return QueryveilError(
        f"{place} exists already; choose another name, or replace it with {option('overwrite', True)}.",
        code="exists",
    )


def write_whole(place: Path, content: bytes, *, overwrite: bool = False, private: bool = False) -> None:
    """Write a file in a private folder beside its place, then rename it.

    Args:
        place: What `check_file` returned.
        content: All of the file.
        overwrite: Whether a file at this place may be replaced.
        private: Whether only its owner may read it.
    """
    try:
        with Scratch(place.parent) as folder:
            made = folder / STAGED
            with open(made, "wb", opener=_private) as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            if not private:
                share(made)
            if overwrite:
                made.replace(place)
            else:
                move_new(made, place)
            sync_folder(place.parent)
    except FileExistsError:
        raise _exists(place) from None
    except OSError as error:
        raise QueryveilError(f"{place} cannot be written: {error.strerror}; name another place.") from None


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


State = tuple[Any, ...]
"""What is at a place, in enough detail to notice a change."""


class Folder(ABC):
    """A folder of a release: on this machine, or in a place that a cluster reaches."""

    @abstractmethod
    def uri(self, name: str) -> str:
        """The address of a file in it."""

    @abstractmethod
    def state(self) -> State | None:
        """What is at its place; None if there is nothing."""

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
    def take(self, stage: "Folder", replaces: State | None) -> None:
        """Become what is staged.

        Args:
            stage: What `stage` returned.
            replaces: What may be replaced, as it was before the work began; None for nothing.

        Raises:
            QueryveilError: If something else is at its place by now; that stays as it is.
        """

    @abstractmethod
    def remove(self) -> None:
        """Remove it and all in it."""


class RemoteFolder(Folder):
    """A folder that is not on this machine, whose tables are read where it is."""

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

    def state(self) -> State | None:
        """What is at its place: the folder, and the files in it by name, number, size and time."""
        try:
            about = self.path.lstat()
            # Only a release may be replaced, so the content of another folder, which may be large, does not matter.
            inside = self.files() if (self.path / "manifest.json").is_file() else []
            files = [(name, (self.path / name).lstat()) for name in inside]
        except FileNotFoundError:
            return None
        parts = ((name, file.st_ino, file.st_size, file.st_mtime_ns) for name, file in files)
        return ((about.st_dev, about.st_ino), *parts)

    def tidy(self) -> None:
        """Remove what killed runs left next to it."""
        clear_leftovers(self.path.parent)

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
        with open(self.path / name, "wb", opener=_private) as file:
            file.write(content)

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
        return Staged(Scratch(self.path.parent))

    def take(self, stage: Folder, replaces: State | None) -> None:
        """Become what is staged: at any instant either the old folder is here or the new one, each complete.

        If the file system cannot exchange two folders, there is nothing here for an instant. The next run restores the
        old folder if this one is killed then.
        """
        assert isinstance(stage, Staged)  # noqa: S101
        stage.share()
        if replaces is None:
            try:
                move_new(stage.path, self.path)
            except FileExistsError:
                raise QueryveilError(
                    f"{self} was made by somebody else in the meantime and is left unchanged; choose another place."
                ) from None
        else:
            self._replace(stage, replaces)
        sync_folder(self.path.parent)

    def _replace(self, stage: "Staged", replaces: State) -> None:
        changed = QueryveilError(
            f"{self} was changed by somebody else in the meantime and is left unchanged; look at it first."
        )
        if self.state() != replaces:
            raise changed
        stage.scratch.note(self.path, replaces[0])
        if exchange(stage.path, self.path):
            if LocalFolder(stage.path).state() != replaces:
                exchange(stage.path, self.path)
                raise changed
        else:
            old = LocalFolder(stage.scratch.path / OLD)
            self.path.rename(old.path)
            # Removing the staging folder moves the old folder back, unless the new one is in its place.
            if old.state() != replaces:
                raise changed
            try:
                move_new(stage.path, self.path)
            except FileExistsError:
                raise changed from None
        sync_folder(stage.scratch.path)

    def remove(self) -> None:
        """Remove it and all in it."""
        shutil.rmtree(self.path, ignore_errors=True)


class Staged(LocalFolder):
    """An unfinished folder, inside a private one that is marked as in use."""

    def __init__(self, scratch: Scratch) -> None:
        super().__init__(scratch.path / STAGED)
        self.scratch = scratch
        self.path.mkdir(0o700)

    def share(self) -> None:
        """Write all of it to disk, with permissions that let others read it."""
        for path in (*self.path.rglob("*"), self.path):
            share(path)
            if path.is_dir():
                sync_folder(path)
            else:
                with path.open("rb") as file:
                    os.fsync(file.fileno())

    def remove(self) -> None:
        """Remove it and the private folder around it."""
        self.scratch.remove()


class Target(NamedTuple):
    """A place for a new folder, and what may be replaced there."""

    folder: Folder
    replaces: State | None


def is_address(path: str | Path) -> bool:
    """Whether a path is an address outside this machine, such as `hdfs://host/path`."""
    return "://" in str(path) and not str(path).startswith("file://")


def shown(path: str | Path) -> str:
    """A path as messages may show it: of an address, neither the user and password nor what comes after the path."""
    if not is_address(path):
        return str(path)
    scheme, _, rest = str(path).partition("://")
    if scheme.lower() in ("s3", "gs", "az"):  # where names may have all these signs
        end = r"\?(?=[\w.-]+=)"
        secret, place = rest.rpartition("@")[::2] if re.match("[^/]*[@:]", rest) else ("", rest)
    else:
        end = "[?#]"
        secret, place = rest.rpartition("@")[::2]  # a password may have a "/" or "@" in it
    if re.search(end, secret):  # either a password with "?" or what comes after the path has "@"
        return f"{scheme}://***"
    return f"{scheme}://{re.split(end, place, maxsplit=1)[0]}"


def local_folder(path: str | Path) -> LocalFolder:
    """A folder on this machine; an address is refused."""
    if is_address(path):
        spark = option("engine", "spark", python="a log that Spark has read")
        raise QueryveilError(f"{shown(path)} is not on this machine; reach it with {spark}.")
    return LocalFolder(str(path).removeprefix("file://"))
