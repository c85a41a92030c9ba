"""A release in the layout that its readers load: Parquet or CSV in partitions, or documents of UBI.

A release has one layout, which the verifier checks byte by byte. An export is a copy for readers. It is made from a
release whose files are those of its manifest, and names the SHA-256 of that manifest.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from queryveil.engines import DuckDB, identifier
from queryveil.errors import QueryveilError, did_you_mean, option
from queryveil.files.folders import LocalFolder, local_folder
from queryveil.formats import writers
from queryveil.release.checks import loaded_release
from queryveil.release.dictionary import Column, as_json, columns_of, described
from queryveil.release.release import Release
from queryveil.release.store import MANIFEST, SCHEMA
from queryveil.text.arrays import byte_spans

FORMATS = ("parquet", "csv", "ubi")
DATA = "data"
"""The folder of the table."""
PERIOD = "period"
UNKNOWN = "unknown"
"""Stands for a missing value in the name of a folder, where every reader takes it for a text."""
ALL = "all"
"""Stands for all periods in the name of the folder of totals over them."""
_HIVE_MISSING = "__HIVE_DEFAULT_PARTITION__"
"""What readers take for a missing value."""
MOST_PARTITIONS = 10_000
_LONGEST = 200
_OWN = (
    *("user", "session", "event", "query", "users", "time", "rank", "url", "clicked", "item", "node", "count"),
    *("events", "views", "clicks", "mean_rank", "total"),
)
"""Columns that are in every row of a partition."""
_GROUP = 100_000
_PLAIN = re.compile(r"\w[\w .-]*")


def export(
    release: str | Path | Release, path: str | Path, *, format: str = "parquet", partition_by: Sequence[str] = ()
) -> Path:
    """Write a release in the layout that its readers load.

    Args:
        release: The folder of a release, or a release that was loaded.
        path: The folder to make; its parent must exist.
        format: `parquet`, `csv`, or `ubi` for the documents of OpenSearch User Behavior Insights.
        partition_by: Columns whose values become folders, such as `country`; `period` is the month of the time.

    Returns:
        The folder: the table is below `data`, and `schema.json` says what the columns are.

    Raises:
        QueryveilError: If the files of the release are not those of its manifest, or it cannot be written so.
    """
    made = loaded_release(release)
    if not isinstance(made.folder, LocalFolder):
        raise QueryveilError("Only a release in a folder on this machine is exported; save it first.")
    if format not in FORMATS:
        raise QueryveilError(f"There is no export format '{format}'; {did_you_mean(format, FORMATS)}.")
    place, columns = local_folder(path), _partition_columns(made, format, partition_by)
    if place.state() is not None:
        raise QueryveilError(f"{place} exists already; choose another place.", code="exists")
    if place.parent() is None:
        raise QueryveilError(f"The folder around {place} does not exist; make it first.")
    if made.folder.path.resolve() in place.path.resolve().parents:
        raise QueryveilError(f"{place} is in the folder of the release, where nothing may be added; choose another.")
    if made.folder.sha256() != made.manifest.files | {MANIFEST: (digest := _sha256(made.folder))}:
        raise QueryveilError(f"The files of {made.folder} are not those that its manifest names; fetch it again.")
    stage = None
    try:
        stage = place.stage()
        folder = stage.path / DATA
        folder.mkdir(0o700)
        if format == "ubi":
            _write_documents(made, folder)
        else:
            _write_table(made, folder, format, columns)
        stage.write(SCHEMA, _schema(made, digest, columns))
        place.take(stage, None)
    except OSError as error:
        raise QueryveilError(f"{place} cannot be written: {error.strerror or 'no reason is known'}.") from None
    finally:
        if stage is not None:
            stage.remove()
    return place.path


def _sha256(folder: LocalFolder) -> str:
    return hashlib.sha256(folder.read(MANIFEST)).hexdigest()


def _partition_columns(release: Release, format: str, asked: Sequence[str]) -> tuple[str, ...]:
    """The columns that become folders."""
    if asked and format == "ubi":
        raise QueryveilError(f"Documents of UBI have no partitions; leave {option('partition_by')} out.")
    names = release.schema.names
    known = [name for name in names if name not in _OWN]
    known += [PERIOD] if "time" in names and PERIOD not in names else []
    wrong = next((name for name in asked if name not in known), None)
    if wrong is not None:
        has = f"there are {', '.join(known)}" if known else "the release has no such column"
        raise QueryveilError(f"A release cannot be partitioned by '{wrong}'; {did_you_mean(wrong, known, has)}.")
    odd = next((name for name in asked if not _PLAIN.fullmatch(name)), None)
    if odd is not None:
        raise QueryveilError(f"The column '{odd}' cannot be the name of a folder; leave it out.")
    if len(set(asked)) < len(asked):
        raise QueryveilError(f"{option('partition_by')} names a column twice; name it once.")
    if len(asked) == len(names) + (PERIOD in known and PERIOD not in names):
        raise QueryveilError(f"{option('partition_by')} names every column; leave one out, so that files have rows.")
    return tuple(asked)


def _write_table(release: Release, folder: Path, format: str, columns: Sequence[str]) -> None:
    kept = [name for name in release.schema.names if name not in columns]
    schema = pa.schema([release.schema.field(name) for name in kept] + [(name, pa.string()) for name in columns])
    if columns:
        _check_values(release, columns)

    def rows() -> Iterator[pa.RecordBatch]:
        for batch in release.batches():
            inside = pa.RecordBatch.from_arrays([batch[name] for name in kept], names=kept)
            inside = writers.escaped(inside) if format == "csv" else inside
            parts = [pc.fill_null(_values(batch, name), UNKNOWN) for name in columns]
            yield pa.RecordBatch.from_arrays([*inside.columns, *parts], schema=schema)

    written = ds.ParquetFileFormat() if format == "parquet" else ds.CsvFileFormat()
    options = (
        written.make_write_options(compression="zstd")
        if format == "parquet"
        else written.make_write_options(quoting_style="needed")
    )
    ds.write_dataset(
        pa.RecordBatchReader.from_batches(schema, rows()),
        folder,
        format=written,
        file_options=options,
        partitioning=ds.partitioning(pa.schema([schema.field(name) for name in columns]), flavor="hive"),
        basename_template=f"part-{{i}}{writers.SUFFIXES[format]}",
        max_partitions=MOST_PARTITIONS,
        max_open_files=500,
        min_rows_per_group=_GROUP,
        max_rows_per_group=10 * _GROUP,
        use_threads=False,  # else the order of rows would change
        existing_data_behavior="error",
    )
    if not any(folder.iterdir()):  # an empty table is a file with columns
        writers.write(folder / f"part-0{writers.SUFFIXES[format]}", format, schema, iter(()))


def _values(batch: pa.RecordBatch, name: str) -> pa.Array:
    """The values of a partition column; missing where they are missing or empty."""
    if name == PERIOD and PERIOD not in batch.schema.names:
        return pc.strftime(batch["time"].cast(pa.timestamp("s")), format="%Y-%m")
    texts = batch[name].cast(pa.string())
    if name == PERIOD and "total" in batch.schema.names:  # only a total over all of them has none
        return pc.fill_null(texts, ALL)
    return pc.if_else(pc.equal(texts, ""), None, texts)


def _check_values(release: Release, columns: Sequence[str]) -> None:
    """Refuse values that cannot be the names of folders."""
    found: set[tuple[str | None, ...]] = set()
    for batch in release.batches():
        parts = pa.table([_values(batch, name) for name in columns], names=[str(i) for i in range(len(columns))])
        found.update(tuple(row.values()) for row in parts.group_by(parts.column_names).aggregate([]).to_pylist())
        if len(found) > MOST_PARTITIONS:
            raise QueryveilError(
                f"The columns {', '.join(columns)} have more than {MOST_PARTITIONS:,} combinations of values; name"
                f" fewer with {option('partition_by')}."
            )
    for name, values in zip(columns, zip(*found, strict=True), strict=True):
        if None in values and UNKNOWN in values:
            raise QueryveilError(
                f"Some rows have no {name}, and others have '{UNKNOWN}', which stands for that in the name of a folder;"
                f" leave it out of {option('partition_by')}."
            )
        if _HIVE_MISSING in values:
            raise QueryveilError(
                f"A value of {name} is '{_HIVE_MISSING}', which readers take for a missing one; leave it out of"
                f" {option('partition_by')}."
            )
        if any(value is not None and len(value.encode()) > _LONGEST for value in values):
            raise QueryveilError(
                f"A value of {name} is too long for the name of a folder; leave it out of {option('partition_by')}."
            )


def _write_documents(release: Release, folder: Path) -> None:
    """Queries and clicks as documents, one a line."""
    names = release.schema.names
    if not {"event", "query"} <= set(names):
        raise QueryveilError(
            "Documents of UBI need numbered events with queries, and this release has none; export it as parquet."
        )
    owner = next((name for name in ("user", "session") if name in names), "event")
    # A field is in every document of its kind; without pseudonyms each search is that of a client of its own.
    shared = {"query_id": "CAST(event AS VARCHAR)", "client_id": f'CAST("{owner}" AS VARCHAR)'}
    moment = {"timestamp": "strftime(time, '%Y-%m-%dT%H:%M:%SZ')"} if "time" in names else {}
    extras = [name for name in names if name not in (*_OWN, "event", "users")]
    extras += ["users"] if "users" in names else []
    attributes = {"query_attributes": _object({name: identifier(name) for name in extras})} if extras else {}
    shown = {"query_response_hit_ids": "hits"} if "clicked" in names else {}
    engine = DuckDB()
    try:
        engine.load("released", release.schema, release.batches)
        first = ", ".join(f"min({identifier(name)}) AS {identifier(name)}" for name in names if name != "event")
        hits = ", list(url ORDER BY rank NULLS LAST, url) FILTER (url IS NOT NULL) AS hits" if shown else ""
        queries = shared | {"user_query": "query"} | moment | attributes | shown
        _write_lines(
            engine,
            f"SELECT {_object(queries)} AS line FROM (SELECT event, {first}{hits} FROM released GROUP BY event) AS e"  # noqa: S608  # names are escaped
            " ORDER BY event",
            folder / "ubi_queries.ndjson",
        )
        if "url" not in names:
            return
        clicked = {"object": _object({"object_id": "url"}), "position": _object({"ordinal": "rank"})}
        events = {"action_name": "'click'"} | shared | moment | {"event_attributes": _object(clicked)}
        of_clicks = "clicked" if shown else "url IS NOT NULL"
        _write_lines(
            engine,
            f"SELECT {_object(events)} AS line FROM released WHERE {of_clicks} ORDER BY event, rank, url",  # noqa: S608  # names are escaped
            folder / "ubi_events.ndjson",
        )
    finally:
        engine.close()


def _object(fields: dict[str, str]) -> str:
    """SQL of a JSON object."""
    return "json_object(" + ", ".join(f"{_text(name)}, {value}" for name, value in fields.items()) + ")"


def _text(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"


def _write_lines(engine: DuckDB, query: str, path: Path) -> None:
    with path.open("wb") as file:
        for batch in engine.stream(query, _GROUP):
            blank, end = (pa.scalar(text, pa.large_string()) for text in ("", "\n"))
            lines = pc.binary_join_element_wise(batch["line"].cast(pa.large_string()), blank, end)
            data, starts, ends = byte_spans(lines)  # all lines follow each other in the array's bytes
            file.write(data[starts[0] : ends[-1]].data if len(starts) else b"")


def _schema(release: Release, digest: str, columns: Sequence[str]) -> bytes:
    """The data dictionary of an export: that of the release, which columns are folders, and where it is from."""
    known = columns_of(release.manifest)
    if PERIOD in columns and PERIOD not in release.schema.names:
        known.append(Column(PERIOD, "string", "The month of the time.", ("Taken from the column time.",)))
    fields = []
    for column in known:
        field = {"name": column.name, "type": column.type, "description": column.meaning, "treatment": column.treatment}
        if column.name in columns:
            field |= {"type": "string", "treatment": (*column.treatment, f"A missing value is written {UNKNOWN}.")}
        fields.append(field)
    source = {"software": release.manifest.software, "manifest_sha256": digest}
    partitions = {"partitionedBy": list(columns)} if columns else {}
    return as_json(
        {**described(release.manifest), "fields": fields, "missingValues": [""], **partitions, "source": source}
    )
