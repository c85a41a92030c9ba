"""The ledger of a series: a private folder with its settings, its history, and the events that wait.

    ledger.json      settings, secrets, one entry per period
    waiting-N/       the events that wait after N changes (`log/waiting.py`)
    pending.json     only while a release is moved to its place

A change writes new waiting events beside the old ones, then replaces `ledger.json` by a rename, so that the ledger is
as before or as after. A release is moved to its place between the two; `pending.json` says where it goes, so that a
change that was killed is finished or taken back when the ledger is opened again.
"""

import calendar
import fcntl
import hashlib
import os
import re
import secrets
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from queryveil.errors import QueryveilError, QueryveilWarning
from queryveil.files.folders import Folder, LocalFolder, local_folder, write_whole
from queryveil.files.scratch import clear_leftovers, sync_folder
from queryveil.log import Scrub
from queryveil.release import MANIFEST
from queryveil.series.released import RELEASED
from queryveil.text.languages import DEFAULT

LEDGER, PENDING, COPY = "ledger.json", "pending.json", "pending-release"
_LOCK = ".lock"
FORMAT_VERSION: Literal[1] = 1


class Retention(BaseModel):
    """How long an event may wait."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    months: int = Field(0, ge=0, le=1200)
    days: int = Field(0, ge=0, le=36_500)

    def __str__(self) -> str:
        return f"{self.months} months" if self.months else f"{self.days} days"

    def before(self, end: datetime) -> datetime:
        """The oldest time that an event may have at the end of a period."""
        month = end.year * 12 + end.month - 1 - self.months
        year, month = divmod(month, 12)
        if year < 1:
            return datetime(1, 1, 1)
        day = min(end.day, _days_in(year, month + 1))
        try:
            return end.replace(year=year, month=month + 1, day=day) - timedelta(days=self.days)
        except OverflowError:
            return datetime(1, 1, 1)


def _days_in(year: int, month: int) -> int:
    return calendar.monthrange(year, month)[1]


def read_retention(given: str) -> Retention:
    """Retention as people write it, such as `13months`, `90 days` or `2years`."""
    found = re.fullmatch(r"\s*(\d{1,4})\s*(day|week|month|year)s?\s*", given)
    if found is None or int(found[1]) == 0:
        raise QueryveilError(
            f"The retention '{given}' is not a time; give a number of days, weeks, months or years, such as 13months."
        )
    number, unit = int(found[1]), found[2]
    scale = {"day": ("days", 1), "week": ("days", 7), "month": ("months", 1), "year": ("months", 12)}[unit]
    if number * scale[1] > {"days": 36_500, "months": 1_200}[scale[0]]:
        raise QueryveilError(f"The retention '{given}' is longer than 100 years; leave it out to keep events for ever.")
    return Retention(**{scale[0]: number * scale[1]})


class Settings(BaseModel):
    """What was decided when the series began."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    method: str
    parameters: dict[str, Any]
    languages: tuple[str, ...] = (DEFAULT,)
    """The languages of every log."""
    scrub: Scrub | None = None
    """How every log is scrubbed before its events wait."""
    retention: Retention | None = None
    budget_epsilon: float | None = None
    budget_delta: float | None = None
    carry_pseudonyms: bool = False
    """Whether the ledger keeps who had which pseudonym, so that releases can be linked."""
    seed: int
    """Decides everything that is random, in all releases; secret."""
    key: tuple[int, int]
    """The key of the digests that take the place of the names of users; secret."""


class Period(BaseModel):
    """What happened when a log was added."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    number: int
    added: datetime
    fingerprint: str
    """A keyed digest of the log."""
    start: datetime | None
    end: datetime
    """The time of its last event; the time of adding it if no event has a time."""
    events: int
    late: int = 0
    """Events that were left out because they are older than the end of an earlier log."""
    users: int
    expired: int
    """Events that had waited longer than the retention time, and were deleted."""
    forgotten: int = 0
    """Events that were deleted on request since the period before."""
    release: int | None = None
    """The number of the release that was made; None if nothing could be released."""
    manifest: str | None = None
    """The SHA-256 of its manifest."""
    released: int = 0
    """Events of the release."""
    left_out: int = 0
    """Events of released queries that rules about rows left out of the release; they do not wait on."""
    queries: int = 0
    """Distinct queries of the release."""
    new_queries: int = 0
    """Distinct queries of the release that no earlier one has."""
    waited: float = 0
    """Days that released events had waited on average."""
    waiting: int = 0
    """Events that wait afterwards."""
    waiting_queries: int = 0
    epsilon: float | None = None
    """What all releases so far use of the privacy budget."""

    @property
    def lost(self) -> int:
        """Events that will never be released."""
        return self.left_out + self.expired + self.forgotten + self.late


class Forgotten(BaseModel):
    """Waiting events that were deleted on request."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    after: int
    """The number of periods before it."""
    user: str | None = None
    """The keyed digest of a user's name."""
    before: datetime | None = None
    """All events up to this time."""
    events: int


class Ledger(BaseModel):
    """Everything in `ledger.json`."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    format_version: Literal[1] = FORMAT_VERSION
    settings: Settings
    periods: tuple[Period, ...] = ()
    forgotten: tuple[Forgotten, ...] = ()
    engine: Literal["duckdb", "spark"] | None = None
    """Where its events wait: on one machine or on a cluster, as the first log decided."""
    changes: int = 0
    """How often it was changed; the name of the folder of waiting events."""
    content: str = Field("", pattern="^([0-9a-f]{64})?$")
    """What takes the place of the digest of all rows that wait; it follows from the logs."""

    @property
    def releases(self) -> tuple[Period, ...]:
        """The periods with a release."""
        return tuple(period for period in self.periods if period.release is not None)

    @property
    def waiting(self) -> str:
        """The folder of the events that wait."""
        return f"waiting-{self.changes}"

    @property
    def known(self) -> dict[str, Any]:
        """What every state of a series knows."""
        releases = self.releases
        return {
            "ends": tuple(period.end for period in self.periods),
            "content": bytes.fromhex(self.content),
            "releases": len(releases),
            "previous": releases[-1].manifest if releases else None,
            "timed": any(period.start is not None for period in self.periods),
        }


class _Pending(BaseModel):
    """A change whose release is being moved to its place."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    release: str
    """The folder of the release."""
    staged: str
    """Where it was made."""
    manifest: str
    ledger: Ledger
    """The ledger after the change."""


class LedgerFolder:
    """The folder of a ledger, opened by one process at a time.

    Args:
        path: The folder.
        at: The folder of a release with a given path or address.
    """

    engine: Literal["spark"] | None = None
    """Where its events must wait, if only that reaches it."""

    def __init__(self, path: str | Path, at: Callable[[str], Folder] = local_folder) -> None:
        self.path = local_folder(path).path
        self._at = at

    def __str__(self) -> str:
        return str(self.path)

    def uri(self, name: str) -> str:
        """The address of something in it."""
        return LocalFolder(self.path).uri(name)

    def holds(self, place: Folder) -> bool:
        """Whether a folder is inside the ledger."""
        return isinstance(place, LocalFolder) and place.path.resolve().is_relative_to(self.path.resolve())

    def make(self, ledger: Ledger) -> None:
        """Make a new one."""
        if self.path.exists() or self.path.is_symlink():
            raise QueryveilError(f"{self.path} exists already; choose another place for the ledger.", code="exists")
        try:
            self.path.mkdir(0o700)
            (self.path / _LOCK).touch(0o600)
            self._write(ledger)
        except OSError as error:
            raise QueryveilError(f"The ledger {self.path} cannot be made: {error.strerror}.") from None

    @contextmanager
    def opened(self, at: Callable[[str], Folder] | None = None) -> Iterator[Ledger]:
        """The ledger, locked; a change that was killed is finished or taken back first.

        Args:
            at: The folder of a release with a given path or address, if others can be reached than usual.

        Raises:
            QueryveilError: If there is none, it is damaged, open to others, or in use.
        """
        self._check()
        with self._locked():
            self._recover(at or self._at)
            ledger = self.read()
            if ledger.changes and not self._has(ledger.waiting):
                raise QueryveilError(
                    f"The ledger {self} does not have the events that its {LEDGER} speaks of ({ledger.waiting}), so one"
                    " of them is of another time; restore all of the ledger from one backup."
                )
            self._tidy(ledger)
            yield ledger

    def read(self) -> Ledger:
        """The ledger as it is."""
        self._check()
        try:
            return Ledger.model_validate_json(self._read())
        except (OSError, ValidationError):
            raise QueryveilError(
                f"The ledger {self}/{LEDGER} is damaged, or of another version of queryveil; restore it from a backup."
            ) from None

    def stage(self, ledger: Ledger, save: Callable[[str], tuple[int, int]]) -> tuple[int, int]:
        """Write what waits after a change, beside what waits now; return what `save` returns.

        Args:
            ledger: The ledger after the change.
            save: Writes what waits into a new folder with this address.
        """
        place = self.path / ledger.waiting
        try:
            found = save(self.uri(ledger.waiting))
            for path in (*place.rglob("*"), place):
                _sync(path)
        except OSError as error:
            raise QueryveilError(f"The ledger {self.path} cannot be written: {error.strerror}.") from None
        return found

    def announce(self, ledger: Ledger, release: Folder, staged: Folder, manifest: str) -> None:
        """Say where a release goes that is about to be moved there."""
        self._keep_copy(staged)
        pending = _Pending(release=_whole(release), staged=_whole(staged), manifest=manifest, ledger=ledger)
        self._put(PENDING, pending.model_dump_json().encode())

    def withdraw(self, release: Folder, manifest: str) -> None:
        """Take back what was announced, unless the release got to its place."""
        if not _is_there(release, manifest):
            self._drop(PENDING)
            self._drop_copy()

    def commit(self, ledger: Ledger) -> None:
        """Make a change that was staged the present state."""
        self._write(ledger, overwrite=True)
        self._drop(PENDING)
        self._drop_copy()
        self._tidy(ledger)

    def _keep_copy(self, staged: Folder) -> None:
        """Keep a release until it is known to be in its place: others may remove what a killed run left there."""
        self._drop_copy()
        if isinstance(staged, LocalFolder):
            shutil.copytree(staged.path, self.path / COPY, copy_function=_link)

    def _drop_copy(self) -> None:
        shutil.rmtree(self.path / COPY, ignore_errors=True)

    def _copy_back(self, release: Folder) -> bool:
        """Put a release into its place again; False if there is no copy of it, or the place is taken."""
        if not (self.path / COPY).is_dir() or release.state() is not None or release.parent() is None:
            return False
        stage = release.stage()
        try:
            shutil.copytree(self.path / COPY, str(stage), dirs_exist_ok=True)
            release.take(stage, None)
        except (OSError, QueryveilError):
            return False
        finally:
            stage.remove()
        return True

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with open(self.path / _LOCK, "a+b") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise QueryveilError(
                    f"The ledger {self.path} is in use by another process; wait until that ends."
                ) from None
            yield

    def _read(self) -> bytes:
        """The file with the ledger."""
        return self._get(LEDGER)

    def _write(self, ledger: Ledger, *, overwrite: bool = False) -> None:
        content = ledger.model_dump_json(indent=1).encode()
        write_whole(self.path / LEDGER, content, overwrite=overwrite, private=True)

    def _has(self, name: str) -> bool:
        """Whether something is in the folder."""
        return (self.path / name).exists()

    def _get(self, name: str) -> bytes:
        return (self.path / name).read_bytes()

    def _put(self, name: str, content: bytes) -> None:
        """Write a new small file whole."""
        write_whole(self.path / name, content, private=True)

    def _drop(self, name: str) -> None:
        (self.path / name).unlink(missing_ok=True)

    def _check(self) -> None:
        try:
            about = os.stat(self.path)
            there = (self.path / LEDGER).is_file()
        except OSError:
            there = False
        if not there:
            raise no_ledger(str(self.path))
        if about.st_uid != os.getuid() or about.st_mode & 0o077:
            raise QueryveilError(
                f"The ledger {self.path} can be read or changed by others; it holds unpublished queries, so make it"
                f" yours alone first: chmod 700 {self.path}"
            )

    def _recover(self, at: Callable[[str], Folder]) -> None:
        """Finish or take back a change that was killed while its release was moved to its place."""
        try:
            pending = _Pending.model_validate_json(self._get(PENDING))
        except FileNotFoundError:
            return
        except (OSError, ValidationError):
            raise QueryveilError(f"{self}/{PENDING} is damaged; restore the ledger from a backup.") from None
        if self.read() == pending.ledger:  # only the note was left
            self._drop(PENDING)
            return
        release, staged = at(pending.release), at(pending.staged)
        published = _is_there(release, pending.manifest)
        if staged.state() is not None and not published:
            self._drop(PENDING)  # it was never published
            if isinstance(release, LocalFolder):
                release.tidy()
            else:
                staged.remove()
            return
        if not published and not self._copy_back(release):
            # It may have been published and moved away, and nothing may ever be published twice.
            warnings.warn(
                f"A change of the ledger was interrupted, and its release is not in {pending.release}; its events count"
                " as published.",
                QueryveilWarning,
                stacklevel=4,
            )
        self.commit(pending.ledger)

    def _tidy(self, ledger: Ledger) -> None:
        """Remove what killed changes left."""
        clear_leftovers(self.path)
        for entry in self.path.iterdir():
            if is_left(entry.name, ledger):
                if entry.is_dir():
                    shutil.rmtree(entry, ignore_errors=True)
                else:
                    entry.unlink(missing_ok=True)


def no_ledger(where: str) -> QueryveilError:
    """That there is no ledger in a folder."""
    return QueryveilError(f"There is no ledger in {where}; make one with 'queryveil series init', or give its folder.")


def is_left(name: str, ledger: Ledger) -> bool:
    """Whether something in the folder of a ledger is left from a change that was killed, or from before the last."""
    if name.startswith("waiting-"):
        return name != ledger.waiting
    return name.startswith(f"{RELEASED}{len(ledger.releases) + 1}.")


def _is_there(place: Folder, manifest: str) -> bool:
    """Whether the release with this SHA-256 of its manifest is in a folder."""
    try:
        return hashlib.sha256(place.read(MANIFEST)).hexdigest() == manifest
    except OSError:
        return False


def _whole(place: Folder) -> str:
    """A folder by its whole path or its address."""
    return str(place.path.absolute()) if isinstance(place, LocalFolder) else str(place)


def _link(source: str, target: str) -> None:
    """A file under a further name, or a copy of it where that is on another disk."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target)


def _sync(path: Path) -> None:
    if path.is_dir():
        sync_folder(path)
        return
    with path.open("rb") as file:
        os.fsync(file.fileno())


def now() -> datetime:
    """The present time, without a zone, as logs have it."""
    return datetime.now(UTC).replace(tzinfo=None, microsecond=0)


def new_secrets(seed: int | None) -> dict[str, Any]:
    """The secrets of a new series."""
    return {
        "seed": secrets.randbits(128) if seed is None else seed,
        "key": (secrets.randbits(64), secrets.randbits(64)),
    }
