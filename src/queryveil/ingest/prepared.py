"""Rows brought to the form in which they can be numbered: good ones only, in normal form, with digests."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from queryveil.formats import CANONICAL, BadRows, Rows
from queryveil.text import fold_blanks, normal_form
from queryveil.text.arrays import byte_spans
from queryveil.text.columns import Digests

MAX_TEXT_BYTES = 16_384
"""A longer query or address is a pasted document: a bad row."""

_YEAR_1, _YEAR_10000 = -62_135_596_800_000_000, 253_402_300_800_000_000
"""Microseconds since 1970 where the calendar of Python, and of most readers of a release, begins and ends."""


@dataclass
class Prepared:
    """A stretch of rows with digests for texts; what is left for the main thread is to number them."""

    user: pa.Array
    query: pa.Array
    url: pa.Array
    extras: dict[str, pa.Array]
    digests: dict[str, Digests]
    time: NDArray[np.int64]
    rank: NDArray[np.int32]
    content: Digests
    bad: BadRows
    empty: int


def prepare(rows: Rows) -> Prepared:
    """Leave out bad and empty rows, bring texts to their normal form, and digest them."""
    from queryveil.kernels.digest import digests
    from queryveil.kernels.times import BAD, parse_ranks

    n = len(rows.line)
    nothing = pa.nulls(n, pa.string())
    raw = rows.columns["query"]
    time = _times(rows.columns.get("time"), n)
    rank = parse_ranks(*byte_spans(rows.columns["rank"])) if "rank" in rows.columns else np.full(n, -1, np.int32)
    user = rows.columns["user"]
    _, starts, ends = byte_spans(raw)
    user = fold_blanks(pc.fill_null(user, ""))
    _, user_starts, user_ends = byte_spans(user)
    url = rows.columns.get("url", nothing)
    _, url_starts, url_ends = byte_spans(url)
    good = np.ones(n, np.bool_)
    for kind, wrong in (
        ("no user", user_starts == user_ends),
        ("over-long query", ends - starts > MAX_TEXT_BYTES),
        ("over-long address", url_ends - url_starts > MAX_TEXT_BYTES),
        ("bad time", time == BAD),
        ("bad rank", rank == -2),
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
    url = fold_blanks(pc.fill_null(url, ""))
    extras = {name: fold_blanks(pc.fill_null(values, "")) for name, values in extras.items()}
    texts = {"user": user, "query": query, "url": url, **{f"extra {name}": v for name, v in extras.items()}}
    found = {name: digests(*byte_spans(values)) for name, values in texts.items()}
    content = _content(found, extras, time, rank)
    return Prepared(user, query, url, extras, found, time, rank, content, rows.bad, empty)


def _times(values: pa.Array | None, n: int) -> NDArray[np.int64]:
    from queryveil.kernels.times import BAD, MISSING, parse_times

    if values is None:
        return np.full(n, MISSING, np.int64)
    if pa.types.is_timestamp(values.type):
        micros: NDArray[np.int64] = pc.fill_null(values.cast(pa.int64()), MISSING).to_numpy()
    else:
        micros = parse_times(*byte_spans(values), 0)
    far = (micros != MISSING) & ((micros < _YEAR_1) | (micros >= _YEAR_10000))
    return np.where(far, BAD, micros)


def _content(
    found: dict[str, Digests], extras: dict[str, pa.Array], time: NDArray[np.int64], rank: NDArray[np.int32]
) -> Digests:
    """The digest of each row: of the digests of its texts, its time and its rank."""
    from queryveil.kernels.digest import digests

    n = len(time)
    parts = [half for name in ("user", "query", "url") for half in found[name]]
    parts += [time.view(np.uint64), rank.astype(np.int64).view(np.uint64)]
    # Extra columns are added up, so that an absent column and an empty one are the same, in whatever order they come.
    low = np.zeros(n, np.uint64)
    for name, values in extras.items():
        named = np.repeat(digests(*byte_spans(pa.array([name])))[0], n)
        more = _digest_words([named, found[f"extra {name}"][0]])[0]
        low += np.where(pc.not_equal(values, "").to_numpy(zero_copy_only=False), more, 0)
    return _digest_words([*parts, low])


def _digest_words(words_: Sequence[NDArray[np.uint64]]) -> Digests:
    from queryveil.kernels.digest import digests

    matrix = np.ascontiguousarray(np.stack(words_, axis=1))
    width = matrix.shape[1] * 8
    starts = np.arange(len(matrix), dtype=np.int64) * width
    return digests(matrix.reshape(-1).view(np.uint8), starts, starts + width)
