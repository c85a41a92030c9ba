"""The whole history of a user: interests, sessions, queries, times and clicks."""

from typing import NamedTuple

import numpy as np

from queryveil.kernels._jit import helper, kernel
from queryveil.kernels.types import Bools, Floats, Longs
from queryveil.synth.draws import Stream, below, bits, key, normal, pick, stream, uniform, zipf
from queryveil.synth.queries import (
    KIND,
    LABELS,
    LEAF,
    MOST_WORDS,
    RESULTS,
    SENSITIVITY,
    TARGET,
    Row,
    new_query,
    put_personal,
    put_topic_word,
    topic_word,
)
from queryveil.synth.tuning import Tuning
from queryveil.synth.world import (
    HEALTH,
    NAVIGATIONAL,
    NONE,
    REFINEMENT,
    REFORMULATION,
    SITES_PER_LEAF,
    VANITY,
    World,
)

MOST_CLICKS = 5
RESULTS_SHOWN = 10  # on a page
DAYS = 92  # March to May
BEGIN = 1_141_171_200  # 2006-03-01 00:00:00, in seconds

# Every kind of personal data appears in every so many users, so that small logs hold them all.
PLANT_EVERY = 50

_ACTIVITY_STREAM, _HISTORY_STREAM, _PERSONA = 1, 2, 3
_LANGUAGE_STREAM = 5
_MOST_INTERESTS = 8

# Share of searches by the hour of the day, cumulative.
_HOURS = np.cumsum([22, 14, 9, 6, 5, 6, 10, 18, 29, 38, 43, 46, 47, 48, 50, 52, 54, 55, 58, 63, 66, 64, 55, 38]) / 896.0


class Events(NamedTuple):
    """The events of a range of users, as arrays with one entry (or row) per event."""

    user: Longs  # the user's number
    words: Longs  # MOST_WORDS wide
    length: Longs
    label: Longs  # see queries
    time: Longs  # seconds since 1970
    page: Longs  # of results, from 0
    is_new: Bools  # no repetition of an earlier own query
    clicks: Longs
    site: Longs  # MOST_CLICKS wide
    rank: Longs


@kernel
def languages_of(seed: int, users: Longs, languages: int) -> Longs:
    """Draw the language of each user; as many users have one as another."""
    chosen = np.empty(len(users), np.int64)
    for place in range(len(users)):
        chosen[place] = np.int64(key(key(seed, _LANGUAGE_STREAM), users[place]) % np.uint64(languages))
    return chosen


@kernel
def activity(tuning: Tuning, seed: int, users: Longs) -> Longs:
    """Draw the number of events of each user: log-normal, at least one."""
    events = np.empty(len(users), np.int64)
    for user in range(len(users)):
        rng = stream(key(seed, _ACTIVITY_STREAM), users[user])
        amount = np.exp(tuning.activity_mean + tuning.activity_spread * normal(rng))
        events[user] = np.int64(min(max(amount, 1.0), tuning.activity_most))
    return events


@helper
def _interests(world: World, rng: Stream, leaves: Row, weights: Floats) -> int:
    """Choose a user's topics; the weights are cumulative and come from breaking a stick."""
    n = 2 + below(rng, _MOST_INTERESTS - 1)
    left = 1.0
    for place in range(n):
        leaves[place] = pick(rng, world.leaf_weight)
        left *= 0.35 + 0.6 * uniform(rng)
        weights[place] = 1.0 - left
    weights[n - 1] = 1.0
    return n


@helper
def _session_starts(rng: Stream, sessions: int) -> Longs:
    """Draw when sessions begin: days in the user's active period, hours of the user's own rhythm."""
    # Busy users are active all the time: their sessions would not fit into a few days.
    first = below(rng, DAYS - 1) if sessions < 40 and uniform(rng) < 0.4 else 0
    span = max(DAYS - 1 - first, 1)
    habit = int(2.0 * normal(rng))
    starts = np.empty(sessions, np.int64)
    for place in range(sessions):
        hour = (pick(rng, _HOURS) + habit) % 24
        start = BEGIN + 86400 * (first + below(rng, span)) + 3600 * hour + below(rng, 3600)
        spot = place
        while spot > 0 and starts[spot - 1] > start:
            starts[spot] = starts[spot - 1]
            spot -= 1
        starts[spot] = start
    return starts


@helper
def _reformulate(world: World, tuning: Tuning, rng: Stream, row: Row, n: int, label: Row) -> int:
    """Change the query in place: add, drop or replace a word."""
    draw = uniform(rng)
    label[KIND] = REFORMULATION
    if n == 1 or (draw < 0.45 and n < MOST_WORDS):
        label[KIND] = REFINEMENT
        return put_topic_word(world, tuning, rng, row, n, label[LEAF])
    if draw < 0.65:
        if uniform(rng) < 0.4:
            for place in range(n - 1):
                row[place] = row[place + 1]
        return n - 1
    row[below(rng, n)] = topic_word(world, tuning, rng, label[LEAF])
    return n


@helper
def _result(tuning: Tuning, label: Row, place: int) -> int:
    """The site at a place of the results: their list is fixed by the query, and they are sites of its topic."""
    if place == 1 and label[TARGET] >= 0:
        return int(label[TARGET])
    law = tuning.results
    return int(label[LEAF]) * SITES_PER_LEAF + zipf(stream(label[RESULTS], place), law.n, law.slope, law.shift)


@kernel
def results(tuning: Tuning, events: Events) -> tuple[Longs, Bools]:
    """The sites that each event shows, RESULTS_SHOWN wide, and which of them were clicked."""
    n = len(events.user)
    site, clicked = np.empty((n, RESULTS_SHOWN), np.int64), np.zeros((n, RESULTS_SHOWN), np.bool_)
    for at in range(n):
        before = RESULTS_SHOWN * events.page[at]
        for place in range(RESULTS_SHOWN):
            site[at, place] = _result(tuning, events.label[at], before + place + 1)
        for click in range(events.clicks[at]):
            clicked[at, events.rank[at, click] - before - 1] = True
    return site, clicked


@helper
def _click(world: World, tuning: Tuning, rng: Stream, events: Events, at: int) -> None:
    """Click on results: the lower the rank, the less often."""
    label = events.label[at]
    navigational = label[KIND] == NAVIGATIONAL
    chance = tuning.click_navigational if navigational else tuning.click
    clicks = 0
    rank = 0
    if uniform(rng) < chance:
        while clicks < MOST_CLICKS and rank < RESULTS_SHOWN:
            rank += 1 if navigational and clicks == 0 else 1 + zipf(rng, RESULTS_SHOWN, 1.5, 1.0)
            if rank > RESULTS_SHOWN:
                break
            place = RESULTS_SHOWN * events.page[at] + rank
            events.site[at, clicks] = _result(tuning, label, place)
            events.rank[at, clicks] = place
            clicks += 1
            if uniform(rng) >= tuning.click_again:
                break
    events.clicks[at] = clicks


@helper
def _recall(tuning: Tuning, rng: Stream, events: Events, begin: int, at: int) -> int:
    """Choose an earlier own event to repeat: a site if one is soon found, for people return to sites."""
    earlier = begin + below(rng, at - begin)
    for _ in range(2):
        if events.label[earlier, KIND] == NAVIGATIONAL:
            break
        earlier = begin + below(rng, at - begin)
    return earlier


@helper
def _repeat(events: Events, at: int, earlier: int, page: int) -> None:
    events.words[at] = events.words[earlier]
    events.length[at] = events.length[earlier]
    events.label[at] = events.label[earlier]
    events.page[at] = page
    events.is_new[at] = False


@helper
def _history(world: World, tuning: Tuning, seed: int, user: int, events: Events, begin: int, end: int) -> None:
    """Write one user's events to events[begin:end]."""
    rng = stream(key(seed, _HISTORY_STREAM), user)
    persona = key(key(seed, _PERSONA), user)
    leaves = np.empty(_MOST_INTERESTS, np.int64)
    weights = np.empty(_MOST_INTERESTS, np.float64)
    interests = _interests(world, rng, leaves, weights)
    opens = np.empty(end - begin, np.bool_)
    for place in range(end - begin):
        opens[place] = place == 0 or uniform(rng) < tuning.session_start
    starts = _session_starts(rng, int(np.sum(opens)))
    plant = VANITY + user % PLANT_EVERY
    session, leaf = -1, 0
    now = np.int64(0)
    for at in range(begin, end):
        events.user[at] = user
        opening = opens[at - begin]
        if opening:
            session += 1
            now = max(now + 1, starts[session])
        else:
            now += 1 + np.int64(np.exp(3.9 + 1.1 * normal(rng)))
        events.time[at] = now
        draw = uniform(rng)
        after_site = not opening and events.label[at - 1, KIND] == NAVIGATIONAL
        refind = 0.0 if at == begin else tuning.refind
        next_page = 0.0 if opening else tuning.next_page_navigational if after_site else tuning.next_page
        fixed = opening or after_site or events.label[at - 1, SENSITIVITY] not in (NONE, HEALTH)
        change = 0.0 if fixed else tuning.reformulate
        if at == begin and plant < HEALTH:
            label = events.label[at]
            events.length[at] = put_personal(world, tuning, rng, events.words[at], label, plant, persona)
            leaf = label[LEAF]
        elif draw < next_page:
            _repeat(events, at, at - 1, events.page[at - 1] + 1)
        elif draw < next_page + refind:
            _repeat(events, at, _recall(tuning, rng, events, begin, at), 0)
        elif draw < next_page + refind + change:
            _repeat(events, at, at - 1, 0)
            label = events.label[at]
            label[RESULTS] = np.int64(bits(rng) >> np.uint64(1))
            events.length[at] = _reformulate(world, tuning, rng, events.words[at], events.length[at], label)
            events.is_new[at] = True
        else:
            if opening or uniform(rng) >= tuning.same_topic:
                leaf = pick(rng, world.leaf_weight)
                if uniform(rng) >= tuning.stray:
                    leaf = leaves[pick(rng, weights[:interests])]
            label = events.label[at]
            label[LEAF] = leaf
            events.length[at] = new_query(world, tuning, rng, events.words[at], label, persona)
        _click(world, tuning, rng, events, at)


@kernel
def histories(world: World, tuning: Tuning, seed: int, users: Longs, counts: Longs) -> Events:
    """Write the events of some users, who have so many events each."""
    n = np.sum(counts)
    events = Events(
        np.empty(n, np.int64),
        np.empty((n, MOST_WORDS), np.int64),
        np.empty(n, np.int64),
        np.empty((n, LABELS), np.int64),
        np.empty(n, np.int64),
        np.zeros(n, np.int64),
        np.ones(n, np.bool_),
        np.empty(n, np.int64),
        np.empty((n, MOST_CLICKS), np.int64),
        np.empty((n, MOST_CLICKS), np.int64),
    )
    begin = 0
    for user in range(len(counts)):
        _history(world, tuning, seed, users[user], events, begin, begin + counts[user])
        begin += counts[user]
    return events
