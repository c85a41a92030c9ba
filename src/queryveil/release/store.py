"""The folder of a release: opened without trust, written completely or not at all."""

import json
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
from pydantic import ValidationError

from queryveil.claims import Verdict
from queryveil.engines import Batches, InFiles
from queryveil.errors import QueryveilError, QueryveilWarning, did_you_mean, option
from queryveil.files.folders import Folder, LocalFolder, RemoteFolder, Target
from queryveil.formats import writers
from queryveil.release.dictionary import data_dictionary
from queryveil.release.earlier import read_manifest
from queryveil.release.manifest import FORMAT_VERSION, Manifest, written
from queryveil.release.summary import markdown
from queryveil.sources import UNFINISHED, copy_of

MANIFEST, REPORT, SCHEMA = "manifest.json", "report.md", "schema.json"


def open_folder(path: str | Path | Folder) -> tuple[Folder, Manifest, pa.Schema, InFiles]:
    """The folder of a release, its manifest, and its table with its columns.

    Raises:
        QueryveilError: If there is none, or it is not as its manifest says.
    """
    place = copy_of(path)
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
        manifest = Manifest.model_validate_json(text) if version == FORMAT_VERSION else _earlier_manifest(text)
    except OSError:
        raise QueryveilError(
            f"There is no release in {place}: it has no readable {MANIFEST}; give the folder that "
            "'queryveil anonymize -o' wrote."
        ) from None
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        raise QueryveilError(f"The manifest {place}/{MANIFEST} is damaged at '{where}'.") from None
    odd = place.odd()
    if odd is not None:
        raise QueryveilError(f"The release {place} holds '{odd}', which is not a regular file; fetch it again.")
    table = manifest.table
    parts = [name for name in place.files() if name.split("/")[0] == table]
    odd = next((name for name in (table, *manifest.files, *parts) if not _PLAIN.fullmatch(name)), None)
    if odd is not None:
        raise QueryveilError(
            f"The release {place} names a file {odd!r}, which no release has; do not use it, and fetch it again."
        )
    if "/" in table or not parts:
        raise QueryveilError(f"The table '{table}' of the release {place} is missing; fetch it again.")
    damaged = f"The table {place}/{table} is damaged; fetch the release again."
    try:
        schema, batches = open_table(place, table)
    except (pa.ArrowException, OSError, ValueError, IndexError):
        raise QueryveilError(damaged) from None
    batches = replace(batches, batches=partial(_readable, place, batches.batches, damaged))
    if tuple(schema.names) != manifest.columns or len(set(schema.names)) != len(schema.names):
        raise QueryveilError(f"The table of {place} does not have the columns that its manifest names.")
    wrong = next((name for name in schema.names if not writers.is_typed(schema.field(name))), None)
    if wrong is not None:
        raise QueryveilError(f"The column '{wrong}' of {place}/{table} is of the wrong type.")
    return place, manifest, schema, batches


def check_target(place: Folder, format: str, overwrite: bool) -> Target:
    """Refuse a place where a release cannot or must not be written, and record what may be replaced there.

    Only what is there now may be replaced when the release is moved to its place; anything that comes later stays.
    """
    if format not in writers.SUFFIXES:
        raise QueryveilError(f"There is no release format '{format}'; {did_you_mean(format, writers.SUFFIXES)}.")
    if place.parent() is None:
        raise QueryveilError(f"The folder around {place} does not exist; make it first.")
    if isinstance(place, LocalFolder):
        place.tidy()
    found = place.state()
    files = [] if found is None else place.files()
    if UNFINISHED in files and not overwrite:
        raise QueryveilError(
            f"A release is being put at {place}, or a run that should do so was ended; choose another place, or replace"
            f" it with {option('overwrite', True)}.",
            code="exists",
        )
    if found is not None and not overwrite:
        raise QueryveilError(
            f"{place} exists already; choose another place, or replace it with {option('overwrite', True)}.",
            code="exists",
        )
    if found is not None and isinstance(place, LocalFolder) and place.path.is_symlink():
        sentence = f"{place} is a link, so it is not overwritten; name the folder that it leads to."
        raise QueryveilError(sentence, code="exists")
    if found is not None and not {MANIFEST, UNFINISHED} & set(files):
        sentence = f"{place} is not a release, so it is not overwritten; choose another place."
        raise QueryveilError(sentence, code="exists")
    return Target(place, found)


def _readable(place: Folder, batches: Batches, damaged: str) -> Iterator[pa.RecordBatch]:
    """Batches of a file that may turn out to be damaged, in a folder that must not go away before them."""
    try:
        yield from batches()
    except (pa.ArrowException, OSError):  # its message would quote the file
        raise QueryveilError(damaged) from None


_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)?")
"""The name of a file of a release, or of a part of its table: it cannot lead elsewhere, and is not a pattern."""


def open_table(place: Folder, name: str) -> tuple[pa.Schema, InFiles]:
    """The table of a release with its columns."""
    if isinstance(place, RemoteFolder):
        return place.open_table(name)
    assert isinstance(place, LocalFolder)  # noqa: S101
    return writers.open_table(place.path / name)


def publish(
    manifest: Manifest,
    verdicts: Sequence[Verdict],
    stage: Folder,
    target: Target,
    ready: Callable[[Folder], None] | None = None,
) -> None:
    """Write the report, the data dictionary and the manifest beside the table, and move all of it to its place."""
    stage.write(REPORT, markdown(manifest, verdicts).encode())
    stage.write(SCHEMA, data_dictionary(manifest))
    manifest = manifest.model_copy(update={"files": stage.sha256()})
    stage.write(MANIFEST, written(manifest))
    if ready is not None:
        ready(stage)
    target.folder.take(stage, target.replaces)


def _earlier_manifest(text: str) -> Manifest:
    """A manifest of version 0.1 with the names of this one."""
    try:
        values, changes = read_manifest(json.loads(text))
        manifest = Manifest.model_validate(values)
    except (AttributeError, TypeError):  # lists and tables are not where they should be
        raise QueryveilError(f"The {MANIFEST} of the release is damaged; fetch the release again.") from None
    warnings.warn(
        "This release was made by version 0.1. It is checked for what it promised then; its limits are worded as today,"
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
