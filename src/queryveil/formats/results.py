"""Lists of results: an event that holds what was shown becomes one row per result.

A list holds addresses, or objects with an address, and maybe a rank and whether it was clicked; without a rank, the
place in the list is the rank. Beside the list, a column `clicked` may hold the addresses that were clicked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queryveil.arrays import offsets
from queryveil.errors import QueryveilError, option
from queryveil.formats.rows import MOST_RESULTS, ReadOptions, Rows, known_columns, plain_name
from queryveil.kernels.types import Bools, Longs

RESULTS = "results"
NAMES = ("results", "resultlist", "hits", "shown")
"""Usual names of a column of lists."""
PARTS = ("url", "rank", "clicked")
"""What is known of a result."""

NOT_SHOWN = "a click on what was not shown"
TOO_LONG = "an over-long result list"


def find_results(lists: Sequence[str], options: ReadOptions) -> str | None:
    """The column of lists that holds results: the one that the caller names, else one with a usual name."""
    if RESULTS in options.columns:
        return options.columns[RESULTS] if options.columns[RESULTS] in lists else None
    taken = {name for canonical, name in options.columns.items() if canonical != "clicked"}
    plain = {plain_name(name): name for name in reversed(lists) if name not in taken}
    return next((plain[name] for name in NAMES if name in plain), None)


def of_events(options: ReadOptions, results: str) -> ReadOptions:
    """What the caller says about the columns of events, without those of their results."""
    inside = f"{results}."
    kept = {
        name: at
        for name, at in options.columns.items()
        if name in ("user", "query") or (name != RESULTS and not at.startswith(inside))
    }
    return replace(options, columns=kept)


def parts_of(names: Sequence[str], options: ReadOptions, results: str) -> dict[str, str]:
    """Which field of a result is which: what the caller names (`url=results.id`) first, then the usual names."""
    inside = f"{results}."
    given = {name: at.removeprefix(inside) for name, at in options.columns.items() if at.startswith(inside)}
    usual = known_columns([name for name in names if name not in given.values()])
    return {name: at for name, at in {**usual, **given}.items() if name in PARTS and at in names}


def check_events(chosen: Mapping[str, str], where: str) -> None:
    """Refuse events that have a list of results and an address as well."""
    both = next((name for name in ("url", "rank") if name in chosen), None)
    if both is not None:
        raise QueryveilError(
            f"{where} has a list of results and a column of the {both} beside it; name the clicked address with"
            f" {option('columns', {'clicked': 'NAME'})}, or leave one of them out."
        )


@dataclass(frozen=True)
class Lists:
    """The results of events, in the order of events.

    Attributes:
        count: How many results each event showed.
        results: By `PARTS`, a text for each result of lists that are not too long.
        clicks: The event of each clicked address, if they are beside the results.
        clicked: These addresses.
    """

    count: Longs
    results: Mapping[str, pa.Array]
    clicks: Longs | None = None
    clicked: pa.Array | None = None


def one_per_result(rows: Rows, lists: Lists) -> Rows:
    """Rows of results from rows of events: one for each result, or one for an event that showed nothing."""
    long = lists.count > MOST_RESULTS
    if long.any():
        rows.bad.add(TOO_LONG, int(long.sum()), rows.at(int(long.argmax())))
    stays = np.flatnonzero(~long)
    count = lists.count[stays]
    owner = np.repeat(stays, count)
    place = np.arange(len(owner)) - np.repeat(offsets(count)[:-1], count)
    url, rank, clicked = (lists.results[name] for name in PARTS)
    rank = pc.coalesce(rank, pa.array(place + 1).cast(pa.string()))
    if lists.clicks is not None and lists.clicked is not None:
        there = ~long[lists.clicks]
        was, lost = _clicked(owner, url, lists.clicks[there], lists.clicked.filter(pa.array(there)))
        clicked = pc.if_else(pa.array(was), "1", clicked)
        if len(lost):
            rows.bad.add(NOT_SHOWN, len(lost), rows.at(int(lost.min())))
    # Events that showed nothing are rows too.
    both = np.concatenate([owner, stays[count == 0]])
    order = np.argsort(both, kind="stable")
    nothing = pa.nulls(len(both) - len(owner), pa.string())
    event = pa.array(both[order])
    columns = {name: values.take(event) for name, values in rows.columns.items() if name not in PARTS}
    for name, values in zip(PARTS, (url, rank, clicked), strict=True):
        columns[name] = pa.concat_arrays([values, nothing]).take(pa.array(order))
    return Rows(rows.file, rows.line[both[order]], columns, rows.bad)


def _clicked(owner: Longs, url: pa.Array, clicks: Longs, clicked: pa.Array) -> tuple[Bools, Longs]:
    """Which results were clicked, of the same address the first; and the events of clicks on what was not shown."""
    codes = pc.dictionary_encode(pa.concat_arrays([url, clicked]))
    code = pc.fill_null(codes.indices, -1).to_numpy().astype(np.int64)
    key = np.concatenate([owner, clicks]) * np.int64(len(codes.dictionary) + 1) + code
    shown, made = key[: len(owner)], key[len(owner) :]
    first = np.zeros(len(owner), np.bool_)
    first[np.unique(shown, return_index=True)[1]] = True
    return first & (code[: len(owner)] >= 0) & np.isin(shown, made), clicks[~np.isin(made, shown)]
