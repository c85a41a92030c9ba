"""The independent checker: is a release what its manifest says, and does every claim hold against the original log?"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from queryveil.claims import HashedWords, Verdict
from queryveil.claims.certificates import Certificate
from queryveil.claims.limits import LIMITS
from queryveil.engines import Table, identifier
from queryveil.errors import QueryveilError
from queryveil.files.folders import Folder, LocalFolder
from queryveil.formats import writers
from queryveil.kernels.digest import digests
from queryveil.log import LocalLog, QueryLog, Scrub
from queryveil.release import MANIFEST, REPORT, Release, check_loaded, counts_of, loaded, made_from
from queryveil.release.bands import bands
from queryveil.release.manifest import FORMAT_VERSION, SOFTWARE, UNPUBLISHED, written
from queryveil.release.summary import is_private, markdown
from queryveil.scrubbing import mask, repeat_scrub, url_hits
from queryveil.text.arrays import byte_spans
from queryveil.text.tabular import Tabular, html_list, html_table
from queryveil.verification.promises import expected_columns, expected_kind, required_claims


@dataclass(frozen=True)
class Verification(Tabular):
    """What the verifier found: one verdict for each thing it checked."""

    verdicts: tuple[Verdict, ...]
    unchecked: tuple[str, ...] = ()
    """What could not be checked, a sentence each."""

    @property
    def holds(self) -> bool:
        """Whether everything that was checked holds."""
        return all(verdict.holds for verdict in self.verdicts)

    def to_arrow(self) -> pa.Table:
        """One row per verdict."""
        return pa.Table.from_pylist([vars(verdict) for verdict in self.verdicts], schema=_SCHEMA)

    def _repr_html_(self) -> str:
        wrong = sum(not verdict.holds for verdict in self.verdicts)
        title = f"Verification: {wrong} of {len(self.verdicts)} checks failed" if wrong else "Verification: all holds"
        return html_table(title, self.to_arrow()) + html_list("Not checked", self.unchecked)


_SCHEMA = pa.schema(
    [("claim", pa.string()), ("holds", pa.bool_()), ("counterexample", pa.string()), ("how", pa.string())]
)


def run_checks(release: str | Path | Release, log: QueryLog, *, certificate: Certificate | None = None) -> Verification:
    """Check a release against the log it was made from.

    Args:
        release: The folder of the release, or a release that was loaded or made in this session.
        log: The original log.
        certificate: The certificate of the release, by `load_certificate`; by default that of a release which was made
            in this session. It makes checks quicker and is not trusted.

    Returns:
        The verdicts: files and manifest are as this version writes them; the release was made from this log; the log
        was scrubbed as the manifest says, if at all; claims and limits are exactly those of the method and its
        parameters; columns, ids and order of the table; the numbers; each claim of the manifest; and the report. If one
        of the first is wrong, the rest means nothing and is not checked. Most of all, no claim is run that the method
        does not make. All else is checked against the scrubbed log.

    Raises:
        QueryveilError: If there is no release.
    """
    if not isinstance(release, Release):
        release = Release.load(log.folder(release))
    if certificate is not None:
        release = replace(release, certificate=certificate)
    sound: tuple[Verdict, ...] = ()
    in_parts = release.folder is not None and release.manifest.table not in release.manifest.files
    unchecked = (_IN_PARTS,) if in_parts else ()
    # A differentially private release says nothing about its log that could be compared.
    checks: list[Callable[[], Verdict]] = [] if is_private(release.manifest) else [lambda: _same_log(release, log)]
    if release.folder is not None:
        folder = release.folder
        today = [lambda: _written_so(release, folder)] if release.manifest.format_version == FORMAT_VERSION else []
        checks = [lambda: _files_unchanged(release, folder), *today, *checks]
    for check in checks:  # one after the other, because each relies on those before
        sound = (*sound, check())
        if not sound[-1].holds:
            return Verification(sound)
    if release.manifest.scrub is None and log.stats.scrub is None:
        return Verification((*sound, *_checked(release, log)), unchecked)
    scrubbed, verdict = _scrubbed(release, log)
    if scrubbed is None:
        return Verification((*sound, verdict))
    try:
        checked = _checked(release, scrubbed)
        return Verification((*sound, verdict, _nothing_left(release, scrubbed), *checked), unchecked)
    finally:
        if scrubbed is not log:
            scrubbed.close()


def _checked(release: Release, log: QueryLog) -> tuple[Verdict, ...]:
    """Everything that is checked once the log is known to be the right one."""
    # A claim that the method does not make must not run: its fields may come from anybody.
    first: tuple[Verdict, ...] = ()
    for check in (_promises_kept, _limits_right, _columns_right):  # each relies on those before
        first = (*first, check(release, log))
        if not first[-1].holds:
            return first
    with loaded(release, log) as released:
        claims = check_loaded(release, log, released, release.certificate)
        found = (*first, _order_right(release, log, released), _counts_right(release, log, released), *claims)
    if release.manifest.format_version != FORMAT_VERSION:
        # Otherwise a forger would say that their release is of 0.1, for which less can be checked.
        return (*found, Verdict("The release can be checked in full.", False, "version 0.1 made it, or so it says"))
    if release.folder is None or not all(verdict.holds for verdict in found):
        return found
    return (*found, _report_right(release, release.folder, claims))


def _scrubbed(release: Release, log: QueryLog) -> tuple[QueryLog | None, Verdict]:
    """The log scrubbed as the manifest says; None if the number of hits is not what the manifest says."""
    claim = "The log was scrubbed as the manifest says."
    stated = release.manifest.scrub
    if stated is None:
        return None, Verdict(claim, False, "the release is of the whole log, and the log given is a scrubbed one")
    private, earlier = is_private(release.manifest), release.manifest.format_version == 1
    if earlier and stated.how == "mask":
        raise QueryveilError(
            "Version 0.1 released queries with nothing but masks, and this version leaves them out, so it cannot check"
            " this release; use queryveil 0.1."
        )

    def as_stated(found: Scrub) -> Scrub:
        found = found.without_counts if private else found
        return found.model_copy(update={"left_out": stated.left_out, "log": stated.log}) if earlier else found

    if log.stats.scrub is not None:
        same = as_stated(log.stats.scrub) == stated
        return (log if same else None), Verdict(claim, same, None if same else "the log given was scrubbed otherwise")
    try:
        scrubbed = repeat_scrub(log, stated)
    except QueryveilError:
        return None, Verdict(claim, False, "the log cannot be scrubbed so")
    found = scrubbed.stats.scrub
    if found is not None and as_stated(found) == stated:
        return scrubbed, Verdict(claim, True)
    scrubbed.close()
    return None, Verdict(claim, False, "scrubbing the log finds other numbers of hits")


def _nothing_left(release: Release, log: QueryLog) -> Verdict:
    """Search the released texts themselves for what was scrubbed, whatever the method promises about them."""
    claim = "No released query or address holds anything of the kinds that were scrubbed."
    stated = release.manifest.scrub
    hashed = any(isinstance(promise, HashedWords) for promise in release.manifest.claims)
    if stated is None or hashed:  # tokens may look like numbers of any kind, and stand beside no address
        return Verdict(claim, True)
    hits = pa.schema([("hits", pa.int64())])
    kinds = stated.kinds

    def in_queries(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([pa.array(mask(batch["query"], kinds).hits)], schema=hits)

    def in_urls(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([pa.array(url_hits(batch["url"], kinds))], schema=hits)

    looks = (("query", "queries", in_queries), ("url", "addresses", in_urls))
    with loaded(release, log) as released, log.workspace() as work:
        for column, what, look in looks:
            if column not in release.schema.names:
                continue
            asked = f"SELECT {column} FROM {released} WHERE {column} IS NOT NULL GROUP BY {column}"  # noqa: S608  # parts of this module
            made = work.map(asked, look, hits, f"hits in {what}")
            (wrong,) = work.row(f"SELECT count(*) AS n FROM {made} WHERE hits > 0")  # noqa: S608  # a table of ours
            if wrong:
                return Verdict(claim, False, f"{wrong} of its distinct {what} do")
    return Verdict(claim, True)


def _promises_kept(release: Release, log: QueryLog) -> Verdict:
    claim = "The manifest claims what its method and parameters promise, and nothing else."
    try:
        required = required_claims(release.manifest, log)
    except (KeyError, TypeError, ValueError):
        return Verdict(claim, False, f"the parameters are not those of the method '{release.manifest.method}'")
    stated = release.manifest.claims
    missing = next((wanted for wanted in required if wanted not in stated), None)
    if missing is not None:
        return Verdict(claim, False, f"it does not claim: {missing.statement}")
    if tuple(required) != stated:
        return Verdict(claim, False, f"it makes {len(stated)} claims in another order, not these {len(required)}")
    return Verdict(claim, True)


def _limits_right(release: Release, log: QueryLog) -> Verdict:
    claim = "The manifest says what its method does not promise, and nothing else."
    required, stated = LIMITS.get(release.manifest.method, ()), release.manifest.limits
    missing = next((limit for limit in required if limit not in stated), None)
    if missing is not None:
        return Verdict(claim, False, f"it does not say: {missing}")
    return Verdict(claim, required == stated, None if required == stated else "it says more than that")


def _columns_right(release: Release, log: QueryLog) -> Verdict:
    claim = "The table is of the kind and has the columns of its method and parameters, and no other."
    kind = expected_kind(release.manifest)
    if release.manifest.kind != kind:
        return Verdict(claim, False, f"it says that it holds {release.manifest.kind}, and should hold {kind}")
    found = release.schema.names
    expected = expected_columns(release.manifest, log)
    if release.manifest.table.endswith(".tsv"):
        expected = writers.schema_in("aol", pa.schema([(name, writers.type_of(name)) for name in expected])).names
    if found == expected:
        return Verdict(claim, True)
    wrong = next((name for name in found if name not in expected), None)
    return Verdict(claim, False, f"the column '{wrong}'" if wrong is not None else f"it has {', '.join(found)}")


def _order_right(release: Release, log: QueryLog, released: Table) -> Verdict:
    claim = "Ids are numbered from 1, rows are in the order of pseudonyms and texts, and every rank has an address."
    found = _wrong_values(release, log, released)
    if found is None and isinstance(log, LocalLog):
        row = _out_of_order(release)
        found = None if row is None else f"row {row} is not in the order of pseudonyms and texts"
    return Verdict(claim, found is None, found)


def _wrong_values(release: Release, log: QueryLog, released: Table) -> str | None:
    """A column whose values cannot be those of a release."""
    names, expected = release.schema.names, expected_columns(release.manifest, log)
    ids = [name for name in ("user", "session", "event") if name in names]
    filled = [name for name in ("query", "item", "node", "users", "count") if name in names]
    # AOL's format always has columns for times and clicks; they must be empty if none are released.
    empty = [name for name in names if name not in expected]
    asked = ["count(*)"]
    for name in map(identifier, ids):
        asked += [f"count({name})", f"count(DISTINCT {name})", f"coalesce(min({name}), 1)", f"coalesce(max({name}), 0)"]
    asked += [f"count({identifier(name)})" for name in (*filled, *empty)]
    asked.append("count(CASE WHEN url IS NULL THEN rank END)" if "rank" in names else "0")
    counted = ", ".join(f"{sql} AS n{place}" for place, sql in enumerate(asked))
    rows, *found = log.engine.row(f"SELECT {counted} FROM {released}")  # noqa: S608  # parts of this module, names are escaped
    for name in ids:
        there, distinct, low, high = found[:4]
        found = found[4:]
        if there != rows or (low, high) != (1, distinct):
            return f"the numbers of {name}s are not those from 1 to {distinct}"
    for name in filled:
        if found.pop(0) != rows:
            return f"a row has no value in the column '{name}'"
    for name in empty:
        if found.pop(0):
            return f"a row has a value in the column '{name}'"
    return "a row has a rank without an address" if found.pop(0) else None


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
    whole = [batch[name].to_numpy().astype(np.int64) for name in ("user", "session", "node") if name in names]
    if "query" in names:
        whole += _digest_keys(batch["query"], any(isinstance(c, HashedWords) for c in release.manifest.claims))
    within = [batch["event"].to_numpy().astype(np.int64)] if "event" in names else []
    if "url" in names and "event" in names:
        within += [_last_if_null(batch["rank"]), *_digest_keys(batch["url"])]
    elif "url" in names and "user" not in names:  # a table of counts, where the query itself comes last
        whole += _digest_keys(batch["url"])
    return whole, within


def _digest_keys(texts: pa.Array, signed: bool = False) -> list[NDArray[np.int64]]:
    """Numbers in the order of the digests of texts; missing texts come last. Tokens are in signed order."""
    there = texts.is_valid().to_numpy(zero_copy_only=False)
    halves = digests(*byte_spans(pc.fill_null(texts, "").cast(pa.string())))
    sign = np.uint64(0 if signed else 1 << 63)
    return [np.where(there, (half ^ sign).view(np.int64), _LAST) for half in halves]


def _last_if_null(numbers: pa.Array) -> NDArray[np.int64]:
    return np.asarray(pc.fill_null(numbers.cast(pa.int64()), pa.scalar(_LAST)).to_numpy(), np.int64)


_LAST = np.iinfo(np.int64).max


def _report_right(release: Release, place: Folder, claims: tuple[Verdict, ...]) -> Verdict:
    same = place.read(REPORT) == markdown(release.manifest, claims).encode()
    claim = "The report says what the manifest and the checks say."
    return Verdict(claim, same, None if same else f"{REPORT} reads otherwise")


def _files_unchanged(release: Release, place: Folder) -> Verdict:
    claim = "The files are those that a release has and the manifest names, unchanged."
    listed = release.manifest.files
    if list(listed) != sorted(listed):
        return Verdict(claim, False, "the manifest names them in another order")
    table = release.manifest.table
    # A cluster writes a table in parts, and only as Parquet.
    parts = [f"{table}/part-{number:05}.parquet" for number in range(len(listed) - 1)]
    if set(listed) != {table, REPORT} and (table != "log.parquet" or set(listed) != {*parts, REPORT}):
        return Verdict(claim, False, f"a release has {table}, whole or in parts, and {REPORT} beside its manifest")
    present = set(place.files()) - {MANIFEST}
    for name in sorted(present ^ set(listed)):
        return Verdict(claim, False, f"{name} is {'not in the manifest' if name in present else 'missing'}")
    found = place.sha256()
    changed = next((name for name in sorted(listed) if found[name] != listed[name]), None)
    return Verdict(claim, changed is None, changed and f"{changed} was changed")


def _written_so(release: Release, place: Folder) -> Verdict:
    """Whether manifest and table are, byte for byte, what this version writes, so nothing can be hidden in them."""
    claim = "The files are written as this version of queryveil writes them, byte for byte."
    manifest = release.manifest
    if manifest.software != SOFTWARE:
        return Verdict(claim, False, f"it says that it was made by another version than {SOFTWARE}; use that one")
    keyed = manifest.input_fingerprint
    if (keyed is None) != is_private(manifest) or not re.fullmatch("[0-9a-f]{64}", keyed or "0" * 64):
        return Verdict(claim, False, "its fingerprint is not valid")
    if place.read(MANIFEST) != written(manifest):
        return Verdict(claim, False, f"{MANIFEST} is written otherwise")
    format = next((name for name, suffix in writers.SUFFIXES.items() if manifest.table == f"log{suffix}"), None)
    if format is None:
        return Verdict(claim, False, f"the table is called {manifest.table}")
    if manifest.table not in manifest.files:
        odd = _odd_part(release, place)
        return Verdict(claim, odd is None, odd and f"{odd} is not written as Spark writes it")
    typed = pa.schema([(name, writers.type_of(name)) for name in release.schema.names])
    same = writers.sha256(format, typed, release.batches) == manifest.files[manifest.table]
    return Verdict(claim, same, None if same else f"{manifest.table} is written otherwise, or by another pyarrow")


_SPARK = {
    pa.int64(): "long",
    pa.int32(): "integer",
    pa.string(): "string",
    pa.timestamp("us"): "timestamp_ntz",
}
_IN_PARTS = "Rows of the table were compared, and not its bytes, because a cluster wrote it in parts."


def _odd_part(release: Release, place: Folder) -> str | None:
    """A part of a table whose footer differs from what Spark writes for these columns."""
    if not isinstance(place, LocalFolder):
        return None
    fields = [
        {"name": name, "type": _SPARK[writers.type_of(name)], "nullable": True, "metadata": {}}
        for name in release.schema.names
    ]
    row = json.dumps({"type": "struct", "fields": fields}, separators=(",", ":"), ensure_ascii=False).encode()
    for name in release.manifest.files:
        if name == REPORT:
            continue
        about = pq.read_metadata(place.path / name)
        said = dict(about.metadata or {})
        version = said.pop(b"org.apache.spark.version", b"")
        made = re.fullmatch(r"parquet-mr version [\d.]+ \(build [0-9a-f]{40}\)", about.created_by)
        if said != {b"org.apache.spark.sql.parquet.row.metadata": row} or not made:
            return name
        if not re.fullmatch(rb"\d+\.\d+\.\d+", version):
            return name
    return None


def _same_log(release: Release, log: QueryLog) -> Verdict:
    same = made_from(release, log)
    if release.seed is None or release.manifest.input_fingerprint is None:
        claim = "The size of the log is as the manifest says."
        return Verdict(claim, same, None if same else "its counts of the log are wrong")
    claim = "The release was made from this log."
    return Verdict(claim, same, None if same else "the fingerprints differ; is the certificate that of this release?")


def _counts_right(release: Release, log: QueryLog, released: Table) -> Verdict:
    columns = release.schema.names
    private = is_private(release.manifest)
    count = {
        "rows": "count(*)",
        "events": _events_in(columns, private, expected_columns(release.manifest, log)),
        "users": 'count(DISTINCT "user")' if "user" in columns else None,
        "sessions": "count(DISTINCT session)" if "session" in columns else None,
        "queries": "count(DISTINCT node)" if "node" in columns else "count(DISTINCT query)",
        "clicks": "count(url)" if "url" in columns else None,
    }
    asked = {name: sql for name, sql in count.items() if sql is not None}
    counted = ", ".join(f"{sql} AS {name}" for name, sql in asked.items())
    found = log.engine.row(f"SELECT {counted} FROM {released}")  # noqa: S608  # parts of this module
    kept = log.frequencies(
        f"SELECT q.query_id AS query_id, {count['events'] or 'count(*)'} AS n FROM {released} r"  # noqa: S608  # parts of this module
        " JOIN queries q ON q.query = r.query GROUP BY q.query_id"
        if "query" in columns
        else None
    )
    claim = "The manifest counts right."
    for name, number in zip(asked, found, strict=True):
        stated = getattr(release.manifest.counts, name)
        if stated != number:
            return Verdict(claim, False, f"it says {stated} {name}, the table has {number}")
    counts = release.manifest.counts
    if "node" in columns and (counts.events, counts.clicks) != (counts.rows, 0):
        return Verdict(claim, False, "it says otherwise how many items and clicks there are")
    if "node" in columns and release.manifest.bands != bands(kept):
        return Verdict(claim, False, "its frequency bands are not those of the log")
    if release.manifest.input_counts != (UNPUBLISHED if private else counts_of(log)):
        return Verdict(claim, False, "its counts of the log are wrong")
    unset = [name for name, sql in count.items() if sql is None and name in ("users", "sessions")]
    if any(getattr(counts, name) is not None for name in unset) or ("url" not in columns and counts.clicks != 0):
        return Verdict(claim, False, "it counts what the table does not have")
    if count["events"] is not None and release.manifest.bands != (() if private else bands(kept)):
        return Verdict(claim, False, "its frequency bands are not those of the table")
    return Verdict(claim, True)


def _events_in(columns: list[str], private: bool, expected: list[str]) -> str | None:
    """SQL of how many events a table has; None if it cannot be known."""
    if "event" in columns:
        return "count(DISTINCT event)"
    if private:
        return _events_of_counts(columns)
    # AOL's format has no numbers of events. Without clicks, a row is an event.
    return "count(*)" if "query" in columns and "url" not in expected else None


def _events_of_counts(columns: list[str]) -> str:
    """SQL of the number of events if noisy counts, or only queries, are published."""
    each = '"count"' if "count" in columns else "1"
    plain = f"CASE WHEN url IS NULL THEN {each} ELSE 0 END" if "url" in columns else each
    return f"coalesce(CAST(sum({plain}) AS BIGINT), 0)"
