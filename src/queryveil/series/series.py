"""Release after release: a series whose releases are safe together.

Two releases that are each k-anonymous are not so together: their difference may come from one person. So events wait.
In every period the method runs on all events that wait; the events of the queries that it releases leave together, and
the others wait on. Then every release has events of its own, and the difference between any two states of what is
published is a union of whole releases, each of which keeps the promise of the method by itself.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from queryveil.claims.certificates import SUFFIX
from queryveil.errors import NothingToReleaseError, Progress, QueryveilError, option
from queryveil.files.folders import Folder, Target, check_file, local_folder
from queryveil.log import LocalLog, QueryLog, check_is_log
from queryveil.methods import Method, Pipeline
from queryveil.release import Release, check_target
from queryveil.release.store import MANIFEST
from queryveil.series.budget import check_budget, spent
from queryveil.series.ledger import (
    Forgotten,
    Ledger,
    LedgerFolder,
    Period,
    Settings,
    new_secrets,
    now,
    read_retention,
)
from queryveil.series.released import count_users, linked_pseudonyms, of_user
from queryveil.series.state import (
    OtherLogError,
    State,
    check_method,
    digest_of_user,
    fingerprint_of,
    method_of,
    queries_of,
    split_scrub,
)
from queryveil.series.status import Status
from queryveil.text.detection import named
from queryveil.text.languages import DEFAULT

if TYPE_CHECKING:
    from queryveil.series.attacks import SeriesFindings
    from queryveil.verification.verifier import Verification


@dataclass(frozen=True)
class Erased:
    """What `Series.forget` deleted, and what it could not take back.

    Attributes:
        events: Waiting events that were deleted.
        published: For a user, how many of their events each release has, by its number.
    """

    events: int
    published: dict[int, int]


class Series:
    """A series of releases, with its ledger in a private folder.

    Args:
        path: The folder of the ledger, which `Series.init` made.

    Raises:
        QueryveilError: If there is no ledger, or others can read it.

    Example:
        >>> import queryveil as qv
        >>> series = qv.Series.init("ledger", qv.Equality(k=5), retention="13months")  # doctest: +SKIP
        >>> series.add(qv.read_log("monday.tsv"), "releases/monday")  # doctest: +SKIP
    """

    def __init__(self, path: str | Path) -> None:
        self._folder = LedgerFolder(path)
        self._folder.read()

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages of its logs."""
        return self._folder.read().settings.languages

    @classmethod
    def init(
        cls,
        path: str | Path,
        method: Method,
        *,
        retention: str | None = None,
        budget_epsilon: float | None = None,
        budget_delta: float | None = None,
        carry_pseudonyms: bool = False,
        seed: int | None = None,
        language: str | Sequence[str] = DEFAULT,
    ) -> "Series":
        """Begin a series.

        Args:
            path: The folder of the ledger, which is made. It will hold unpublished queries, so only its owner can read
                it.
            method: How releases are made. If it is a pipeline that begins with `Scrub`, logs are scrubbed before their
                events wait.
            retention: How long an event may wait, such as `13months`; what waits longer is deleted. By default for
                ever.
            budget_epsilon: For a differentially private method, the epsilon that all releases may use together.
            budget_delta: The delta that they may use together.
            carry_pseudonyms: Whether the ledger keeps the pseudonyms of users, so that `links` can say which of
                different releases are of one person. That makes people far easier to re-identify.
            seed: Random seed of all releases; by default 128 random bits, kept in the ledger.
            language: The language of all logs by its code, or several in a list.

        Raises:
            QueryveilError: If the method cannot keep its promises in a series, or the folder exists.
        """
        method, scrub = split_scrub(method)
        claim = check_method(method, (budget_epsilon, budget_delta))
        if claim is not None and budget_epsilon is not None and budget_delta is not None:
            check_budget(spent(claim, 1, budget_delta), budget_epsilon, 1)
        if carry_pseudonyms and getattr(method.last, "link", "none") != "user":
            raise QueryveilError(
                f"Only pseudonyms of users can be carried over; set {option('link', 'user')} too, or leave"
                f" {option('carry_pseudonyms', True)} out."
            )
        parameters = _with_paths(method)
        settings = Settings(
            method=method.name,
            parameters=parameters,
            languages=named(language, "a series must have the same languages in every period"),
            scrub=scrub,
            retention=None if retention is None else read_retention(retention),
            budget_epsilon=budget_epsilon,
            budget_delta=budget_delta,
            carry_pseudonyms=carry_pseudonyms,
            **new_secrets(seed),
        )
        LedgerFolder(path).make(Ledger(settings=settings))
        return cls(path)

    def add(
        self,
        log: QueryLog,
        release: str | Path,
        *,
        format: str = "parquet",
        drop_late: bool = False,
        certificate: str | Path | None = None,
    ) -> Period:
        """Add the log of a period, and release what can be released of all events that wait.

        Args:
            log: The log of the period, which begins after the logs before it ended.
            release: The folder to make for the release. If nothing can be released, it is not made.
            format: `parquet`, `aol` (TSV) or `csv`.
            drop_late: Whether to leave out events that are not later than the end of the last log. They may be
                published already.
            certificate: A file to write data for quick checks of the release to.

        Returns:
            What happened: how many events came, left, expired and wait.

        Raises:
            QueryveilError: If the log was added before, does not begin after the last one ended, or the release cannot
                be written. Ledger and releases are then as before.
        """
        check_is_log(log, "Series.add")
        with self._folder.opened() as ledger:
            settings, method = ledger.settings, method_of(ledger.settings)
            fingerprint = fingerprint_of(log, settings)
            same = next((period.number for period in ledger.periods if period.fingerprint == fingerprint), None)
            if same is not None:
                raise QueryveilError(f"This log was added before, as period {same}; add each log once.")
            place = local_folder(release)
            target = check_target(place, format, overwrite=False)
            if place.path.resolve().is_relative_to(self._folder.path.resolve()):
                raise QueryveilError("A release cannot be inside the ledger, which is private; choose another place.")
            added = now()
            state, arrived = self._state(ledger).with_log(log, settings, added, drop_late=drop_late)
            period = Period(
                number=len(ledger.periods) + 1,
                added=added,
                fingerprint=fingerprint,
                start=arrived.start,
                end=arrived.end,
                events=arrived.events,
                late=arrived.late,
                users=arrived.users,
                expired=arrived.expired,
                forgotten=sum(one.events for one in ledger.forgotten if one.after == len(ledger.periods)),
            )
            pool = state.as_log(settings, method)
            try:
                made = self._made(method, pool, settings)
                if made is None:
                    return self._commit(ledger, state, period)
                return self._publish(ledger, state, period, made, pool, target, format, certificate)
            finally:
                pool.close()

    def _made(self, method: Method, pool: QueryLog, settings: Settings) -> Release | None:
        """The release of what waits; None if nothing can be released."""
        series = pool.stats.series
        if series is not None and series.spent is not None and settings.budget_epsilon is not None:
            check_budget(series.spent, settings.budget_epsilon, series.number)
        try:
            made = method.anonymize(pool, seed=settings.seed)
        except NothingToReleaseError:
            return None
        # A private release counts even if it is empty, because that it is empty was drawn with noise too.
        return made if made.manifest.counts.rows or made.manifest.private else None

    def _publish(
        self,
        ledger: Ledger,
        state: State,
        period: Period,
        made: Release,
        pool: LocalLog,
        target: Target,
        format: str,
        certificate: str | Path | None,
    ) -> Period:
        """Write a release, and at the moment it is published make its events leave."""
        queries = queries_of(made)
        done: list[tuple[Ledger, Period]] = []

        def ready(stage: Folder) -> None:
            manifest = hashlib.sha256(stage.read(MANIFEST)).hexdigest()
            after, left = state.after(queries, pool, manifest)
            assert state.waiting is not None  # noqa: S101
            new = int(np.count_nonzero(state.published.times_of(queries) == 0))
            series = pool.stats.series
            changed = period.model_copy(
                update={
                    "release": after.releases,
                    "manifest": manifest,
                    "released": int(np.count_nonzero(left)),
                    "queries": len(queries),
                    "new_queries": new,
                    "waited": state.waited(left, period.end),
                    "epsilon": None if series is None or series.spent is None else series.spent.epsilon,
                }
            )
            entry, changed = self._staged(ledger, after, changed)
            kept = None
            if ledger.settings.carry_pseudonyms and made.pseudonyms is not None:
                kept = pool.engine.fetch(f'SELECT user_id, "user" FROM {made.pseudonyms}')
            count_users(state.waiting, left, self._folder.path, after.releases, kept)
            self._folder.announce(entry, Path(str(target.folder)), Path(str(stage)), manifest)
            done.append((entry, changed))

        if certificate is not None:
            check_file(certificate, (SUFFIX,), False)
        made.save(target, format=format, allow_empty=True, ready=ready)
        entry, changed = done[0]
        self._folder.commit(entry)
        if certificate is not None:
            made.save_certificate(certificate)
        return changed

    def _commit(self, ledger: Ledger, state: State, period: Period) -> Period:
        """Record a period without a release."""
        entry, period = self._staged(ledger, state, period)
        self._folder.commit(entry)
        return period

    def _staged(self, ledger: Ledger, state: State, period: Period) -> tuple[Ledger, Period]:
        """The ledger with a new period, whose waiting events are written."""
        assert state.waiting is not None  # noqa: S101
        period = period.model_copy(
            update={"waiting": len(state.waiting), "waiting_queries": len(state.waiting.texts["query"])}
        )
        entry = ledger.model_copy(
            update={
                "periods": (*ledger.periods, period),
                "changes": ledger.changes + 1,
                "content": state.content.hex(),
            }
        )
        self._folder.stage(entry, state.waiting, state.published)
        return entry, period

    def _state(self, ledger: Ledger) -> State:
        last = ledger.releases[-1] if ledger.releases else None
        return State(
            waiting=self._folder.waiting(ledger),
            published=self._folder.published(ledger),
            ends=tuple(period.end for period in ledger.periods),
            content=bytes.fromhex(ledger.content),
            releases=len(ledger.releases),
            previous=None if last is None else last.manifest,
        )

    def status(self) -> Status:
        """What came, what was released, what waits and what was lost, period by period."""
        with self._folder.opened() as ledger:
            return Status(ledger)

    def verify(self, releases: Sequence[str | Path], logs: Iterable[QueryLog] | None = None) -> "Verification":
        """Check the series: the chain of its releases, and with the logs every promise of every release.

        Args:
            releases: The folders of all releases, in their order.
            logs: All logs that were added, in their order; they can be read one at a time (a generator). By default
                only what needs no log is checked.
        """
        from queryveil.series.verify import check_series

        with self._folder.opened() as ledger:
            return check_series(ledger, [Release.load(folder) for folder in releases], logs)

    def attack(
        self,
        releases: Sequence[str | Path],
        logs: Iterable[QueryLog],
        *,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> "SeriesFindings":
        """Attack the series: what do its releases show together, and when they appear?

        Args:
            releases: The folders of all releases, in their order.
            logs: All logs that were added, in their order.
            seed: Random seed.
            progress: Called with the name of each step as it begins.

        Raises:
            QueryveilError: If releases or logs are not those of the ledger.
        """
        from queryveil.series.attacks import attack_series
        from queryveil.series.verify import check_series

        with self._folder.opened() as ledger:
            loaded = [Release.load(folder) for folder in releases]
            wrong = next((one for one in check_series(ledger, loaded, None).verdicts if not one.holds), None)
            if wrong is not None:
                raise QueryveilError(f"These are not the releases of this ledger: {wrong.counterexample}.")
            try:
                return attack_series(ledger, loaded, logs, seed=seed, progress=progress)
            except OtherLogError as error:
                raise QueryveilError(f"These are not the logs of this ledger: {error}.") from None

    def links(self) -> pa.Table:
        """Which pseudonyms of different releases are of one person: `release`, `user` as it stands there, `person`.

        Publish it only if you must: `attack` measures what it makes easier.

        Raises:
            QueryveilError: If the series was not begun with `carry_pseudonyms`, or has no release.
        """
        with self._folder.opened() as ledger:
            if not ledger.settings.carry_pseudonyms or not ledger.releases:
                raise QueryveilError(
                    "This ledger keeps no pseudonyms, so releases cannot be linked; begin a series with"
                    f" {option('carry_pseudonyms', True)}, and make a release."
                )
            draws = np.random.default_rng(ledger.settings.seed)
            return linked_pseudonyms(self._folder.path, len(ledger.releases), draws)

    def forget(self, *, user: str | None = None, before: datetime | None = None) -> Erased:
        """Delete waiting events: those of a person (the right to erasure), or all up to a time.

        Args:
            user: The name of the user in the logs.
            before: The time.

        Returns:
            How many events were deleted and, for a user, how many of their events are published already. What is
            published cannot be taken back.
        """
        if (user is None) == (before is None):
            raise QueryveilError(f"Say what to forget: either {option('user')} or {option('before')}.")
        with self._folder.opened() as ledger:
            digest = None if user is None else digest_of_user(user, ledger.settings.key)
            state, events = self._state(ledger).without(user=digest, before=before)
            published = {} if digest is None else of_user(self._folder.path, digest, len(ledger.releases))
            if events and state.waiting is not None:
                note = Forgotten(after=len(ledger.periods), user=digest, before=before, events=events)
                entry = ledger.model_copy(
                    update={"forgotten": (*ledger.forgotten, note), "changes": ledger.changes + 1}
                )
                self._folder.stage(entry, state.waiting, state.published)
                self._folder.commit(entry)
            return Erased(events, published)


def _with_paths(method: Method) -> dict[str, Any]:
    """The parameters of a method, with files as they are found from any folder."""
    if isinstance(method, Pipeline):
        return {"steps": [{"method": step.name, "parameters": _with_paths(step)} for step in method.steps]}
    given = method.model_dump(mode="json")
    files = {name: value for name, value in method if isinstance(value, Path)}
    return given | {name: str(path.absolute()) for name, path in files.items()}
