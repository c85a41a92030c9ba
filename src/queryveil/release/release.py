"""Release: a released table with its manifest, in memory or in a folder."""

import errno
import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict, Unpack

import pyarrow as pa

from queryveil.claims import Claim, DifferentialPrivacy, HashedWords, LinkedEvents, Verdict
from queryveil.claims.certificates import Certificate, save_certificate
from queryveil.engines import Batches, Table, Workspace
from queryveil.errors import QueryveilError, QueryveilWarning, option
from queryveil.files.folders import Folder, Target
from queryveil.formats import writers
from queryveil.log import QueryLog
from queryveil.log.sessions import USERS, Linking
from queryveil.release.bands import Band, bands
from queryveil.release.checks import checked
from queryveil.release.linkage import Linkage, measure_linkage
from queryveil.release.manifest import UNPUBLISHED, Counts, Kind, Manifest, counts_of
from queryveil.release.rows import count_pseudonyms, id_column, schema_of, shuffled_rows
from queryveil.release.store import check_target, open_folder, open_table, publish
from queryveil.release.summary import linkage_sentence
from queryveil.release.user_map import save_user_map, user_map, with_user_map
from queryveil.text.tabular import ROWS, Tabular, html_facts, html_list, html_table


class ReleaseMetadata(TypedDict):
    """What a method says about a release that it makes."""

    method: str
    """Its name."""
    parameters: Mapping[str, Any]
    claims: Sequence[Claim]
    """What the release promises."""
    limits: Sequence[str]
    """What it does not promise, in plain words."""
    seed: int
    """Random seed for everything except the noise of differential privacy."""
    notes: NotRequired[Sequence[str]]
    """Sentences about what the method did."""
    certified: NotRequired[Mapping[str, pa.Table]]
    """The tables of its certificate."""


@dataclass(frozen=True)
class Release(Tabular):
    """A released table and its manifest, in memory or in a folder.

    Attributes:
        manifest: What the release is and promises.
        schema: The columns of the released table.
        batches: Reads the released table, batch after batch.
        log: The original log, if the release was just made from it.
        folder: Its folder, if it was loaded.
        pseudonyms: The table of user_id and the released ids of each user (one, or one for each session); secret. None
            if events are not linked.
        certificate: Data for quick checks of the release, if it was just made; as confidential as the log.
    """

    manifest: Manifest
    schema: pa.Schema
    batches: Batches
    log: QueryLog | None = None
    folder: Folder | None = None
    pseudonyms: Table | None = field(default=None, repr=False)
    measured: Callable[[], Linkage | None] | None = field(default=None, repr=False)
    """Measures what background knowledge reveals, if events are linked."""
    certificate: Certificate | None = field(default=None, repr=False)
    workspace: Workspace | None = field(default=None, repr=False)
    """Keeps its tables while a release uses them."""
    notes: tuple[str, ...] = ()
    """What the method did on this log; not published, because a reader could not check it."""

    @property
    def seed(self) -> int | None:
        """The random seed, if its certificate is known; secret, because it allows checking guesses about the log."""
        return None if self.certificate is None else self.certificate.seed

    def __repr__(self) -> str:
        counts = self.manifest.counts
        if self.manifest.kind == "items":
            return f"<Release by {self.manifest.method}: {counts.queries:,} distinct items, {counts.rows:,} rows>"
        return f"<Release by {self.manifest.method}: {counts.queries:,} distinct queries, {counts.events:,} events>"

    def _repr_html_(self) -> str:
        manifest, counts = self.manifest, self.manifest.counts.model_dump(exclude_none=True)
        facts = {
            "method": manifest.method,
            "parameters": ", ".join(f"{name} = {value}" for name, value in manifest.parameters.items()),
            "kind": manifest.kind,
        }
        first = pa.Table.from_batches(_first(self.batches(), ROWS), schema=self.schema)
        return (
            html_facts(f"Release by {manifest.method}", (facts | counts).items())
            + html_list("Promises", (claim.statement for claim in manifest.claims))
            + html_table("Released table", first, manifest.counts.rows)
        )

    def to_arrow(self) -> pa.Table:
        """The released table."""
        return pa.Table.from_batches(self.batches(), schema=self.schema)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The released table by the Arrow PyCapsule interface, batch after batch, so it need not fit into memory."""

        def batches() -> Iterator[pa.RecordBatch]:  # holds the release, and so its tables, until the stream ends
            yield from self.batches()

        reader = pa.RecordBatchReader.from_batches(self.schema, batches())
        return reader.__arrow_c_stream__(requested_schema)

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
        **metadata: Unpack[ReleaseMetadata],
    ) -> "Release":
        """A release of some of the log's events, in random order, under pseudonyms if they are linked.

        Args:
            log: The original log.
            events: SQL that gives event_id, user_id, query_id and the carried columns of the released events.
            clicks: SQL that gives event_id, rank, url_id of the released clicks; None for a release without clicks.
            linking: How released events are linked.
            carried: Further columns of `events` that are released.
            holders: SQL of user_id and holder, the user under whose pseudonym they are released; by default their own.
            metadata: What the method says about it.
        """
        work = log.workspace()
        made = shuffled_rows(log, work, events, clicks, _draws(log, metadata), linking, carried)
        schema = schema_of(linking, clicks is not None, carried)
        clicked = "count(url_id)" if clicks is not None else "0"
        n_rows, n_clicks = work.row(f"SELECT count(*) AS n, {clicked} AS clicks FROM {made.rows}")  # noqa: S608  # names of tables are made here
        found = bands(
            log.frequencies(
                "SELECT query_id, count(*) AS n FROM (SELECT query_id, event FROM"  # noqa: S608  # names of tables are made here
                f" {made.rows} GROUP BY query_id, event) AS kept GROUP BY query_id"
            )
        )
        manifest = _manifest(
            log,
            metadata,
            _LINKED_AS[linking.by],
            schema,
            Counts(
                rows=n_rows,
                events=sum(band.kept_events for band in found),
                queries=sum(band.kept_queries for band in found),
                clicks=n_clicks,
                **count_pseudonyms(work, made, linking),
            ),
            found,
        )
        pseudonyms = made.pseudonyms
        if holders is not None and pseudonyms is not None:
            pseudonyms = work.table(
                f'SELECT h.user_id AS user_id, f."user" AS "user" FROM ({holders}) AS h'  # noqa: S608  # parts are this package's own
                f" JOIN {pseudonyms} f ON f.user_id = h.holder",
                "pseudonyms of all",
            )
        return cls(
            manifest,
            schema,
            log.texts(made.rows, schema),
            log=log,
            pseudonyms=pseudonyms,
            measured=_linkage(log, made.rows, pseudonyms, linking, metadata),
            workspace=work,
            **_unpublished(metadata),
        )

    @classmethod
    def of_items(
        cls,
        log: QueryLog,
        items: str,
        names: pa.Array,
        *,
        linking: Linking = USERS,
        members: bool = False,
        **metadata: Unpack[ReleaseMetadata],
    ) -> "Release":
        """A release of nodes of a tree instead of queries, in random order, under pseudonyms if they are linked.

        Args:
            log: The original log.
            items: SQL that gives event_id, user_id and node.
            names: The name of every node.
            linking: How released items are linked; sessions need the event_id of events of the log.
            members: Whether its certificate says who has which pseudonym.
            metadata: What the method says about it.
        """
        work = log.workspace()
        # A node is treated like a query everywhere; only its text comes from elsewhere.
        rows = f"SELECT event_id, user_id, node AS query_id FROM ({items}) AS items"  # noqa: S608  # parts are this package's own
        made = shuffled_rows(log, work, rows, None, _draws(log, metadata), linking, ())
        schema = pa.schema([(name, writers.type_of(name)) for name in (*id_column(linking), "item", "node")])
        n_rows, n_items = work.row(
            "SELECT CAST(sum(n) AS BIGINT) AS n, count(*) AS items FROM"  # noqa: S608  # names of tables are made here
            f" (SELECT query_id, count(*) AS n FROM {made.rows} GROUP BY query_id) AS items"
        )
        manifest = _manifest(
            log,
            metadata,
            "items",
            schema,
            Counts(
                rows=n_rows or 0,
                events=n_rows or 0,
                queries=n_items,
                clicks=0,
                **count_pseudonyms(work, made, linking),
            ),
            bands(log.frequencies()),
        )
        ordered = work.ordered(made.rows)

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in ordered():
                node = batch["query_id"]
                found = {name: batch[name] for name in id_column(linking)} | {"item": names.take(node), "node": node}
                arrays = [found[field.name].cast(field.type) for field in schema]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)

        unpublished = _unpublished(metadata)
        if members and made.pseudonyms is not None:
            named = work.fetch(f'SELECT user_id, "user" FROM {made.pseudonyms} ORDER BY user_id')  # noqa: S608  # a table of ours
            unpublished["certificate"] = Certificate(metadata["seed"], {"members": named})
        return cls(
            manifest,
            schema,
            batches,
            log=log,
            pseudonyms=made.pseudonyms,
            measured=_linkage(log, made.rows, made.pseudonyms, linking, metadata, own=True),
            workspace=work,
            **unpublished,
        )

    @classmethod
    def of_counts(
        cls,
        log: QueryLog,
        rows: str,
        *,
        columns: Sequence[str],
        **metadata: Unpack[ReleaseMetadata],
    ) -> "Release":
        """A release of queries, and maybe of noisy counts, that is differentially private.

        The manifest says nothing exact about the log: no fingerprint, no counts, no frequency bands. The number of
        events is the sum of the published counts of queries or, if there are none, the number of queries.

        Args:
            log: The original log.
            rows: SQL that gives query_id, and with the columns `url` and `count` also url_id (NULL in the row of the
                query itself) and count.
            columns: The columns of the released table, of `query`, `url` and `count`.
            metadata: What the method says about it.
        """
        work = log.workspace()
        then = ("url_id",) if "url" in columns else ()
        made = work.number(rows, ("query_id",), "place", then=then, name="released counts")
        schema = pa.schema([(name, writers.type_of(name)) for name in columns])
        plain = "url_id IS NULL" if "url" in columns else "1 = 1"
        counted = '"count"' if "count" in columns else "1"
        n_rows, n_queries, n_events = work.row(
            f"SELECT count(*) AS n, coalesce(CAST(sum(CASE WHEN {plain} THEN 1 ELSE 0 END) AS BIGINT), 0) AS queries,"  # noqa: S608  # parts are this package's own
            f" coalesce(CAST(sum(CASE WHEN {plain} THEN {counted} ELSE 0 END) AS BIGINT), 0) AS events"
            f" FROM {made}"
        )
        manifest = _manifest(
            log,
            metadata,
            "counts",
            schema,
            Counts(rows=n_rows, events=n_events, users=None, queries=n_queries, clicks=n_rows - n_queries),
            (),
        )
        return cls(manifest, schema, log.texts(made, schema), log=log, workspace=work, **_unpublished(metadata))

    @classmethod
    def of_texts(
        cls,
        log: QueryLog,
        texts: Table,
        *,
        linking: Linking = USERS,
        **metadata: Unpack[ReleaseMetadata],
    ) -> "Release":
        """A release of other texts instead of queries, in random order, without clicks.

        Args:
            log: The original log.
            texts: The table of query_id, query, low and high: what is published instead of a query, and its digest.
                Events of other queries are left out.
            linking: How released events are linked.
            metadata: What the method says about it.
        """
        work = log.workspace()
        # Ids of queries are in the order of their digests, which would say something about them; what is published may.
        numbered = work.number(
            f"SELECT query_id, query, low, high FROM {texts}",  # noqa: S608  # a table of ours
            ("low", "high"),
            "text_id",
        )
        rows = (
            "SELECT e.event_id AS event_id, e.user_id AS user_id, n.text_id AS query_id FROM events e"  # noqa: S608  # a table of ours
            f" JOIN {numbered} n ON n.query_id = e.query_id"
        )
        made = shuffled_rows(log, work, rows, None, _draws(log, metadata), linking, ())
        published = work.table(
            f"SELECT text_id AS query_id, min(query) AS query FROM {numbered} GROUP BY text_id",  # noqa: S608  # a table of ours
            "published texts",
        )
        work.drop(numbered)
        schema = schema_of(linking, False, ())
        (n_rows,) = work.row(f"SELECT count(*) AS n FROM {made.rows}")  # noqa: S608  # a table of ours
        (n_texts,) = work.row(f"SELECT count(*) AS n FROM {published}")  # noqa: S608  # a table of ours
        manifest = _manifest(
            log,
            metadata,
            "tokens",
            schema,
            Counts(
                rows=n_rows,
                events=n_rows,
                queries=n_texts,
                clicks=0,
                **count_pseudonyms(work, made, linking),
            ),
            bands(log.frequencies()),
        )
        return cls(
            manifest,
            schema,
            log.texts(made.rows, schema, published),
            log=log,
            pseudonyms=made.pseudonyms,
            measured=_linkage(log, made.rows, made.pseudonyms, linking, metadata, own=True),
            workspace=work,
            **_unpublished(metadata),
        )

    @classmethod
    def load(
        cls, path: str | Path | Folder, *, log: QueryLog | None = None, user_map: str | Path | None = None
    ) -> "Release":
        """Open a release folder.

        Args:
            path: The folder; one that a cluster reaches is given as `log.folder(address)`.
            log: The log that it was made from, if there is a user map.
            user_map: The file that `save_user_map` wrote, so that measures and attacks know who is who.

        Raises:
            QueryveilError: If there is none, or it is not as its manifest says, or the user map does not fit.
        """
        place, manifest, schema, batches = open_folder(path)
        release = cls(manifest, schema, batches, folder=place)
        if user_map is None:
            return release
        if log is None:
            raise QueryveilError("A user map is read together with the log of the release; give 'log' as well.")
        return with_user_map(release, log, user_map)

    @cached_property
    def linkage(self) -> Linkage | None:
        """What background knowledge reveals if users or sessions are linked; None if that was not measured."""
        return self.manifest.linkage if self.measured is None else self.measured()

    def save(
        self,
        path: str | Path | Target,
        *,
        format: str = "parquet",
        overwrite: bool = False,
        allow_empty: bool = False,
    ) -> tuple[Verdict, ...]:
        """Check every claim, then write the release as a new folder.

        If users or sessions are linked, this first measures how many of them an attacker with half of their history
        re-identifies, and a `QueryveilWarning` says so.

        Args:
            path: The folder to make; its parent must exist. For a log on a cluster, an address that the driver and all
                workers can reach. Or a place that `check_target` allowed before the work began.
            format: `parquet`, `aol` (TSV) or `csv`.
            overwrite: Whether an earlier release may be replaced; ignored for a place from `check_target`.
            allow_empty: Whether to write a release without a query.

        Returns:
            The verdicts of the checks, all of which hold.

        Raises:
            QueryveilError: If the release must not or cannot be written. Nothing is left behind then.
        """
        if self.log is None:
            raise QueryveilError("This release was loaded from a folder; copy the folder instead of saving it again.")
        target = path if isinstance(path, Target) else check_target(self.log.folder(path), format, overwrite)
        place = target.folder
        if self.manifest.counts.rows == 0 and not allow_empty:
            raise QueryveilError(
                f"The release would be empty: {_why_empty(self.manifest)}, or write it anyway with"
                f" {option('allow_empty', True)}."
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
            verdicts = checked(Release(manifest, *open_table(stage, table)), self.log, self.certificate)
            publish(manifest, verdicts, stage, target)
        except OSError as error:
            why = "the disk is full" if error.errno == errno.ENOSPC else (error.strerror or str(error))
            raise QueryveilError(f"The release cannot be written to {place}: {why}.") from error
        finally:
            if stage is not None:
                stage.remove()
        return verdicts

    def save_certificate(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the certificate for an auditor who has the log, as one file that only its owner can read.

        Args:
            path: The file, which ends with `.certificate` and is not inside a release.
            overwrite: Whether an earlier file may be replaced.

        Raises:
            QueryveilError: If the release was loaded, or the file must not or cannot be written.
        """
        if self.certificate is None:
            raise QueryveilError("Only a release that was just made has a certificate; save it when you make one.")
        save_certificate(self.certificate, path, overwrite=overwrite)

    def user_map(self) -> Iterator[pa.RecordBatch]:
        """The secret user map, batch after batch: the `original` name of each user and the `released` id."""
        return user_map(self)

    def save_user_map(self, path: str | Path) -> None:
        """Write the secret map from original users to pseudonyms as CSV that only its owner can read.

        Anyone who has this file can undo the pseudonyms. It is for measuring, and never part of a release.
        """
        save_user_map(self, path)


def _first(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """The first rows, of as few batches as hold them."""
    for batch in batches:
        yield batch.slice(0, rows)
        rows -= len(batch)
        if rows <= 0:
            return


def _why_empty(manifest: Manifest) -> str:
    """Why no query is released, and what to change."""
    private = next((claim for claim in manifest.claims if isinstance(claim, DifferentialPrivacy)), None)
    if private is None:
        return "no query of the log passes; relax the parameters"
    return (
        f"with its noise no query reached {private.needed}; use a log of more users, a larger epsilon, or a smaller"
        " max_queries_per_user"
    )


def _draws(log: QueryLog, metadata: ReleaseMetadata) -> Callable[[str], bytes]:
    """Keys for draws. They depend on method and parameters too, so that two releases of one log cannot be matched."""
    return partial(
        log.secret, metadata["seed"], f"{metadata['method']} {json.dumps(metadata['parameters'], sort_keys=True)}"
    )


_LINKED_AS: dict[str, Kind] = {"none": "events", "session": "sessions", "user": "records"}


def _manifest(
    log: QueryLog, metadata: ReleaseMetadata, kind: Kind, schema: pa.Schema, counts: Counts, found: tuple[Band, ...]
) -> Manifest:
    """The manifest of a new release; for a private one it says nothing exact about the log."""
    scrub, private = log.stats.scrub, kind == "counts"
    return Manifest(
        method=metadata["method"],
        kind=kind,
        parameters=dict(metadata["parameters"]),
        claims=tuple(metadata["claims"]),
        limits=tuple(metadata["limits"]),
        scrub=scrub.without_counts if private and scrub is not None else scrub,
        input_fingerprint=None if private else log.keyed_fingerprint(metadata["seed"]),
        input_counts=UNPUBLISHED if private else counts_of(log),
        counts=counts,
        bands=found,
        columns=tuple(schema.names),
    )


def _unpublished(metadata: ReleaseMetadata) -> dict[str, Any]:
    """What a new release knows and does not publish."""
    certificate = Certificate(metadata["seed"], metadata.get("certified", {}))
    return {"notes": tuple(metadata.get("notes", ())), "certificate": certificate}


def _linkage(
    log: QueryLog,
    rows: Table,
    pseudonyms: Table | None,
    linking: Linking,
    metadata: ReleaseMetadata,
    *,
    own: bool = False,
) -> Callable[[], Linkage | None] | None:
    """Measures linkage on demand; None if events are not linked, or records are shared by several users.

    Args:
        log: The log.
        rows: The released rows.
        pseudonyms: The released ids.
        linking: What they stand for.
        metadata: What the method says about the release.
        own: Whether what is released has ids of its own instead of those of queries, one for each event.
    """
    linked = any(isinstance(claim, LinkedEvents | HashedWords) for claim in metadata["claims"])
    if pseudonyms is None or linking.by == "none" or not linked:
        return None
    column: Literal["user", "session"] = linking.by
    return partial(
        measure_linkage,
        log,
        f'SELECT "{column}" AS "user", query_id, event FROM {rows}',  # noqa: S608  # a table of ours
        pseudonyms,
        column=column,
        seed=metadata["seed"],
        issued=f"SELECT r.event_id AS event_id, e.user_id AS user_id, r.query_id AS query_id FROM {rows} r"  # noqa: S608  # names of tables are made here
        " JOIN events e ON e.event_id = r.event_id"
        if own
        else None,
    )
