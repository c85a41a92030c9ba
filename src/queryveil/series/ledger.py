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
import os
import re
import secrets
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from queryveil.errors import QueryveilError, QueryveilWarning
from queryveil.files.folders import write_whole
from queryveil.files.scratch import clear_leftovers, sync_folder
from queryveil.log import Scrub
from queryveil.log.waiting import Waiting, load_waiting
from queryveil.release import MANIFEST
from queryveil.series.published import Published, load_published
from queryveil.series.released import released_file
from queryveil.text.languages import DEFAULT

LEDGER, PENDING = "ledger.json", "pending.json"
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
        return end.replace(year=year, month=month + 1, day=day) - timedelta(days=self.days)


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
    """Events that left."""
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
    """The folder of a ledger, opened by one process at a time."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def make(self, ledger: Ledger) -> None:
        """Make a new one."""
        if self.path.exists() or self.path.is_symlink():
            raise QueryveilError(f"{self.path} exists already; choose another place for the ledger.")
        try:
            self.path.mkdir(0o700)
            (self.path / _LOCK).touch(0o600)
            self._write(ledger)
        except OSError as error:
            raise QueryveilError(f"The ledger {self.path} cannot be made: {error.strerror}.") from None

    @contextmanager
    def opened(self) -> Iterator[Ledger]:
        """The ledger, locked; a change that was killed is finished or taken back first.

        Raises:
            QueryveilError: If there is none, it is damaged, open to others, or in use.
        """
        self._check()
        with open(self.path / _LOCK, "a+b") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise QueryveilError(
                    f"The ledger {self.path} is in use by another process; wait until that ends."
                ) from None
            self._recover()
            ledger = self.read()
            self._tidy(ledger)
            yield ledger

    def read(self) -> Ledger:
        """The ledger as it is."""
        self._check()
        try:
            return Ledger.model_validate_json((self.path / LEDGER).read_bytes())
        except (OSError, ValidationError):
            raise QueryveilError(
                f"The ledger {self.path}/{LEDGER} is damaged, or of another version of queryveil; restore it from a"
                " backup."
            ) from None

    def waiting(self, ledger: Ledger) -> Waiting | None:
        """The events that wait; None before the first log."""
        return load_waiting(self.path / ledger.waiting) if ledger.changes else None

    def published(self, ledger: Ledger) -> Published:
        """Which queries and users are in releases."""
        return load_published(self.path / ledger.waiting) if ledger.changes else Published.nothing()

    def stage(self, ledger: Ledger, waiting: Waiting, published: Published) -> None:
        """Write what waits after a change, beside what waits now."""
        place = self.path / ledger.waiting
        try:
            waiting.save(place)
            published.save(place)
            for path in (*place.iterdir(), place):
                _sync(path)
        except OSError as error:
            raise QueryveilError(f"The ledger {self.path} cannot be written: {error.strerror}.") from None

    def announce(self, ledger: Ledger, release: Path, staged: Path, manifest: str) -> None:
        """Say where a release goes that is about to be moved there."""
        pending = _Pending(release=str(release.absolute()), staged=str(staged), manifest=manifest, ledger=ledger)
        write_whole(self.path / PENDING, pending.model_dump_json().encode(), private=True)

    def commit(self, ledger: Ledger) -> None:
        """Make a change that was staged the present state."""
        self._write(ledger, overwrite=True)
        (self.path / PENDING).unlink(missing_ok=True)
        self._tidy(ledger)

    def _write(self, ledger: Ledger, *, overwrite: bool = False) -> None:
        content = ledger.model_dump_json(indent=1).encode()
        write_whole(self.path / LEDGER, content, overwrite=overwrite, private=True)

    def _check(self) -> None:
        try:
            about = os.stat(self.path)
            there = (self.path / LEDGER).is_file()
        except OSError:
            there = False
        if not there:
            raise QueryveilError(
                f"There is no ledger in {self.path}; make one with 'queryveil series init', or give its folder."
            )
        if about.st_uid != os.getuid() or about.st_mode & 0o077:
            raise QueryveilError(
                f"The ledger {self.path} can be read or changed by others; it holds unpublished queries, so make it"
                f" yours alone first: chmod 700 {self.path}"
            )

    def _recover(self) -> None:
        """Finish or take back a change that was killed while its release was moved to its place."""
        try:
            pending = _Pending.model_validate_json((self.path / PENDING).read_bytes())
        except FileNotFoundError:
            return
        except (OSError, ValidationError):
            raise QueryveilError(f"{self.path}/{PENDING} is damaged; restore the ledger from a backup.") from None
        if self.read() == pending.ledger:  # only the note was left
            (self.path / PENDING).unlink()
            return
        if Path(pending.staged).exists() and not (Path(pending.release) / MANIFEST).exists():
            (self.path / PENDING).unlink()  # it was never published
            clear_leftovers(Path(pending.release).parent)
            return
        if not (Path(pending.release) / MANIFEST).exists():
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
        for entry in self.path.glob("waiting-*"):
            if entry.name != ledger.waiting:
                shutil.rmtree(entry, ignore_errors=True)
        released_file(self.path, len(ledger.releases) + 1).unlink(missing_ok=True)


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
