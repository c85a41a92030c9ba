"""From arrays of events to rows: the text of queries, and lines of the AOL format."""

import numpy as np

from queryveil.kernels._jit import helper, kernel
from queryveil.kernels.types import Bools, Bytes, Ints, Longs
from queryveil.synth.draws import key
from queryveil.synth.history import BEGIN, RESULTS_SHOWN, Events
from queryveil.synth.queries import MOST_WORDS
from queryveil.synth.words import LONGEST_WORD, spell
from queryveil.synth.world import World

HEADER = b"AnonID\tQuery\tQueryTime\tItemRank\tClickURL\n"
VIEWS_HEADER = b"AnonID\tQuery\tQueryTime\tItemRank\tResultURL\tClicked\n"

_ID_STEP = 37  # ids then run up to 24 million at 650,000 users, as AOL's do
_LINE = 64  # bytes of a line besides query and URL
_TAB, _NEWLINE = 9, 10

# The dates of the log, and of some days more, as text.
_DATES = np.frombuffer(
    "".join(np.datetime_as_string(np.datetime64(BEGIN, "s") + np.arange(400) * np.timedelta64(1, "D"), "D")).encode(),
    np.uint8,
)


@kernel
def user_ids(seed: int, users: Longs) -> Longs:
    """Give users their published ids: ascending, all different, not consecutive."""
    ids = np.empty(len(users), np.int64)
    for place in range(len(users)):
        jitter = key(seed, users[place]) % np.uint64(_ID_STEP)
        ids[place] = 100 + _ID_STEP * users[place] + np.int64(jitter)
    return ids


@helper
def _longer(buffer: Bytes, used: int, need: int) -> Bytes:
    if used + need <= len(buffer):
        return buffer
    longer = np.empty(2 * len(buffer) + need, np.uint8)
    for at in range(used):  # an assignment to a slice would compile messages for errors that cannot happen
        longer[at] = buffer[at]
    return longer


@helper
def _parted(world: World, words: Longs, place: int, text: Bytes, blank: int) -> bool:
    """Whether a blank stays between two words of a script without blanks: between Latin ones, or at random.

    The same two words are always written in the same way.
    """
    if text[blank - 1] < 128 and text[blank + 1] < 128:
        return True
    return bool(key(words[place - 1], words[place]) % np.uint64(world.blank_every) == 0)


@kernel
def spell_queries(world: World, events: Events) -> tuple[Bytes, Ints]:
    """Spell the queries: their text one after the other, and where each begins."""
    n = len(events.length)
    starts = np.zeros(n + 1, np.int32)
    text = np.empty(24 * n + 1, np.uint8)
    at = 0
    for event in range(n):
        text = _longer(text, at, MOST_WORDS * (LONGEST_WORD + 1))
        for place in range(events.length[event]):
            begin = at
            if place > 0:
                text[at] = 32
                at += 1
            at = spell(world, events.words[event, place], text, at)
            if place > 0 and world.blank_every > 1 and not _parted(world, events.words[event], place, text, begin):
                for spot in range(begin, at - 1):
                    text[spot] = text[spot + 1]
                at -= 1
        starts[event + 1] = at
    return text[:at].copy(), starts


@helper
def _write(out: Bytes, at: int, text: Bytes, begin: int, end: int) -> int:
    for place in range(begin, end):
        out[at] = text[place]
        at += 1
    return at


@helper
def _number(out: Bytes, at: int, number: int, least: int) -> int:
    width = least
    while 10**width <= number:
        width += 1
    for place in range(at + width - 1, at - 1, -1):
        out[place] = 48 + number % 10
        number //= 10
    return at + width


@helper
def _time(out: Bytes, at: int, seconds: int) -> int:
    day, second = (seconds - BEGIN) // 86400, seconds % 86400
    at = _write(out, at, _DATES, 10 * day, 10 * day + 10)
    out[at] = 32
    at = _number(out, at + 1, second // 3600, 2)
    out[at] = 58
    at = _number(out, at + 1, second // 60 % 60, 2)
    out[at] = 58
    return _number(out, at + 1, second % 60, 2)


@helper
def _event(out: Bytes, at: int, user: int, text: Bytes, begin: int, end: int, seconds: int) -> int:
    at = _number(out, at, user, 1)
    out[at] = _TAB
    at = _write(out, at + 1, text, begin, end)
    out[at] = _TAB
    at = _time(out, at + 1, seconds)
    out[at] = _TAB
    return at + 1


@kernel
def aol_lines(url: Bytes, url_start: Longs, events: Events, ids: Longs, text: Bytes, starts: Ints) -> Bytes:
    """Write events as lines of the AOL format: one per click, or one if there was none."""
    out = np.empty(80 * len(ids) + 1, np.uint8)
    at = 0
    for event in range(len(ids)):
        for click in range(max(events.clicks[event], 1)):
            clicked = events.clicks[event] > 0
            site = events.site[event, click] if clicked else 0
            begin, end = url_start[site], url_start[site + 1]
            out = _longer(out, at, starts[event + 1] - starts[event] + end - begin + _LINE)
            at = _event(out, at, ids[event], text, starts[event], starts[event + 1], events.time[event])
            if clicked:
                at = _number(out, at, events.rank[event, click], 1)
            out[at] = _TAB
            at += 1
            if clicked:
                at = _write(out, at, url, begin, end)
            out[at] = _NEWLINE
            at += 1
    return out[:at].copy()


@kernel
def view_lines(
    url: Bytes,
    url_start: Longs,
    events: Events,
    ids: Longs,
    text: Bytes,
    starts: Ints,
    site: Longs,
    clicked: Bools,
) -> Bytes:
    """Write events as lines of their results: one per result, clicked or not."""
    out = np.empty(80 * RESULTS_SHOWN * len(ids) + 1, np.uint8)
    at = 0
    for event in range(len(ids)):
        for place in range(RESULTS_SHOWN):
            begin, end = url_start[site[event, place]], url_start[site[event, place] + 1]
            out = _longer(out, at, starts[event + 1] - starts[event] + end - begin + _LINE)
            at = _event(out, at, ids[event], text, starts[event], starts[event + 1], events.time[event])
            at = _number(out, at, RESULTS_SHOWN * events.page[event] + place + 1, 1)
            out[at] = _TAB
            at = _write(out, at + 1, url, begin, end)
            out[at] = _TAB
            out[at + 1] = 48 + clicked[event, place]
            out[at + 2] = _NEWLINE
            at += 3
    return out[:at].copy()
