"""The events that wait in a series on a cluster, from one period to the next.

Everything is as on one machine (`series/state.py`): the same events wait, in the same order, so that the same release
is made. The events are Parquet tables in the ledger, which workers read and write.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pyarrow as pa

from queryveil.engines.spark import Spark, unglobbed
from queryveil.engines.spark_errors import working
from queryveil.engines.spark_parts import SparkRows
from queryveil.errors import QueryveilError
from queryveil.log import QueryLog
from queryveil.log.spark import SparkLog
from queryveil.log.waiting_spark import SparkWaiting, fresh_of, joined, waits_since, write_parquet
from queryveil.methods import Method
from queryveil.release import Release
from queryveil.series.base import Arrived, SeriesState, check_language, check_scrub, is_drawn, micros, scrubbed
from queryveil.series.ledger import Ledger, LedgerFolder, Settings
from queryveil.series.released import RELEASED
from queryveil.text import language

_ALL = "SELECT e.* FROM events e"
_PUBLISHED = "SELECT query_id, times FROM published"


@dataclass(frozen=True)
class SparkState(SeriesState):
    """What a series knows between two periods whose events wait on a cluster.

    Attributes:
        address: The folder of the waiting events as they were stored; None before the first log.
        waiting: The events as tables; None until they are needed.
        stays: SQL of those that wait on.
        published: SQL of query_id and times: how many releases have each query.
    """

    address: str | None = None
    waiting: SparkWaiting | None = None
    stays: str = _ALL
    published: str = _PUBLISHED

    @classmethod
    def load(cls, ledger: Ledger, folder: LedgerFolder, engine: Spark | None = None) -> "SparkState":
        """What a ledger knows.

        Args:
            ledger: The ledger.
            folder: Its folder.
            engine: Where to open the waiting events; None if a log is added, because they are then opened beside it.
        """
        address = folder.uri(ledger.waiting) if ledger.changes else None
        waiting = None if engine is None or address is None else SparkWaiting.load(engine, address)
        return cls(address=address, waiting=waiting, **ledger.known)

    def with_log(
        self, log: QueryLog, settings: Settings, added: datetime, *, drop_late: bool
    ) -> "tuple[SparkState, Arrived]":
        """Let the events of a log wait too, and delete what has waited too long."""
        check_scrub(log)
        check_language(log, settings)
        ours = scrubbed(log, settings.scrub)
        assert isinstance(ours, SparkLog)  # noqa: S101
        try:
            fresh = fresh_of(ours, micros(max(self.ends)) if self.ends else None)
            times = None if fresh.start is None or fresh.end is None else (fresh.start, fresh.end)
            start, end = self.period_of(times, fresh.late, added, drop_late=drop_late)
            bound = None if settings.retention is None else micros(settings.retention.before(end))
            waiting, expired = joined(
                fresh,
                self.address,
                key=settings.key,
                since=len(self.ends) + 1,
                bound=bound,
                ends=[micros(one) for one in self.ends],
            )
        finally:
            if ours is not log:
                ours.close()
        arrived = Arrived(fresh.events, fresh.users, fresh.late, expired, start, end)
        return replace(
            self,
            waiting=waiting,
            ends=(*self.ends, end),
            content=self.next_content(log),
            timed=self.timed or start is not None,
        ), arrived

    def as_log(self, settings: Settings, method: Method) -> SparkLog:
        """The log that the next release is made from: all events that wait."""
        return self._there.as_log(
            content=self.content,
            language=language(*settings.languages),
            scrub=settings.scrub,
            series=self.place(settings, method),
            drawn=is_drawn(method),
        )

    @property
    def _there(self) -> SparkWaiting:
        assert self.waiting is not None  # noqa: S101
        return self.waiting

    def after_release(
        self, made: Release, log: QueryLog, manifest: str, end: datetime, settings: Settings, folder: LedgerFolder
    ) -> "tuple[SparkState, dict[str, Any]]":
        """What waits on after a release, and what its period says about it."""
        engine, number = self._there.engine, self.releases + 1
        texts = pa.schema([("query", pa.string())])
        engine.load("released", texts if isinstance(made.batches, SparkRows) else made.schema, made.batches)
        engine.materialize(
            "SELECT q.query_id AS query_id FROM queries q JOIN (SELECT query FROM released GROUP BY query) AS r"
            " ON r.query = q.query",
            "leaving",
        )
        since = waits_since([micros(one) for one in self.ends])
        gone = "FROM events e JOIN leaving l ON l.query_id = e.query_id"
        released, queries, new, waited = engine.row(
            f"SELECT count(*) AS released, (SELECT count(*) FROM leaving) AS queries, (SELECT count(*) FROM leaving l"
            " LEFT JOIN published p ON p.query_id = l.query_id WHERE p.query_id IS NULL) AS fresh,"
            f" coalesce(avg(CAST({micros(end)} - ({since}) AS DOUBLE)), 0) AS waited {gone}"
        )
        write_parquet(
            engine,
            f'SELECT u."user" AS "user", CAST({number} AS INT) AS release, count(*) AS events {gone}'
            ' JOIN users u ON u.user_id = e.user_id GROUP BY u."user"',
            folder.uri(_released(number)),
        )
        after = replace(
            self,
            stays=f"{_ALL} LEFT JOIN leaving l ON l.query_id = e.query_id WHERE l.query_id IS NULL",
            published="SELECT query_id, CAST(sum(times) AS BIGINT) AS times FROM (SELECT query_id, times FROM published"
            " UNION ALL SELECT query_id, CAST(1 AS BIGINT) AS times FROM leaving) AS t GROUP BY query_id",
            releases=number,
            previous=manifest,
        )
        return after, {"released": released, "queries": queries, "new_queries": new, "waited": waited / 86_400e6}

    def save(self, address: str) -> tuple[int, int]:
        """Write what waits into a new folder, and count its events and distinct queries."""
        return self._there.save(address, self.stays, self.published)

    def without(self, *, user: str | None = None, before: datetime | None = None) -> "tuple[SparkState, int]":
        """The same without the waiting events of a user, or up to a time; and how many these were."""
        if self.waiting is None:
            return self, 0
        engine = self.waiting.engine
        if user is not None:
            gone, joins = "u.user_id IS NOT NULL", " LEFT JOIN forgotten u ON u.user_id = e.user_id"
            found = _checked(user)
            engine.materialize(f"SELECT user_id FROM users WHERE \"user\" = '{found}'", "forgotten")
        else:
            assert before is not None  # noqa: S101
            gone, joins = f"{waits_since([micros(one) for one in self.ends])} <= {micros(before)}", ""
        stays = f"{_ALL}{joins} WHERE NOT ({gone})"
        (events,) = engine.row(f"SELECT count(*) AS n FROM events e{joins} WHERE {gone}")
        return replace(self, stays=stays), events

    def of_user(self, digest: str, folder: LedgerFolder) -> dict[int, int]:
        """How many events of a user each release has, by its number."""
        if self.waiting is None or not self.releases:
            return {}
        paths = [unglobbed(folder.uri(_released(number))) for number in range(1, self.releases + 1)]
        with working(str(folder)):
            counts = self.waiting.engine.session.read.parquet(*paths)
            found = counts.where(f"`user` = '{_checked(digest)}'").toArrow()
        return dict(sorted(zip(found["release"].to_pylist(), found["events"].to_pylist(), strict=True)))


def _released(number: int) -> str:
    """Where the counts of a release are."""
    return f"{RELEASED}{number}.parquet"


def _checked(digest: str) -> str:
    """A keyed digest, which SQL may hold."""
    if not digest.isalnum():
        raise QueryveilError("A keyed digest in the ledger is damaged; restore the ledger from a backup.")
    return digest
