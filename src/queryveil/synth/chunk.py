"""A chunk of the log: the histories of some users, made and written together."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from queryveil.synth.history import RESULTS_SHOWN, activity, histories, results
from queryveil.synth.rows import aol_lines, spell_queries, user_ids, view_lines
from queryveil.synth.tables import label_table, log_table, queries_array, views_table
from queryveil.synth.tuning import AOL
from queryveil.synth.world import atlas


@dataclass(frozen=True)
class Chunk:
    """Some users' part of the log, in the form to write, with its counts."""

    users: int
    events: int
    rows: int
    clicks: int
    lines: NDArray[np.uint8] | None  # AOL format, or lines of results
    table: pa.Table | None  # Parquet
    labels: pa.Table | None  # for the truth


def make_chunk(seed: int, first: int, users: int, *, parquet: bool, labels: bool, views: bool) -> Chunk:
    """Make the part of users first, first + 1, ...; it does not depend on how users are cut into chunks."""
    world = atlas().arrays
    events = histories(world, AOL, seed, first, activity(AOL, seed, first, users))
    ids = user_ids(seed, events.user)
    text, starts = spell_queries(world, events)
    queries = queries_array(text, starts)
    lines = table = None
    if views:
        shown = results(AOL, events)
        if parquet:
            table = views_table(atlas(), seed, events, ids, queries, *shown)
        else:
            lines = view_lines(world, events, ids, text, starts, *shown)
    elif parquet:
        table = log_table(atlas(), seed, events, ids, queries)
    else:
        lines = aol_lines(world, events, ids, text, starts)
    return Chunk(
        users=users,
        events=len(ids),
        rows=RESULTS_SHOWN * len(ids) if views else int(np.maximum(events.clicks, 1).sum()),
        clicks=int(events.clicks.sum()),
        lines=lines,
        table=table,
        labels=label_table(events, queries) if labels else None,
    )
