"""Words as numbers, and how they are spelled.

A word is 62 bits: its kind, a misspelling, its form as a web address, and a payload. Words of the
hand-written lists point into the text of the world. All others are spelled from their payload, so the
vocabulary is unlimited and needs no memory. What looks personal comes from ranges reserved for examples:
555-01xx telephone numbers, card numbers behind the prefixes of test cards, NHS numbers beginning with 999, social
security numbers of areas that are never issued, e-mail at example.com. Languages other than English have telephone
numbers and national ids of their own (`[settings]` of their file in `data/`).
"""

import numpy as np

from queryveil.kernels._jit import helper, kernel
from queryveil.kernels.types import Bytes, Longs
from queryveil.synth.draws import below, stream
from queryveil.synth.world import (
    COINED,
    LATIN,
    LISTED,
    MAIL_FIRST_NAMES,
    MAIL_HOSTS,
    MAIL_SURNAMES,
    SOUNDS,
    SURNAME_ENDS,
    SYLLABLES,
    World,
)

SURNAME, MODEL, NUMBER, PHONE_NUMBER, CARD_NUMBER, SOCIAL_SECURITY, NHS_NUMBER, MAIL_ADDRESS = range(2, 10)

LONGEST_WORD = 64  # bytes, more than any kind can spell

_KIND, _SLIP, _DRESS = 58, 50, 46
_PAYLOAD = (1 << _DRESS) - 1


def _ascii(text: str) -> Bytes:
    return np.frombuffer(text.encode(), np.uint8)


_CARDS = _ascii("411111424242555555400000")
_WWW = _ascii("www.")
_ANY_DIGIT, _NEW_DIGIT, _SAME_DIGIT, _CHECK = _ascii("#%&?")  # in the forms of numbers


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
def _coined(world: World, out: Bytes, at: int, number: int, language: int) -> int:
    """Spell a number in syllables, more of them for a larger number; no two numbers have the same English spelling.

    A syllable is 8 bits, the coda 3 bits. The language is 0 for that of the world, and 1 for Latin letters.
    """
    syllables = 2
    while number >= 1 << (8 * syllables + 3):
        syllables += 1
    mask = (1 << (8 * syllables + 3)) - 1
    # An odd factor permutes the numbers, so that neighbours do not look alike; signed ones may not overflow.
    number = int(np.int64((np.uint64(number) * np.uint64(0x2545F491) + np.uint64(0x1B873593)) & np.uint64(mask)))
    for _ in range(syllables):
        part = SOUNDS * language + (number & 255)
        at = _copy(out, at, world.sound, world.sound_start[part], world.sound_start[part + 1])
        number >>= 8
    part = SOUNDS * language + SYLLABLES + number
    return _copy(out, at, world.sound, world.sound_start[part], world.sound_start[part + 1])


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
def _form(world: World, out: Bytes, at: int, first: int, last: int, number: int) -> int:
    """Fill one of some forms with digits, and with what checks them.

    `#` is any digit, `%` one that was not there yet, `&` one that was there, `?` the check digit or digits.
    """
    rng = stream(PHONE_NUMBER, number)
    form = first + below(rng, last - first)
    digits = np.zeros(32, np.int64)
    n, used, some, product = 0, 0, 0, 10
    for place in range(world.form_start[form], world.form_start[form + 1]):
        sign = world.form[place]
        if sign == _CHECK:
            if world.check_modulus == 0:  # ISO 7064, mod 11, 10
                out[at] = 48 + (11 - product) % 10
                at += 1
                continue
            total = 0
            for spot in range(n):
                total += digits[spot] * world.check_weight[spot]
            width = len(world.check) // world.check_modulus
            begin = width * (total % world.check_modulus)
            at = _copy(out, at, world.check, begin, begin + width)
            continue
        digit = -1
        if sign == _ANY_DIGIT:
            digit = below(rng, 10)
        elif sign == _NEW_DIGIT:
            digit = below(rng, 10)
            while used >> digit & 1:
                digit = (digit + 1) % 10
        elif sign == _SAME_DIGIT:
            digit = some
        elif 48 <= sign <= 57:
            digit = sign - 48
        out[at] = 48 + digit if digit >= 0 else sign
        at += 1
        if digit >= 0:
            digits[n] = some = digit
            n += 1
            used |= 1 << digit
            product = (digit + product) % 10
            product = (10 if product == 0 else product) * 2 % 11
    return at


@helper
def _listed(world: World, out: Bytes, at: int, word: int) -> int:
    return _copy(out, at, world.text, world.text_start[word], world.text_start[word + 1])


@helper
def _mail(world: World, out: Bytes, at: int, number: int) -> int:
    rng = stream(MAIL_ADDRESS, number)
    for group in (MAIL_FIRST_NAMES, MAIL_SURNAMES, MAIL_HOSTS):
        begin, end = world.group_start[group], world.group_start[group + 1]
        entry = begin + below(rng, end - begin)
        at = _listed(world, out, at, world.phrase[world.phrase_start[entry]])
        if group == MAIL_FIRST_NAMES:
            out[at] = 46
            at += 1
        elif group == MAIL_SURNAMES:
            at = _decimal(out, at, below(rng, 1000))
            out[at] = 64
            at += 1
    return at


@helper
def _letter(out: Bytes, at: int) -> int:
    """Where the letter ends that begins at out[at]."""
    at += 1
    while out[at] & 0xC0 == 0x80:
        at += 1
    return at


@helper
def _slip(out: Bytes, begin: int, end: int, slip: int) -> int:
    """Misspell the text in out[begin:end]: drop, double or swap a letter, never the first."""
    letters = 0
    for at in range(begin, end):
        letters += out[at] & 0xC0 != 0x80
    if letters < 4:
        return end
    out[end] = 0  # no byte of a letter, so the last one ends here
    place = begin
    for _ in range(1 + (slip // 3) % (letters - 2)):
        place = _letter(out, place)
    after = _letter(out, place)
    width = after - place
    if slip % 3 == 0:
        for at in range(place, end - width):
            out[at] = out[at + width]
        return end - width
    if slip % 3 == 1:
        for at in range(end + width - 1, place + width - 1, -1):
            out[at] = out[at - width]
        return end + width
    # The letter behind it comes first, byte by byte.
    for at in range(after, _letter(out, after)):
        moved = out[at]
        for back in range(at, at - width, -1):
            out[back] = out[back - 1]
        out[at - width] = moved
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
        at = _coined(world, out, at, payload, 0)
    elif kind == LATIN:
        at = _coined(world, out, at, payload, 1)
    elif kind == SURNAME:
        at = _coined(world, out, at, payload >> 3, 0)
        part = SURNAME_ENDS + (payload & 7)
        at = _copy(out, at, world.sound, world.sound_start[part], world.sound_start[part + 1])
    elif kind == MODEL:
        at = _model(out, at, payload)
    elif kind == NUMBER:
        at = _decimal(out, at, payload)
    elif kind == PHONE_NUMBER and world.phone_forms > 0:
        at = _form(world, out, at, 0, world.phone_forms, payload)
    elif kind in (SOCIAL_SECURITY, NHS_NUMBER) and world.phone_forms > 0:
        at = _form(world, out, at, world.phone_forms, len(world.form_start) - 1, payload)
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
        at = _copy(out, at, world.ending, ending, ending + 4)
    return at
