"""Forged releases: any release, changed in any place by somebody who knows how queryveil writes one.

A forger has the package and the honest release, and wants `verify` to accept another. They mend whatever they can: the
SHA-256 of files, counts, frequency bands, the canonical form of the manifest, the report, numbers and order of rows.
"""

import copy
import hashlib
import json
import os
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from queryveil.claims import Verdict
from queryveil.formats import writers
from queryveil.kernels.digest import digests
from queryveil.log import LocalLog
from queryveil.release.bands import bands
from queryveil.release.dictionary import data_dictionary
from queryveil.release.manifest import Manifest, written
from queryveil.release.summary import markdown
from queryveil.text.arrays import byte_spans

Rows = list[dict[str, Any]]
HIDDEN = "hidden payload"
IDS = ("user", "session")


def forge(
    folder: Path, log: LocalLog, rng: random.Random, kinds: Sequence[Callable[..., str | None]] | None = None
) -> str | None:
    """Change a release in one place; what was done, or None if it came to nothing."""
    before = {file: file.read_bytes() for file in sorted(folder.iterdir())}
    done = rng.choice(kinds or KINDS)(folder, log, rng)
    if done is not None and before == {f: f.read_bytes() for f in sorted(folder.iterdir()) if f.is_file()}:
        return None
    return done


def mend(folder: Path, manifest: Manifest, changed: frozenset[str] = frozenset()) -> None:
    """Write report and manifest as an honest release would have them, but for fields that were changed on purpose."""
    if "report" not in changed:
        verdicts = [Verdict(claim.statement, True, headline=claim.headline) for claim in manifest.claims]
        (folder / "report.md").write_text(markdown(manifest, verdicts))
    if "schema" not in changed:
        (folder / "schema.json").write_bytes(data_dictionary(manifest))
    if "files" not in changed:
        names = [name for name in os.listdir(folder) if name != "manifest.json" and (folder / name).is_file()]
        files = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in sorted(names)}
        manifest = manifest.model_copy(update={"files": files})
    (folder / "manifest.json").write_bytes(written(manifest))


def table_of(folder: Path) -> tuple[Path, pa.Table]:
    manifest = read(folder)
    schema, batches = writers.open_table(folder / manifest.table)
    return folder / manifest.table, pa.Table.from_batches(batches(), schema)


def read(folder: Path) -> Manifest:
    return Manifest.model_validate_json((folder / "manifest.json").read_bytes())


def put_rows(folder: Path, log: LocalLog, rows: Rows, schema: pa.Schema) -> None:
    """Write other rows, with all numbers that follow from them."""
    manifest = read(folder)
    table = pa.Table.from_pylist(rows, schema)
    format = next(name for name, suffix in writers.SUFFIXES.items() if manifest.table.endswith(suffix))
    writers.write(folder / manifest.table, format, schema, iter(table.to_batches()))
    mend(folder, manifest.model_copy(update=_numbers(manifest, log, table.to_pylist())))


def _numbers(manifest: Manifest, log: LocalLog, rows: Rows) -> dict[str, Any]:
    names, counts = manifest.columns, manifest.counts

    def distinct(name: str) -> int:
        return len({row[name] for row in rows})

    plain = [row for row in rows if "count" in names and row.get("url") is None]
    events = distinct("event") if "event" in names else sum(row["count"] or 0 for row in plain) if plain else len(rows)
    cells = [row for row in rows if not row.get("total")]
    if "events" in names:
        events = sum(row["events"] or 0 for row in cells)
    found = counts.model_copy(
        update={
            "rows": len(rows),
            "events": events,
            "queries": distinct("node" if "node" in names else "query"),
            "clicks": sum(row["url"] is not None for row in cells) if "url" in names else 0,
            **(
                {
                    "views": sum(row["url"] is not None for row in rows),
                    "clicks": sum(row["clicked"] is True for row in rows),
                }
                if "clicked" in names
                else {}
            ),
            **{f"{name}s": distinct(name) for name in IDS if name in names},
        }
    )
    if "event" not in names or "query" not in names or not manifest.bands:
        return {"counts": found}
    kept: dict[str, set[int]] = {}
    for row in rows:
        kept.setdefault(row["query"], set()).add(row["event"])
    log.engine.read("forged", pa.table({"query": list(kept), "n": [len(events) for events in kept.values()]}))
    known = log.frequencies("SELECT q.query_id AS query_id, f.n AS n FROM forged f JOIN queries q ON q.query = f.query")
    log.engine.drop("forged")
    return {"counts": found, "bands": bands(known)}


def tidy(rows: Rows, names: list[str]) -> Rows:
    """Rows in the order of an honest release, with ids and events numbered anew."""
    owner = next((name for name in IDS if name in names), None)
    text = "node" if "node" in names else "query"

    def place(row: dict[str, Any]) -> tuple[Any, ...]:
        of = (
            row[text] if text == "node" else tuple(int(half[0]) for half in digests(*byte_spans(pa.array([row[text]]))))
        )
        rank = (row.get("rank") is None, row.get("rank"))
        url = row.get("url")
        address = (1,) if url is None else (0, *(int(h[0]) for h in digests(*byte_spans(pa.array([url])))))
        if "events" in names:
            return (row.get("total") or 0, of, *address, rank)
        clicked = (row.get("clicked") is None, row.get("clicked"))
        return (row[owner] if owner else 0, of, row.get("event", 0), rank, address, clicked)

    rows = sorted((dict(row) for row in rows), key=place)
    for name in (*IDS, "event"):
        if name in names:
            new: dict[Any, int] = {}
            for row in rows:
                key = (row[name], row[text], row[owner] if owner else 0) if name == "event" else row[name]
                row[name] = new.setdefault(key, len(new) + 1)
    return rows


def changed_rows(
    folder: Path, log: LocalLog, rng: random.Random, changes: Sequence[Callable[..., str | None]] | None = None
) -> str | None:
    """Other cells, rows or order."""
    _, table = table_of(folder)
    rows, names = table.to_pylist(), table.column_names
    if not rows:
        return None
    change = rng.choice(changes or ROWS)
    told = change(rows, names, log, rng)
    if told is None or rows == table.to_pylist():
        return None
    orderly = rng.random() < 0.5
    try:
        put_rows(folder, log, tidy(rows, names) if orderly else rows, table.schema)
    except (pa.ArrowException, TypeError, OverflowError, KeyError):  # a value that no table can hold
        return None
    return f"{told}{', put in order' if orderly else ''}"


def _cell(rows: Rows, names: list[str], log: LocalLog, rng: random.Random) -> str:
    name, row = rng.choice(names), rng.choice(rows)
    old = row[name]
    if isinstance(old, int) or name in (
        "rank",
        "event",
        "user",
        "session",
        "users",
        "node",
        "count",
        "total",
        "events",
        "clicks",
    ):
        values = [(old or 0) + 1, (old or 0) - 1, 0, -1, 2**31 - 1, None, rng.choice(rows)[name]]
    elif isinstance(old, str) or name in ("query", "url", "item"):
        text = old or "http://forged.example"
        values = [text + " ", text.upper(), HIDDEN, "", None, rng.choice(rows)[name], log.query_text[0].as_py()]
    else:
        values = [rng.choice(rows)[name], None]
    row[name] = rng.choice(values)
    return f"cell of {name}"


def _swapped_cells(rows: Rows, names: list[str], log: LocalLog, rng: random.Random) -> str:
    name, one, other = rng.choice(names), rng.choice(rows), rng.choice(rows)
    one[name], other[name] = other[name], one[name]
    return f"cells of {name} swapped"


def _dropped(rows: Rows, names: list[str], log: LocalLog, rng: random.Random) -> str:
    del rows[rng.randrange(len(rows))]
    return "row dropped"


def _dropped_all(rows: Rows, names: list[str], log: LocalLog, rng: random.Random) -> str:
    name = rng.choice([name for name in ("user", "session", "query", "node", "event") if name in names])
    value = rng.choice(rows)[name]
    rows[:] = [row for row in rows if row[name] != value]
    return f"all rows of one {name} dropped"


def _repeated(rows: Rows, names: list[str], log: LocalLog, rng: random.Random) -> str:
    rows.insert(rng.randrange(len(rows)), dict(rng.choice(rows)))
    return "row repeated"


def _added(rows: Rows, names: list[str], log: LocalLog, rng: random.Random) -> str:
    new = dict(rng.choice(rows))
    for name in ("event", *IDS):
        if name in names:
            new[name] = max(row[name] for row in rows) + rng.choice([0, 1])
    if "query" in names:
        new["query"] = log.query_text[rng.randrange(log.n_queries)].as_py()
    rows.append(new)
    return "row added"


def _moved(rows: Rows, names: list[str], log: LocalLog, rng: random.Random) -> str:
    rows.insert(rng.randrange(len(rows)), rows.pop(rng.randrange(len(rows))))
    return "row moved"


def _shuffled(rows: Rows, names: list[str], log: LocalLog, rng: random.Random) -> str:
    rng.shuffle(rows)
    return "rows shuffled"


def _ids(rows: Rows, names: list[str], log: LocalLog, rng: random.Random) -> str | None:
    ids = [name for name in (*IDS, "event") if name in names]
    if not ids:
        return None
    name, stride = rng.choice(ids), rng.choice([2, 1000])
    for row in rows:
        row[name] = row[name] * stride
    return f"numbers of {name}s spread"


def _pseudonyms(rows: Rows, names: list[str], log: LocalLog, rng: random.Random) -> str | None:
    owner = next((name for name in IDS if name in names), None)
    if owner is None:
        return None
    ids = sorted({row[owner] for row in rows})
    new = dict(zip(ids, rng.sample(ids, len(ids)), strict=True))
    for row in rows:
        row[owner] = new[row[owner]]
    return "pseudonyms permuted"


def _exchanged(rows: Rows, names: list[str], log: LocalLog, rng: random.Random) -> str | None:
    """All rows of one event under another pseudonym."""
    owner = next((name for name in IDS if name in names), None)
    if owner is None:
        return None
    to, event = rng.choice(rows)[owner], rng.choice(rows).get("event")
    for row in rows if event is not None else rows[:1]:
        if row.get("event") == event:
            row[owner] = to
    return "event given to another pseudonym"


ROWS: list[Callable[..., str | None]] = [
    *[_cell] * 4, *[_swapped_cells] * 3, _dropped, _dropped_all, _repeated, _added, _moved, _shuffled, _ids,
    _pseudonyms, _exchanged,
]  # fmt: skip


def changed_manifest(folder: Path, log: LocalLog, rng: random.Random) -> str | None:
    """Another value, key, or order anywhere in the manifest, and a report that says the same."""
    values = json.loads((folder / "manifest.json").read_bytes())
    places = list(_places(values))
    parent, key, path = rng.choice(places)
    told = _edit(parent, key, rng)
    if told is None:
        return None
    top = path.split(".")[0]
    text = json.dumps(values, indent=2, ensure_ascii=False) + "\n"
    if rng.random() < 0.2:
        (folder / "manifest.json").write_text(text)
        return f"{told} at {path}"
    try:
        mend(folder, Manifest.model_validate_json(text), frozenset([top]))
    except Exception:
        (folder / "manifest.json").write_text(text)
    return f"{told} at {path}"


def _places(value: Any, path: str = "") -> Any:
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in entries:
        here = f"{path}.{key}".removeprefix(".")
        yield value, key, here
        yield from _places(inner, here)


def _edit(parent: Any, key: Any, rng: random.Random) -> str | None:
    old = parent[key]
    how = rng.choice(["value", "value", "value", "key", "null", "type", "more"])
    if how == "key":
        if isinstance(parent, dict):
            del parent[key]
            return "key dropped"
        parent.insert(0, parent.pop(key)) if rng.random() < 0.5 else parent.append(copy.deepcopy(old))
        return "list changed"
    if how == "null":
        parent[key] = None
        return "value removed" if old is not None else None
    if how == "type":
        parent[key] = str(old) if not isinstance(old, str) else [old]
        return "type changed"
    if how == "more":
        if isinstance(old, dict):
            old[HIDDEN] = HIDDEN
        elif isinstance(old, list):
            old.append(copy.deepcopy(old[0]) if old else HIDDEN)
        elif isinstance(parent, dict):
            parent[HIDDEN] = 1
        return "something added"
    if isinstance(old, bool):
        parent[key] = not old
    elif isinstance(old, int):
        parent[key] = old + rng.choice([-1, 1, 1000])
    elif isinstance(old, float):
        parent[key] = old * rng.choice([0.5, 1.5, 1.0000001])
    elif isinstance(old, str):
        parent[key] = rng.choice([old + " ", old.swapcase(), HIDDEN, old[:-1]])
    elif isinstance(old, dict) and len(old) > 1:
        first = next(iter(old))
        old[first] = old.pop(first)
        return "keys in another order"
    else:
        return None
    return "value changed" if parent[key] != old else None


def changed_bytes(folder: Path, log: LocalLog, rng: random.Random) -> str | None:
    """Other bytes in a file, with or without its SHA-256 mended."""
    name = rng.choice(["manifest.json", "report.md", "schema.json", read(folder).table])
    data = bytearray((folder / name).read_bytes())
    how = rng.choice(["flipped", "inserted", "cut", "appended"])
    at = rng.randrange(len(data))
    if how == "flipped":
        data[at] ^= 1 << rng.randrange(8)
    elif how == "inserted":
        data[at:at] = rng.randbytes(3)
    elif how == "cut":
        del data[at : at + rng.choice([1, 100])]
    else:
        data += HIDDEN.encode()
    manifest = read(folder)
    (folder / name).write_bytes(data)
    if name != "manifest.json" and rng.random() < 0.7:
        mend(folder, manifest, frozenset(["report", "schema"]))
    return f"bytes {how} in {name}"


def written_otherwise(folder: Path, log: LocalLog, rng: random.Random) -> str | None:
    """The same rows in a file that holds more than them."""
    path, table = table_of(folder)
    if path.suffix != ".parquet":
        return None
    how = rng.choice(
        ["metadata", "compression", "dictionary", "row groups", "column", "type", "column order", "fields"]
    )
    options: dict[str, Any] = {"compression": "zstd"}
    if how == "metadata":
        table = table.replace_schema_metadata({HIDDEN: HIDDEN})
    elif how == "compression":
        options["compression"] = "snappy"
    elif how == "dictionary":
        options["use_dictionary"] = False
    elif how == "row groups":
        options["row_group_size"] = max(1, len(table) // 2)
    elif how == "column":
        table = table.append_column(rng.choice([HIDDEN, "original", "time"]), pa.array([HIDDEN] * len(table)))
    elif how == "type":
        place = next(i for i, field in enumerate(table.schema) if pa.types.is_string(field.type))
        table = table.set_column(place, table.column_names[place], table[place].cast(pa.large_string()))
    elif how == "column order":
        table = table.select(table.column_names[::-1])
    else:
        schema = pa.schema([field.with_metadata({HIDDEN: HIDDEN}) for field in table.schema])
        table = table.cast(schema)
    pq.write_table(table, path, **options)
    manifest = read(folder)
    mend(folder, manifest.model_copy(update={"columns": tuple(table.column_names)}))
    return f"table with other {how}"


def other_files(folder: Path, log: LocalLog, rng: random.Random) -> str:
    """More, fewer or other kinds of files."""
    how = rng.choice(["file", "hidden file", "folder", "link", "pipe", "log", "gone", "double manifest"])
    table = read(folder).table
    if how == "file":
        (folder / "notes.txt").write_text(HIDDEN)
    elif how == "hidden file":
        (folder / ".notes").write_text(HIDDEN)
    elif how == "folder":
        (folder / HIDDEN).mkdir()
        return "empty folder"
    elif how == "link":
        (folder / table).rename(folder.parent / f"{folder.name}-moved")
        (folder / table).symlink_to(folder.parent / f"{folder.name}-moved")
        return "link in the place of the table"
    elif how == "pipe":
        name = rng.choice([table, "report.md", "schema.json", "manifest.json", "more"])
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)
        return f"pipe {name}"
    elif how == "log":
        pq.write_table(log.events, folder / "original.parquet")
    elif how == "gone":
        (folder / rng.choice([table, "report.md", "schema.json", "manifest.json"])).unlink()
        return "file gone"
    else:
        text = (folder / "manifest.json").read_text()
        (folder / "manifest.json").write_text(text.replace("{", '{"method": "none",', 1))
        return "key twice"
    mend(folder, read(folder))
    return f"one more {how}"


KINDS: list[Callable[..., str | None]] = [
    *[changed_rows] * 5, *[changed_manifest] * 5, changed_bytes, written_otherwise, other_files
]  # fmt: skip
