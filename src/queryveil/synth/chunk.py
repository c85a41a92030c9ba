"""A chunk of the log: the histories of some users, made and written together."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from queryveil.kernels.types import Bytes, Ints
from queryveil.synth.history import RESULTS_SHOWN, Events, activity, histories, languages_of, results
from queryveil.synth.queries import LEAF, TARGET
from queryveil.synth.rows import aol_lines, spell_queries, user_ids, view_lines
from queryveil.synth.tables import label_table, log_table, queries_array, views_table
from queryveil.synth.tuning import AOL
from queryveil.synth.world import SITES_PER_LEAF, Atlas, atlas


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


def make_chunk(
    seed: int, first: int, users: int, languages: tuple[str, ...], *, parquet: bool, labels: bool, views: bool
) -> Chunk:
    """Make the part of users first, first + 1, ...; it does not depend on how users are cut into chunks."""
    known = atlas(languages)
    events, text, starts = _spelled(known, seed, first, users)
    ids = user_ids(seed, events.user)
    queries = queries_array(text, starts)
    lines = table = None
    if views:
        shown = results(AOL, events)
        if parquet:
            table = views_table(known, seed, events, ids, queries, *shown)
        else:
            lines = view_lines(known.url, known.url_start, events, ids, text, starts, *shown)
    elif parquet:
        table = log_table(known, seed, events, ids, queries)
    else:
        lines = aol_lines(known.url, known.url_start, events, ids, text, starts)
    return Chunk(
        users=users,
        events=len(ids),
        rows=RESULTS_SHOWN * len(ids) if views else int(np.maximum(events.clicks, 1).sum()),
        clicks=int(events.clicks.sum()),
        lines=lines,
        table=table,
        labels=label_table(events, queries) if labels else None,
    )


def _spelled(known: Atlas, seed: int, first: int, users: int) -> tuple[Events, Bytes, Ints]:
    """The events of users first, first + 1, ..., with topics and sites as the atlas counts them, and their queries."""
    numbers = np.arange(first, first + users)
    spoken = languages_of(seed, numbers, len(known.languages))
    parts, texts, leaves = [], [], 0
    for language, (world, count) in enumerate(zip(known.worlds, known.leaves, strict=True)):
        mine = numbers[spoken == language]
        events = histories(world, AOL, seed, mine, activity(AOL, seed, mine))
        text, starts = spell_queries(world, events)
        if len(known.worlds) == 1:
            return events, text, starts
        events.label[:, LEAF] += leaves
        events.label[:, TARGET] += np.where(events.label[:, TARGET] < 0, 0, SITES_PER_LEAF * leaves)
        events.site[:] += SITES_PER_LEAF * leaves
        parts.append(events)
        texts.append(queries_array(text, starts))
        leaves += count
    order = np.argsort(np.concatenate([part.user for part in parts]), kind="stable")
    merged = Events(*(np.concatenate(column)[order] for column in zip(*parts, strict=True)))
    queries = pa.concat_arrays(texts).take(pa.array(order))
    _, starts, text = queries.buffers()  # as taken: from the first byte on
    return merged, np.frombuffer(text, np.uint8), np.frombuffer(starts, np.int32)[: len(queries) + 1]
