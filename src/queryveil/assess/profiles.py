"""A log in numbers, before anything is released."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from queryveil.arrays import Bools
from queryveil.engines import identifier
from queryveil.errors import missing, option
from queryveil.log import QueryLog, check_is_log
from queryveil.release.bands import Band, bands
from queryveil.text.detection import DETECTED, LEAST_SHARE, SAMPLE, detected
from queryveil.text.scripts import SCRIPTS, bit, scripts_of
from queryveil.text.show import percent
from queryveil.text.tabular import Tabular, html_facts, html_list, html_table

KS = (2, 5, 10, 30, 100)
_FEW = 20
"""Fewer queries say nothing about words."""
_MOSTLY = 0.95
"""If so many queries are one word, words were not found."""
_LONG = 12
"""No language with blanks has words of so many characters on average."""


@dataclass(frozen=True)
class Kept:
    """What releasing the queries of at least k users would keep."""

    k: int
    queries: int
    events: int


@dataclass(frozen=True)
class Length:
    """Queries of one length."""

    words: str
    queries: int
    events: int


@dataclass(frozen=True)
class Ranked:
    """Results at one rank: how many were shown, and how many of these were clicked."""

    rank: str
    views: int
    clicks: int


@dataclass(frozen=True)
class Written:
    """Queries with letters of one script, or of a sample those in one language."""

    name: str
    queries: int


@dataclass(frozen=True)
class Profile(Tabular):
    """A log in numbers."""

    rows: int
    empty_rows: int
    bad_rows: dict[str, int]
    events: int
    users: int
    queries: int
    words: int
    clicks: int
    first: str | None
    last: str | None
    queries_per_user: dict[str, float]
    extras: dict[str, int]
    lengths: tuple[Length, ...]
    bands: tuple[Band, ...]
    kept: tuple[Kept, ...]
    scripts: tuple[Written, ...]
    """Distinct queries with letters of each script; one with letters of two counts for both."""
    languages: tuple[Written, ...]
    """Distinct queries of a sample in each language, as far as that was detected, by codes of ISO 639-1."""
    warnings: tuple[str, ...]
    """What looks wrong, a sentence each."""
    fingerprint: str
    views: int | None = None
    """Results shown, clicked or not; None if the log has clicks alone."""
    ranks: tuple[Ranked, ...] = ()
    """What was shown and clicked at each rank, if the log has views."""

    def as_dict(self) -> dict[str, Any]:
        """The profile as plain values, for JSON."""
        found = asdict(self) | {"bands": [band.model_dump() for band in self.bands]}
        return found if self.views is not None else {k: v for k, v in found.items() if k not in ("views", "ranks")}

    @property
    def counts(self) -> dict[str, int]:
        """How much there is of everything."""
        counted = {name: getattr(self, name) for name in _COUNTS}
        return counted if self.views is None else counted | {"views": self.views}

    def to_arrow(self) -> pa.Table:
        """Every number in a row: its `group`, the `name` of the part of the log, what is counted, and the `value`."""
        parts = [
            *(("words per query", one.words, one) for one in self.lengths),
            *(("users per query", one.label, one) for one in self.bands),
            *(("queries of at least k users", f"k = {one.k}", one) for one in self.kept),
        ]
        rows = [
            *(("log", "", name, count) for name, count in self.counts.items()),
            *(("bad rows", kind, "rows", count) for kind, count in self.bad_rows.items()),
            *(("extra columns", name, "values", count) for name, count in self.extras.items()),
            *(("queries per user", "", name, value) for name, value in self.queries_per_user.items()),
            *(("scripts", one.name, "queries", one.queries) for one in self.scripts),
            *(("languages of a sample", one.name, "queries", one.queries) for one in self.languages),
            *((group, name, what, getattr(one, what)) for group, name, one in parts for what in ("queries", "events")),
            *(("rank", one.rank, what, getattr(one, what)) for one in self.ranks for what in ("views", "clicks")),
        ]
        return pa.Table.from_pylist([dict(zip(_SCHEMA.names, row, strict=True)) for row in rows], schema=_SCHEMA)

    def _repr_html_(self) -> str:
        facts = self.counts | {"first": self.first, "last": self.last}
        facts = {name.replace("_", " "): value for name, value in facts.items()}
        kept = pa.Table.from_pylist([asdict(one) for one in self.kept])
        facts["scripts"] = ", ".join(one.name for one in self.scripts)
        facts["languages"] = ", ".join(one.name for one in self.languages)
        return (
            html_facts("Profile of a query log", facts.items())
            + html_table("Queries of at least k users", kept)
            + html_list("Warnings", self.warnings)
        )


_COUNTS = ("rows", "empty_rows", "events", "users", "queries", "words", "clicks")
_SCHEMA = pa.schema([("group", pa.string()), ("name", pa.string()), ("measure", pa.string()), ("value", pa.float64())])


def profile(log: QueryLog) -> Profile:
    """Rows, events, users, queries, their lengths and frequencies, and what each k would keep of them."""
    check_is_log(log, "profile")
    stats, engine = log.stats, log.engine
    first, last = engine.row("SELECT min(time) AS first_time, max(time) AS last_time FROM events")
    frequencies = log.frequencies()
    users = frequencies["users"].to_numpy()
    words = log.lengths["words"].to_numpy()
    lengths = []
    for length in range(6):
        inside = words == length if length < 5 else words >= 5
        if length or inside.any():
            label = str(length) if length < 5 else "5+"
            lengths.append(Length(label, *_sums(log.lengths, inside)))
    return Profile(
        rows=stats.rows,
        empty_rows=stats.empty_rows,
        bad_rows=stats.bad_rows.count,
        events=stats.events,
        users=stats.users,
        queries=stats.queries,
        words=stats.words,
        clicks=stats.clicks,
        first=first and first.isoformat(" ", "seconds"),
        last=last and last.isoformat(" ", "seconds"),
        queries_per_user=_queries_per_user(log),
        extras={
            name: engine.row(f"SELECT count(*) AS n FROM {identifier(f'extra {name}')}")[0] for name in stats.extras
        },
        lengths=tuple(lengths),
        bands=bands(frequencies),
        kept=tuple(Kept(k, *_sums(frequencies, users >= k)) for k in KS),
        scripts=_scripts(log),
        languages=_languages(log),
        warnings=tuple(_warnings(log)),
        fingerprint=log.fingerprint,
        views=stats.views or None,
        ranks=_ranks(log) if log.has_views else (),
    )


def _ranks(log: QueryLog) -> tuple[Ranked, ...]:
    """What was shown and clicked at ranks from 0 to 10, at others, and without a rank."""
    found = log.engine.fetch(
        "SELECT place, count(*) AS views, CAST(sum(clicked) AS BIGINT) AS clicks FROM (SELECT CASE WHEN rank IS NULL"
        " THEN 12 WHEN rank > 10 THEN 11 ELSE rank END AS place, clicked FROM views) AS v GROUP BY place ORDER BY place"
    )
    labels = {11: "11+", 12: "none"}
    return tuple(
        Ranked(labels.get(row["place"], str(row["place"])), row["views"], row["clicks"]) for row in found.to_pylist()
    )


def _scripts(log: QueryLog) -> tuple[Written, ...]:
    """How many distinct queries have letters of which script, the most frequent first."""
    with log.workspace() as work:
        made = work.map("SELECT query FROM queries", _bits, _BITS, "scripts of queries")
        found = work.fetch(f"SELECT bits, CAST(sum(n) AS BIGINT) AS n FROM {made} GROUP BY bits")
    bits, n = found["bits"].to_numpy(), found["n"].to_numpy()
    counted = [Written(script, int(n[bits & bit(script) != 0].sum())) for script in SCRIPTS]
    return tuple(sorted((one for one in counted if one.queries), key=lambda one: -one.queries))


_BITS = pa.schema([("bits", pa.int64()), ("n", pa.int64())])


def _bits(batch: pa.RecordBatch) -> pa.RecordBatch:
    found, counts = np.unique(scripts_of(batch["query"]), return_counts=True)
    return pa.RecordBatch.from_arrays([pa.array(found), pa.array(counts)], schema=_BITS)


def _languages(log: QueryLog) -> tuple[Written, ...]:
    """How many distinct queries of a sample are in which language, the most frequent first; rare ones are left out."""
    sample = log.engine.fetch(f"SELECT query FROM queries ORDER BY query_id LIMIT {SAMPLE}")["query"]
    found = detected(sample.combine_chunks())
    least = LEAST_SHARE * sum(found.values())
    return tuple(Written(id, count) for id, count in found.most_common() if count >= least)


def _warnings(log: QueryLog) -> Iterator[str]:
    """What says that queries were not cut into the words that people see in them."""
    words, queries = log.lengths["words"].to_numpy(), log.lengths["queries"].to_numpy()
    single = int(queries[words <= 1].sum()) / log.n_queries
    given = option("language")
    if log.n_queries >= _FEW and single >= _MOSTLY:
        yield (
            f"{percent(single)} of the distinct queries are one word, so words are probably not what people see as"
            f" words; say which language it is with {given}, and check that blanks were not lost."
        )
    (mean,) = log.engine.row(
        "SELECT avg(length(w.word)) AS mean FROM query_terms t JOIN words w ON w.word_id = t.word_id"
    )
    if mean is not None and mean > _LONG:
        yield (
            f"Words have {mean:.1f} characters on average, more than in any language with blanks between its words;"
            f" say which language it is with {given}, and check that blanks were not lost."
        )
    without = missing("py3langid")
    if without is not None and log.scripts & bit(*DETECTED):
        yield f"The languages of queries in Latin and Cyrillic script were not looked at; detecting them {without}."
    for one in log.language.cutters:
        if one.cutter.missing and log.scripts & one.any_of:
            yield f"{one.cutter.label} is cut into single characters and pairs; words need {one.cutter.missing}."


def _sums(table: pa.Table, inside: Bools) -> tuple[int, int]:
    queries, events = (int(table[name].to_numpy()[inside].sum()) for name in ("queries", "events"))
    return queries, events


def _queries_per_user(log: QueryLog) -> dict[str, float]:
    """How many events users have: exact quantiles, from how many users have how many."""
    found = log.engine.fetch(
        "SELECT n, count(*) AS users FROM (SELECT user_id, count(*) AS n FROM events GROUP BY user_id) AS per_user"
        " GROUP BY n ORDER BY n"
    )
    events, users = found["n"].to_numpy(), found["users"].to_numpy()
    behind = np.cumsum(users)

    def quantile(share: float) -> float:
        # Between the two users around the position, as in NumPy.
        place = share * (int(behind[-1]) - 1)
        low, high = (int(events[np.searchsorted(behind, math.floor(place) + i, "right")]) for i in (0, place % 1 > 0))
        return low + (high - low) * (place % 1)

    return {
        "mean": log.stats.events / log.stats.users,
        "median": quantile(0.5),
        "90 %": quantile(0.9),
        "99 %": quantile(0.99),
        "most": float(events[-1]),
    }
