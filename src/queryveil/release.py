"""Release: what leaves the house, with its manifest; written whole or not at all."""

import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
from numpy.typing import NDArray
from pydantic import ValidationError

from queryveil.bands import bands
from queryveil.claims import Claim, Verdict
from queryveil.errors import QueryveilError
from queryveil.formats import writers
from queryveil.log import QueryLog
from queryveil.manifest import FORMAT_VERSION, Counts, Manifest
from queryveil.summary import markdown

MANIFEST, REPORT = "manifest.json", "report.md"
_BATCH = 250_000


@dataclass(frozen=True)
class Release:
    """A released table and its manifest, in memory or in a directory.

    Attributes:
        manifest: What the release is and promises.
        schema: The columns of the released table.
        batches: Gives the released table, batch after batch.
        log: The original log, if the release was just made from it.
        path: Its directory, if it was loaded.
        fresh_user: The released id of each user id of the log, 0 for those not in it; the secret of the release.
    """

    manifest: Manifest
    schema: pa.Schema
    batches: Callable[[], Iterator[pa.RecordBatch]]
    log: QueryLog | None = None
    path: Path | None = None
    fresh_user: NDArray[np.int64] | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        counts = self.manifest.counts
        return f"<Release by {self.manifest.method}: {counts.queries:,} distinct queries, {counts.events:,} events>"

    @classmethod
    def of_events(
        cls,
        log: QueryLog,
        events: str,
        clicks: str | None,
        *,
        method: str,
        parameters: Mapping[str, Any],
        claims: Sequence[Claim],
        limits: Sequence[str],
        seed: int,
        users: Literal["fresh", "drop"] = "fresh",
        carried: Sequence[str] = (),
        notes: Sequence[str] = (),
    ) -> "Release":
        """A release of some of the log's events, under fresh user ids in random order.

        Args:
            log: The original log.
            events: SQL that gives event_id, user_id, query_id and the carried columns of the released events.
            clicks: SQL that gives event_id, rank, url_id of the released clicks; None for a release without clicks.
            method: The name of the method.
            parameters: Its parameters.
            claims: What the release promises.
            limits: What it does not promise, in plain words.
            seed: Decides all that is random.
            users: Whether users stay apart under fresh ids, or are dropped.
            carried: Further columns of `events` that are released.
            notes: Sentences for the report about what the method did.
        """
        # Two releases of one log must not line up, so that draws differ by method and parameters as well.
        draws = partial(log.secret, seed, f"{method} {json.dumps(parameters, sort_keys=True)}")
        rows, fresh = _shuffled_rows(log, events, clicks, draws, users, carried)
        schema, text = _texts(log, rows, users, clicks is not None, carried)
        query, event = rows["query_id"].to_numpy(), rows["event"].to_numpy()
        kept_events = np.bincount(query[np.diff(event, prepend=0) > 0], minlength=log.n_queries)
        counts = Counts(
            rows=len(rows),
            events=int(kept_events.sum()),
            users=int(np.count_nonzero(fresh)) if users == "fresh" else None,
            queries=int(np.count_nonzero(kept_events)),
            clicks=len(rows) - rows["url_id"].null_count if clicks is not None else 0,
        )
        manifest = Manifest(
            method=method,
            parameters=dict(parameters),
            seed=seed,
            claims=tuple(claims),
            limits=tuple(limits),
            notes=tuple(notes),
            input_fingerprint=log.fingerprint,
            input_counts=counts_of(log),
            counts=counts,
            bands=bands(log.users_per_query, log.events_per_query, kept_events),
            columns=tuple(schema.names),
        )
        return cls(manifest, schema, text, log=log, fresh_user=fresh)

    @classmethod
    def load(cls, path: str | Path) -> "Release":
        """Open a release directory.

        Raises:
            QueryveilError: If there is none, or it is not as its manifest says.
        """
        place = Path(path)
        try:
            text = (place / MANIFEST).read_text("utf-8")
            manifest = Manifest.model_validate_json(text)
        except OSError:
            raise QueryveilError(
                f"There is no release in {place}: it has no readable {MANIFEST}; give the directory that "
                "'queryveil anonymize -o' wrote."
            ) from None
        except ValidationError as error:
            version = _version_of(text)
            if version != FORMAT_VERSION:
                raise QueryveilError(
                    f"The release {place} has format version {version}, this queryveil reads version {FORMAT_VERSION}; "
                    "use the version of queryveil that made it."
                ) from None
            where = ".".join(map(str, error.errors()[0]["loc"]))
            raise QueryveilError(f"The manifest {place / MANIFEST} is damaged at '{where}'.") from None
        if "/" in manifest.table or manifest.table.startswith(".") or not (place / manifest.table).is_file():
            raise QueryveilError(f"The release {place} lacks its table '{manifest.table}'; fetch it again.")
        try:
            schema, batches = writers.open_table(place / manifest.table)
        except (pa.ArrowException, OSError, ValueError):
            raise QueryveilError(f"The table {place / manifest.table} is damaged; fetch the release again.") from None
        if tuple(schema.names) != manifest.columns:
            raise QueryveilError(f"The table of {place} does not have the columns that its manifest names.")
        wrong = next((name for name in schema.names if not writers.is_typed(schema.field(name))), None)
        if wrong is not None:
            raise QueryveilError(f"The column '{wrong}' of {place / manifest.table} is of the wrong type.")
        return cls(manifest, schema, batches, path=place)

    def save(
        self,
        path: str | Path,
        *,
        format: str = "parquet",
        overwrite: bool = False,
        allow_empty: bool = False,
    ) -> tuple[Verdict, ...]:
        """Check every claim, then write the release as a new directory.

        Args:
            path: The directory to make; its parent must exist.
            format: `parquet`, `aol` (TSV) or `csv`.
            overwrite: Whether an earlier release at this place may be replaced.
            allow_empty: Whether a release without a single query is worth writing.

        Returns:
            The verdicts of the checks, all of which hold.

        Raises:
            QueryveilError: If the release must not or cannot be written. Nothing is left behind then.
        """
        if self.log is None:
            raise QueryveilError(
                "This release was loaded from a directory; copy the directory instead of saving it again."
            )
        place = Path(path)
        check_target(place, format, overwrite)
        if self.manifest.counts.rows == 0 and not allow_empty:
            raise QueryveilError(
                "The release would be empty: no query of the log passes; loosen the parameters, or write it all "
                "the same with --allow-empty."
            )
        stage = None
        try:
            stage = Path(tempfile.mkdtemp(prefix=".queryveil-", dir=place.parent))
            table = f"log{writers.SUFFIXES[format]}"
            schema = writers.schema_in(format, self.schema)
            writers.write(stage / table, format, self.schema, self.batches())
            manifest = self.manifest.model_copy(update={"table": table, "columns": tuple(schema.names)})
            verdicts = _checked(Release(manifest, *writers.open_table(stage / table)), self.log)
            _publish(manifest, verdicts, stage, place)
        except OSError as error:
            why = "the disk is full" if error.errno == errno.ENOSPC else (error.strerror or str(error))
            raise QueryveilError(f"The release cannot be written to {place}: {why}.") from error
        finally:
            if stage is not None:
                shutil.rmtree(stage, ignore_errors=True)
        return verdicts

    def save_user_map(self, path: str | Path) -> None:
        """Write the secret map from original to released users as CSV, readable by its owner alone.

        Whoever has this file can undo the fresh ids. It is for measuring, and never part of a release.
        """
        if self.log is None or self.fresh_user is None:
            raise QueryveilError("Only a release that was just made knows its user map.")
        members = np.flatnonzero(self.fresh_user)
        table = pa.table({"original": self.log.user_text.take(pa.array(members)), "released": self.fresh_user[members]})
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "wb") as file:
                pacsv.write_csv(table, file)
        except OSError as error:
            raise QueryveilError(f"The user map cannot be written to {path}: {error.strerror}.") from error


def counts_of(log: QueryLog) -> Counts:
    """How much there is in a log."""
    return Counts(
        rows=log.rows, events=len(log.events), users=log.n_users, queries=log.n_queries, clicks=len(log.clicks)
    )


@contextmanager
def loaded(release: Release, log: QueryLog) -> Iterator[None]:
    """Have the released table beside the log's own tables, under the name `released`."""
    log.engine.load("released", pa.RecordBatchReader.from_batches(release.schema, release.batches()))
    try:
        yield
    finally:
        log.engine.drop("released")


def check_claims(release: Release, log: QueryLog) -> tuple[Verdict, ...]:
    """Check every claim of a release against the original log."""
    with loaded(release, log):
        return tuple(claim.verdict(log, tuple(release.schema.names)) for claim in release.manifest.claims)


def check_target(place: Path, format: str, overwrite: bool) -> None:
    """Refuse a place where a release cannot or must not be written."""
    if format not in writers.SUFFIXES:
        raise QueryveilError(f"There is no release format '{format}'; the formats are {', '.join(writers.SUFFIXES)}.")
    if not place.parent.is_dir():
        raise QueryveilError(f"The folder {place.parent} does not exist; make it first.")
    if place.exists() and not overwrite:
        raise QueryveilError(f"{place} exists already; choose another place, or replace it with --overwrite.")
    if place.exists() and not (place / MANIFEST).is_file():
        raise QueryveilError(f"{place} is not a release, so it is not overwritten; choose another place.")


def _checked(release: Release, log: QueryLog) -> tuple[Verdict, ...]:
    verdicts = check_claims(release, log)
    wrong = next((verdict for verdict in verdicts if not verdict.holds), None)
    if wrong is not None:
        # The counter-example is not published, so it must not be told either.
        raise QueryveilError(f"The release was not written, because a check refutes what it promises: {wrong.claim}")
    return verdicts


def _publish(manifest: Manifest, verdicts: Sequence[Verdict], stage: Path, place: Path) -> None:
    (stage / REPORT).write_text(markdown(manifest, verdicts), "utf-8")
    files = {file.name: sha256(file) for file in sorted(stage.iterdir())}
    manifest = manifest.model_copy(update={"files": files})
    (stage / MANIFEST).write_text(manifest.model_dump_json(indent=2) + "\n", "utf-8")
    for file in stage.iterdir():
        with file.open("rb") as handle:
            os.fsync(handle.fileno())
    mask = os.umask(0)
    os.umask(mask)
    stage.chmod(0o777 & ~mask)  # the staging folder was private; a release is meant to be handed on
    if place.exists():
        old = Path(tempfile.mkdtemp(prefix=".queryveil-old-", dir=place.parent))
        place.rename(old / "release")
        try:
            stage.rename(place)
        except BaseException:
            (old / "release").rename(place)
            raise
        finally:
            shutil.rmtree(old, ignore_errors=True)
    else:
        stage.rename(place)


def sha256(file: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with file.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _version_of(text: str) -> object:
    try:
        return json.loads(text).get("format_version")
    except (ValueError, AttributeError):
        return "unknown"


def _shuffled_rows(
    log: QueryLog,
    events: str,
    clicks: str | None,
    draws: Callable[[str], bytes],
    users: str,
    carried: Sequence[str],
) -> tuple[pa.Table, NDArray[np.int64]]:
    """Released rows as integers, in an order that tells nothing: by fresh user, query, and a keyed draw an event.

    Columns: user, event (numbered anew), query_id, rank, url_id, and the carried ones.
    """
    engine = log.engine
    kept = engine.table(events)
    user_id, event_id = kept["user_id"].to_numpy(), kept["event_id"].to_numpy()
    fresh = _fresh_ids(log, user_id, draws("user"))
    kept = kept.append_column("user", pa.array(fresh[user_id]))
    kept = kept.append_column("draw", pa.array(keyed(draws("event"), event_id.astype(np.uint64))))
    engine.read("kept", kept)
    # Where users are dropped, their order must not stand in for them.
    by_user = '"user", ' if users == "fresh" else ""
    names = ", ".join(f'"{name}"' for name in ("user", "query_id", "event_id", *carried))
    kept = engine.table(f"SELECT {names} FROM kept ORDER BY {by_user}query_id, draw, event_id")
    engine.forget("kept")
    columns = {name: kept[name] for name in ("user", "query_id", *carried)}
    columns["event"] = pa.array(np.arange(1, len(kept) + 1))
    if clicks is not None:
        columns = _with_clicks(columns, kept["event_id"].to_numpy(), engine.table(clicks), len(log.events))
    return pa.table(columns), fresh


def _fresh_ids(log: QueryLog, user_id: NDArray[np.int32], key: bytes) -> NDArray[np.int64]:
    """Ids 1, 2, ... for the users that occur, in keyed order; 0 for all others."""
    fresh = np.zeros(log.n_users, np.int64)
    members = np.flatnonzero(np.bincount(user_id, minlength=log.n_users))
    order = np.argsort(keyed(key, log.user_digest[members]), kind="stable")
    fresh[members[order]] = np.arange(1, len(members) + 1)
    return fresh


def _with_clicks(
    columns: Mapping[str, pa.ChunkedArray], event_id: NDArray[np.int32], clicks: pa.Table, n_events: int
) -> dict[str, pa.Array]:
    """Give each event a row for each of its clicks, or one row without."""
    clicks = clicks.sort_by([("event_id", "ascending"), ("rank", "ascending"), ("url_id", "ascending")])
    per_event = np.bincount(clicks["event_id"].to_numpy(), minlength=n_events)
    first = (np.cumsum(per_event) - per_event)[event_id]
    count = per_event[event_id]
    rows = np.maximum(count, 1)
    event = np.repeat(np.arange(len(event_id)), rows)
    within = np.arange(len(event)) - np.repeat(np.cumsum(rows) - rows, rows)
    click = pa.array(first[event] + within, mask=count[event] == 0)
    result = {name: values.take(pa.array(event)) for name, values in columns.items()}
    return result | {name: clicks[name].combine_chunks().take(click) for name in ("rank", "url_id")}


def keyed(key: bytes, numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A keyed digest of each number: random to whoever lacks the key, the same in every run."""
    from queryveil.kernels.digest import digests

    words = np.empty((len(numbers), 3), np.uint64)
    words[:, :2] = np.frombuffer(key, np.uint64)
    words[:, 2] = numbers
    starts = np.arange(len(numbers), dtype=np.int64) * 24
    return digests(words.reshape(-1).view(np.uint8), starts, starts + 24)[0]


def _texts(
    log: QueryLog, rows: pa.Table, users: str, with_clicks: bool, carried: Sequence[str]
) -> tuple[pa.Schema, Callable[[], Iterator[pa.RecordBatch]]]:
    """The schema of the released table, and its batches with texts in place of ids."""
    columns: dict[str, pa.DataType] = {"user": pa.int64()} if users == "fresh" else {}
    columns |= {"event": pa.int64(), "query": pa.string()}
    columns |= {name: rows.schema.field(name).type for name in carried}
    if with_clicks:
        columns |= {"rank": pa.int32(), "url": pa.string()}
    schema = pa.schema(list(columns.items()))

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, len(rows), _BATCH):
            batch = rows.slice(start, _BATCH).combine_chunks().to_batches()[0]
            found = {name: batch[name] for name in batch.schema.names if name in columns}
            found["query"] = log.query_text.take(batch["query_id"]).cast(pa.string())
            if with_clicks:
                found["url"] = log.url_text.take(batch["url_id"]).cast(pa.string())
            yield pa.RecordBatch.from_arrays([found[name] for name in columns], schema=schema)

    return schema, batches
