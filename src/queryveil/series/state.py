"""The events that wait in a series, from one period to the next.

`Series.add` makes each state from the one before, and `Series.verify` makes them all again from the logs.
"""

import hashlib
import hmac
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queryveil.claims import DifferentialPrivacy
from queryveil.engines import DuckDB
from queryveil.errors import QueryveilError, option
from queryveil.files.folders import local_folder
from queryveil.kernels.types import Bools
from queryveil.log import LocalLog, QueryLog, Scrub, local
from queryveil.log.waiting import Waiting, keyed_names, load_waiting, waiting_of
from queryveil.methods import METHODS, Method, Pipeline
from queryveil.methods import Scrub as ScrubStep
from queryveil.methods.private.common import PrivateMethod
from queryveil.release import MANIFEST, Release
from queryveil.scrubbing import scope_of
from queryveil.series.base import Arrived, SeriesState, check_language, check_scrub, is_drawn, micros, scrubbed
from queryveil.series.ledger import Ledger, LedgerFolder, Period, Settings
from queryveil.series.published import Published, load_published
from queryveil.series.released import count_users, of_user
from queryveil.text import language


def method_of(settings: Settings) -> Method:
    """The method of a series."""
    return METHODS[settings.method](**settings.parameters)


@dataclass(frozen=True)
class ArrivedHere(Arrived):
    """What came with a log in the memory of this machine."""

    fresh: Waiting


@dataclass(frozen=True)
class State(SeriesState):
    """What a series knows between two periods whose events wait on one machine.

    Attributes:
        waiting: The events that wait; None before the first log.
        published: Which queries are in releases.
    """

    waiting: Waiting | None = None
    published: Published = field(default_factory=Published.nothing)

    @classmethod
    def load(cls, ledger: Ledger, folder: LedgerFolder) -> "State":
        """What a ledger knows."""
        if not ledger.changes:
            return cls(**ledger.known)
        place = folder.path / ledger.waiting
        return cls(waiting=load_waiting(place), published=load_published(place), **ledger.known)

    def with_log(
        self, log: QueryLog, settings: Settings, added: datetime, *, drop_late: bool
    ) -> "tuple[State, ArrivedHere]":
        """Let the events of a log wait too, and delete what has waited too long."""
        ours = local(log, "Checking or attacking a series")
        check_scrub(ours)
        check_language(ours, settings)
        fresh = waiting_of(local(scrubbed(ours, settings.scrub), "A series"), settings.key, len(self.ends) + 1)
        late = 0
        if self.ends:
            in_time = ~fresh.timed | (fresh.events["time"] > micros(max(self.ends)))
            late = int(np.count_nonzero(~in_time))
            fresh = fresh.kept(in_time)
        times = fresh.events["time"][fresh.timed]
        extent = (int(times.min()), int(times.max())) if len(times) else None
        start, end = self.period_of(extent, late, added, drop_late=drop_late)
        waiting, expired = fresh, 0
        if self.waiting is not None:
            old = self.waiting.kept(self._in_time(settings, end))
            expired = len(self.waiting) - len(old)
            waiting = old.joined(fresh)
        arrived = ArrivedHere(len(fresh), len(fresh.texts["user"]), late, expired, start, end, fresh)
        return replace(
            self,
            waiting=waiting,
            ends=(*self.ends, end),
            content=self.next_content(log),
            timed=self.timed or start is not None,
        ), arrived

    def _in_time(self, settings: Settings, end: datetime) -> Bools:
        """Which waiting events may wait on at the end of a period."""
        assert self.waiting is not None  # noqa: S101
        if settings.retention is None:
            return np.ones(len(self.waiting), np.bool_)
        return self._times >= micros(settings.retention.before(end))

    @property
    def _times(self) -> "np.typing.NDArray[np.int64]":
        """The time of each waiting event, or the end of the period that it came in."""
        assert self.waiting is not None  # noqa: S101
        ends = np.array([0, *(micros(end) for end in self.ends)])
        found: np.typing.NDArray[np.int64] = np.where(
            self.waiting.timed, self.waiting.events["time"], ends[self.waiting.events["since"]]
        )
        return found

    def as_log(self, settings: Settings, method: Method) -> LocalLog:
        """The log that the next release is made from: all events that wait."""
        assert self.waiting is not None  # noqa: S101
        log = self.waiting.as_log(
            DuckDB(),
            content=self.content,
            language=language(*settings.languages),
            scrub=settings.scrub,
            series=self.place(settings, method),
        )
        times = self.published.times_of(log.query_text if is_drawn(method) else log.query_text[:0])
        before = np.flatnonzero(times)
        log.engine.read("earlier_releases", pa.table({"query_id": before.astype(np.int32), "times": times[before]}))
        return log

    def after(self, queries: pa.Array, log: LocalLog, manifest: str) -> "tuple[State, Bools]":
        """What waits on after a release, and which events left: all events of the queries that it has.

        Args:
            queries: The distinct queries of the release.
            log: The log that it was made from.
            manifest: The SHA-256 of its manifest.
        """
        assert self.waiting is not None  # noqa: S101
        known = pc.is_in(log.query_text, value_set=queries.cast(log.query_text.type))
        left = known.to_numpy(zero_copy_only=False)[self.waiting.events["query"]]
        after = replace(
            self,
            waiting=self.waiting.kept(~left),
            published=self.published.after(queries),
            releases=self.releases + 1,
            previous=manifest,
        )
        return after, left

    def after_release(
        self, made: Release, log: QueryLog, manifest: str, end: datetime, settings: Settings, folder: LedgerFolder
    ) -> "tuple[State, dict[str, Any]]":
        """What waits on after a release of `as_log`, and what its period says about it."""
        assert self.waiting is not None  # noqa: S101
        queries = queries_of(made)
        after, left = self.after(queries, local(log, "A series"), manifest)
        kept = None
        if settings.carry_pseudonyms and made.pseudonyms is not None:
            kept = log.engine.fetch(f'SELECT user_id, "user" FROM {made.pseudonyms}')
        count_users(self.waiting, left, folder.path, after.releases, kept)
        return after, {
            "released": int(np.count_nonzero(left)),
            "queries": len(queries),
            "new_queries": int(np.count_nonzero(self.published.times_of(queries) == 0)),
            "waited": self.waited(left, end),
        }

    def save(self, address: str) -> tuple[int, int]:
        """Write what waits into a new folder, and count its events and distinct queries."""
        assert self.waiting is not None  # noqa: S101
        place = local_folder(address).path
        self.waiting.save(place)
        self.published.save(place)
        return len(self.waiting), len(self.waiting.texts["query"])

    def of_user(self, digest: str, folder: LedgerFolder) -> dict[int, int]:
        """How many events of a user each release has, by its number."""
        return of_user(folder.path, digest, self.releases)

    def waited(self, left: Bools, end: datetime) -> float:
        """How many days some events have waited on average at the end of a period."""
        if not left.any():
            return 0.0
        return float((micros(end) - self._times[left]).mean() / 86_400e6)

    def without(self, *, user: str | None = None, before: datetime | None = None) -> "tuple[State, int]":
        """The same without the waiting events of a user, or up to a time; and how many these were."""
        if self.waiting is None:
            return self, 0
        gone = np.zeros(len(self.waiting), np.bool_)
        if user is not None:
            at = pc.index(self.waiting.texts["user"], pa.scalar(user, pa.large_string())).as_py()
            gone |= self.waiting.events["user"] == at if at >= 0 else False
        if before is not None:
            gone |= self._times <= micros(before)
        return replace(self, waiting=self.waiting.kept(~gone)), int(np.count_nonzero(gone))


class OtherLogError(QueryveilError):
    """A log that is not the one that was added in its period."""


@dataclass(frozen=True)
class Step:
    """A period, made again from its log.

    Attributes:
        period: What the ledger says about it.
        arrived: What came with the log.
        forgotten: How many events were deleted on request before it, for each request.
        log: What its release was made from; closed when the next period is asked for.
        release: Its release; None if nothing could be released.
        left: Which events of the log left with it.
        before: What waited before they left.
        after: What waits afterwards.
    """

    period: Period
    arrived: ArrivedHere
    forgotten: tuple[int, ...]
    log: LocalLog
    release: Release | None
    left: Bools
    before: State
    after: State


def replayed(ledger: Ledger, releases: Sequence[Release], logs: Iterable[QueryLog]) -> Iterator[Step]:
    """Every period of a series, made again from the logs and the releases.

    Args:
        ledger: The ledger of the series, of which nothing is used but settings, times, and what was forgotten.
        releases: Its releases, in their order.
        logs: The logs that were added, in their order.

    Raises:
        OtherLogError: If one of the logs is another, is missing, or there are more.
    """
    settings, method = ledger.settings, method_of(ledger.settings)
    state, given, made = State(), iter(logs), iter(releases)
    for period in ledger.periods:
        log = next(given, None)
        if log is None:
            raise OtherLogError(f"the log of period {period.number} is missing")
        if fingerprint_of(log, settings) != period.fingerprint:
            raise OtherLogError(f"another log stands in the place of that of period {period.number}")
        gone = []
        for note in ledger.forgotten:
            if note.after == period.number - 1:
                state, events = state.without(user=note.user, before=note.before)
                gone.append(events)
        state, arrived = state.with_log(log, settings, period.added, drop_late=True)
        pool = state.as_log(settings, method)
        release = None if period.release is None else next(made)
        after, left = state, np.zeros(len(pool.events), np.bool_)
        if release is not None:
            after, left = state.after(queries_of(release), pool, digest_of(release))
        yield Step(period, arrived, tuple(gone), pool, release, left, state, after)
        pool.close()
        state = after
    if next(given, None) is not None:
        raise OtherLogError("there are more logs than periods")


def digest_of(release: Release) -> str:
    """The SHA-256 of the manifest of a release in a folder."""
    if release.folder is None:
        raise QueryveilError("A series is checked by the folders of its releases; give these.")
    return hashlib.sha256(release.folder.read(MANIFEST)).hexdigest()


def queries_of(release: Release) -> pa.Array:
    """The distinct queries of a release."""
    found = [pc.unique(batch["query"]) for batch in release.batches()]
    return pc.unique(pa.concat_arrays(found)) if found else pa.array([], pa.string())


def fingerprint_of(log: QueryLog, settings: Settings) -> str:
    """A digest of a log under the key of the series."""
    key = b"fingerprint|%d|%d" % settings.key
    return hmac.new(key, log.stats.content, hashlib.sha256).hexdigest()


def digest_of_user(name: str, key: Sequence[int]) -> str:
    """What takes the place of the name of a user."""
    from queryveil.text import fold_blanks

    return str(keyed_names(fold_blanks(pa.array([name])).cast(pa.large_string()), key)[0].as_py())


def split_scrub(method: Method, languages: Sequence[str]) -> tuple[Method, Scrub | None]:
    """A method without a first step that scrubs, and how that scrubs: a series scrubs logs on the way in.

    Args:
        method: The method.
        languages: Those of the series.
    """
    if not isinstance(method, Pipeline) or method.scrub is None:
        return method, None
    step: ScrubStep = method.scrub
    if step.rare_term_users is not None:
        raise QueryveilError(
            "Which words are rare changes from period to period, so a series cannot scrub them; leave"
            f" {option('rare_term_users')} out."
        )
    if step.decisions is not None:
        raise QueryveilError(
            "A series scrubs logs when they are added, and decisions about queries would come later; leave"
            f" {option('decisions')} of scrub out."
        )
    nothing = Scrub.model_validate(
        {
            "how": step.how,
            "kinds": step.kinds,
            "rare_term_users": None,
            "countries": scope_of(language(*languages), step.countries).countries,
            "hits": {},
            "total": {"queries": 0, "events": 0},
        }
    )
    rest = method.steps[1:]
    return (rest[0] if len(rest) == 1 else Pipeline(rest)), nothing


_REFUSED = {
    "counts": "a table may show only some rows of a query whose events all leave with it",
    **dict.fromkeys(
        ("odp", "search", "mdav", "clump", "partition"),
        "a user who is in two releases stands in what their groups have in common, which may be one person",
    ),
    "wngen": "every event is released at once, in general terms, so nothing would wait",
    "poblete": "two releases of one query may together show more addresses than the method allows",
    "hash": "tokens would either be the same in all releases, and easier to guess each time, or match nowhere",
}
"""Methods that cannot keep their promises in a series, and why."""


def check_method(method: Method, settings_budget: tuple[float | None, float | None]) -> DifferentialPrivacy | None:
    """Refuse a method that cannot keep its promises in a series; the claim of a private one.

    Raises:
        QueryveilError: If the method is refused, or the budget does not fit it.
    """
    for step in method.parts:
        if step.name in _REFUSED:
            raise QueryveilError(
                f"{step.name} cannot make a series, because {_REFUSED[step.name]}; use equality, affinity, rules,"
                " zealous or dp-set."
            )
    epsilon, delta = settings_budget
    if not isinstance(method, PrivateMethod):
        if (epsilon, delta) != (None, None):
            raise QueryveilError(
                f"{method.name} is not differentially private, so it has no budget; leave {option('budget_epsilon')}"
                f" and {option('budget_delta')} out."
            )
        return None
    if epsilon is None or delta is None or not 0 < epsilon < float("inf") or not 0 < delta < 1:
        raise QueryveilError(
            f"A series by {method.name} needs a budget for all releases together: {option('budget_epsilon')} above 0,"
            f" and {option('budget_delta')} between 0 and 1."
        )
    return method.claim
