"""Words as numbers, and how they are spelled.

A word is 62 bits: its kind, a misspelling, its form as a web address, and a payload. Words of the
hand-written lists point into the text of the world. All others are spelled from their payload, so the
vocabulary is unlimited and needs no memory. What looks personal comes from ranges reserved for examples:
555-01xx telephone numbers, card numbers behind the prefixes of test cards, NHS numbers beginning with 999, social
security numbers of areas that are never issued, e-mail at example.com.
"""

import numpy as np

from queryveil.kernels._jit import helper, kernel
from queryveil.kernels.types import Bytes, Longs
from queryveil.synth.draws import below, stream
from queryveil.synth.world import FIRST_NAMES, MAIL_HOSTS, SURNAMES, World

LISTED, COINED, SURNAME, MODEL, NUMBER, PHONE_NUMBER, CARD_NUMBER, SOCIAL_SECURITY, NHS_NUMBER, MAIL_ADDRESS = range(10)

LONGEST_WORD = 64  # bytes, more than any kind can spell

_KIND, _SLIP, _DRESS = 58, 50, 46
_PAYLOAD = (1 << _DRESS) - 1


def _ascii(text: str) -> Bytes:
    return np.frombuffer(text.encode(), np.uint8)


# A coined word is syllables and a coda: 5 bits of onset and 3 of vowel a syllable, 3 bits of coda.
# Entries are two bytes wide, a space is left out.
_ONSETS = _ascii("b brc chcld drf flg glh j k l m n p plr s shslstt trv w z thspgr")
_VOWELS = _ascii("a e i o u aieaoo")
_CODAS = _ascii("  n r x l s ndm ")
_SURNAME_ENDS = _ascii("son bergski man ton wellford")  # four bytes each
_CARDS = _ascii("411111424242555555400000")
_WWW = _ascii("www.")
_ENDINGS = _ascii(".com.org.net")


@kernel
def word_of(kind: int, payload: int) -> int:
    """Make a word."""
    return (kind << _KIND) | payload


@kernel
def dressed(word: int, www: bool, ending: int) -> int:
    """Write a word as a web address, with or without www."""
    return word | ((1 + ending + (3 if www else 0)) << _DRESS)


@kernel
def slipped(word: int, slip: int) -> int:
    """Misspell a word in one of 255 ways."""
    return word | ((1 + slip % 255) << _SLIP)


@helper
def _copy(out: Bytes, at: int, text: Bytes, begin: int, end: int) -> int:
    for place in range(begin, end):
        if text[place] != 32:
            out[at] = text[place]
            at += 1
    return at


@helper
def _digits(out: Bytes, at: int, number: int, width: int) -> int:
    for place in range(width - 1, -1, -1):
        out[at + place] = 48 + number % 10
        number //= 10
    return at + width


@helper
def _decimal(out: Bytes, at: int, number: int) -> int:
    width = 1
    while 10**width <= number:
        width += 1
    return _digits(out, at, number, width)


@helper
def _coined(out: Bytes, at: int, number: int) -> int:
    """Spell a number in syllables, more of them for a larger number; no two numbers have the same spelling."""
    syllables = 2
    while number >= 1 << (8 * syllables + 3):
        syllables += 1
    mask = (1 << (8 * syllables + 3)) - 1
    # An odd factor permutes the numbers, so that neighbours do not look alike.
    number = (number * 0x2545F491 + 0x1B873593) & mask
    for _ in range(syllables):
        onset, vowel = number & 31, (number >> 5) & 7
        at = _copy(out, at, _ONSETS, 2 * onset, 2 * onset + 2)
        at = _copy(out, at, _VOWELS, 2 * vowel, 2 * vowel + 2)
        number >>= 8
    return _copy(out, at, _CODAS, 2 * number, 2 * number + 2)


@helper
def _model(out: Bytes, at: int, number: int) -> int:
    """Spell a model number: 2651, v3, sd400."""
    letters = number % 3
    number //= 3
    for _ in range(letters):
        out[at] = 97 + number % 26
        at += 1
        number //= 26
    return _decimal(out, at, 1 + number % 9999)


@helper
def _dashed(out: Bytes, at: int, digits: Longs, first: int, second: int, dashes: bool) -> int:
    for place in range(len(digits)):
        if dashes and (place in (first, second) or (first == 4 and place == 12)):
            out[at] = 45
            at += 1
        out[at] = 48 + digits[place]
        at += 1
    return at


@helper
def _phone(out: Bytes, at: int, number: int) -> int:
    rng = stream(PHONE_NUMBER, number)
    digits = np.zeros(10, np.int64)
    digits[0], digits[1], digits[2] = 2 + below(rng, 8), below(rng, 9), below(rng, 10)
    digits[3], digits[4], digits[5] = 5, 5, 5
    digits[7], digits[8], digits[9] = 1, below(rng, 10), below(rng, 10)
    return _dashed(out, at, digits, 3, 6, below(rng, 2) == 0)


@helper
def _card(out: Bytes, at: int, number: int) -> int:
    """Spell a card number with the check digit of Luhn."""
    rng = stream(CARD_NUMBER, number)
    prefix = 6 * below(rng, 4)
    digits = np.zeros(16, np.int64)
    total = 0
    for place in range(15):
        digits[place] = _CARDS[prefix + place] - 48 if place < 6 else below(rng, 10)
        doubled = digits[place] * 2 if place % 2 == 0 else digits[place]
        total += doubled - 9 if doubled > 9 else doubled
    digits[15] = (10 - total % 10) % 10
    return _dashed(out, at, digits, 4, 8, below(rng, 2) == 0)


@helper
def _social_security(out: Bytes, at: int, number: int) -> int:
    """Spell a number in the form of the USA's, area 9xx and group below 50: neither issued as SSN nor as ITIN."""
    rng = stream(SOCIAL_SECURITY, number)
    digits = np.zeros(9, np.int64)
    digits[0], digits[1], digits[2] = 9, below(rng, 10), below(rng, 10)
    digits[3], digits[4] = below(rng, 5), 1 + below(rng, 9)
    for place in range(5, 9):
        digits[place] = 1 + below(rng, 9)
    return _dashed(out, at, digits, 3, 5, below(rng, 4) > 0)


@helper
def _nhs(out: Bytes, at: int, number: int) -> int:
    """Spell a number of the British health service's test range, with its check digit (modulus 11)."""
    rng = stream(NHS_NUMBER, number)
    digits = np.zeros(10, np.int64)
    check = 10
    while check == 10:
        total = 0
        for place in range(9):
            digits[place] = 9 if place < 3 else below(rng, 10)
            total += digits[place] * (10 - place)
        check = (11 - total % 11) % 11
    digits[9] = check
    return _dashed(out, at, digits, 3, 6, below(rng, 2) == 0)


@helper
def _listed(world: World, out: Bytes, at: int, word: int) -> int:
    return _copy(out, at, world.text, world.text_start[word], world.text_start[word + 1])


@helper
def _mail(world: World, out: Bytes, at: int, number: int) -> int:
    rng = stream(MAIL_ADDRESS, number)
    for group in (FIRST_NAMES, SURNAMES, MAIL_HOSTS):
        begin, end = world.group_start[group], world.group_start[group + 1]
        entry = begin + below(rng, end - begin)
        at = _listed(world, out, at, world.phrase[world.phrase_start[entry]])
        if group == FIRST_NAMES:
            out[at] = 46
            at += 1
        elif group == SURNAMES:
            at = _decimal(out, at, below(rng, 1000))
            out[at] = 64
            at += 1
    return at


@helper
def _slip(out: Bytes, begin: int, end: int, slip: int) -> int:
    """Misspell the text in out[begin:end]: drop, double or swap a letter, never the first."""
    if end - begin < 4:
        return end
    place = begin + 1 + (slip // 3) % (end - begin - 2)
    if slip % 3 == 0:
        for at in range(place, end - 1):
            out[at] = out[at + 1]
        return end - 1
    if slip % 3 == 1:
        for at in range(end, place, -1):
            out[at] = out[at - 1]
        return end + 1
    out[place], out[place + 1] = out[place + 1], out[place]
    return end


@kernel
def spell(world: World, word: int, out: Bytes, at: int) -> int:
    """Write a word at out[at:] and return where it ends."""
    kind, slip, dress = word >> _KIND, (word >> _SLIP) & 255, (word >> _DRESS) & 15
    payload = word & _PAYLOAD
    if dress > 3:
        at = _copy(out, at, _WWW, 0, 4)
    bare = at
    if kind == LISTED:
        at = _listed(world, out, at, payload)
    elif kind == COINED:
        at = _coined(out, at, payload)
    elif kind == SURNAME:
        at = _coined(out, at, payload >> 3)
        end = 4 * (payload & 7)
        at = _copy(out, at, _SURNAME_ENDS, end, min(end + 4, len(_SURNAME_ENDS)))
    elif kind == MODEL:
        at = _model(out, at, payload)
    elif kind == NUMBER:
        at = _decimal(out, at, payload)
    elif kind == PHONE_NUMBER:
        at = _phone(out, at, payload)
    elif kind == CARD_NUMBER:
        at = _card(out, at, payload)
    elif kind == SOCIAL_SECURITY:
        at = _social_security(out, at, payload)
    elif kind == NHS_NUMBER:
        at = _nhs(out, at, payload)
    else:
        at = _mail(world, out, at, payload)
    if slip:
        at = _slip(out, bare, at, slip - 1)
    if dress:
        ending = 4 * ((dress - 1) % 3)
        at = _copy(out, at, _ENDINGS, ending, ending + 4)
    return at
