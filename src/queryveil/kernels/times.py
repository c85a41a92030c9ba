"""Times as text, in the spellings that query logs use, to microseconds since 1970 (UTC); also ranks and flags."""

import numpy as np

from queryveil.kernels._jit import helper, kernel
from queryveil.kernels.types import Bytes, Flags, Ints, Longs

MISSING = np.iinfo(np.int64).min
BAD = MISSING + 1


@helper
def _days(year: int, month: int, day: int) -> int:
    # Days since 1970-01-01 in the proleptic Gregorian calendar, with the year starting in March.
    if month <= 2:
        year -= 1
        month += 12
    era = year // 400
    year_of_era = year - era * 400
    day_of_year = (153 * (month - 3) + 2) // 5 + day - 1
    return era * 146097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719468


@helper
def _number(data: Bytes, start: int, end: int) -> int:
    value = 0
    for at in range(start, end):
        if data[at] < 48 or data[at] > 57:
            return -1
        value = value * 10 + data[at] - 48
    return value


@helper
def _micros(year: int, month: int, day: int, hour: int, minute: int, second: int) -> int:
    if year < 1 or month < 1 or month > 12 or day < 1 or hour < 0 or minute < 0 or second < 0:
        return BAD
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    longest = 31
    if month == 2:
        longest = 29 if leap else 28
    elif month in (4, 6, 9, 11):
        longest = 30
    if day > longest or hour > 23 or minute > 59 or second > 60:
        return BAD
    return (((_days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second) * 1_000_000


@helper
def _clock(data: Bytes, start: int, end: int, midnight: int) -> int:
    # hh:mm[:ss[.f...]] and then nothing, Z, or +hh:mm; `midnight` is the day it belongs to.
    if end - start < 5 or data[start + 2] != 58:
        return BAD
    hour = _number(data, start, start + 2)
    minute = _number(data, start + 3, start + 5)
    second = 0
    micros = 0
    at = start + 5
    if at < end and data[at] == 58:
        if end - at < 3:
            return BAD
        second = _number(data, at + 1, at + 3)
        at += 3
        if at < end and (data[at] == 46 or data[at] == 44):
            at += 1
            unit = 100_000
            digits = 0
            while at < end and 48 <= data[at] <= 57:
                micros += (data[at] - 48) * unit
                unit //= 10
                digits += 1
                at += 1
            if digits == 0:
                return BAD
    if hour < 0 or hour > 23 or minute < 0 or minute > 59 or second < 0 or second > 60:
        return BAD
    shift = 0
    if at < end and data[at] == 32:
        at += 1
    if at < end:
        if data[at] == 90 or data[at] == 122:
            at += 1
        elif data[at] == 85 and end - at >= 3 and data[at + 1] == 84 and data[at + 2] == 67:
            at += 3
        elif data[at] == 43 or data[at] == 45:
            sign = 1 if data[at] == 43 else -1
            at += 1
            hours = _number(data, at, min(at + 2, end))
            at += 2
            if at < end and data[at] == 58:
                at += 1
            minutes = _number(data, at, min(at + 2, end)) if at < end else 0
            at = min(at + 2, end) if at < end else at
            if hours < 0 or minutes < 0 or hours > 14 or minutes > 59:
                return BAD
            shift = sign * (hours * 60 + minutes)
    if at != end:
        return BAD
    return midnight + ((hour * 60 + minute - shift) * 60 + second) * 1_000_000 + micros


@helper
def _parse(data: Bytes, start: int, end: int, today: int) -> int:
    length = end - start
    if length == 0:
        return MISSING
    digits = _number(data, start, end) if length <= 18 else -1
    if digits >= 0:
        if length == 12:  # yymmddhhmmss
            year = digits // 10**10
            year += 1900 if year >= 70 else 2000
            rest = digits % 10**10
        elif length == 14:  # yyyymmddhhmmss
            year = digits // 10**10
            rest = digits % 10**10
        elif length == 8:  # yyyymmdd
            year = digits // 10**4
            rest = digits % 10**4 * 10**6
        elif length <= 10:
            return digits * 1_000_000
        elif length == 13:
            return digits * 1_000
        elif length == 16:
            return digits
        else:
            return BAD
        return _micros(year, rest // 10**8, rest // 10**6 % 100, rest // 10**4 % 100, rest // 100 % 100, rest % 100)
    point = start
    while point < end and 48 <= data[point] <= 57:
        point += 1
    if start + 9 <= point <= start + 10 and end - point >= 2 and data[point] == 46:  # seconds with decimals
        micros = 0
        unit = 100_000
        for at in range(point + 1, end):
            if data[at] < 48 or data[at] > 57:
                return BAD
            micros += (data[at] - 48) * unit
            unit //= 10
        return _number(data, start, point) * 1_000_000 + micros
    if length >= 3 and data[start + 2] == 58:
        return _clock(data, start, end, today)
    if length < 10 or (data[start + 4] != 45 and data[start + 4] != 47) or data[start + 7] != data[start + 4]:
        return BAD
    midnight = _micros(
        _number(data, start, start + 4),
        _number(data, start + 5, start + 7),
        _number(data, start + 8, start + 10),
        0,
        0,
        0,
    )
    if midnight == BAD or length == 10:
        return midnight
    if data[start + 10] != 32 and data[start + 10] != 84 and data[start + 10] != 116:
        return BAD
    return _clock(data, start + 11, end, midnight)


@kernel
def parse_times(data: Bytes, starts: Longs, ends: Longs, today: int) -> Longs:
    """Microseconds since 1970 of every data[starts[i]:ends[i]]; MISSING if empty, BAD if it is no time.

    Understood are ISO 8601 dates and times with an optional zone (no zone is UTC), yymmddhhmmss, yyyymmdd[hhmmss],
    seconds (maybe with decimals), milliseconds and microseconds since 1970, and a bare hh:mm:ss, which falls on the day
    `today`.
    """
    out = np.empty(len(starts), np.int64)
    for i in range(len(starts)):
        out[i] = _parse(data, starts[i], ends[i], today)
    return out


@kernel
def parse_ranks(data: Bytes, starts: Longs, ends: Longs) -> Ints:
    """The whole number in every data[starts[i]:ends[i]], maybe written as 3.0; -1 if empty, -2 if it is none."""
    out = np.empty(len(starts), np.int32)
    for i in range(len(starts)):
        length = ends[i] - starts[i]
        if length > 2 and data[ends[i] - 1] == 48 and data[ends[i] - 2] == 46:
            length -= 2
        if length == 0:
            out[i] = -1
        elif length > 9:
            out[i] = -2
        else:
            value = _number(data, starts[i], starts[i] + length)
            out[i] = value if value >= 0 else -2
    return out


_YES = tuple(int.from_bytes(word, "big") for word in (b"1", b"true", b"yes"))
_NO = tuple(int.from_bytes(word, "big") for word in (b"", b"0", b"false", b"no"))


@kernel
def parse_flags(data: Bytes, starts: Longs, ends: Longs) -> Flags:
    """Whether every data[starts[i]:ends[i]] says yes (1) or no (0), in any case; 0 if empty, -2 if it says neither."""
    out = np.empty(len(starts), np.int8)
    for i in range(len(starts)):
        word = -1
        if ends[i] - starts[i] <= 5:
            word = 0
            for at in range(starts[i], ends[i]):
                letter = int(data[at])
                word = word * 256 + (letter + 32 if 65 <= letter <= 90 else letter)
        out[i] = 1 if word in _YES else 0 if word in _NO else -2
    return out
