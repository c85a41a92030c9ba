"""The project: a private folder with what was chosen, decided and found, so that work goes on after a restart."""

import fcntl
import json
import os
import stat
import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from queryveil.errors import QueryveilError
from queryveil.files.folders import write_whole
from queryveil.formats.input import Input
from queryveil.methods.recipe import RecipeStep
from queryveil.text.show import printable

STATE, JOURNAL, DECISIONS, LOCK = "project.json", "journal.jsonl", "decisions.jsonl", "lock"
_MOST = 16 << 20
_LATER = 0.5
"""Seconds."""


class Reading(BaseModel):
    """How the files of the log are read: the options of the command line."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    format: str | None = None
    columns: dict[str, str] = {}
    encoding: str | None = None
    time_format: str | None = None
    language: str | None = None
    max_bad_rows: float = 0.01
    stated: Input | None = Field(default=None, exclude=True)
    """What the manifest of a release says, where it is looked at; it is not kept."""


class Signed(BaseModel):
    """How the current release was signed, to repeat it."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    key: str
    """The file of the private key."""
    name: str
    date: str
    comment: str
    policy: bool
    """Whether the statement says that the policy is met."""
    attacks: bool
    """Whether it has findings of attacks."""


class State(BaseModel):
    """What is remembered of a project beside its files."""

    model_config = ConfigDict(extra="forbid")
    logs: list[str]
    """The paths of the log, absolute."""
    reading: Reading = Reading()
    fingerprint: str | None = None
    """Of the log, once it was read; it stays in this folder."""
    steps: list[RecipeStep] = [RecipeStep(method="equality", parameters={"k": 5})]
    """The method and its parameters, or the steps of a pipeline."""
    masked: bool = True
    reviewer: str = ""
    """Who reviews, as they said last."""
    released: list[RecipeStep] = []
    """What the release of the project was made with."""
    release: Annotated[int, Field(ge=1)] | None = None
    """The number of the run that made the current release."""
    signed: Signed | None = None
    compared: list[str] = []
    """The methods of the last comparison."""
    compared_ks: list[int] = []
    """The values of k in it."""


class Entry(BaseModel):
    """A line of the journal: what somebody did, and when."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    at: str
    what: str
    by: str = ""
    about: str = ""


class Project:
    """A folder that only its owner can read.

    Args:
        path: The folder, which is made if it is not there.
        logs: The paths of the log.
        reading: How its files are read, for a new project.

    Raises:
        QueryveilError: If the folder cannot be used: it is of another log, others can read it, or an app has it open.
    """

    def __init__(self, path: str | Path, logs: Sequence[str], reading: Reading) -> None:
        self.path = Path(path).absolute()
        self._lock = _private_folder(self.path)
        _check_plain(self.path)
        self._saving = threading.RLock()
        self._timer: threading.Timer | None = None
        found = self._read(STATE)
        paths = [str(Path(log).absolute()) for log in logs]
        if found is None:
            if any(entry.name != LOCK for entry in self.path.iterdir()):
                raise QueryveilError(f"The folder {path} holds other things than a project; name another.")
            self.state = State(logs=paths, reading=reading)
            self.save()
        else:
            try:
                self.state = State.model_validate_json(found)
            except ValidationError:
                raise QueryveilError(f"The file {path}/{STATE} is damaged; name another folder.") from None
            if self.state.logs != paths:
                raise QueryveilError(f"The project {path} is about another log; name another folder.")
            if not self.state.masked:  # who starts the studio is perhaps not the one who lifted the mask
                self.state.masked = True
                self.note("masked texts again", about="the studio was started")
                self.save()

    def save(self, *, later: bool = False) -> None:
        """Write the state: now, or in a moment, if it is not written again until then."""
        with self._saving:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            if later:
                self._timer = threading.Timer(_LATER, self.save)
                self._timer.daemon = True
                self._timer.start()
            else:
                self.write(STATE, self.state.model_dump_json(indent=1).encode())

    def file(self, name: str) -> Path:
        """The place of a file of the project."""
        return self.path / name

    def write(self, name: str, content: bytes) -> None:
        """Write a small file whole, for its owner alone."""
        write_whole(self.path / name, content, overwrite=True, private=True)

    def keep(self, name: str, value: object, of: str) -> None:
        """Keep a result.

        Args:
            name: The file.
            value: The result.
            of: What it is about: the SHA-256 of the manifest of a release, or the fingerprint of the log.
        """
        found = TypeAdapter(type(value)).dump_python(value, mode="json")
        self.write(name, json.dumps({"of": of, "result": found}, allow_nan=False).encode())

    def kept(self, name: str, kind: type, of: str) -> Any:
        """A result that was kept; None if there is none about that, or it cannot be read.

        Args:
            name: The file.
            kind: The class of the result.
            of: What it must be about.
        """
        content = self._read(name)
        try:
            found = json.loads(content or b"{}")
            if not isinstance(found, dict) or found.get("of") != of:
                return None
            return TypeAdapter(kind).validate_python(found["result"])
        except (ValueError, KeyError, TypeError, RecursionError):
            return None

    def note(self, what: str, *, by: str = "", about: str = "") -> None:
        """Write down in the journal what was done. The journal is only ever added to."""
        entry = Entry(at=datetime.now(UTC).isoformat(timespec="seconds"), what=what, by=by, about=about)
        line = entry.model_dump_json().encode() + b"\n"
        try:
            with self._saving, open(self.path / JOURNAL, "a+b", opener=_private) as file:
                if file.tell() and os.pread(file.fileno(), 1, file.tell() - 1) != b"\n":
                    line = b"\n" + line  # a kill cut the last one short
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise QueryveilError(
                f"The journal {self.path / JOURNAL} cannot be written: {error.strerror}; nothing was changed."
            ) from None

    @property
    def journal(self) -> list[Entry]:
        """What was done, the newest first; a line that a kill cut short is left out."""
        found = []
        for line in (self._read(JOURNAL) or b"").splitlines():
            try:
                found.append(Entry.model_validate_json(line))
            except ValidationError:
                continue
        return found[::-1]

    def close(self) -> None:
        """Write what waits, and let others open it."""
        with self._saving:
            if self._timer is not None:
                self.save()
        os.close(self._lock)

    def _read(self, name: str) -> bytes | None:
        """The content of a small file; None if there is none."""
        try:
            handle = os.open(self.path / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            return None
        except OSError:
            raise QueryveilError(f"The file {self.path / name} cannot be read; name another folder.") from None
        with os.fdopen(handle, "rb") as file:
            about = os.fstat(handle)
            if not stat.S_ISREG(about.st_mode) or about.st_size > _MOST:
                raise QueryveilError(f"The file {self.path / name} is not one of a project; name another folder.")
            return file.read()


def _check_plain(folder: Path) -> None:
    """Refuse a folder with anything but files and folders: what a link leads to would be read, replaced or removed."""

    def fail(error: OSError) -> None:
        raise QueryveilError(f"The project {folder} cannot be read: {error.strerror}; name another folder.")

    for place, folders, names in os.walk(folder, onerror=fail):
        for name in (*folders, *names):
            kind = os.lstat(os.path.join(place, name)).st_mode
            if not (stat.S_ISDIR(kind) or stat.S_ISREG(kind)):
                raise QueryveilError(
                    f"The project {folder} holds '{printable(name)}', which is neither a file nor a folder; remove it,"
                    " or name another project."
                )


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


def _private_folder(path: Path) -> int:
    """Make a folder that only its owner can read, or find it, and lock it until the process ends."""
    try:
        path.mkdir(0o700)
    except FileExistsError:
        pass
    except OSError as error:
        raise QueryveilError(f"The project {path} cannot be made: {error.strerror}; name another folder.") from None
    about = path.lstat()
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid():
        raise QueryveilError(f"{path} is no folder of yours; name another for the project.")
    if about.st_mode & 0o077:
        raise QueryveilError(f"Other users can read the project {path}; run 'chmod 700' on it first.")
    try:
        handle = os.open(path / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise QueryveilError(f"The project {path} cannot be used: {error.strerror}; name another folder.") from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise QueryveilError(f"The project {path} is open in another studio; close that one first.") from None
    return handle
