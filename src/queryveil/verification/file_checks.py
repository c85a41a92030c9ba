"""Are the files of a release those that its manifest names, unchanged, and written as this version writes them?"""

import json
import re

import pyarrow as pa
import pyarrow.parquet as pq

from queryveil.claims import Verdict
from queryveil.files.folders import Folder, LocalFolder
from queryveil.formats import writers
from queryveil.release import MANIFEST, REPORT, SCHEMA, Release
from queryveil.release.dictionary import data_dictionary
from queryveil.release.manifest import FORMAT_VERSION, SOFTWARE, written
from queryveil.release.rows import typed_columns
from queryveil.release.summary import markdown


def files_unchanged(release: Release, place: Folder) -> Verdict:
    """Compare the files that are there, and their digests, with those in the manifest."""
    claim = "The files are those that a release has and the manifest names, unchanged."
    listed = release.manifest.files
    if list(listed) != sorted(listed):
        return Verdict(claim, False, "the manifest names them in another order")
    table = release.manifest.table
    # Version 0.1 wrote no data dictionary.
    beside = {REPORT, SCHEMA} if release.manifest.format_version == FORMAT_VERSION else {REPORT}
    # A cluster writes a table in parts, and only as Parquet.
    parts = {f"{table}/part-{number:05}.parquet" for number in range(len(listed) - len(beside))}
    if set(listed) != {table} | beside and (table != "log.parquet" or set(listed) != parts | beside):
        named = " and ".join(sorted(beside))
        return Verdict(claim, False, f"a release has {table}, whole or in parts, and {named} beside its manifest")
    present = set(place.files()) - {MANIFEST}
    for name in sorted(present ^ set(listed)):
        return Verdict(claim, False, f"{name} is {'not in the manifest' if name in present else 'missing'}")
    found = place.sha256()
    changed = next((name for name in sorted(listed) if found[name] != listed[name]), None)
    return Verdict(claim, changed is None, changed and f"{changed} was changed")


def bytes_right(release: Release, place: Folder) -> Verdict:
    """Whether manifest and table are, byte for byte, what this version writes, so nothing can be hidden in them."""
    claim = "The files are written as this version of queryveil writes them, byte for byte."
    manifest = release.manifest
    if manifest.software != SOFTWARE:
        return Verdict(claim, False, f"it says that it was made by another version than {SOFTWARE}; use that one")
    keyed = manifest.input_fingerprint
    if (keyed is None) != manifest.private or not re.fullmatch("[0-9a-f]{64}", keyed or "0" * 64):
        return Verdict(claim, False, "its fingerprint is not valid")
    counted = manifest.counted_on
    if counted is not None and not re.fullmatch("[0-9a-f]{64}", counted.fingerprint):
        return Verdict(claim, False, "the fingerprint of the log that users were counted on is not valid")
    if place.read(MANIFEST) != written(manifest):
        return Verdict(claim, False, f"{MANIFEST} is written otherwise")
    if place.read(SCHEMA) != data_dictionary(manifest):
        return Verdict(claim, False, f"{SCHEMA} is written otherwise")
    format = next((name for name, suffix in writers.SUFFIXES.items() if manifest.table == f"log{suffix}"), None)
    if format is None:
        return Verdict(claim, False, f"the table is called {manifest.table}")
    if manifest.table not in manifest.files:
        odd = _odd_part(release, place)
        return Verdict(claim, odd is None, odd and f"{odd} is not written as Spark writes it")
    typed = typed_columns(release.schema.names)
    same = writers.sha256(format, typed, release.batches) == manifest.files[manifest.table]
    return Verdict(claim, same, None if same else f"{manifest.table} is written otherwise, or by another pyarrow")


_SPARK = {
    pa.int64(): "long",
    pa.int32(): "integer",
    pa.float64(): "double",
    pa.string(): "string",
    pa.bool_(): "boolean",
    pa.timestamp("us"): "timestamp_ntz",
}
_CONNECT = {"string": "string collate UTF8_BINARY"}
IN_PARTS = "Rows of the table were compared, and not its bytes, because a cluster wrote it in parts."


def _odd_part(release: Release, place: Folder) -> str | None:
    """A part of a table whose footer differs from what Spark writes for these columns."""
    if not isinstance(place, LocalFolder):
        return None
    fields = [
        {"name": name, "type": _SPARK[writers.type_of(name)], "nullable": True, "metadata": {}}
        for name in release.schema.names
    ]
    # Through Connect, Spark also names the collation of texts, always the same one.
    connect = [field | {"type": _CONNECT.get(str(field["type"]), field["type"])} for field in fields]
    rows = [
        json.dumps({"type": "struct", "fields": each}, separators=(",", ":"), ensure_ascii=False).encode()
        for each in (fields, connect)
    ]
    for name in release.manifest.files:
        if name in (REPORT, SCHEMA):
            continue
        about = pq.read_metadata(place.path / name)
        written_by = dict(about.metadata or {})
        version = written_by.pop(b"org.apache.spark.version", b"")
        made = re.fullmatch(r"parquet-mr version [\d.]+ \(build [0-9a-f]{40}\)", about.created_by)
        if written_by not in [{b"org.apache.spark.sql.parquet.row.metadata": row} for row in rows] or not made:
            return name
        if not re.fullmatch(rb"\d+\.\d+\.\d+", version):
            return name
    return None


def report_right(release: Release, place: Folder, claims: tuple[Verdict, ...]) -> Verdict:
    """Write the report again, and compare."""
    same = place.read(REPORT) == markdown(release.manifest, claims).encode()
    claim = "The report says what the manifest and the checks say."
    return Verdict(claim, same, None if same else f"{REPORT} reads otherwise")
