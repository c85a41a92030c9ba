"""The distance of two users by features of their queries (Navarro-Arribas et al. 2012), and the record, literally."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Event:
    """One search: its query, when it was, in seconds, and the domains clicked."""

    query: str
    time: int | None
    clicks: tuple[str, ...]


def edits(a: Sequence[str], b: Sequence[str]) -> int:
    """The edit distance of two sequences (Wagner and Fischer)."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        left, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            left, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, left + (x != y))
    return row[-1]


def nearest(ours: list[Sequence[str]], theirs: list[Sequence[str]]) -> Fraction:
    """The mean distance of each to the nearest of the other side."""

    def far(a: Sequence[str], b: Sequence[str]) -> Fraction:
        return Fraction(edits(a, b), max(len(a), len(b), 1))

    total = sum(min(far(a, b) for b in theirs) for a in ours) + sum(min(far(a, b) for a in ours) for b in theirs)
    return Fraction(total, len(ours) + len(theirs))


def typical(events: list[Event], number: dict[str, int]) -> list[str]:
    """The three queries that a user repeats most; of equals, those with the lower number."""
    times = Counter(event.query for event in events)
    return sorted(times, key=lambda query: (-times[query], number[query]))[:3]


def distance(one: list[Event], other: list[Event], everyone: list[Event], number: dict[str, int]) -> Fraction:
    """The mean of the parts for which the log has anything."""
    parts = []
    times = [event.time for event in everyone if event.time is not None]
    mine, his = ([event.time for event in events if event.time is not None] for events in (one, other))
    if times:
        if mine and his:
            apart = abs(Fraction(sum(mine), len(mine)) - Fraction(sum(his), len(his)))
            parts.append(apart / max(max(times) - min(times), 1))
        else:
            parts.append(Fraction(bool(mine) != bool(his)))
    if any(event.clicks for event in everyone):
        a, b = (Counter(domain for event in events for domain in event.clicks) for events in (one, other))
        if a and b:
            parts.append(
                sum(abs(Fraction(a[d], a.total()) - Fraction(b[d], b.total())) for d in {*a, *b}) * Fraction(1, 2)
            )
        else:
            parts.append(Fraction(bool(a) != bool(b)))
    ours, theirs = typical(one, number), typical(other, number)
    parts.append(nearest(ours, theirs))
    parts.append(nearest([q.split() for q in ours], [q.split() for q in theirs]))
    long, short = (Fraction(sum(len(e.query) for e in events), len(events)) for events in (one, other))
    parts.append(abs(long - short) / max(long, short))
    return sum(parts, Fraction(0)) / len(parts)
