"""From arrays of events to Arrow tables: the log in Parquet, and the labels that become the truth."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from queryveil.arrays import Ragged, offsets
from queryveil.kernels._jit import kernel
from queryveil.kernels.types import Bools, Bytes, Ints, Longs
from queryveil.synth.draws import below, key, stream, uniform
from queryveil.synth.history import RESULTS_SHOWN, Events, languages_of
from queryveil.synth.queries import KIND, LEAF, SENSITIVITY
from queryveil.synth.world import Atlas

_WORDLY = pa.dictionary(pa.int8(), pa.string())

LOG_SCHEMA = pa.schema(
    [
        ("user", pa.string()),
        ("query", pa.string()),
        ("time", pa.timestamp("us")),
        ("rank", pa.int32()),
        ("url", pa.string()),
        ("device", _WORDLY),
        ("country", _WORDLY),
        ("language", _WORDLY),
    ]
)
VIEWS_SCHEMA = LOG_SCHEMA.insert(5, pa.field("clicked", pa.bool_()))
LABEL_SCHEMA = pa.schema([("query", pa.string()), ("label", pa.int32())])

_TRAITS_STREAM = 4


@kernel
def _traits(seed: int, users: Longs) -> NDArray[np.int8]:
    """Draw device, country and language of each event's user; they follow the order of the lists."""
    traits = np.empty((3, len(users)), np.int8)
    for place in range(len(users)):
        if place > 0 and users[place] == users[place - 1]:
            for trait in range(3):
                traits[trait, place] = traits[trait, place - 1]
            continue
        rng = stream(key(seed, _TRAITS_STREAM), users[place])
        draw = uniform(rng)
        traits[0, place] = 0 if draw < 0.62 else (1 if draw < 0.93 else 2)
        traits[1, place] = 0 if uniform(rng) < 0.8 else 1 + below(rng, 8)
        traits[2, place] = 0 if uniform(rng) < 0.9 else 1 + below(rng, 3)
    return traits


def queries_array(text: Bytes, starts: Ints) -> pa.StringArray:
    """Wrap spelled queries as an Arrow array, without a copy."""
    return pa.StringArray.from_buffers(len(starts) - 1, pa.py_buffer(starts), pa.py_buffer(text))


def log_table(atlas: Atlas, seed: int, events: Events, ids: Longs, queries: pa.StringArray) -> pa.Table:
    """Lay out events as rows of the log: one per click, or one if there was none."""
    rows = np.maximum(events.clicks, 1)
    of_event = Ragged(offsets(rows))
    event, click = of_event.owners, of_event.within
    unclicked = events.clicks[event] == 0
    site = np.where(unclicked, 0, events.site[event, click])
    results = {
        "rank": pa.array(events.rank[event, click].astype(np.int32), mask=unclicked),
        "url": _urls(atlas).take(pa.array(site, mask=unclicked)),
    }
    return pa.table(_of_events(atlas, seed, events, ids, queries, event) | results).select(LOG_SCHEMA.names)


def views_table(
    atlas: Atlas, seed: int, events: Events, ids: Longs, queries: pa.StringArray, site: Longs, clicked: Bools
) -> pa.Table:
    """Lay out events as rows of their results: one per result, clicked or not."""
    event = np.repeat(np.arange(len(ids)), RESULTS_SHOWN)
    rank = RESULTS_SHOWN * events.page[:, None] + np.arange(1, RESULTS_SHOWN + 1)
    results = {
        "rank": pa.array(rank.ravel().astype(np.int32)),
        "url": _urls(atlas).take(pa.array(site.ravel())),
        "clicked": pa.array(clicked.ravel()),
    }
    return pa.table(_of_events(atlas, seed, events, ids, queries, event) | results).select(VIEWS_SCHEMA.names)


def _urls(atlas: Atlas) -> pa.Array:
    return pa.array([site.url for site in atlas.sites])


def _of_events(
    atlas: Atlas, seed: int, events: Events, ids: Longs, queries: pa.StringArray, event: Longs
) -> dict[str, pa.Array]:
    """The columns of rows, whose events are given, that say nothing about results."""
    traits = _traits(seed, events.user)[:, event]
    spoken = languages_of(seed, events.user, len(atlas.languages))[event]
    return {
        "user": pa.array(ids[event]).cast(pa.string()),
        "query": queries.take(pa.array(event)),
        "time": pa.array(events.time[event] * 1_000_000).cast(pa.timestamp("us")),
        "device": pa.DictionaryArray.from_arrays(pa.array(traits[0]), pa.array(atlas.devices)),
        "country": _traits_by_language(traits[1], spoken, atlas.countries),
        "language": _traits_by_language(traits[2], spoken, atlas.preferred),
    }


def _traits_by_language(codes: NDArray[np.int8], spoken: Longs, names: list[list[str]]) -> pa.DictionaryArray:
    """A trait whose names depend on the language of the user; a number behind the last name is the last."""
    known = list(dict.fromkeys(name for some in names for name in some))
    longest = int(codes.max(initial=0)) + 1
    table = np.array([[known.index(some[min(n, len(some) - 1)]) for n in range(longest)] for some in names], np.int8)
    return pa.DictionaryArray.from_arrays(pa.array(table[spoken, codes]), pa.array(known))


def label_table(events: Events, queries: pa.StringArray) -> pa.Table:
    """Pair queries with what is known of them, packed into one number; repetitions are left out."""
    label = events.label[:, LEAF] << 16 | events.label[:, KIND] << 8 | events.label[:, SENSITIVITY]
    table = pa.table([queries, pa.array(label.astype(np.int32))], schema=LABEL_SCHEMA)
    return table.filter(pa.array(events.is_new))
