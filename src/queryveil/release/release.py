"""Release: what leaves the house, with its manifest; written whole or not at all."""

import errno
import hmac
import itertools
import json
import os
import re
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, NotRequired, TypedDict, Unpack

import pyarrow as pa
import pyarrow.csv as pacsv
from pydantic import ValidationError

from queryveil.claims import Claim, DifferentialPrivacy, HashedWords, LinkedEvents, Verdict
from queryveil.claims.base import with_ids
from queryveil.claims.certificates import Certificate, save_certificate
from queryveil.engines import Batches, InFiles, identifier
from queryveil.errors import QueryveilError, QueryveilWarning
from queryveil.files.folders import Folder, LocalFolder, RemoteFolder, Target, local_folder
from queryveil.formats import writers
from queryveil.log import QueryLog, Size
from queryveil.log.draws import drawn
from queryveil.log.sessions import USERS, Linking, check_linking, make_sessions
from queryveil.release.bands import Band, bands
from queryveil.release.earlier import read_manifest
from queryveil.release.linkage import Linkage, measure_linkage
from queryveil.release.manifest import FORMAT_VERSION, NOT_TOLD, Counts, Manifest, written
from queryveil.release.summary import linkage_sentence, markdown

MANIFEST, REPORT = "manifest.json", "report.md"


class Said(TypedDict):
    """What a method says of a release that it makes."""

    method: str
    """Its name."""
    parameters: Mapping[str, Any]
    claims: Sequence[Claim]
    """What the release promises."""
    limits: Sequence[str]
    """What it does not promise, in plain words."""
    seed: int
    """Decides all that is random but the noise of differential privacy."""
    notes: NotRequired[Sequence[str]]
    """Sentences about what the method did."""
    certified: NotRequired[Mapping[str, pa.Table]]
    """The tables of its certificate."""


@dataclass(frozen=True)
class Release:
    """A released table and its manifest, in memory or in a directory.

    Attributes:
        manifest: What the release is and promises.
        schema: The columns of the released table.
        batches: Gives the released table, batch after batch.
        log: The original log, if the release was just made from it.
        folder: Its directory, if it was loaded.
        fresh_users: The table of the log's engine that holds the released ids of each user (one, or one for each
            session); the secret of the release. None if events are not linked.
        certificate: What makes every check of the release linear, if it was just made; private, as the log is.
    """

    manifest: Manifest
    schema: pa.Schema
    batches: Batches
    log: QueryLog | None = None
    folder: Folder | None = None
    fresh_users: str | None = field(default=None, repr=False)
    measured: Callable[[], Linkage | None] | None = field(default=None, repr=False)
    """Measures how far background knowledge leads, where events are linked."""
    certificate: Certificate | None = field(default=None, repr=False)
    notes: tuple[str, ...] = ()
    """What the method did on this log; not published, because a reader could not check it."""

    @property
    def seed(self) -> int | None:
        """The random seed, if its certificate is known: a secret, because it lets guesses about the log be checked."""
        return None if self.certificate is None else self.certificate.seed

    def __repr__(self) -> str:
        counts = self.manifest.counts
        if "node" in self.schema.names:
            return f"<Release by {self.manifest.method}: {counts.queries:,} distinct items, {counts.rows:,} rows>"
        return f"<Release by {self.manifest.method}: {counts.queries:,} distinct queries, {counts.events:,} events>"

    @classmethod
    def of_events(
        cls,
        log: QueryLog,
        events: str,
        clicks: str | None,
        *,
        linking: Linking = USERS,
        carried: Sequence[str] = (),
        holders: str | None = None,
        **said: Unpack[Said],
    ) -> "Release":
        """A release of some of the log's events, in random order, under pseudonyms if they are linked.

        Args:
            log: The original log.
            events: SQL that gives event_id, user_id, query_id and the carried columns of the released events.
            clicks: SQL that gives event_id, rank, url_id of the released clicks; None for a release without clicks.
            linking: What ties released events together.
            carried: Further columns of `events` that are released.
            holders: SQL of user_id and holder, the user under whose pseudonym they are released; by default their own.
            said: What the method says of it.
        """
        draws = _draws(log, said)
        made = _shuffled_rows(log, events, clicks, draws, linking, carried)
        schema = _schema(linking, clicks is not None, carried)
        clicked = "count(url_id)" if clicks is not None else "0"
        n_rows, n_clicks = log.engine.row(f'SELECT count(*) AS n, {clicked} AS clicks FROM "{made.rows}"')  # noqa: S608  # names of tables are made here
        found = bands(
            log.frequencies(
                "SELECT query_id, count(*) AS n FROM (SELECT query_id, event FROM"  # noqa: S608  # names of tables are made here
                f' "{made.rows}" GROUP BY query_id, event) AS kept GROUP BY query_id'
            )
        )
        manifest = _manifest(
            log,
            said,
            schema,
            Counts(
                rows=n_rows,
                events=sum(band.kept_events for band in found),
                queries=sum(band.kept_queries for band in found),
                clicks=n_clicks,
                **_pseudonyms(log, made, linking),
            ),
            found,
        )
        fresh = made.fresh
        if holders is not None and made.fresh is not None:
            fresh = f"{made.fresh} of all"
            log.engine.materialize(
                f'SELECT h.user_id AS user_id, f."user" AS "user" FROM ({holders}) AS h'  # noqa: S608  # parts are this package's own
                f' JOIN "{made.fresh}" f ON f.user_id = h.holder',
                fresh,
            )
        measured = _linkage(log, made.rows, fresh, linking, said)
        texts = log.texts(made.rows, schema)
        release = cls(manifest, schema, texts, log=log, fresh_users=fresh, measured=measured, **_unpublished(said))
        weakref.finalize(release, log.engine.drop, *made.tables, *([fresh] if fresh is not None else []))
        return release

    @classmethod
    def of_items(
        cls,
        log: QueryLog,
        items: str,
        names: pa.Array,
        *,
        linking: Linking = USERS,
        members: bool = False,
        **said: Unpack[Said],
    ) -> "Release":
        """A release of nodes of a tree in the place of queries, in random order, under pseudonyms if they are linked.

        Args:
            log: The original log.
            items: SQL that gives event_id, user_id and node.
            names: What every node is called.
            linking: What ties released items together; sessions need the event_id of events of the log.
            members: Whether its certificate says who has which pseudonym.
            said: What the method says of it.
        """
        draws = _draws(log, said)
        # A node takes the place of the query all the way; only its text comes from elsewhere.
        rows = f"SELECT event_id, user_id, node AS query_id FROM ({items}) AS items"  # noqa: S608  # parts are this package's own
        made = _shuffled_rows(log, rows, None, draws, linking, ())
        schema = pa.schema([(name, writers.type_of(name)) for name in (*_id_column(linking), "item", "node")])
        n_rows, n_items = log.engine.row(
            "SELECT CAST(sum(n) AS BIGINT) AS n, count(*) AS items FROM"  # noqa: S608  # names of tables are made here
            f' (SELECT query_id, count(*) AS n FROM "{made.rows}" GROUP BY query_id) AS items'
        )
        manifest = _manifest(
            log,
            said,
            schema,
            Counts(
                rows=n_rows or 0,
                events=n_rows or 0,
                queries=n_items,
                clicks=0,
                **_pseudonyms(log, made, linking),
            ),
            bands(log.frequencies()),
        )
        ordered = log.engine.ordered(made.rows)

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in ordered():
                node = batch["query_id"]
                found = {name: batch[name] for name in _id_column(linking)} | {"item": names.take(node), "node": node}
                arrays = [found[field.name].cast(field.type) for field in schema]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)

        measured = _linkage(log, made.rows, made.fresh, linking, said, own=True)
        unpublished = _unpublished(said)
        if members and made.fresh is not None:
            named = log.engine.table(f'SELECT user_id, "user" FROM {identifier(made.fresh)} ORDER BY user_id')  # noqa: S608  # a name of ours
            unpublished["certificate"] = Certificate(said["seed"], {"members": named})
        release = cls(manifest, schema, batches, log=log, fresh_users=made.fresh, measured=measured, **unpublished)
        weakref.finalize(release, log.engine.drop, *made.tables)
        return release

    @classmethod
    def of_counts(
        cls,
        log: QueryLog,
        rows: str,
        *,
        columns: Sequence[str],
        **said: Unpack[Said],
    ) -> "Release":
        """A release of queries, and maybe of noisy counts, that is differentially private.

        The manifest says nothing exact about the log: no fingerprint, no counts, no frequency bands. What
        counts as events is the sum of the published counts of queries, or the number of queries where none are.

        Args:
            log: The original log.
            rows: SQL that gives query_id, and with the columns `url` and `count` also url_id (NULL in the row of the
                query itself) and count.
            columns: The columns of the released table, of `query`, `url` and `count`.
            said: What the method says of it.
        """
        made = f"released counts {next(_numbers)}"
        then = ("url_id",) if "url" in columns else ()
        log.engine.number(rows, ("query_id",), made, "place", then=then)
        schema = pa.schema([(name, writers.type_of(name)) for name in columns])
        plain = "url_id IS NULL" if "url" in columns else "1 = 1"
        counted = '"count"' if "count" in columns else "1"
        n_rows, n_queries, n_events = log.engine.row(
            f"SELECT count(*) AS n, coalesce(CAST(sum(CASE WHEN {plain} THEN 1 ELSE 0 END) AS BIGINT), 0) AS queries,"  # noqa: S608  # parts are this package's own
            f" coalesce(CAST(sum(CASE WHEN {plain} THEN {counted} ELSE 0 END) AS BIGINT), 0) AS events"
            f' FROM "{made}"'
        )
        manifest = _manifest(
            log,
            said,
            schema,
            Counts(rows=n_rows, events=n_events, users=None, queries=n_queries, clicks=n_rows - n_queries),
            (),
            private=True,
        )
        release = cls(manifest, schema, log.texts(made, schema), log=log, **_unpublished(said))
        weakref.finalize(release, log.engine.drop, made)
        return release

    @classmethod
    def of_texts(
        cls,
        log: QueryLog,
        texts: str,
        *,
        linking: Linking = USERS,
        **said: Unpack[Said],
    ) -> "Release":
        """A release of other texts in the place of queries, in random order, without clicks.

        Args:
            log: The original log.
            texts: The table of query_id, query, low and high: what is published in the place of a query, and a digest
                of that. Events of other queries are left out.
            linking: What ties released events together.
            said: What the method says of it.
        """
        engine, number = log.engine, next(_numbers)
        draws = _draws(log, said)
        published = f"published texts {number}"
        # Ids of queries are in the order of their digests, which would tell of them; what is published may be.
        engine.number(f'SELECT query_id, query, low, high FROM "{texts}"', ("low", "high"), "renumbered", "text_id")  # noqa: S608  # names of tables are made here
        rows = (
            "SELECT e.event_id AS event_id, e.user_id AS user_id, n.text_id AS query_id FROM events e"
            " JOIN renumbered n ON n.query_id = e.query_id"
        )
        made = _shuffled_rows(log, rows, None, draws, linking, ())
        engine.materialize(
            "SELECT text_id AS query_id, min(query) AS query FROM renumbered GROUP BY text_id", published
        )
        engine.drop("renumbered")
        schema = _schema(linking, False, ())
        (n_rows,) = engine.row(f'SELECT count(*) AS n FROM "{made.rows}"')  # noqa: S608  # names of tables are made here
        (n_texts,) = engine.row(f'SELECT count(*) AS n FROM "{published}"')  # noqa: S608  # names of tables are made here
        manifest = _manifest(
            log,
            said,
            schema,
            Counts(
                rows=n_rows,
                events=n_rows,
                queries=n_texts,
                clicks=0,
                **_pseudonyms(log, made, linking),
            ),
            bands(log.frequencies()),
        )
        measured = _linkage(log, made.rows, made.fresh, linking, said, own=True)
        batches = log.texts(made.rows, schema, published)
        release = cls(
            manifest, schema, batches, log=log, fresh_users=made.fresh, measured=measured, **_unpublished(said)
        )
        weakref.finalize(release, engine.drop, *made.tables, published)
        return release

    @classmethod
    def load(cls, path: str | Path | Folder) -> "Release":
        """Open a release directory.

        Args:
            path: The directory; one that a cluster reaches is given as `log.folder(address)`.

        Raises:
            QueryveilError: If there is none, or it is not as its manifest says.
        """
        place = path if isinstance(path, Folder) else local_folder(path)
        try:
            text = place.read(MANIFEST).decode("utf-8", "replace")
            version = _version_of(text)
            if version is None:
                raise QueryveilError(f"The manifest {place}/{MANIFEST} is damaged; fetch the release again.")
            if version not in (1, FORMAT_VERSION):
                raise QueryveilError(
                    f"The release {place} has format version {version}, this queryveil reads versions 1 and "
                    f"{FORMAT_VERSION}; use the version of queryveil that made it."
                )
            manifest = _read_manifest(text)
        except OSError:
            raise QueryveilError(
                f"There is no release in {place}: it has no readable {MANIFEST}; give the directory that "
                "'queryveil anonymize -o' wrote."
            ) from None
        except ValidationError as error:
            where = ".".join(map(str, error.errors()[0]["loc"]))
            raise QueryveilError(f"The manifest {place}/{MANIFEST} is damaged at '{where}'.") from None
        odd = place.odd()
        if odd is not None:
            raise QueryveilError(f"The release {place} holds '{odd}', which is no plain file; fetch it again.")
        table = manifest.table
        parts = [name for name in place.files() if name.split("/")[0] == table]
        odd = next((name for name in (table, *manifest.files, *parts) if not _PLAIN.fullmatch(name)), None)
        if odd is not None:
            raise QueryveilError(
                f"The release {place} names a file {odd!r}, which no release has; do not use it, and fetch it again."
            )
        if "/" in table or not parts:
            raise QueryveilError(f"The release {place} lacks its table '{table}'; fetch it again.")
        damaged = f"The table {place}/{table} is damaged; fetch the release again."
        try:
            schema, batches = _open_table(place, table)
        except (pa.ArrowException, OSError, ValueError, IndexError):
            raise QueryveilError(damaged) from None
        batches = replace(batches, batches=partial(_readable, batches.batches, damaged))
        if tuple(schema.names) != manifest.columns or len(set(schema.names)) != len(schema.names):
            raise QueryveilError(f"The table of {place} does not have the columns that its manifest names.")
        wrong = next((name for name in schema.names if not writers.is_typed(schema.field(name))), None)
        if wrong is not None:
            raise QueryveilError(f"The column '{wrong}' of {place}/{table} is of the wrong type.")
        return cls(manifest, schema, batches, folder=place)

    @cached_property
    def linkage(self) -> Linkage | None:
        """How far background knowledge leads where users or sessions are linked; None if that was not measured."""
        return self.manifest.linkage if self.measured is None else self.measured()

    def save(
        self,
        path: str | Path | Target,
        *,
        format: str = "parquet",
        overwrite: bool = False,
        allow_empty: bool = False,
    ) -> tuple[Verdict, ...]:
        """Check every claim, then write the release as a new directory.

        Where users or sessions are linked, it is measured first how many of them an attacker with half of their history
        finds again, and a `QueryveilWarning` says so.

        Args:
            path: The directory to make; its parent must exist. For a log on a cluster, an address that the driver and
                all workers reach. A place that `check_target` allowed before the work began is given as that.
            format: `parquet`, `aol` (TSV) or `csv`.
            overwrite: Whether an earlier release at this place may be replaced; not looked at with a checked place.
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
        target = path if isinstance(path, Target) else check_target(self.log.folder(path), format, overwrite)
        place = target.folder
        if self.manifest.counts.rows == 0 and not allow_empty:
            raise QueryveilError(
                f"The release would be empty: {_why_empty(self.manifest)}, or write it all the same with --allow-empty."
            )
        if self.measured is not None:
            warnings.warn(linkage_sentence(self.linkage), QueryveilWarning, stacklevel=2)
        stage = None
        try:
            stage = place.stage()
            table = f"log{writers.SUFFIXES[format]}"
            schema = writers.schema_in(format, self.schema)
            self.log.write(stage, table, format, self.schema, self.batches)
            written = {"table": table, "columns": tuple(schema.names), "linkage": self.linkage}
            manifest = self.manifest.model_copy(update=written)
            verdicts = _checked(Release(manifest, *_open_table(stage, table)), self.log, self.certificate)
            _publish(manifest, verdicts, stage, target)
        except OSError as error:
            why = "the disk is full" if error.errno == errno.ENOSPC else (error.strerror or str(error))
            raise QueryveilError(f"The release cannot be written to {place}: {why}.") from error
        finally:
            if stage is not None:
                stage.remove()
        return verdicts

    def save_certificate(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the certificate for an auditor who has the log, as one file that only its owner may read.

        Args:
            path: The file, which ends with `.certificate` and lies in no release.
            overwrite: Whether an earlier file may be replaced.

        Raises:
            QueryveilError: If the release was loaded, or the file must not or cannot be written.
        """
        if self.certificate is None:
            raise QueryveilError("Only a release that was just made has a certificate; save it when you make one.")
        save_certificate(self.certificate, path, overwrite=overwrite)

    def user_map(self) -> Iterator[pa.RecordBatch]:
        """The secret of the release, batch after batch: the `original` name of each user and the `released` id."""
        if self.log is not None and self.fresh_users is None:
            raise QueryveilError(
                "This release has no user ids or session ids, so there is no user map; leave it out, or link events."
            )
        if self.log is None or self.fresh_users is None:
            raise QueryveilError("Only a release that was just made knows its user map.")
        engine = self.log.engine
        engine.number(
            'SELECT u.user_id AS user_id, u."user" AS original, f."user" AS released FROM users u'  # noqa: S608  # names of tables are made here
            f' JOIN "{self.fresh_users}" f ON f.user_id = u.user_id',
            ("user_id",),
            "user map",
            "n",
            then=("released",),
        )
        for batch in engine.ordered("user map")():
            yield batch.select(["original", "released"])
        engine.drop("user map")

    def save_user_map(self, path: str | Path) -> None:
        """Write the secret map from original to released users as CSV, readable by its owner alone.

        Whoever has this file can undo the fresh ids. It is for measuring, and never part of a release.
        """
        batches = self.user_map()
        first = next(batches, None)
        schema = pa.schema([("original", pa.string()), ("released", pa.int64())])
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "wb") as file, pacsv.CSVWriter(file, schema) as writer:
                for batch in itertools.chain([] if first is None else [first], batches):
                    writer.write_batch(writers.escaped(batch.cast(schema)))
        except OSError as error:
            raise QueryveilError(f"The user map cannot be written to {path}: {error.strerror}.") from error


def _why_empty(manifest: Manifest) -> str:
    """What no query did, and what to change."""
    private = next((claim for claim in manifest.claims if isinstance(claim, DifferentialPrivacy)), None)
    if private is None:
        return "no query of the log passes; loosen the parameters"
    return (
        f"with its noise no query reached {private.needed}; take a log of more users, a larger epsilon or a smaller d"
    )


def _draws(log: QueryLog, said: Said) -> Callable[[str], bytes]:
    """Keys for draws. Two releases of one log must not line up, so that they differ by method and parameters too."""
    return partial(log.secret, said["seed"], f"{said['method']} {json.dumps(said['parameters'], sort_keys=True)}")


def _manifest(
    log: QueryLog, said: Said, schema: pa.Schema, counts: Counts, found: tuple[Band, ...], *, private: bool = False
) -> Manifest:
    """The manifest of a release in the making; of a private one it tells nothing exact of the log."""
    scrub = log.facts.scrub
    return Manifest(
        method=said["method"],
        parameters=dict(said["parameters"]),
        claims=tuple(said["claims"]),
        limits=tuple(said["limits"]),
        scrub=scrub.untold if private and scrub is not None else scrub,
        input_fingerprint=None if private else log.keyed_fingerprint(said["seed"]),
        input_counts=NOT_TOLD if private else counts_of(log),
        counts=counts,
        bands=found,
        columns=tuple(schema.names),
    )


def _unpublished(said: Said) -> dict[str, Any]:
    """What a release knows of its making and does not publish."""
    certificate = Certificate(said["seed"], said.get("certified", {}))
    return {"notes": tuple(said.get("notes", ())), "certificate": certificate}


def made_from(release: Release, log: QueryLog) -> bool:
    """Whether a release may have been made from a log, as far as it can be known.

    A release that was just made knows its log, and the seed brings its fingerprint to light. One that was loaded says
    only how much there was in its log, and a differentially private one not even that.
    """
    manifest = release.manifest
    if release.log is not None:
        return release.log.fingerprint == log.fingerprint
    if release.seed is not None and manifest.input_fingerprint is not None:
        return hmac.compare_digest(manifest.input_fingerprint, log.keyed_fingerprint(release.seed))
    stated: Counts | Size | None = manifest.input_counts
    if manifest.scrub is not None and log.facts.scrub is None:
        stated = manifest.scrub.log
    if stated is None or stated == NOT_TOLD:
        return True
    facts = log.facts
    return (stated.events, stated.users, stated.queries, stated.clicks) == (
        facts.events,
        facts.users,
        facts.queries,
        facts.clicks,
    )


def check_log(release: Release, log: QueryLog) -> None:
    """Refuse a log that the release was not made from."""
    if not made_from(release, log):
        raise QueryveilError("The release was made from another log than this one; give the log it was made from.")


def counts_of(log: QueryLog) -> Counts:
    """How much there is in a log."""
    return Counts(
        rows=log.facts.rows,
        events=log.facts.events,
        users=log.facts.users,
        queries=log.facts.queries,
        clicks=log.facts.clicks,
    )


def with_user_map(release: Release, log: QueryLog, path: str | Path) -> Release:
    """A release that was loaded, and knows again who is who in it.

    A map of another release of the same log with as many users cannot be told from the right one.

    Args:
        release: The release.
        log: The log that it was made from.
        path: The CSV file that `Release.save_user_map` wrote when it was made.

    Raises:
        QueryveilError: If the release has no users, is of another log, or the file does not fit the two.
    """
    if not {"user", "session"} & set(release.schema.names):
        raise QueryveilError("The release has no user ids or session ids, so there is no user map for it.")
    check_log(release, log)
    misfit = QueryveilError(
        f"The user map {path} does not fit the release and the log; give the file that 'queryveil anonymize"
        " --user-map' wrote together with this release."
    )
    try:
        given = pacsv.read_csv(
            path,
            parse_options=pacsv.ParseOptions(newlines_in_values=True),
            convert_options=pacsv.ConvertOptions(column_types={"original": pa.string(), "released": pa.int64()}),
        )
    except OSError as error:
        raise QueryveilError(f"The user map {path} cannot be read: {error.strerror or 'it is no file'}.") from None
    except pa.ArrowException:  # its message would quote the map
        raise misfit from None
    if given.column_names != ["original", "released"]:
        raise misfit
    given = writers.unescaped(given)
    engine, number = log.engine, next(_numbers)
    file, fresh = f"user map {number}", f"fresh users {number}"
    engine.read(file, given)
    engine.materialize(
        f'SELECT u.user_id AS user_id, m.released AS "user" FROM "{file}" m JOIN users u ON u."user" = m.original',  # noqa: S608  # names of tables are made here
        fresh,
    )
    engine.drop(file)
    counted = engine.row(
        'SELECT count(*) AS n, count(DISTINCT user_id) AS users, count(DISTINCT "user") AS ids,'  # noqa: S608  # names of tables are made here
        f' coalesce(min("user"), 1) AS first_id, coalesce(max("user"), 0) AS last_id FROM "{fresh}"'
    )
    counts, rows = release.manifest.counts, len(given)
    # A user has one pseudonym, which several may share in a record; a session is of one user, who may have several.
    if counts.sessions is None:
        expected = (rows, rows, counts.users, 1, counts.users)
    else:
        expected = (counts.sessions, counted[1], counts.sessions, 1, counts.sessions)
    if counted != expected or counted[0] != rows:
        engine.drop(fresh)
        raise misfit
    known = replace(release, log=log, fresh_users=fresh)
    weakref.finalize(known, engine.drop, fresh)
    return known


@contextmanager
def loaded(release: Release, log: QueryLog) -> Iterator[None]:
    """Have the released table beside the log's own tables, under the name `released`."""
    log.engine.load("released", release.schema, release.batches)
    try:
        yield
    finally:
        log.engine.drop("released")


def check_claims(release: Release, log: QueryLog, certificate: Certificate | None = None) -> tuple[Verdict, ...]:
    """Check every claim of a release against the original log; a certificate makes it quicker, and is not believed."""
    with loaded(release, log):
        return check_loaded(release, log, certificate)


def check_loaded(release: Release, log: QueryLog, certificate: Certificate | None = None) -> tuple[Verdict, ...]:
    """As `check_claims`, where the released table is there already."""
    columns, claims = tuple(release.schema.names), release.manifest.claims
    with with_ids(log, columns, claims):
        return tuple(claim.verdict(log, columns, certificate) for claim in claims)


def check_target(place: Folder, format: str, overwrite: bool) -> Target:
    """Refuse a place where a release cannot or must not be written, and note what may be replaced there.

    What is decided here holds until the release is renamed to its place: anything that comes there later stays.
    """
    if format not in writers.SUFFIXES:
        raise QueryveilError(f"There is no release format '{format}'; the formats are {', '.join(writers.SUFFIXES)}.")
    if place.parent() is None:
        raise QueryveilError(f"The folder around {place} does not exist; make it first.")
    if isinstance(place, LocalFolder):
        place.tidy()
    found = place.state()
    if found is not None and not overwrite:
        raise QueryveilError(f"{place} exists already; choose another place, or replace it with --overwrite.")
    if found is not None and isinstance(place, LocalFolder) and place.path.is_symlink():
        raise QueryveilError(f"{place} is a link, so it is not overwritten; name the folder that it leads to.")
    if found is not None and MANIFEST not in place.files():
        raise QueryveilError(f"{place} is not a release, so it is not overwritten; choose another place.")
    return Target(place, found)


def _readable(batches: Batches, damaged: str) -> Iterator[pa.RecordBatch]:
    """Batches of a file that may turn out to be damaged half-way."""
    try:
        yield from batches()
    except (pa.ArrowException, OSError):  # its message would quote the file
        raise QueryveilError(damaged) from None


_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)?")
"""The name of a file of a release, or of a part of its table: it leads nowhere else, and is no pattern."""


def _open_table(place: Folder, name: str) -> tuple[pa.Schema, InFiles]:
    if isinstance(place, RemoteFolder):
        return place.open_table(name)
    return writers.open_table(local_folder(str(place)).path / name)


def _checked(release: Release, log: QueryLog, certificate: Certificate | None) -> tuple[Verdict, ...]:
    verdicts = check_claims(release, log, certificate)
    wrong = next((verdict for verdict in verdicts if not verdict.holds), None)
    if wrong is not None:
        # The counter-example is not published, so it must not be told either.
        raise QueryveilError(f"The release was not written, because a check refutes what it promises: {wrong.claim}")
    return verdicts


def _publish(manifest: Manifest, verdicts: Sequence[Verdict], stage: Folder, target: Target) -> None:
    stage.write(REPORT, markdown(manifest, verdicts).encode())
    manifest = manifest.model_copy(update={"files": stage.sha256()})
    stage.write(MANIFEST, written(manifest))
    target.folder.take(stage, target.replaces)


def _read_manifest(text: str) -> Manifest:
    """A manifest of this version, or of version 0.1 in the words of this one."""
    if _version_of(text) != 1:
        return Manifest.model_validate_json(text)
    try:
        values, changes = read_manifest(json.loads(text))
        manifest = Manifest.model_validate(values)
    except (AttributeError, TypeError):  # lists and tables are not where they should be
        raise QueryveilError(f"The {MANIFEST} of the release is damaged; fetch the release again.") from None
    warnings.warn(
        "This release was made by version 0.1. It is checked for what it promised then; its limits are stated as today,"
        f" and its report.md is not compared{''.join('; ' + change for change in changes)}.",
        QueryveilWarning,
        stacklevel=3,
    )
    return manifest


def _version_of(text: str) -> int | None:
    """The version that a manifest states, None if it states none."""
    try:
        found = json.loads(text).get("format_version")
    except (ValueError, AttributeError, RecursionError):
        return None
    return found if isinstance(found, int) else None


class _Rows(NamedTuple):
    """The tables of a release in the making."""

    rows: str
    """Released rows as integers."""
    fresh: str | None
    """The user_id and the released id of each user or session in them; None if rows are not linked."""

    @property
    def tables(self) -> list[str]:
        """What the tables are called."""
        return [self.rows, *([self.fresh] if self.fresh is not None else [])]


_numbers = itertools.count(1)


def _shuffled_rows(
    log: QueryLog,
    events: str,
    clicks: str | None,
    draws: Callable[[str], bytes],
    linking: Linking,
    carried: Sequence[str],
) -> _Rows:
    """Released rows as integers, in an order that says nothing: by pseudonym, query, and a keyed draw per event.

    Columns: user or session where rows are linked, event (numbered anew), query_id, rank, url_id, and the carried ones.
    An event has a row for each of its clicks, or one row without.
    """
    check_linking(log, linking)
    engine, number = log.engine, next(_numbers)
    made = _Rows(f"released rows {number}", f"fresh users {number}" if linking.by != "none" else None)
    ids = [(name, log.id_type) for name in ("event_id", "user_id", "query_id")]
    kept = pa.schema([*ids, *((name, writers.type_of(name)) for name in carried)])
    engine.map(events, *drawn(kept, "event_id", draws("event")), "kept")
    columns = ["k.event_id AS event_id", "k.query_id AS query_id", "k.draw AS draw"]
    columns += [f"k.{identifier(name)} AS {identifier(name)}" for name in carried]
    joined = ""
    if made.fresh is not None:
        joined = _number_owners(log, draws, linking, made.fresh)
        columns += [f'f."user" AS "{linking.by}"']
    if clicks is not None:
        columns += ["c.rank AS rank", "c.url_id AS url_id"]
        joined += f" LEFT JOIN ({clicks}) AS c ON c.event_id = k.event_id"
    engine.number(
        f"SELECT {', '.join(columns)} FROM kept k{joined}",  # noqa: S608  # names are escaped
        (*_id_column(linking), "query_id", "draw", "event_id"),
        made.rows,
        "event",
        then=("rank", "url_id") if clicks is not None else (),
    )
    engine.drop("kept", *(["kept sessions"] if linking.by == "session" else []))
    return made


def _number_owners(log: QueryLog, draws: Callable[[str], bytes], linking: Linking, name: str) -> str:
    """Number the users or sessions of the kept events at random: user_id and "user"; the join that finds the number."""
    engine = log.engine
    if linking.by == "user":
        members = (
            "SELECT u.user_id AS user_id, u.digest AS digest FROM users u JOIN (SELECT user_id FROM kept"
            " GROUP BY user_id) AS k ON k.user_id = u.user_id"
        )
        engine.map(members, *drawn(pa.schema([("user_id", log.id_type)]), "digest", draws("user")), "members")
        engine.number("SELECT user_id, draw FROM members", ("draw", "user_id"), name, "user")
        joined = f' JOIN "{name}" f ON f.user_id = k.user_id'
    else:
        make_sessions(log, linking, "all sessions")
        engine.materialize(
            'SELECT s.event_id AS event_id, s.user_id AS user_id, s.session AS session FROM "all sessions" s'
            " JOIN kept k ON k.event_id = s.event_id",
            "kept sessions",
        )
        engine.drop("all sessions")
        schema = pa.schema([("user_id", log.id_type), ("session", log.id_type)])
        members = 'SELECT session, min(user_id) AS user_id FROM "kept sessions" GROUP BY session'
        engine.map(members, *drawn(schema, "session", draws("session")), "members")
        engine.number("SELECT user_id, session, draw FROM members", ("draw", "session"), name, "user")
        joined = f' JOIN "kept sessions" s ON s.event_id = k.event_id JOIN "{name}" f ON f.session = s.session'
    engine.drop("members")
    return joined


def _linkage(
    log: QueryLog, rows: str, fresh: str | None, linking: Linking, said: Said, *, own: bool = False
) -> Callable[[], Linkage | None] | None:
    """Measures linkage when it is asked for; None where events are not linked, or records are shared by several users.

    Args:
        log: The log.
        rows: The released rows.
        fresh: The released ids.
        linking: What they stand for.
        said: What the method says of the release.
        own: Whether what is released has ids of its own in the place of queries, one for each event.
    """
    linked = any(isinstance(claim, LinkedEvents | HashedWords) for claim in said["claims"])
    if fresh is None or linking.by == "none" or not linked:
        return None
    column: Literal["user", "session"] = linking.by
    return partial(
        measure_linkage,
        log,
        f'SELECT "{column}" AS "user", query_id, event FROM "{rows}"',  # noqa: S608  # names of tables are made here
        fresh,
        column=column,
        seed=said["seed"],
        issued=f'SELECT r.event_id AS event_id, e.user_id AS user_id, r.query_id AS query_id FROM "{rows}" r'  # noqa: S608  # names of tables are made here
        " JOIN events e ON e.event_id = r.event_id"
        if own
        else None,
    )


def _id_column(linking: Linking) -> tuple[str, ...]:
    """The column of pseudonyms, if there is one."""
    return () if linking.by == "none" else (linking.by,)


def _pseudonyms(log: QueryLog, made: _Rows, linking: Linking) -> dict[str, int | None]:
    """How many users and sessions have a pseudonym, None where they have none."""
    found: dict[str, int | None] = {"users": None, "sessions": None}
    if made.fresh is not None:
        (found[f"{linking.by}s"],) = log.engine.row(f'SELECT count(*) AS n FROM "{made.fresh}"')  # noqa: S608  # names of tables are made here
    return found


def _schema(linking: Linking, with_clicks: bool, carried: Sequence[str]) -> pa.Schema:
    """The columns of the released table."""
    names = [*_id_column(linking), "event", "query", *carried]
    names += ["rank", "url"] if with_clicks else []
    return pa.schema([(name, writers.type_of(name)) for name in names])
