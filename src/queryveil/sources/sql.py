"""The rows of a query against a database: SQLite by Python itself, all others by their ADBC drivers.

Neither the query nor what a database says about it gets into a message or a release: both may quote the log. A query
changes nothing: SQLite runs only what reads, and in PostgreSQL the transaction is read-only.
"""

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from queryveil.errors import QueryveilError, option, require
from queryveil.files.folders import shown
from queryveil.sources import ArrowSource

_ROWS = 50_000
_READS = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)
"""What a statement of SQLite may do."""
_LIKE_READS = ((sqlite3.SQLITE_UPDATE, "sqlite_master"), (sqlite3.SQLITE_PRAGMA, "data_version"))
"""What SQLite asks for when `json_each` or a full-text table is read; a file that is only read stays as it is."""
_REASONS = {
    "28": "it refuses the user or the password",
    "3D": "it has no such database",
    "25006": "the query would change something, and a log is only read",
    "42": "it does not understand the query, or has no such table or column, or the user may not see it",
    "57": "it was shut down, or the query was cancelled",
}
"""What the beginning of a state of SQL means."""


def rows_of(address: str, query: str) -> ArrowSource:
    """The rows of a query.

    Args:
        address: The database, such as `postgresql://host/name` or `sqlite:///file`.
        query: The query, in the SQL of the database.
    """
    scheme, where = address.partition("://")[0].lower(), shown(address)
    if scheme == "sqlite":
        return _sqlite(Path(address.partition("://")[2].removeprefix("/")), query, where)
    if not re.fullmatch("[a-z][a-z0-9]*", scheme):
        raise QueryveilError(f"{where} is not the address of a database; write it as postgresql://HOST/NAME.")
    connect = _driver("postgresql" if scheme == "postgres" else scheme, where)
    return _adbc(connect, address, query, where, postgresql=scheme.startswith("postgres"))


def _sqlite(file: Path, query: str, where: str) -> ArrowSource:
    if not file.is_file():
        raise QueryveilError(f"There is no file at {where}; write the address as sqlite:///FILE.")
    with ExitStack() as opened:
        try:
            connection = sqlite3.connect(f"file:{quote(str(file))}?mode=ro", uri=True, check_same_thread=False)
            opened.callback(connection.close)
            connection.set_authorizer(_allowed)
            cursor = connection.execute(query)
        except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_AUTH:
                raise _unread(where, _REASONS["25006"]) from None
            damaged = "not a database" in str(error)
            raise _unread(where, "it is not a SQLite file" if damaged else _REASONS["42"]) from None
        if cursor.description is None:
            raise _unread(where, "the query gives no rows")
        opened.pop_all()  # the batches close it
    names = [column[0] for column in cursor.description]
    schema = pa.schema([(name, pa.string()) for name in names])

    def batches() -> Iterator[pa.RecordBatch]:
        with closing(connection):
            try:
                while rows := cursor.fetchmany(_ROWS):
                    columns = [pa.array(map(_text, column), pa.string()) for column in zip(*rows, strict=True)]
                    yield pa.RecordBatch.from_arrays(columns, schema=schema)
            except (sqlite3.Error, pa.ArrowException, UnicodeError):
                raise _unread(where, "a value is neither text nor a number, or the file is damaged") from None

    return ArrowSource(where, schema, batches())


def _allowed(action: int, what: str | None, *_: str | None) -> int:
    """Whether SQLite may do something: the file is only read, but a statement could still make another one."""
    allowed = action in _READS or (action, what) in _LIKE_READS
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


def _text(value: Any) -> str | None:
    """A value of SQLite, whose columns may hold anything, as text."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, bytes):
        raise UnicodeError
    return None if value is None else str(value)


def _driver(scheme: str, where: str) -> Callable[[str], Any]:
    """How a connection is opened: by the driver's own package, or by one that the machine knows by its name."""
    require(f"The query of {where}", "adbc_driver_manager")
    if scheme == "postgresql":
        require(f"The query of {where}", "adbc_driver_postgresql")
    package = f"adbc_driver_{scheme}" if find_spec(f"adbc_driver_{scheme}") else "adbc_driver_manager"
    connect: Callable[[str], Any] = import_module(f"{package}.dbapi").connect
    return connect


def _adbc(connect: Callable[[str], Any], address: str, query: str, where: str, *, postgresql: bool) -> ArrowSource:
    from adbc_driver_manager.dbapi import Error

    try:
        connection = connect(address)
    except (Error, OSError) as error:
        raise _unread(where, _reason(error, "it cannot be reached, or there is no ADBC driver for it")) from None
    try:
        cursor = connection.cursor()
        if postgresql:
            cursor.execute("SET TRANSACTION READ ONLY")
        cursor.execute(query)
        reader = cursor.fetch_record_batch()
    except (Error, OSError) as error:
        connection.close()
        raise _unread(where, _reason(error, "it refuses the query")) from None
    schema = pa.schema([pa.field(field.name, _plain(field.type)) for field in reader.schema])

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            for batch in reader:
                yield pa.RecordBatch.from_arrays([_stored(column) for column in batch.columns], schema=schema)
        except (Error, OSError, pa.ArrowException) as error:
            raise _unread(where, _reason(error, "it stopped in the middle")) from None
        finally:
            reader.close()
            cursor.close()
            connection.close()

    return ArrowSource(where, schema, batches())


def _plain(kind: pa.DataType) -> pa.DataType:
    if str(kind) == "extension<arrow.uuid>":
        return pa.string()
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _stored(column: pa.Array) -> pa.Array:
    """Values of a kind that only the database knows, as what they are stored as."""
    if str(column.type) == "extension<arrow.uuid>":
        return pa.array([None if one is None else str(one) for one in column.to_pylist()], pa.string())
    return column.storage if isinstance(column.type, pa.BaseExtensionType) else column


def _reason(error: Exception, otherwise: str) -> str:
    state = str(getattr(error, "sqlstate", None) or "")
    return next((why for begin, why in _REASONS.items() if state.startswith(begin)), otherwise)


def _unread(where: str, why: str) -> QueryveilError:
    given = option("from_sql", python="'sql'")
    return QueryveilError(f"The database {where} cannot be read: {why}; check the address and {given}.")
