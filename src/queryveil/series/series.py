"""Release after release: a series whose releases are safe together.

Two releases that are each k-anonymous are not so together: their difference may come from one person. So events wait.
In every period the method runs on all events that wait; the events of the queries that it releases leave together, and
the others wait on. Then every release has events of its own, and the difference between any two states of what is
published is a union of whole releases, each of which keeps the promise of the method by itself.
"""

import hashlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from queryveil.claims.certificates import SUFFIX
from queryveil.errors import NothingToReleaseError, Progress, QueryveilError, option
from queryveil.files.folders import Folder, Target, check_file, is_address, local_folder, shown
from queryveil.log import LocalLog, QueryLog, check_is_log
from queryveil.methods import Method, Pipeline
from queryveil.release import Release, check_target
from queryveil.release.about import About
from queryveil.release.store import MANIFEST
from queryveil.series.base import SeriesState
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
from queryveil.series.released import linked_pseudonyms
from queryveil.series.state import (
    OtherLogError,
    State,
    check_method,
    digest_of_user,
    fingerprint_of,
    method_of,
    split_scrub,
)
from queryveil.series.status import Status
from queryveil.text.detection import named
from queryveil.text.languages import DEFAULT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from queryveil.engines.spark import Spark
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
        engine: A Spark session. It is needed for a ledger at an address that only a cluster reaches, and to `forget` if
            events wait on Spark. Where they wait is decided by the first log.

    Raises:
        QueryveilError: If there is no ledger, or others can read it.

    Example:
        >>> import queryveil as qv
        >>> series = qv.Series.init("ledger", qv.Equality(k=5), retention="13months")  # doctest: +SKIP
        >>> series.add(qv.read_log("monday.tsv"), "releases/monday")  # doctest: +SKIP
    """

    def __init__(self, path: str | Path, *, engine: "SparkSession | Spark | None" = None) -> None:
        self._engine = _cluster(engine)
        self._folder = _folder(path, self._engine)
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
        engine: "SparkSession | Spark | None" = None,
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
            engine: A Spark session, if the folder is at an address that only a cluster reaches.
            language: The language of all logs by its code, or several in a list.

        Raises:
            QueryveilError: If the method cannot keep its promises in a series, or the folder exists.
        """
        languages = named(language, "a series must have the same languages in every period")
        method, scrub = split_scrub(method, languages)
        claim = check_method(method, (budget_epsilon, budget_delta))
        if seed is not None and seed < 0:
            raise QueryveilError(f"The seed must be a whole number of at least 0. Got {seed} instead.")
        if claim is not None and budget_epsilon is not None and budget_delta is not None:
            if claim.delta > budget_delta:
                raise QueryveilError(
                    f"The delta of a single release is {claim.delta:g}, more than {option('budget_delta')} allows all"
                    " of them together; raise that, or lower the delta of the method."
                )
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
            languages=languages,
            scrub=scrub,
            retention=None if retention is None else read_retention(retention),
            budget_epsilon=budget_epsilon,
            budget_delta=budget_delta,
            carry_pseudonyms=carry_pseudonyms,
            **new_secrets(seed),
        )
        cluster = _cluster(engine)
        _folder(path, cluster).make(Ledger(settings=settings))
        return cls(path, engine=cluster)

    def add(
        self,
        log: QueryLog,
        release: str | Path,
        *,
        format: str = "parquet",
        drop_late: bool = False,
        certificate: str | Path | None = None,
        about: About | None = None,
    ) -> Period:
        """Add the log of a period, and release what can be released of all events that wait.

        Args:
            log: The log of the period, which begins after the logs before it ended.
            release: The folder to make for the release, or its address if the log is on a cluster. If nothing can be
                released, it is not made.
            format: `parquet`, `aol` (TSV) or `csv`.
            drop_late: Whether to leave out events that are not later than the end of the last log. They may be
                published already.
            certificate: A file to write data for quick checks of the release to.
            about: What its publisher says about the release.

        Returns:
            What happened: how many events came, left, expired and wait.

        Raises:
            QueryveilError: If the log was added before, does not begin after the last one ended, or the release cannot
                be written. Ledger and releases are then as before.
        """
        check_is_log(log, "Series.add")
        with self._folder.opened(log.folder) as ledger:
            ledger = self._begun(ledger, log)
            settings, method = ledger.settings, method_of(ledger.settings)
            fingerprint = fingerprint_of(log, settings)
            same = next((period.number for period in ledger.periods if period.fingerprint == fingerprint), None)
            if same is not None:
                raise QueryveilError(f"This log was added before, as period {same}; add each log once.")
            place = log.folder(release)
            target = check_target(place, format, overwrite=False)
            if self._folder.holds(place):
                raise QueryveilError("A release cannot be inside the ledger, which is private; choose another place.")
            added = now()
            state, arrived = _state(ledger, self._folder).with_log(log, settings, added, drop_late=drop_late)
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
                return self._publish(ledger, state, period, made, pool, target, format, certificate, about)
            finally:
                pool.close()

    def _begun(self, ledger: Ledger, log: QueryLog) -> Ledger:
        """The ledger, whose events wait on one machine or on a cluster as its first log decides.

        Raises:
            QueryveilError: If the log is not where the events wait.
        """
        kind: Literal["duckdb", "spark"] = "duckdb" if isinstance(log, LocalLog) else "spark"
        if "spark" in (ledger.engine, self._folder.engine) and kind != "spark":
            spark = option("engine", "spark", python="engine=...")
            raise QueryveilError(f"The events of {self._folder} wait on Spark; read the log there too, with {spark}.")
        if ledger.engine == "duckdb" and kind != "duckdb":
            raise QueryveilError(
                f"The events of {self._folder} wait on one machine; read the log without {option('engine')}, or begin"
                " another series on Spark."
            )
        if kind == "spark" and ledger.settings.carry_pseudonyms:
            raise QueryveilError(
                "On Spark the ledger keeps no pseudonyms, because their links are one table in memory; begin the series"
                f" without {option('carry_pseudonyms', True)}, or read the log without {option('engine')}."
            )
        return ledger.model_copy(update={"engine": kind})

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
        state: SeriesState,
        period: Period,
        made: Release,
        pool: QueryLog,
        target: Target,
        format: str,
        certificate: str | Path | None,
        about: About | None,
    ) -> Period:
        """Write a release, and at the moment it is published make its events leave."""
        done: list[tuple[Ledger, Period]] = []

        def ready(stage: Folder) -> None:
            manifest = hashlib.sha256(stage.read(MANIFEST)).hexdigest()
            after, counts = state.after_release(made, pool, manifest, period.end, ledger.settings, self._folder)
            events = counts["released"] if made.manifest.private else made.manifest.counts.events
            counts |= {"released": events, "left_out": counts["released"] - events}
            series = pool.stats.series
            used = None if series is None or series.spent is None else series.spent.epsilon
            changed = period.model_copy(
                update={"release": after.releases, "manifest": manifest, "epsilon": used, **counts}
            )
            entry, changed = self._staged(ledger, after, changed)
            done.append((entry, changed))
            self._folder.announce(entry, target.folder, stage, manifest)

        if certificate is not None:
            check_file(certificate, (SUFFIX,), False)
        try:
            made.save(target, format=format, allow_empty=True, about=about, ready=ready)
        except BaseException:
            for _, failed in done:
                with suppress(QueryveilError, OSError):  # then the next change finds out
                    self._folder.withdraw(target.folder, failed.manifest or "")
            raise
        entry, changed = done[0]
        self._folder.commit(entry)
        if certificate is not None:
            made.save_certificate(certificate)
        return changed

    def _commit(self, ledger: Ledger, state: SeriesState, period: Period) -> Period:
        """Record a period without a release."""
        entry, period = self._staged(ledger, state, period)
        self._folder.commit(entry)
        return period

    def _staged(self, ledger: Ledger, state: SeriesState, period: Period) -> tuple[Ledger, Period]:
        """The ledger with a new period, whose waiting events are written."""
        entry = ledger.model_copy(update={"changes": ledger.changes + 1, "content": state.content.hex()})
        events, queries = self._folder.stage(entry, state.save)
        period = period.model_copy(update={"waiting": events, "waiting_queries": queries})
        return entry.model_copy(update={"periods": (*ledger.periods, period)}), period

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
            return check_series(ledger, self._loaded(releases), logs)

    def _loaded(self, releases: Sequence[str | Path]) -> list[Release]:
        return [Release.load(_at(str(folder), self._engine)) for folder in releases]

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
            loaded = self._loaded(releases)
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
            engine = None
            if ledger.engine == "spark":
                if self._engine is None:
                    session = option("engine", "spark", python="Series(..., engine=...)")
                    raise QueryveilError(f"The events of {self._folder} wait on Spark; reach them with {session}.")
                engine = self._engine.beside()
            try:
                state, events = _state(ledger, self._folder, engine).without(user=digest, before=before)
                published = {} if digest is None else state.of_user(digest, self._folder)
                if events:
                    note = Forgotten(after=len(ledger.periods), user=digest, before=before, events=events)
                    entry = ledger.model_copy(
                        update={"forgotten": (*ledger.forgotten, note), "changes": ledger.changes + 1}
                    )
                    self._folder.stage(entry, state.save)
                    self._folder.commit(entry)
            finally:
                if engine is not None:
                    engine.close()
            return Erased(events, published)


def _cluster(engine: "SparkSession | Spark | None") -> "Spark | None":
    """The cluster of a Spark session."""
    if engine is None:
        return None
    from queryveil.engines.spark import Spark

    return engine if isinstance(engine, Spark) else Spark(engine)


def _at(path: str, engine: "Spark | None") -> Folder:
    """A folder on this machine, or one that a cluster reaches."""
    if engine is None or not is_address(path):
        return local_folder(path)
    from queryveil.engines.hadoop import HadoopFolder

    return HadoopFolder(engine, path)


def _folder(path: str | Path, engine: "Spark | None") -> LedgerFolder:
    """The folder of a ledger."""
    if not is_address(path):
        return LedgerFolder(path, lambda place: _at(place, engine))
    if engine is None:
        session = option("engine", "spark", python="'engine', a Spark session")
        raise QueryveilError(f"The ledger {shown(path)} is not on this machine; reach it with {session}.")
    from queryveil.series.remote import RemoteLedgerFolder

    return RemoteLedgerFolder(engine, str(path), lambda place: _at(place, engine))


def _state(ledger: Ledger, folder: LedgerFolder, engine: "Spark | None" = None) -> SeriesState:
    """What a ledger knows; `engine` is where its waiting events are opened, if they wait on a cluster."""
    if ledger.engine != "spark":
        return State.load(ledger, folder)
    from queryveil.series.spark import SparkState

    return SparkState.load(ledger, folder, engine)


def _with_paths(method: Method) -> dict[str, Any]:
    """The parameters of a method, with files as they are found from any folder."""
    if isinstance(method, Pipeline):
        return {"steps": [{"method": step.name, "parameters": _with_paths(step)} for step in method.steps]}
    given = method.model_dump(mode="json")
    files = {name: value for name, value in method if isinstance(value, Path)}
    return given | {name: str(path.absolute()) for name, path in files.items()}
