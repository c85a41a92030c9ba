"""Certificates: what makes every check of a release linear, handed over by the method that made it.

A certificate names witnesses, such as the queries that protect a released one. The verifier trusts none of it: it looks
at exactly what is named, computes the rest anew, and searches by itself where a certificate is wrong or says nothing.
It says more than the release, so it is for an auditor who has the log as well, and never published.
"""

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from queryveil.engines import Table, Workspace
from queryveil.errors import QueryveilError, option
from queryveil.files.folders import check_file, write_whole
from queryveil.log import QueryLog

SUFFIX = ".certificate"
_HEAD, _VERSION, _TABLE = "certificate.json", 1, ".arrow"
_KEYS = {"members": ("users", "user_id"), "concepts": ("queries", "query_id")}
"""Tables that may stay on a cluster: whose ids they have, and in which column."""
_COLUMNS = {"members": ("user",), "concepts": ("node", "events")}
MOST_ROWS = 20_000_000
"""Of a log that outgrows a machine, a table with more rows is not written to a file: it would be made here."""


@dataclass(frozen=True)
class Certificate:
    """What a method hands over to the verifier of its release.

    Attributes:
        seed: The random seed of the release.
        tables: Witnesses by name, whole numbers alone; empty where every check is linear without.
        kept: Witnesses that stay where the tables of a log are that outgrows a machine, as long as its release is in
            memory, with the ids of that log.
    """

    seed: int
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    kept: Mapping[str, Table] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what is no whole number.

        Raises:
            QueryveilError: If a column holds anything else.
        """
        if self.seed < 0:
            raise QueryveilError("The seed of a certificate must be a whole number of at least 0.")
        columns = [(table, name) for table in self.tables.values() for name in table.column_names]
        if not all(
            pa.types.is_signed_integer(table[name].type) and table[name].null_count == 0 for table, name in columns
        ):
            raise QueryveilError(
                "The tables of a certificate must hold signed whole numbers alone; give them no others."
            )

    def table(self, name: str, *columns: str) -> pa.Table | None:
        """A table with exactly these columns, as 64-bit numbers; None if there is none."""
        found = self.tables.get(name)
        if found is None or tuple(found.column_names) != columns:
            return None
        return found.cast(pa.schema([(column, pa.int64()) for column in columns])).combine_chunks()

    def whole(self, log: QueryLog) -> "Certificate":
        """The certificate with all tables here, as long as they are not too large, with the ids of one machine."""
        tables = dict(self.tables)
        with log.workspace() as work:
            for name, kept in self.kept.items():
                if work.row(f"SELECT count(*) AS n FROM {kept}")[0] > MOST_ROWS:  # noqa: S608  # a table of ours
                    continue
                key = _KEYS[name][1]
                columns = {column: f'CAST(k."{column}" AS BIGINT)' for column in _COLUMNS[name]}
                joined = f"{_numbers(log, work, name)} i ON i.id = k.{key}"
                if "events" in columns:
                    log.ensure_tables("per_query")
                    columns["events"], joined = "p.events", f"{joined} JOIN per_query p ON p.query_id = i.id"
                listed = ", ".join(f'{sql} AS "{column}"' for column, sql in columns.items())
                tables[name] = work.fetch(
                    f"SELECT i.number - 1 AS {key}, {listed} FROM {kept} k JOIN {joined} ORDER BY {key}"  # noqa: S608  # names of this module
                )
        return Certificate(self.seed, tables)

    def on_cluster(self, log: QueryLog, work: Workspace, name: str) -> Table | None:
        """A table with the ids of a log that outgrows a machine, made there if it is here; None if there is none."""
        key = _KEYS[name][1]
        found = self.table(name, key, *_COLUMNS[name])
        if name in self.kept or found is None:
            return self.kept.get(name)
        listed = ", ".join(f'g."{column}" AS "{column}"' for column in _COLUMNS[name])
        return work.table(
            f"SELECT i.id AS {key}, {listed} FROM {work.read(found)} g JOIN {_numbers(log, work, name)} i"  # noqa: S608  # names of this module
            f" ON i.number - 1 = g.{key}",
            f"{name} of the certificate",
        )


def _numbers(log: QueryLog, work: Workspace, name: str) -> Table:
    """The ids of a log that outgrows a machine, and those that it has on one machine: numbers in the same order."""
    of, key = _KEYS[name]
    return work.number(f"SELECT {key} AS id FROM {of}", ("id",), "number", even=True, name=f"numbers of {of}")  # noqa: S608  # names of this module


def save_certificate(certificate: Certificate, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a certificate as one file that only its owner may read."""
    place = check_file(path, (SUFFIX,), overwrite)
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        file.writestr(_HEAD, json.dumps({"format_version": _VERSION, "seed": certificate.seed}))
        for name, table in certificate.tables.items():
            written = pa.BufferOutputStream()
            with pa.ipc.new_file(written, table.schema) as writer:
                writer.write_table(table)
            file.writestr(name + _TABLE, written.getvalue())
    write_whole(place, content.getvalue(), overwrite=overwrite, private=True)


def load_certificate(path: str | Path) -> Certificate:
    """Read a certificate that `Release.save_certificate` wrote.

    Raises:
        QueryveilError: If it cannot be read, or is not one.
    """
    wrote = option("certificate", python="Release.save_certificate")
    damaged = QueryveilError(f"The certificate {path} is damaged; give the file that {wrote} wrote.")
    if not Path(path).is_file():  # a pipe would be waited for
        raise QueryveilError(f"The certificate {path} cannot be read: it is no file.")
    try:
        with zipfile.ZipFile(path) as file:
            parts = file.infolist()
            # What is packed may unpack to any size, and a second part of a name would hide the first.
            if any(part.compress_type != zipfile.ZIP_STORED for part in parts) or len(set(file.namelist())) < len(
                parts
            ):
                raise damaged
            head = json.loads(file.read(_HEAD))
            tables = {name: _read_table(file.read(name)) for name in file.namelist() if name != _HEAD}
    except OSError as error:
        raise QueryveilError(f"The certificate {path} cannot be read: {error.strerror}.") from None
    # What zip, Arrow and JSON raise for damage; a stranger wrote it.
    except (zipfile.BadZipFile, pa.ArrowException, ValueError, KeyError, NotImplementedError, RuntimeError, EOFError):
        raise damaged from None
    if not isinstance(head, dict) or set(head) != {"format_version", "seed"} or type(head["seed"]) is not int:
        raise damaged
    if head["format_version"] != _VERSION:
        raise QueryveilError(f"The certificate {path} is of another version of queryveil; use that version.")
    if not all(name.endswith(_TABLE) for name in tables):
        raise damaged
    try:
        return Certificate(head["seed"], {name.removesuffix(_TABLE): table for name, table in tables.items()})
    except QueryveilError:
        raise damaged from None


def _read_table(content: bytes) -> pa.Table:
    table = pa.ipc.open_file(pa.py_buffer(content)).read_all()
    table.validate(full=True)
    return table
