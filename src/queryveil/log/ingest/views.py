"""Rows of results shown: which were clicked, where they are in the files, and what is wrong with those of an event."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from queryveil.engines import DuckDB
from queryveil.errors import QueryveilError, option
from queryveil.formats.results import TOO_LONG
from queryveil.formats.rows import MOST_RESULTS, BadRows
from queryveil.kernels.types import Bools, Flags, Ints, Longs
from queryveil.log.ingest.prepared import Prepared

KINDS = {1: "a rank that repeats", 2: TOO_LONG}
"""What can be wrong with results that are fine one by one, as `find_bad_views` numbers it."""


def check_same(views: bool, clicks: bool) -> None:
    """Refuse a log in which some rows are results shown and others are clicks."""
    if views and clicks:
        raise QueryveilError(
            "Some rows of the log say whether a result was clicked, and others are clicks; write 'clicked' in every"
            f" row, read the files separately, or name another column with {option('columns', {'clicked': 'NAME'})}."
        )


@dataclass
class Results:
    """What rows say about results, while they are read.

    Attributes:
        views: Whether some rows are results shown.
        clicks: Whether some rows are clicks.
    """

    views: bool = False
    clicks: bool = False
    _parts: list[tuple[int, Flags | None]] = field(default_factory=list)
    _places: list[tuple[int, str, Ints | Longs]] = field(default_factory=list)
    _rows: int = 0

    def add(self, rows: Prepared) -> None:
        """Keep what some rows say, and where they are."""
        n = len(rows.time)
        if rows.clicked is None:
            self.clicks |= rows.has_results
        elif n:
            self.views = True
            small = rows.line[-1] < np.iinfo(np.int32).max
            self._places.append((self._rows, rows.file, rows.line.astype(np.int32) if small else rows.line))
        check_same(self.views, self.clicks)
        self._parts.append((n, rows.clicked))
        self._rows += n

    @property
    def clicked(self) -> pa.ChunkedArray:
        """Whether the result of each row was clicked."""
        parts = [np.zeros(n, np.int8) if found is None else found for n, found in self._parts]
        return pa.chunked_array([pa.array(part) for part in parts], pa.int8())

    def at(self, row: int) -> str:
        """Where a row of results is, as file:line."""
        first, file, line = next(part for part in reversed(self._places) if part[0] <= row)
        return f"{file}:{line[row - first]}"


_KEYS = ("user_id", "time", "query_id", "rank", "url_id")


def bad_views(engine: DuckDB, table: pa.Table, rows: pa.Table, results: Results) -> tuple[Bools, BadRows]:
    """Which rows of results are bad.

    Args:
        engine: Where tables can be joined.
        table: All rows in order.
        rows: The same rows as they were read.
        results: Where these are.

    Returns:
        Whether each row in order is bad, and how many there are of each kind.
    """
    from queryveil.kernels.events import find_bad_views

    user, time, query, rank, url = (table[name].to_numpy() for name in _KEYS)
    wrong = find_bad_views(user, query, time, rank, url, MOST_RESULTS)
    bad, found = wrong > 0, BadRows()
    if not bad.any():
        return bad, found
    some = table.select(_KEYS).filter(pa.array(bad)).append_column("kind", pa.array(wrong[bad]))
    engine.read("bad views", some)
    engine.read("all rows", rows.select(_KEYS).append_column("place", pa.array(np.arange(len(rows)))))
    same = " AND ".join(f"r.{key} = b.{key}" for key in _KEYS)
    first = engine.fetch(
        f'SELECT b.kind AS kind, min(r.place) AS place FROM "all rows" r JOIN "bad views" b ON {same}'  # noqa: S608  # parts of this module
        " WHERE b.rank >= 0 OR b.url_id >= 0 GROUP BY b.kind ORDER BY b.kind"
    )
    engine.drop("bad views", "all rows")
    for kind, place in zip(first["kind"].to_pylist(), first["place"].to_pylist(), strict=True):
        found.add(KINDS[kind], int((wrong == kind).sum()), results.at(place))
    return bad, found


def merged(results: Sequence[Ints], clicked: Flags) -> tuple[Sequence[Ints], Flags]:
    """Results of events in order, each once, and whether it was clicked.

    Args:
        results: The columns event, user, query, rank and address.
        clicked: Whether each was clicked.
    """
    from queryveil.kernels.events import merge_views

    event, _, _, rank, url = results
    place, was_clicked = merge_views(event, rank, url, clicked)
    return results if len(place) == len(event) else [column[place] for column in results], was_clicked
