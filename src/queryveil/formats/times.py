"""Times in a form of their own: how they are written is said by the caller, or found in the first rows.

Formats are those of `strptime`, as DuckDB knows them (`%d/%m/%Y %H:%M`). A date such as 05/01/2026 is in May or in
January. If the first rows do not show which, reading stops and asks.
"""

import re
from itertools import product

import duckdb
import numpy as np
import pyarrow as pa

from queryveil.engines import locked
from queryveil.errors import QueryveilError, option, parameter
from queryveil.kernels.types import Longs
from queryveil.text.arrays import byte_spans
from queryveil.text.show import printable

_DATES = (
    "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%Y%m%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y",
    "%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%y/%m/%d", "%d-%m-%y", "%m-%d-%y", "%y-%m-%d", "%d %b %Y", "%d-%b-%Y",
    "%d/%b/%Y", "%d. %b %Y", "%b %d, %Y", "%b %d %Y", "%d-%b-%y", "%d %B %Y", "%B %d, %Y", "%B %d %Y", "%a, %d %b %Y",
    "%a %b %d %Y",
)  # fmt: skip
_CLOCKS = (
    "", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p", " %I:%M%p", ", %H:%M", ", %H:%M:%S",
    ", %I:%M %p", ", %I:%M:%S %p", " @ %H:%M:%S", " @ %H:%M:%S.%f", "T%H:%M:%S", "T%H%M%S", "T%H%M%SZ",
    ":%H:%M:%S %z", " %H:%M:%S %z", " %H:%M:%S GMT",
)  # fmt: skip
_FORMATS = tuple(map("".join, product(_DATES, _CLOCKS)))
_SAMPLE = 20_000
_FIRST, _LAST = 0, 4_102_444_800_000_000
"""From 1970 to 2100, in microseconds: a format that gives any other time is not the one."""
_CLOCK = re.compile(rb"\s*\d\d?:\d\d(:\d\d([.,]\d+)?)?\s*([ap]m)?\s*", re.IGNORECASE)
_YEAR = re.compile(r"(?:%%|[^%]|%-?[^Yyxc])*%[Yyxc]")


def check_time_format(format: str) -> str:
    """The same format.

    Raises:
        QueryveilError: If it is none.
    """
    try:
        with locked({"threads": 1}) as connection:
            connection.execute("SELECT try_strptime('', $1)", [format]).fetchall()
        wrong = _YEAR.match(format) is None or not format.isprintable()
    except duckdb.Error:
        wrong = True
    if wrong:
        raise QueryveilError(
            f"{parameter('read_log', 'time_format')} must be a format of strptime with a year, such as"
            f" '%d/%m/%Y %H:%M:%S'. Got '{printable(format)}' instead."
        )
    return format


def parse_times_as(values: pa.Array, format: str) -> Longs:
    """Microseconds since 1970 of times in a format; `MISSING` and `BAD` as `parse_times` has them."""
    from queryveil.kernels.times import BAD, MISSING

    with locked({"threads": 1}) as connection:
        connection.register("given", pa.table({"text": values, "place": np.arange(len(values))}))
        found = connection.sql(
            f"SELECT CASE WHEN text IS NULL OR trim(text) = '' THEN {MISSING}"  # noqa: S608  # numbers of this package
            f" ELSE coalesce(epoch_us(try_strptime(trim(text), $1)), {BAD}) END AS time FROM given ORDER BY place",
            params=[format],
        ).to_arrow_table()
    times: Longs = found["time"].to_numpy()
    return times


def find_time_format(values: pa.Array, where: str, *, dated: bool, stated: str | None = None) -> str | None:
    """The format of times, if they are not in one of the forms that need none; None if no format fits.

    Args:
        values: The times of the first rows, as text.
        where: The log, for messages.
        dated: Whether the format of the log has dates; a time of day alone is then refused.
        stated: The format that a manifest states; it decides if several fit, or none that is common.

    Raises:
        QueryveilError: If several formats fit, and say different things.
    """
    from queryveil.kernels.times import BAD, MISSING, parse_times

    step = max(1, len(values) // _SAMPLE)
    some = values.take(pa.array(np.arange(0, len(values), step)))
    known = parse_times(*byte_spans(some), 0)
    there = known != MISSING
    if dated and there.any():
        clocks = [_CLOCK.fullmatch(text.encode()) is not None for text in some.filter(pa.array(there)).to_pylist()]
        if sum(clocks) > 0.5 * len(clocks):
            raise QueryveilError(
                f"The times of {where} are times of day without a date; write date and time into one column, and name"
                f" it with {option('columns', {'time': 'NAME'})}."
            )
    if np.count_nonzero(known == BAD) <= 0.5 * np.count_nonzero(there):
        return None
    some = some.filter(pa.array(there)).unique()
    with locked({"threads": 1}) as connection:
        tried = ", ".join(f"try_strptime(trim($1), ${at + 2}) IS NOT NULL" for at in range(len(_FORMATS)))
        fits = connection.execute(f"SELECT {tried}", [some[len(some) // 2].as_py(), *_FORMATS]).fetchall()[0]
    read = {format: parse_times_as(some, format) for format, one in zip(_FORMATS, fits, strict=True) if one}
    good = {format: (times >= _FIRST) & (times < _LAST) for format, times in read.items()}
    best = max((int(fine.sum()) for fine in good.values()), default=0)
    if best < 0.99 * len(some):
        return stated
    least = best if best == len(some) else 0.99 * len(some)
    chosen = [format for format, fine in good.items() if fine.sum() >= least]
    others = [format for format in chosen if not np.array_equal(read[format], read[chosen[0]])]
    if others and stated in chosen:
        return stated
    if others:
        ways = " or ".join(option("time_format", format) for format in [chosen[0], *others[:2]])
        raise QueryveilError(
            f"The times of {where} can be read in several ways, because nothing in the first rows shows which number is"
            f" the day and which the month; say which: {ways}."
        )
    return chosen[0]
