"""Rows in the form in which they can be numbered: only good ones, in normal form, with digests."""

import secrets
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queryveil.formats.results import NOT_SHOWN
from queryveil.formats.rows import CANONICAL, BadRows, Rows
from queryveil.formats.times import parse_times_as
from queryveil.kernels.types import Bools, Flags, Ints, Longs, ULongs
from queryveil.text import fold_blanks, normal_form
from queryveil.text.arrays import byte_spans
from queryveil.text.columns import Digests

MAX_TEXT_BYTES = 16_384
"""A longer query or address is a pasted document: a bad row."""

_YEAR_1, _YEAR_10000 = -62_135_596_800_000_000, 253_402_300_800_000_000
"""Where the calendar of Python, and of most readers of a release, begins and ends, in microseconds since 1970."""


_NULLS = pa.array(["NULL", "\\N"])
"""What databases write for a missing value. A query or a user may be called so, a time or an address is not."""

_SECRET = np.frombuffer(secrets.token_bytes(16), np.uint64)


@dataclass
class Prepared:
    """A part of the rows with digests for texts; the main thread only has to number them."""

    user: pa.Array
    query: pa.Array
    url: pa.Array
    extras: dict[str, pa.Array]
    digests: dict[str, Digests]
    time: Longs
    rank: Ints
    bad: BadRows
    empty: int
    file: str
    line: Longs
    """Where each row is."""
    clicked: Flags | None = None
    """Whether each result was clicked; None if rows are clicks."""
    checks: dict[str, ULongs] = field(default_factory=dict)
    """Digests of the texts with a key of this run, which reveal texts whose other digests were forged to be equal."""

    @property
    def has_results(self) -> bool:
        """Whether any row has a rank or an address."""
        _, starts, ends = byte_spans(self.url)
        return bool((self.rank >= 0).any() or (ends > starts).any())

    @property
    def texts(self) -> dict[str, pa.Array]:
        """The texts by kind."""
        extras = {f"extra {name}": values for name, values in self.extras.items()}
        return {"user": self.user, "query": self.query, "url": self.url, **extras}

    def check(self) -> "Prepared":
        """Compute `checks`."""
        from queryveil.kernels.digest import digests

        self.checks = {name: digests(*byte_spans(values), *_SECRET)[0] for name, values in self.texts.items()}
        return self


def prepare(rows: Rows, time_format: str | None = None) -> Prepared:
    """Leave out bad and empty rows, bring texts to their normal form, and digest them.

    Args:
        rows: The rows.
        time_format: How their times are written, if that is none of the usual ways.
    """
    from queryveil.kernels.digest import digests
    from queryveil.kernels.times import BAD, parse_flags, parse_ranks

    n = len(rows.line)
    for name in ("time", "rank", "url", "clicked"):
        if name in rows.columns:
            rows.columns[name] = _without_nulls(rows.columns[name])
    nothing = pa.nulls(n, pa.string())
    raw = rows.columns["query"]
    time = _times(rows.columns.get("time"), n, time_format)
    rank = parse_ranks(*byte_spans(rows.columns["rank"])) if "rank" in rows.columns else np.full(n, -1, np.int32)
    user = rows.columns["user"]
    _, starts, ends = byte_spans(raw)
    user = fold_blanks(pc.fill_null(user, ""))
    _, user_starts, user_ends = byte_spans(user)
    url = rows.columns.get("url", nothing)
    clicked = parse_flags(*byte_spans(rows.columns["clicked"])) if "clicked" in rows.columns else None
    if clicked is not None:  # blanks are no address, so nothing was shown
        url = fold_blanks(pc.fill_null(url, ""))
    _, url_starts, url_ends = byte_spans(url)
    good = np.ones(n, np.bool_)
    for kind, wrong in (
        ("no user", user_starts == user_ends),
        ("over-long query", ends - starts > MAX_TEXT_BYTES),
        ("over-long address", url_ends - url_starts > MAX_TEXT_BYTES),
        ("bad time", time == BAD),
        ("bad rank", rank == -2),
        *(() if clicked is None else _bad_views(clicked, (rank >= 0) | (url_ends > url_starts), time)),
    ):
        wrong &= good
        if wrong.any():
            rows.bad.add(kind, int(wrong.sum()), rows.at(int(wrong.argmax())))
            good &= ~wrong
    if not good.all():
        raw = pc.if_else(pa.array(good), raw, "")
    query = normal_form(pc.fill_null(raw, ""))
    present = pc.and_(pc.not_equal(query, ""), pc.not_equal(query, "-")).to_numpy(zero_copy_only=False)
    keep = good & present
    empty = int((good & ~present).sum())
    extras = {name: values for name, values in rows.columns.items() if name not in CANONICAL}
    if not keep.all():
        mask = pa.array(keep)
        user, query, url = user.filter(mask), query.filter(mask), url.filter(mask)
        extras = {name: values.filter(mask) for name, values in extras.items()}
        time, rank = time[keep], rank[keep]
        clicked = None if clicked is None else clicked[keep]
    url = url if clicked is not None else fold_blanks(pc.fill_null(url, ""))
    extras = {name: fold_blanks(pc.fill_null(values, "")) for name, values in extras.items()}
    line = rows.line if keep.all() else rows.line[keep]
    made = Prepared(user, query, url, extras, {}, time, rank, rows.bad, empty, rows.file, line, clicked)
    made.digests = {name: digests(*byte_spans(values)) for name, values in made.texts.items()}
    return made


def _without_nulls(values: pa.Array) -> pa.Array:
    if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        return values
    missing = pc.is_in(values, _NULLS.cast(values.type))
    return pc.if_else(missing, "", values) if pc.any(missing).as_py() else values


def _bad_views(clicked: Flags, is_result: Bools, time: Longs) -> tuple[tuple[str, Bools], ...]:
    """What can be wrong with a row of results."""
    from queryveil.kernels.times import MISSING

    return (
        ("bad clicked", clicked == -2),
        (NOT_SHOWN, (clicked == 1) & ~is_result),
        # The results of one event are in several rows, which have its time.
        ("a view without an event", is_result & (time == MISSING)),
    )


def _times(values: pa.Array | None, n: int, time_format: str | None) -> Longs:
    from queryveil.kernels.times import BAD, MISSING, parse_times

    if values is None:
        return np.full(n, MISSING, np.int64)
    if pa.types.is_timestamp(values.type):
        micros: Longs = pc.fill_null(values.cast(pa.int64()), MISSING).to_numpy()
    elif time_format is not None:
        micros = parse_times_as(values, time_format)
    else:
        micros = parse_times(*byte_spans(values), 0)
    far = (micros != MISSING) & ((micros < _YEAR_1) | (micros >= _YEAR_10000))
    return np.where(far, BAD, micros)
