"""Find and mask personal data in texts: cheap tests over whole arrays first, Python for the few that pass them."""

from collections.abc import Iterator, Sequence
from functools import cache
from importlib.metadata import version
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queryveil.arrays import Ragged
from queryveil.errors import OPTIONAL, require
from queryveil.kernels.types import Bools, Longs
from queryveil.scrubbing import ids, lists, national, patterns, people, streets, unspaced
from queryveil.scrubbing.scope import ENGLISH, Scope
from queryveil.text import Language, language, normal_form, split_at_blanks
from queryveil.text.arrays import byte_spans
from queryveil.text.masks import KINDS, RARE, without_masks

_BETWEEN = "\x1f"
"""What no text in normal form has."""
_LEAST_BYTE = 0xC2
"""The smallest byte of texts that are not ASCII."""
DEFAULT_KINDS = KINDS[:-1]
"""A name without a place is left out: most such queries are about well-known people."""


@cache
def _finders(scope: Scope) -> dict[str, patterns.Finder]:
    """What finds each kind."""
    own = people.people_of(tuple(code for code in scope.languages if code not in unspaced.LANGUAGES) or ("en",))
    found: dict[str, list[patterns.Finder]] = {
        "url": [patterns.urls],
        "email": [patterns.emails],
        "card": [patterns.cards],
        "iban": [patterns.ibans],
        "national_id": [ids.national_ids],
        "phone": [patterns.phones],
        "ip": [patterns.ips],
        "address": [own.addresses],
        "name_place": [own.names_with_places],
        "name": [own.names],
    }
    if scope.countries is not None:
        found["iban"].append(national.accounts(scope.countries))
        found["national_id"] = [national.national_ids(scope.countries)]
        calls = scope.language.cues.phones | language().cues.phones
        found["phone"] = [patterns.international_phones, national.phones(scope.countries, calls)]
    for code in scope.languages:
        if code != "en":
            found["address"].append(streets.streets(code, own.place_end))
    written = tuple(code for code in scope.languages if code in unspaced.LANGUAGES)
    if written:
        found["name_place"].append(unspaced.names_with_places(written))
    return {kind: _any(some) for kind, some in found.items()}


def _any(some: list[patterns.Finder]) -> patterns.Finder:
    if len(some) == 1:
        return some[0]

    def find(text: str) -> Iterator[patterns.Span]:
        for finder in some:
            yield from finder(text)

    return find


_MODULES = {"iban": "stdnum", "national_id": "stdnum", "phone": "phonenumbers"}
"""The optional package that checks the digits of a kind."""


def check_packages(kinds: Sequence[str]) -> None:
    """Refuse to search for kinds whose packages are not installed."""
    require("Scrubbing", *(_MODULES[kind] for kind in kinds if kind in _MODULES))


def packages_of(kinds: Sequence[str]) -> dict[str, str]:
    """The packages that check the digits of these kinds, and their versions."""
    names = {OPTIONAL[_MODULES[kind]].package for kind in kinds if kind in _MODULES}
    return {name: version(name) for name in sorted(names)}


class Masked(NamedTuple):
    """Texts with what was found masked."""

    texts: pa.Array
    hits: Longs
    """The kinds found in each text, as bits in the order of `KINDS`; `RARE` is the bit after them."""


def mask(texts: pa.Array, kinds: Sequence[str] = DEFAULT_KINDS, scope: Scope = ENGLISH) -> Masked:
    """Replace everything that is found in texts in normal form by `<kind>`.

    Masking twice changes nothing more.

    Args:
        texts: The texts.
        kinds: What to look for.
        scope: The languages and countries that it is looked for in.

    Example:
        >>> mask(pa.array(["jane@example.com pizza", "cheap pizza"])).texts.to_pylist()
        ['<email> pizza', 'cheap pizza']
    """
    check_packages(kinds)
    seen = _visible(texts)
    doubtful = _doubtful(seen, kinds, scope)
    hits = np.zeros(len(texts), np.int64)
    places = np.flatnonzero(doubtful.any(axis=0))
    changed, changes = [], []
    for at, text, doubts in zip(
        places.tolist(), seen.take(pa.array(places)).to_pylist(), doubtful[:, places].T.tolist(), strict=True
    ):
        if text is None:
            continue
        doubted = [kind for kind, doubt in zip(kinds, doubts, strict=True) if doubt]
        masked, found = _masked(text, doubted, _finders(scope))
        if found:
            changed.append(at)
            changes.append(masked)
            hits[at] = found
    if changed:
        where = np.zeros(len(texts), np.bool_)
        where[changed] = True
        made = pa.array(changes, texts.type)
        fixed = normal_form(made)
        if not fixed.equals(made):  # a lone accent came to stand behind a mask, and may have changed what can be found
            fixed, more = mask(fixed, kinds, scope)
            hits[changed] |= more
        texts = pc.replace_with_mask(texts, pa.array(where), fixed)
    return Masked(texts, hits)


class Finds(NamedTuple):
    """What is found in a text."""

    text: str
    """The text as it was searched: without signs that nobody sees."""
    spans: list[patterns.Span]
    """Where each find begins and ends; finds of several kinds may overlap."""


def finds(text: str, kinds: Sequence[str] = DEFAULT_KINDS, scope: Scope = ENGLISH) -> Finds:
    """Where everything stands that is found in a text in normal form.

    Example:
        >>> finds("pizza jane@example.com").spans
        [(6, 22)]
    """
    seen = str(_visible(pa.array([text]))[0])
    known = _finders(scope)
    return Finds(seen, sorted({span for kind in kinds for span in known[kind](seen)}))


def mask_rare(masked: Masked, common: pa.Array, language: Language) -> Masked:
    """Replace every rare word, with everything around it up to the next blanks, by `<rare>`; masks stay."""
    split = pc.split_pattern(masked.texts, " ")
    parts = split.flatten()
    # The words of the whole text, part by part: cutting puts blanks into parts, so others stand between them.
    cut = language.spaced(pc.replace_substring(masked.texts, " ", _BETWEEN))
    per_part, text = split_at_blanks(without_masks(pc.split_pattern(cut, _BETWEEN).flatten()))
    rare = ~pc.is_in(text.cast(common.type), value_set=common).to_numpy(zero_copy_only=False)
    known = np.bincount(np.repeat(np.arange(len(parts)), per_part)[rare], minlength=len(parts)) == 0
    parts = pc.if_else(pa.array(known), parts, pa.scalar(f"<{RARE}>", parts.type))
    start = split.offsets.to_numpy() - split.offsets[0].as_py()
    some = Ragged(start).sums(~known) > 0
    whole = type(split).from_arrays(pa.array(start, split.offsets.type), parts)
    joined = pc.binary_join(whole, pa.scalar(" ", parts.type)).cast(masked.texts.type)
    return Masked(joined, masked.hits | (some.astype(np.int64) << len(KINDS)))


def _visible(texts: pa.Array) -> pa.Array:
    """Texts without signs that nobody sees, such as soft hyphens, which would hide what they stand in."""
    data = byte_spans(texts)[0]
    if len(data) == 0 or int(data.max()) < _LEAST_BYTE:
        return texts
    hidden = pc.fill_null(pc.match_substring_regex(texts, r"\p{Cf}"), False)
    if not pc.any(hidden).as_py():
        return texts
    return pc.replace_with_mask(texts, hidden, pc.replace_substring_regex(texts.filter(hidden), r"\p{Cf}", ""))


def _masked(text: str, kinds: Sequence[str], finders: dict[str, patterns.Finder]) -> tuple[str, int]:
    """A text with everything masked that is found, and the kinds found, as bits; until nothing more is found."""
    found, before = 0, None
    while text != before:
        before = text
        for kind in kinds:
            spans = sorted(finders[kind](text), reverse=True)
            begin = len(text) + 1
            for start, end in _joined(spans):
                if end <= begin:
                    text = f"{text[:start]}<{kind}>{text[end:]}"
                    begin = start
                    found |= 1 << KINDS.index(kind)
    return text, found


def _joined(spans: list[patterns.Span]) -> list[patterns.Span]:
    """Spans from the last to the first, with overlapping ones merged."""
    joined: list[patterns.Span] = []
    for start, end in spans:
        if joined and end > joined[-1][0]:
            joined[-1] = (start, max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _doubtful(texts: pa.Array, kinds: Sequence[str], scope: Scope) -> Bools:
    """For each kind, which texts must be searched for it; no other text can have it, except for an IBAN of letters."""
    from queryveil.kernels.signs import AT, COLON, DIGIT, EQUALS, SIX_DIGITS, SLASH, SPELT_AT, signs_of

    signs = signs_of(*byte_spans(texts))
    needed = {
        "url": AT | SLASH | EQUALS,
        "email": AT | SPELT_AT,
        "card": SIX_DIGITS,
        "iban": SIX_DIGITS,
        "national_id": SIX_DIGITS if scope.countries is None else DIGIT,
        "phone": SIX_DIGITS,
        "ip": DIGIT | COLON,
        "address": DIGIT,
    }
    doubtful = np.zeros((len(kinds), len(texts)), np.bool_)
    named = _named(texts, scope) if {"name_place", "name"} & set(kinds) else None
    for row, kind in enumerate(kinds):
        doubtful[row] = signs & needed[kind] != 0 if kind in needed else named
        if kind == "address" and "zh" in scope.languages:  # house numbers in Chinese numerals
            houses = pc.match_substring_regex(texts, f"[{streets.HOUSES}]").fill_null(False)
            doubtful[row] |= houses.to_numpy(zero_copy_only=False)
    return doubtful


def _named(texts: pa.Array, scope: Scope) -> Bools:
    """Which texts have a first name and then a possible family name, maybe after a second name or an initial.

    In languages other than English the family name may come first.
    """
    per_text, text = split_at_blanks(texts)  # as the search for names sees them
    local = scope.languages != ENGLISH.languages
    known = lists.lists_of(tuple(code for code in scope.languages if code not in unspaced.LANGUAGES) or ("en",))
    # One entry more, so that there is one: Maltese and Thai have no lists.
    listed, kinds_of = known.texts, np.append(known.of_text, np.uint8(0))
    found = pc.index_in(text.cast(listed.type), value_set=listed)
    kinds = np.where(found.is_valid().to_numpy(zero_copy_only=False), kinds_of[found.fill_null(0).to_numpy()], 0)
    first = kinds & lists.FIRST != 0
    # Only words that are in no list can be so with their accents, dots and hyphens off.
    unknown = np.flatnonzero(kinds == 0)
    odd = unknown[pc.match_substring_regex(text.take(pa.array(unknown)), "[^a-z0-9]").to_numpy(zero_copy_only=False)]
    if len(odd):
        bare = lists.plain(text.take(pa.array(odd)))
        place = pc.index_in(bare.cast(listed.type), value_set=listed).fill_null(-1).to_numpy()
        kinds[odd] = np.where(place >= 0, kinds_of[place], 0)
        head = (
            pc.index_in(pc.replace_substring_regex(bare, "-.*", "").cast(listed.type), value_set=listed)
            .fill_null(-1)
            .to_numpy()
        )
        first[odd] = (head >= 0) & (kinds_of[head] & lists.FIRST != 0)
    # A possible family name: listed, or in no list at all.
    family = (kinds & lists.LAST != 0) | (kinds == 0)
    if local:  # or what stands before one, such as `de`, which may be listed as something else
        particles = pa.array(sorted(people.PARTICLES), text.type)
        family |= pc.is_in(text, value_set=particles).to_numpy(zero_copy_only=False)
    owner = np.repeat(np.arange(len(texts)), per_text)
    result = np.zeros(len(texts), np.bool_)
    for step in (1, 2):
        pair = (
            first[:-step] & family[step:] & (owner[:-step] == owner[step:]) if step < len(owner) else np.zeros(0, bool)
        )
        result[owner[: len(pair)][pair]] = True
        if local and step < len(owner):
            pair = (kinds[:-step] & lists.LAST != 0) & first[step:] & (owner[:-step] == owner[step:])
            result[owner[: len(pair)][pair]] = True
    if set(scope.languages) & set(unspaced.LANGUAGES):
        result |= pc.match_substring_regex(texts, r"\p{Han}|\p{Hangul}").fill_null(False).to_numpy(zero_copy_only=False)
    return result
