"""Is the released table what its manifest says: its columns, its ids and order, and the numbers of everything?"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from queryveil.claims import Verdict
from queryveil.claims.base import Evidence
from queryveil.engines import identifier
from queryveil.formats import writers
from queryveil.kernels.digest import digests
from queryveil.log import LocalLog, QueryLog
from queryveil.release import Release, counts_of
from queryveil.release.bands import bands
from queryveil.release.manifest import UNPUBLISHED
from queryveil.release.rows import typed_columns
from queryveil.text.arrays import byte_spans
from queryveil.verification.promises import expected_columns, expected_kind

_LAST = np.iinfo(np.int64).max
_FILLED = ("query", "item", "node", "users", "users_band", "events", "count", "total")
"""Columns without missing values."""
_OF_TOTALS = ("query", "users", "users_band")
"""Those that a total may leave out."""


def columns_right(release: Release, log: QueryLog) -> Verdict:
    """Compare the kind and the columns with those that the method must have."""
    claim = "The table has the kind and exactly the columns that its method and parameters require."
    kind = expected_kind(release.manifest)
    if release.manifest.kind != kind:
        return Verdict(claim, False, f"it says that it holds {release.manifest.kind}, and should hold {kind}")
    found = release.schema.names
    expected = expected_columns(release.manifest, log)
    if release.manifest.table.endswith(".tsv"):
        expected = writers.schema_in("aol", typed_columns(expected)).names
    if found == expected:
        return Verdict(claim, True)
    wrong = next((name for name in found if name not in expected), None)
    return Verdict(claim, False, f"the column '{wrong}'" if wrong is not None else f"it has {', '.join(found)}")


def order_right(release: Release, evidence: Evidence) -> Verdict:
    """Look at the values of every column, and on one machine at the order of rows."""
    claim = "Ids are numbered from 1, rows are in the order of pseudonyms and texts, and every rank has an address."
    found = _wrong_values(release, evidence)
    if not isinstance(evidence.log, LocalLog):
        return Verdict(claim, found is None, found, how=None if found else "the order of rows was not looked at")
    if found is None:
        row = _out_of_order(release)
        found = None if row is None else f"row {row} is not in the order of pseudonyms and texts"
    return Verdict(claim, found is None, found)


def rows_right(release: Release) -> Verdict:
    """Count the rows and look at their order, without the log."""
    claim = "The table has as many rows as the manifest says, in the order of pseudonyms and texts."
    rows = sum(len(batch) for batch in release.batches())
    if rows != release.manifest.counts.rows:
        return Verdict(claim, False, f"it says {release.manifest.counts.rows:,}, the table has {rows:,}")
    if release.manifest.table not in release.manifest.files:  # a cluster writes parts, in no order
        return Verdict(claim, True, how="the order of parts was not looked at")
    row = _out_of_order(release)
    return Verdict(claim, row is None, None if row is None else f"row {row} is out of order")


def _wrong_values(release: Release, evidence: Evidence) -> str | None:
    """A column whose values cannot be those of a release."""
    log, names, expected = evidence.log, release.schema.names, expected_columns(release.manifest, evidence.log)
    ids = [name for name in ("user", "session", "event") if name in names]
    filled = [name for name in _FILLED if name in names and not ("total" in names and name in _OF_TOTALS)]
    # AOL's format always has columns for times and clicks; they must be empty if none are released.
    empty = [name for name in names if name not in expected]
    asked = ["count(*)"]
    for name in map(identifier, ids):
        asked += [f"count({name})", f"coalesce(min({name}), 1)", f"coalesce(max({name}), 0)"]
    asked += [f"count({identifier(name)})" for name in (*filled, *empty)]
    of_result = [] if _is_table(release) else [name for name in ("rank", "clicked") if name in names]
    asked += [f"count(CASE WHEN url IS NULL THEN {name} END)" for name in of_result]
    counted = ", ".join(f"{sql} AS n{place}" for place, sql in enumerate(asked))
    rows, *found = log.engine.row(f"SELECT {counted} FROM {evidence.released}")  # noqa: S608  # parts of this module, names are escaped
    for name in ids:
        there, low, high = found[:3]
        found, distinct = found[3:], evidence.distinct(name)
        if there != rows or (low, high) != (1, distinct):
            return f"the numbers of {name}s are not those from 1 to {distinct}"
    for name in filled:
        if found.pop(0) != rows:
            return f"a row has no value in the column '{name}'"
    for name in empty:
        if found.pop(0):
            return f"a row has a value in the column '{name}'"
    return "a row has a rank, or says what was clicked, without an address" if any(found) else None


def _out_of_order(release: Release) -> int | None:
    """The first row that does not follow from the one before, by pseudonym and text, nor by number, rank and address.

    Texts are in the order of their digests, so the order of rows reveals neither users nor times. On a cluster rows are
    not brought here, and the claims check only the numbers of events.
    """
    before: list[NDArray[np.int64]] | None = None
    seen = 0
    for batch in release.batches():
        orders = [np.stack(keys, axis=1) for keys in _keys(release, batch) if keys]
        if before is not None:
            orders = [np.concatenate(pair) for pair in zip(before, orders, strict=True)]
        wrong = np.zeros(max(len(orders[0]) - 1, 0), np.bool_)
        for rows in orders:
            fine = np.ones(len(wrong), np.bool_)
            for key in rows.T[::-1]:
                fine = (key[1:] > key[:-1]) | ((key[1:] == key[:-1]) & fine)
            wrong |= ~fine
        if wrong.any():
            return seen + int(np.flatnonzero(wrong)[0]) + (2 if before is None else 1)
        seen += len(batch)
        before = [rows[-1:] for rows in orders] if len(orders[0]) else before
    return None


def _keys(release: Release, batch: pa.RecordBatch) -> tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]]:
    """The keys that rows are sorted by: pseudonym and text; and event, rank and address, which is the same order."""
    names = batch.schema.names
    if _is_table(release):
        return _keys_of_counts(release, batch), []
    whole = [batch[name].to_numpy().astype(np.int64) for name in ("user", "session", "node") if name in names]
    if "query" in names:
        whole += _digest_keys(batch["query"], release.manifest.kind == "tokens")
    within = [batch["event"].to_numpy().astype(np.int64)] if "event" in names else []
    if "url" in names and "event" in names:
        within += [_last_if_null(batch["rank"]), *_digest_keys(batch["url"])]
        within += [_last_if_null(batch["clicked"])] if "clicked" in names else []
    elif "url" in names and "user" not in names:  # a table of counts, where the query itself comes last
        whole += _digest_keys(batch["url"])
    return whole, within


def _is_table(release: Release) -> bool:
    """Whether it is a table of counts by several columns, and not of queries and clicks with noisy counts."""
    return release.manifest.steps[-1].method == "counts"


def _keys_of_counts(release: Release, batch: pa.RecordBatch) -> list[NDArray[np.int64]]:
    """The keys of a table of counts: rows before totals; query, address, rank; metadata and period by their texts."""
    names = batch.schema.names
    whole = [batch["total"].to_numpy().astype(np.int64)] if "total" in names else []
    for name in ("query", "url"):
        whole += _digest_keys(batch[name]) if name in names else []
    whole += [_last_if_null(batch["rank"])] if "rank" in names else []
    others = [
        name for name in names if name not in ("query", "url", "users_band") and writers.type_of(name) == pa.string()
    ]
    return whole + [_last_if_null(pc.index_in(batch[name], _sorted_texts(release, name))) for name in others]


def _sorted_texts(release: Release, name: str) -> pa.Array:
    """The different texts of a column with few of them, in order."""
    found: set[str] = set()
    for batch in release.batches():
        found.update(batch[name].unique().drop_null().to_pylist())
    return pa.array(sorted(found), pa.string())


def _digest_keys(texts: pa.Array, signed: bool = False) -> list[NDArray[np.int64]]:
    """Numbers in the order of the digests of texts; missing texts come last. Tokens are in signed order."""
    there = texts.is_valid().to_numpy(zero_copy_only=False)
    halves = digests(*byte_spans(pc.fill_null(texts, "").cast(pa.string())))
    sign = np.uint64(0 if signed else 1 << 63)
    return [np.where(there, (half ^ sign).view(np.int64), _LAST) for half in halves]


def _last_if_null(numbers: pa.Array) -> NDArray[np.int64]:
    return np.asarray(pc.fill_null(numbers.cast(pa.int64()), pa.scalar(_LAST)).to_numpy(), np.int64)


def counts_right(release: Release, evidence: Evidence) -> Verdict:
    """Count everything that the manifest counts."""
    log, columns = evidence.log, release.schema.names
    private = release.manifest.private
    count = {
        "rows": "count(*)",
        "events": _events_in(columns, private, expected_columns(release.manifest, log)),
        "clicks": "count(url)" if "url" in columns else None,
        "views": None,
    }
    several = {"events": "event", "users": "user", "sessions": "session", "queries": "query"}
    several |= {"queries": "node"} if "node" in columns else {}
    distinct = {name: column for name, column in several.items() if column in columns}
    if "clicked" in columns:
        count |= {"views": "count(url)", "clicks": "count(CASE WHEN clicked THEN 1 END)"}
    if _is_table(release):  # totals do not count
        rows = "CASE WHEN total = 0 THEN {0} END" if "total" in columns else "{0}"
        each = "events" if "events" in columns else "users"
        count["events"] = f"coalesce(CAST(sum({rows.format(each)}) AS BIGINT), 0)"
        count["clicks"] = f"count({rows.format('url')})" if "url" in columns else None
    asked = {name: sql for name, sql in count.items() if sql is not None}
    counted = ", ".join(f"{sql} AS {name}" for name, sql in asked.items())
    found = dict(zip(asked, log.engine.row(f"SELECT {counted} FROM {evidence.released}"), strict=True))  # noqa: S608  # parts of this module
    found |= {"queries": 0} | {name: evidence.distinct(column) for name, column in distinct.items()}
    counted_only = release.manifest.kind == "counts"
    # Tokens are no queries of the log.
    kept = log.frequencies(
        evidence.events_of_queries()
        if "query" in columns and not counted_only and release.manifest.kind != "tokens"
        else None
    )
    claim = "All counts in the manifest are correct."
    for name, number in found.items():
        stated = getattr(release.manifest.counts, name)
        if stated != number:
            return Verdict(claim, False, f"it says {stated} {name}, the table has {number}")
    counts = release.manifest.counts
    if "node" in columns and (counts.events, counts.clicks) != (counts.rows, 0):
        return Verdict(claim, False, "it says otherwise how many items and clicks there are")
    if "node" in columns and release.manifest.bands != bands(kept):
        return Verdict(claim, False, "its frequency bands are not those of the log")
    alone = log.stats.series is None  # a release of a series says nothing exact about what still waits
    if release.manifest.input_counts != (counts_of(log) if alone and not counted_only else UNPUBLISHED):
        return Verdict(claim, False, "its counts of the log are wrong")
    unset = [name for name in ("users", "sessions", "views") if name not in found]
    if any(getattr(counts, name) is not None for name in unset) or ("url" not in columns and counts.clicks != 0):
        return Verdict(claim, False, "it counts what the table does not have")
    if "events" in found and release.manifest.bands != (bands(kept) if alone and not counted_only else ()):
        return Verdict(claim, False, "its frequency bands are not those of the table")
    return Verdict(claim, True)


def _events_in(columns: list[str], private: bool, expected: list[str]) -> str | None:
    """SQL of how many events a table has that does not number them; None if it cannot be known."""
    if private:
        return _events_of_counts(columns)
    # AOL's format has no numbers of events. Without clicks, a row is an event.
    return "count(*)" if "event" not in columns and "query" in columns and "url" not in expected else None


def _events_of_counts(columns: list[str]) -> str:
    """SQL of the number of events if noisy counts, or only queries, are published."""
    each = '"count"' if "count" in columns else "1"
    plain = f"CASE WHEN url IS NULL THEN {each} ELSE 0 END" if "url" in columns else each
    return f"coalesce(CAST(sum({plain}) AS BIGINT), 0)"
