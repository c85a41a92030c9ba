"""What users gave to a differentially private release, counted again from the log.

Some of it is not known any more: which queries an early round released, which runs of words, and what a random choice
took. Then there are bounds. A thing competes with the other things of a user for one of d places. The fewer others
there are, the more it is given. So the largest possible number of others gives the least sum, and the smallest number
gives the largest sum.
"""

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
import pyarrow as pa

from queryveil.engines import Table, Workspace

Keep = Literal["frequent", "first", "random"]

SEARCHED = "SELECT user_id, query_id, count(*) AS times, min(event_id) AS began FROM events GROUP BY user_id, query_id"
"""SQL of what each user searched for."""

_ORDER = {"first": "began", "frequent": "times DESC, began", "random": "began"}
WORLDS = ("may", "sure", "free")
"""Which things compete: all that may, those that surely do, and those that would if there were no noise."""


def sums(
    work: Workspace, things: str, keys: Sequence[str], d: int, gives: Sequence[int], keep: Keep, doubt: float | None
) -> Table:
    """What each thing was given: `low` and `high`, bounds; `free`, an estimate; `users` and `times`.

    Args:
        work: Where the table is made.
        things: SQL of user_id, the keys, times, began, and of each of `WORLDS` whether the thing competes: 1 or 0. The
            sums of a thing are those it has if it does compete.
        keys: The columns that make a thing.
        d: Most things per user.
        gives: What a user of 1, 2, ..., d things gives each of them.
        keep: Which things of a user count.
        doubt: If what counts was chosen at random for these sums alone: how unlikely it may be that any sum is out of
            its bounds. None otherwise; then all possible choices are within them.
    """
    names = ", ".join(keys)
    given_by = pa.table({"n": np.arange(1, d + 1), "contribution": np.array(gives, np.int64)})
    contributions = work.read(given_by, "contributions")
    before = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    windows = ", ".join(
        f"CAST(sum({world}) OVER (PARTITION BY user_id ORDER BY {_ORDER[keep]}, {names} {before}) AS BIGINT) - {world}"
        f" AS before_{world}, CAST(sum({world}) OVER (PARTITION BY user_id) AS BIGINT) + 1 - {world} AS n_{world}"
        for world in WORLDS
    )
    joins = " ".join(f"JOIN {contributions} {world} ON {world}.n = least(p.n_{world}, {d})" for world in WORLDS)
    kept = {world: f"p.before_{world} < {d}" for world in WORLDS}
    if keep == "random":
        kept = {"may": f"p.n_may <= {d}", "sure": "1 = 1", "free": "1 = 1"}
    part = f"least(CAST({d} AS DOUBLE) / p.n_free, CAST(1 AS DOUBLE))" if keep == "random" else "CAST(1 AS DOUBLE)"
    given = {world: f"sum(CASE WHEN {kept[world]} THEN {world}.contribution ELSE 0 END)" for world in WORLDS}
    mean = f"sum(CASE WHEN {kept['free']} THEN free.contribution * {part} ELSE CAST(0 AS DOUBLE) END)"
    spread = f"sum(CAST(free.contribution AS DOUBLE) * free.contribution * {part} * (1 - {part}))"
    made = (
        f"SELECT {', '.join(f'p.{key} AS {key}' for key in keys)}, CAST({given['may']} AS BIGINT) AS low,"  # noqa: S608  # parts of this module and checked numbers
        f" CAST({given['sure']} AS BIGINT) AS high, CAST({mean} AS BIGINT) AS free, count(*) AS users,"
        f" CAST(sum(p.times) AS BIGINT) AS times, {mean} AS mean, {spread} AS spread"
        f" FROM (SELECT user_id, {names}, times, {windows} FROM ({things}) AS t) AS p {joins}"
        f" GROUP BY {', '.join(f'p.{key}' for key in keys)}"
    )
    if keep != "random" or doubt is None:
        return work.table(made, "sums")
    # Bernstein's inequality: users choose independently of each other, and none gives more than the first number.
    far = -math.log(doubt / 2)
    least = gives[0] * far / 3
    away = f"({number(least)} + sqrt({number(least * least)} + {number(2 * far)} * spread))"
    return work.table(
        f"SELECT {names}, CAST(greatest(low, floor(mean - {away})) AS BIGINT) AS low,"  # noqa: S608  # parts of this module and checked numbers
        f" CAST(least(high, ceil(mean + {away})) AS BIGINT) AS high, free, users, times FROM ({made}) AS made",
        "sums",
    )


def number(value: float) -> str:
    """SQL of a number, to its last digit."""
    return f"CAST('{value!r}' AS DOUBLE)"


def runs(n: int) -> str:
    """SQL of the runs of n words of each query: query_id, word_1 to word_n."""
    named = ", ".join(f"t{i}.word_id AS word_{i}" for i in range(1, n + 1))
    joins = " ".join(
        f"JOIN query_terms t{i} ON t{i}.query_id = t1.query_id AND t{i}.position = t1.position + {i - 1}"
        for i in range(2, n + 1)
    )
    return f"SELECT t1.query_id AS query_id, {named} FROM query_terms t1 {joins}"  # noqa: S608  # parts of this module and checked numbers
