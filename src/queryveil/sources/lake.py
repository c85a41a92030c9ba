"""Delta and Iceberg tables, by the packages deltalake and pyiceberg.

A folder of either kind also holds rows that were deleted or replaced, so it is never read file by file.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa

from queryveil.errors import QueryveilError, require
from queryveil.files.folders import is_address, shown
from queryveil.sources import ArrowSource, is_store

_METADATA = ".metadata.json"


def table_at(path: str | Path) -> ArrowSource | None:
    """The table at a place: a folder on this machine or in a store, Iceberg's metadata, or a name in a catalog.

    Args:
        path: The folder; the file `....metadata.json` of an Iceberg table; or `iceberg://CATALOG/NAMESPACE.TABLE`.

    Returns:
        The table, or None if there is none: then the place has files, or nothing.
    """
    address = str(path)
    if address.lower().startswith("iceberg://"):
        return _iceberg(address, _in_catalog)
    if address.endswith(_METADATA):
        return _iceberg(address, _static)
    inside = _inside(address)
    if "_delta_log" in inside:
        return _delta(address)
    if "version-hint.text" in inside:
        return _iceberg(address.rstrip("/"), _static)
    if "metadata" in inside:
        raise QueryveilError(
            f"{shown(address)} is an Iceberg table that does not say which version is the present one; name the file of"
            f" that version, {shown(address).rstrip('/')}/metadata/NAME{_METADATA}, or iceberg://CATALOG/TABLE."
        )
    return None


def _inside(address: str) -> set[str]:
    """What in a folder says that it is a table."""
    if is_store(address):
        from queryveil.sources.stores import marks

        below = marks(address)
    elif is_address(address):
        return set()
    else:
        place = Path(address.removeprefix("file://"))
        metadata = place / "metadata"
        below = [f"metadata/{file.name}" for file in metadata.iterdir()] if metadata.is_dir() else []
        below += ["_delta_log/"] if (place / "_delta_log").is_dir() else []
    found = {name.partition("/")[0] for name in below if name.startswith("_delta_log/") or name.endswith(_METADATA)}
    return found | {"version-hint.text" for name in below if name == "metadata/version-hint.text" and found}


def _delta(address: str) -> ArrowSource:
    require("A Delta table", "deltalake")
    from deltalake import DeltaTable

    options = {"allow_http": "true"} if is_store(address) and _is_near() else None

    def opened() -> Any:
        return pa.RecordBatchReader.from_stream(DeltaTable(address, storage_options=options).scan())

    return _streamed(shown(address), "Delta", opened)


def _is_near() -> bool:
    from queryveil.sources.stores import endpoint_of
    from queryveil.sources.web import is_this_machine

    return is_this_machine(urlsplit(endpoint_of("s3")).hostname or "")


def _iceberg(address: str, table: Callable[[str], Any]) -> ArrowSource:
    require("An Iceberg table", "pyiceberg")
    return _streamed(shown(address), "Iceberg", lambda: table(address).scan().to_arrow_batch_reader())


def _static(address: str) -> Any:
    from pyiceberg.table import StaticTable

    from queryveil.sources.stores import endpoint_of

    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    known = {"s3.endpoint": endpoint_of("s3"), "s3.region": region}
    return StaticTable.from_metadata(address, {name: value for name, value in known.items() if value})


def _in_catalog(address: str) -> Any:
    from pyiceberg.catalog import load_catalog

    catalog, _, table = address.partition("://")[2].partition("/")
    return load_catalog(catalog).load_table(table)


def _streamed(where: str, kind: str, opened: Callable[[], Any]) -> ArrowSource:
    """The batches of a table; what a package says about it is not passed on, because it may quote the table."""
    try:
        reader = opened()
    except Exception as error:
        raise _unread(where, kind, error) from None

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            yield from reader
        except Exception as error:
            raise _unread(where, kind, error) from None

    return ArrowSource(where, reader.schema, batches())


def _unread(where: str, kind: str, error: Exception) -> QueryveilError:
    if isinstance(error, QueryveilError):
        return error
    name = type(error).__name__
    if isinstance(error, FileNotFoundError) or name in (
        "NoSuchTableError",
        "TableNotFoundError",
        "NoSuchNamespaceError",
    ):
        return QueryveilError(f"There is no {kind} table at {where}; check the address.")
    return QueryveilError(
        f"The {kind} table {where} cannot be read ({name}): its store does not answer, it is damaged, or it uses what"
        " its package does not know."
    )
