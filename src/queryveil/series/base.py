"""What the states of a series have in common, on one machine and on a cluster."""

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from queryveil.errors import QueryveilError, option
from queryveil.log import QueryLog, Scrub, SeriesPlace
from queryveil.methods import Method
from queryveil.methods.private.common import PrivateMethod
from queryveil.release import Release
from queryveil.scrubbing import scrub
from queryveil.series.budget import spent
from queryveil.series.ledger import LedgerFolder, Settings

_EPOCH = datetime(1970, 1, 1)


def micros(moment: datetime) -> int:
    """A time in microseconds since 1970."""
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def moment_of(time: int) -> datetime:
    """The time of microseconds since 1970."""
    return _EPOCH + timedelta(microseconds=time)


@dataclass(frozen=True)
class Arrived:
    """What came with a log."""

    events: int
    users: int
    late: int
    expired: int
    start: datetime | None
    end: datetime


@dataclass(frozen=True)
class SeriesState(ABC):
    """What a series knows between two periods, wherever its events wait.

    Attributes:
        ends: The end of each period so far.
        content: What takes the place of the digest of all rows of the waiting events; it follows from the logs.
        releases: How many releases there are.
        previous: The SHA-256 of the manifest of the last one.
        timed: Whether any log had times.
    """

    ends: tuple[datetime, ...] = ()
    content: bytes = b""
    releases: int = 0
    previous: str | None = None
    timed: bool = False

    @abstractmethod
    def with_log(
        self, log: QueryLog, settings: Settings, added: datetime, *, drop_late: bool
    ) -> "tuple[SeriesState, Arrived]":
        """Let the events of a log wait too, and delete what has waited too long.

        Args:
            log: The log of a new period.
            settings: Those of the series.
            added: When it was added.
            drop_late: Whether events from before the end of the last log are left out; otherwise they are refused.
        """

    @abstractmethod
    def as_log(self, settings: Settings, method: Method) -> QueryLog:
        """The log that the next release is made from: all events that wait."""

    @abstractmethod
    def after_release(
        self, made: Release, log: QueryLog, manifest: str, end: datetime, settings: Settings, folder: LedgerFolder
    ) -> "tuple[SeriesState, dict[str, Any]]":
        """What waits on after a release, and what its period says about it.

        How many events of each user left is written into the ledger, where it counts once the release does.

        Args:
            made: The release.
            log: What `as_log` returned.
            manifest: The SHA-256 of its manifest.
            end: The end of the period.
            settings: Those of the series.
            folder: The ledger.
        """

    @abstractmethod
    def save(self, address: str) -> tuple[int, int]:
        """Write what waits into a new folder, and count its events and distinct queries."""

    @abstractmethod
    def without(self, *, user: str | None = None, before: datetime | None = None) -> "tuple[SeriesState, int]":
        """The same without the waiting events of a user, or up to a time; and how many these were.

        Args:
            user: The keyed digest of the user's name.
            before: Events up to this time.
        """

    @abstractmethod
    def of_user(self, digest: str, folder: LedgerFolder) -> dict[int, int]:
        """How many events of a user each release has, by its number."""

    def place(self, settings: Settings, method: Method) -> SeriesPlace:
        """Where in the series the next release is."""
        number, used = self.releases + 1, None
        if isinstance(method, PrivateMethod):
            used = spent(method.claim, number, settings.budget_delta or 0)
        return SeriesPlace(number=number, previous=self.previous, spent=used)

    def period_of(
        self, times: tuple[int, int] | None, late: int, added: datetime, *, drop_late: bool
    ) -> tuple[datetime | None, datetime]:
        """The start and end of a new period.

        Args:
            times: The first and last time of the events that are not late; None if they have none.
            late: How many events are late.
            added: When the log was added.
            drop_late: Whether late events are left out.

        Raises:
            QueryveilError: If events are late, and are not left out.
        """
        last = max(self.ends, default=None)
        if late and not drop_late:
            raise QueryveilError(
                f"{late:,} events of the log are not later than the last one ended ({last}), so they may be published"
                f" already; add the logs in the order of time, or leave these events out with"
                f" {option('drop_late', True)}."
            )
        if times is None:
            return None, last if last is not None and self.timed else max(added, last or added)
        start, end = moment_of(times[0]), moment_of(times[1])
        if end > added + timedelta(days=1):
            raise QueryveilError(
                f"The log has events of the future, up to {end}, after which no other log could be added; leave these"
                " events out."
            )
        return start, end if last is None else max(end, last)

    def next_content(self, log: QueryLog) -> bytes:
        """What takes the place of the digest of all rows once a log was added."""
        return hashlib.sha256(self.content + log.stats.content).digest() if self.content else log.stats.content


def is_drawn(method: Method) -> bool:
    """Whether a method has secret thresholds, which are drawn again for a query that was released before."""
    return any(getattr(part, "jitter", None) is not None for part in method.parts)


def check_scrub(log: QueryLog) -> None:
    """Refuse a log that was scrubbed already."""
    if log.stats.scrub is not None:
        raise QueryveilError("The log was scrubbed before; add it as it is, and let the recipe of the series scrub it.")


def check_language(log: QueryLog, settings: Settings) -> None:
    """Refuse a log that was read in other languages than those of the series."""
    if log.language.ids != settings.languages:
        made = ",".join(settings.languages)
        raise QueryveilError(
            f"The series is in the languages {made}, and the log was read in {log.language.id}; read it with"
            f" {option('language', made)}."
        )


def scrubbed(log: QueryLog, asked: Scrub | None) -> QueryLog:
    """A log as the recipe of the series scrubs it."""
    return log if asked is None else scrub(log, asked.how, kinds=asked.kinds, countries=asked.countries)
