"""One new query: navigational, base, refined, a name, or personal data.

A query is a row of words (see `words`). Base query number r of a topic is always the same words, so that users
share popular queries; the further down the list, the fewer users share one.
"""

import numpy as np
from numpy.typing import NDArray

from queryveil.kernels._jit import helper
from queryveil.synth.draws import Stream, Whole, below, bits, key, stream, uniform, zipf
from queryveil.synth.tuning import Tuning
from queryveil.synth.words import (
    CARD_NUMBER,
    MAIL_ADDRESS,
    MODEL,
    NHS_NUMBER,
    NUMBER,
    PHONE_NUMBER,
    SOCIAL_SECURITY,
    SURNAME,
    dressed,
    slipped,
    word_of,
)
from queryveil.synth.world import (
    ADDRESS,
    AFTER,
    BASE,
    BEFORE,
    CARD,
    COINED,
    FIRST_NAMES,
    HEALTH,
    LEAVES,
    LINKS,
    NAME,
    NAME_PLACE,
    NATIONAL_ID,
    NAVIGATIONAL,
    NONE,
    PERSONAL,
    PHONE,
    PLACES,
    REFINEMENT,
    REGIONS,
    SITES_PER_LEAF,
    SLIP,
    SURNAMES,
    VANITY,
    World,
)

MOST_WORDS = 12

Row = NDArray[np.int64]

# What is known of a query besides its words.
LEAF, KIND, SENSITIVITY, TARGET, RESULTS, LABELS = 0, 1, 2, 3, 4, 5

# Names of the streams that belong to the world, not to a user.
_PERSON_STREAM, _PLACE_STREAM, _PERSONA_STREAM, _BASE_STREAM, _COMMON_STREAM = 1, 2, 3, 10_000, 20_000


@helper
def _put(row: Row, n: int, word: int) -> int:
    if n < MOST_WORDS:
        row[n] = word
        n += 1
    return n


@helper
def _size(world: World, group: int) -> int:
    return int(world.group_start[group + 1] - world.group_start[group])


@helper
def _put_phrase(world: World, row: Row, n: int, group: int, index: int) -> int:
    phrase = world.group_start[group] + index
    for place in range(world.phrase_start[phrase], world.phrase_start[phrase + 1]):
        n = _put(row, n, world.phrase[place])
    return n


@helper
def topic_word(world: World, tuning: Tuning, rng: Stream, leaf: int) -> int:
    """Draw a word of a topic: from its list, or a coined one such as a brand."""
    if uniform(rng) < tuning.listed:
        begin, end = world.leaf_word_start[leaf], world.leaf_word_start[leaf + 1]
        return int(world.leaf_word[begin + zipf(rng, end - begin, tuning.listed_slope, 1.0)])
    rank = zipf(rng, tuning.coined.n, tuning.coined.slope, tuning.coined.shift)
    return word_of(COINED, rank * len(world.leaf_weight) + leaf)


@helper
def _holds(row: Row, n: int, word: int) -> bool:
    return bool(np.any(row[:n] == word))


@helper
def put_topic_word(world: World, tuning: Tuning, rng: Stream, row: Row, n: int, leaf: int) -> int:
    """Put a word of a topic, one that is not there yet if it can soon be found."""
    word = topic_word(world, tuning, rng, leaf)
    for _ in range(3):
        if not _holds(row, n, word):
            break
        word = topic_word(world, tuning, rng, leaf)
    return _put(row, n, word)


@helper
def _put_base(world: World, tuning: Tuning, row: Row, n: int, leaf: int, rank: int) -> int:
    """Put base query number `rank` of a topic: an item of its list, or words of the topic."""
    items = _size(world, LEAVES + leaf)
    if rank < items:
        return _put_phrase(world, row, n, LEAVES + leaf, rank)
    rng = stream(_BASE_STREAM + leaf, rank)
    draw = uniform(rng)
    for _ in range(1 if draw < 0.2 else (2 if draw < 0.65 else 3)):
        n = put_topic_word(world, tuning, rng, row, n, leaf)
    return n


@helper
def _put_surname(world: World, rng: Stream, row: Row, n: int) -> int:
    if uniform(rng) < world.listed_surnames:
        return _put_phrase(world, row, n, SURNAMES, zipf(rng, _size(world, SURNAMES), 0.7, 3.0))
    return _put(row, n, word_of(SURNAME, zipf(rng, 1 << 19, 0.9, 50.0)))


@helper
def _put_first_name(world: World, rng: Stream, row: Row, n: int) -> int:
    return _put_phrase(world, row, n, FIRST_NAMES, zipf(rng, _size(world, FIRST_NAMES), 0.7, 3.0))


@helper
def _put_place(world: World, tuning: Tuning, rng: Stream, row: Row, n: int, room: int) -> int:
    """Put a place: the town, or the town and its state; towns beyond the list have coined names."""
    rank = zipf(rng, tuning.places.n, tuning.places.slope, tuning.places.shift)
    listed = _size(world, PLACES)
    end = n
    if rank < listed:
        end = _put_phrase(world, row, n, PLACES, rank)
    else:
        town = stream(_PLACE_STREAM, rank)
        end = _put(row, n, word_of(COINED, 1 + below(town, 1 << 18)))
        end = _put_phrase(world, row, end, REGIONS, below(town, _size(world, REGIONS)))
    return min(end, n + room)


@helper
def _put_addition(
    world: World, tuning: Tuning, rng: Stream, row: Row, n: int, room: int, leaf: int, before: bool
) -> int:
    """Put what refines a query, at most `room` words of it."""
    draw = uniform(rng)
    begin = n
    if draw < tuning.add_phrase:
        group = BEFORE if before else AFTER
        for _ in range(6):
            phrase = zipf(rng, min(tuning.phrases.n, _size(world, group)), tuning.phrases.slope, tuning.phrases.shift)
            end = _put_phrase(world, row, begin, group, phrase)
            if end - begin <= room and not _holds(row, begin, row[end - 1]):
                return end
    elif draw < tuning.add_phrase + tuning.add_place:
        if room > 1 and not before and uniform(rng) < world.place_link:
            n = _put_phrase(world, row, n, LINKS, 0)
        return _put_place(world, tuning, rng, row, n, room - (n - begin))
    elif draw < tuning.add_phrase + tuning.add_place + tuning.add_model:
        return _put(row, n, word_of(MODEL, zipf(rng, 1 << 22, 1.1, 200.0)))
    if room > 1 and not before and uniform(rng) < tuning.add_link:
        n = _put_phrase(world, row, begin, LINKS, zipf(rng, _size(world, LINKS), 1.2, 1.0))
        if n - begin >= room:
            n = begin
    return put_topic_word(world, tuning, rng, row, n, leaf)


@helper
def _shift_right(row: Row, n: int, by: int) -> None:
    for place in range(n - 1, -1, -1):
        row[place + by] = row[place]


@helper
def _put_topical(world: World, tuning: Tuning, rng: Stream, row: Row, length: int, label: Row) -> int:
    """Put a base query of the wanted length, or refine a shorter, popular one (Q+R, R+Q, R+Q+R)."""
    leaf = label[LEAF]
    rank, n = 0, MOST_WORDS
    as_it_is = length == 1 or (length < 4 and uniform(rng) < tuning.as_it_is)
    common = 0.0 if as_it_is or length < 3 else (tuning.common if length < 5 else tuning.common_long)
    if uniform(rng) < common:
        # A refinement that many make: its words are drawn from a stream of the world.
        law = tuning.commons
        rng = stream(_COMMON_STREAM + 16 * leaf + length, zipf(rng, law.n, law.slope, law.shift))
    law = tuning.bases if as_it_is else tuning.refined
    for _ in range(12):
        if uniform(rng) < tuning.item:
            rank = zipf(rng, min(tuning.items.n, _size(world, LEAVES + leaf)), tuning.items.slope, tuning.items.shift)
        else:
            rank = zipf(rng, law.n, law.slope, law.shift)
        n = _put_base(world, tuning, row, 0, leaf, rank)
        if n == length or (n < length and not as_it_is):
            break
    n = min(n, length)
    label[RESULTS] = np.int64(key(_BASE_STREAM + leaf, rank) >> np.uint64(1))
    label[KIND] = BASE if n == length else REFINEMENT
    draw = uniform(rng)
    room = length - n
    if room > 0 and draw < 0.45:  # R+Q, or with room for both R+Q+R
        ahead = np.empty(MOST_WORDS, np.int64)
        some = room if draw < 0.22 else max(1, room // 2)
        added = _put_addition(world, tuning, rng, ahead, 0, some, leaf, True)
        _shift_right(row, n, added)
        for place in range(added):
            row[place] = ahead[place]
        n += added
    while n < length:
        n = _put_addition(world, tuning, rng, row, n, length - n, leaf, False)
    return n


@helper
def _put_site(world: World, tuning: Tuning, rng: Stream, row: Row, label: Row, known: bool) -> int:
    """Put the name or address of a site: a well-known one, or one of the topic."""
    leaf = label[LEAF]
    site = -1
    if known:
        law = tuning.known_sites
        site = int(world.known_site[min(zipf(rng, law.n, law.slope, law.shift), len(world.known_site) - 1)])
        leaf = site // SITES_PER_LEAF
        word, name, ending = int(world.site_word[site]), int(world.site_name[site]), 0
    else:
        law = tuning.topic_sites
        rank = zipf(rng, law.n, law.slope, law.shift)
        if rank < SITES_PER_LEAF:
            site = leaf * SITES_PER_LEAF + rank
            word, ending = int(world.site_word[site]), int(world.site_ending[site])
        else:  # beyond the directory: a coined name
            word, ending = word_of(world.coined_site, rank * len(world.leaf_weight) + leaf), 0
        name = word
    if uniform(rng) >= tuning.bare_site:
        word = dressed(name, uniform(rng) < tuning.www, ending)
    label[LEAF], label[KIND], label[TARGET] = leaf, NAVIGATIONAL, site
    label[RESULTS] = np.int64(key(leaf, word) >> np.uint64(1))
    return _put(row, 0, word)


@helper
def _put_name(world: World, tuning: Tuning, rng: Stream, row: Row, label: Row) -> int:
    """Put the name of a person, famous or private, sometimes with a place."""
    person = zipf(rng, tuning.people.n, tuning.people.slope, tuning.people.shift)
    who = stream(_PERSON_STREAM, person)
    n = _put_surname(world, who, row, _put_first_name(world, who, row, 0))
    label[KIND] = NAME
    if uniform(rng) < tuning.name_with_place:
        n = _put_place(world, tuning, rng, row, n, 4)
        label[SENSITIVITY], label[LEAF] = NAME_PLACE, world.home[NAME_PLACE]
    return n


@helper
def put_personal(world: World, tuning: Tuning, rng: Stream, row: Row, label: Row, kind: int, persona: Whole) -> int:
    """Put personal data of one kind: the user's own (a persona is a user's number in the world), or another's."""
    own = stream(_PERSONA_STREAM, persona)
    label[KIND], label[SENSITIVITY], label[TARGET] = PERSONAL, kind, -1
    label[LEAF] = world.home[kind]
    label[RESULTS] = np.int64(bits(rng) >> np.uint64(1))
    secret = int(bits(rng) >> np.uint64(24))
    if kind == VANITY:
        return _put_surname(world, own, row, _put_first_name(world, own, row, 0))
    if kind == NAME_PLACE:
        n = _put_surname(world, own, row, _put_first_name(world, own, row, 0))
        return _put_place(world, tuning, own, row, n, 4)
    if kind == PHONE:
        return _put(row, 0, word_of(PHONE_NUMBER, secret))
    if kind == CARD:
        return _put(row, 0, word_of(CARD_NUMBER, secret))
    if kind == NATIONAL_ID:
        return _put(row, 0, word_of(SOCIAL_SECURITY if secret % 2 else NHS_NUMBER, secret))
    if kind == ADDRESS:
        n = 0
        for part in world.address:
            if part < 0:
                n = _put(row, n, word_of(NUMBER, 1 + secret % world.highest_number))
            elif part == PLACES:
                n = _put_place(world, tuning, rng, row, n, 4)
            else:
                n = _put_phrase(world, row, n, part, below(rng, _size(world, part)))
        return n
    return _put(row, 0, word_of(MAIL_ADDRESS, secret))


@helper
def new_query(world: World, tuning: Tuning, rng: Stream, row: Row, label: Row, persona: Whole) -> int:
    """Put a new query about topic `label[LEAF]`; return its number of words and fill the label."""
    label[SENSITIVITY], label[TARGET] = NONE, -1
    draw = uniform(rng)
    length = 1
    if draw >= tuning.length_1:
        length = 2 + (draw >= tuning.length_2) + (draw >= tuning.length_3) + (draw >= tuning.length_4)
        while length > 4 and length < MOST_WORDS and uniform(rng) < tuning.length_more:
            length += 1
    rare = uniform(rng)
    if rare < 5 * tuning.personal:
        return put_personal(world, tuning, rng, row, label, PHONE + int(rare / tuning.personal), persona)
    if rare < 5 * tuning.personal + tuning.vanity:
        kind = NAME_PLACE if uniform(rng) < tuning.name_with_place else VANITY
        return put_personal(world, tuning, rng, row, label, kind, persona)
    draw = uniform(rng)
    if length == 1 and draw < tuning.known_site + tuning.topic_site:
        n = _put_site(world, tuning, rng, row, label, draw < tuning.known_site)
    elif 1 < length < 4 and draw < tuning.name:
        n = _put_name(world, tuning, rng, row, label)
        label[RESULTS] = np.int64(key(row[0], row[1]) >> np.uint64(1))
    else:
        n = _put_topical(world, tuning, rng, row, length, label)
    if uniform(rng) < tuning.slip:
        place = below(rng, n)
        row[place] = slipped(row[place], below(rng, 255))
        label[KIND] = SLIP
    about_topic = label[KIND] != NAVIGATIONAL and label[KIND] != NAME
    if about_topic and label[SENSITIVITY] == NONE and world.health[label[LEAF]]:
        label[SENSITIVITY] = HEALTH
    return n
