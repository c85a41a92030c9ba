"""Release: a released table with its manifest, in memory or in a folder."""

import errno
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import pyarrow as pa

from queryveil.claims import CountedRows, DifferentialPrivacy, PrivateCounts, Verdict
from queryveil.claims.certificates import MOST_ROWS, Certificate, save_certificate
from queryveil.engines import Batches, Table, Workspace
from queryveil.errors import QueryveilError, QueryveilWarning, option
from queryveil.files.folders import Folder, Target
from queryveil.formats import writers
from queryveil.log import QueryLog, check_is_log
from queryveil.release.about import About
from queryveil.release.checks import check_log, checked
from queryveil.release.linkage import Linkage
from queryveil.release.manifest import Manifest
from queryveil.release.store import check_target, open_folder, open_table, publish
from queryveil.release.summary import linkage_sentence
from queryveil.release.user_map import save_user_map, user_map, with_user_map
from queryveil.text.tabular import ROWS, Tabular, html_facts, html_list, html_table


@dataclass(frozen=True)
class Release(Tabular):
    """A released table and its manifest, in memory or in a folder.

    Attributes:
        manifest: What the release is and promises.
        schema: The columns of the released table.
        batches: Reads the released table, batch after batch.
        log: The original log, if the release was just made from it or loaded together with it.
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
    lists: Mapping[str, Path] = field(default_factory=dict, repr=False)
    """The lists that it was made with, by the names of their files, as far as they are at hand."""
    notes: tuple[str, ...] = ()
    """What the method did on this log; not published, because a reader could not check it."""

    @property
    def seed(self) -> int | None:
        """The random seed, if its certificate is known; secret, because it allows checking guesses about the log."""
        return None if self.certificate is None else self.certificate.seed

    def __repr__(self) -> str:
        manifest, counts = self.manifest, self.manifest.counts
        held = f"{counts.queries:,} distinct queries, {counts.events:,} events"
        if manifest.kind == "items":
            held = f"{counts.queries:,} distinct items, {counts.rows:,} rows"
        return f"<Release by {manifest.method}: {held}>"

    def _repr_html_(self) -> str:
        manifest, counts = self.manifest, self.manifest.counts.model_dump(exclude_none=True)
        facts = {
            "parameters": ", ".join(f"{name} = {value}" for name, value in manifest.parameters.items()),
            "kind": manifest.kind,
        }
        first = pa.Table.from_batches(_first(self.batches(), ROWS), schema=self.schema)
        return (
            html_facts(f"Release by {manifest.method}", (facts | counts).items())
            + html_list("Promises", (claim.headline for claim in manifest.claims))
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
    def load(
        cls,
        path: str | Path | Folder,
        *,
        log: QueryLog | None = None,
        user_map: str | Path | None = None,
        lists: Sequence[str | Path] = (),
    ) -> "Release":
        """Open a release folder.

        Args:
            path: The folder; one that a cluster reaches is given as `log.folder(address)`.
            log: The log that it was made from. Without the seed, only its size is compared with the manifest.
            user_map: The file that `save_user_map` wrote, so that measures and attacks know who is who.
            lists: The lists that it was made with, which a release names but does not contain.

        Raises:
            QueryveilError: If there is none, it is not as its manifest says, or the log or user map does not fit.
        """
        if log is not None:
            check_is_log(log, "Release.load")
        place, manifest, schema, batches = open_folder(path)
        release = cls(manifest, schema, batches, folder=place, lists=by_name(lists))
        if log is None:
            if user_map is not None:
                raise QueryveilError("A user map is read together with the log of the release; give 'log' as well.")
            return release
        check_log(release, log)
        return replace(release, log=log) if user_map is None else with_user_map(release, log, user_map)

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
        about: About | None = None,
        ready: Callable[[Folder], None] | None = None,
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
            about: What its publisher says about it, such as `About.of(title="Queries of May")`.
            ready: Called with the complete folder before it is moved to its place.

        Returns:
            The verdicts of the checks, all of which hold.

        Raises:
            QueryveilError: If the release must not or cannot be written. Nothing is left behind then.
        """
        if self.log is None or self.folder is not None:
            raise QueryveilError("This release was loaded from a folder; copy the folder instead of saving it again.")
        target = path if isinstance(path, Target) else check_target(self.log.folder(path), format, overwrite)
        place = target.folder
        if self.manifest.counts.rows == 0 and not allow_empty:
            raise QueryveilError(
                f"The release would be empty: {_why_empty(self.manifest)}, or write it anyway with"
                f" {option('allow_empty', True)}.",
                code="empty",
            )
        if self.measured is not None:
            warnings.warn(linkage_sentence(self.linkage), QueryveilWarning, stacklevel=2)
        stage = None
        try:
            stage = place.stage()
            table = f"log{writers.SUFFIXES[format]}"
            schema = writers.schema_in(format, self.schema)
            self.log.write(stage, table, format, self.schema, self.batches)
            written = {"table": table, "columns": tuple(schema.names), "linkage": self.linkage, "about": about}
            manifest = self.manifest.model_copy(update=written)
            verdicts = checked(
                Release(manifest, *open_table(stage, table), lists=self.lists), self.log, self.certificate
            )
            publish(manifest, verdicts, stage, target, ready)
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
        if self.certificate is None or self.log is None:
            raise QueryveilError("Only a release that was just made has a certificate; save it when you make one.")
        whole = self.certificate.whole(self.log)
        if any(name not in whole.tables for name in self.certificate.kept):
            warnings.warn(
                f"The certificate holds only the seed, because its witnesses have more than {MOST_ROWS:,} rows. So once"
                " the release is loaded, only a part of it is checked; check it now, while it is in memory.",
                QueryveilWarning,
                stacklevel=2,
            )
        save_certificate(whole, path, overwrite=overwrite)

    def user_map(self) -> Iterator[pa.RecordBatch]:
        """The secret user map, batch after batch: the `original` name of each user and the `released` id."""
        return user_map(self)

    def save_user_map(self, path: str | Path) -> None:
        """Write the secret map from original users to pseudonyms as CSV that only its owner can read.

        Anyone who has this file can undo the pseudonyms. It is for measuring, and never part of a release.
        """
        save_user_map(self, path)


def by_name(lists: Sequence[str | Path]) -> dict[str, Path]:
    """The files of lists by their names, by which a release knows them."""
    return {Path(path).name: Path(path) for path in lists}


def _first(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """The first rows, of as few batches as hold them."""
    for batch in batches:
        yield batch.slice(0, rows)
        rows -= len(batch)
        if rows <= 0:
            return


def _why_empty(manifest: Manifest) -> str:
    """Why nothing is released, and what to change."""
    private = next((claim for claim in manifest.claims if isinstance(claim, DifferentialPrivacy)), None)
    if private is None:
        table = any(isinstance(claim, CountedRows) for claim in manifest.claims)
        return f"no {'row of the table' if table else 'query of the log'} passes; relax the parameters"
    table = isinstance(private, PrivateCounts)
    return (
        f"with its noise no {'row' if table else 'query'} reached {private.needed}; use a log of more users, a larger"
        f" {option('epsilon')}, or a smaller {option('max_rows_per_user' if table else 'max_queries_per_user')}"
    )
