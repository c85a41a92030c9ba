"""How a language writes names, numbers and addresses: the section `[settings]` of its file in `data/`."""

from itertools import product
from typing import NamedTuple

_ONSETS = "b br c ch cl d dr f fl g gl h j k l m n p pl r s sh sl st t tr v w z th sp gr"
_VOWELS = "a e i o u ai ea oo"


def _syllables(onsets: str, vowels: str) -> tuple[str, ...]:
    return tuple(onset + vowel for vowel, onset in product(_parts(vowels), _parts(onsets)))


def _parts(text: str) -> list[str]:
    """Parts with blanks between them; `-` is an empty one."""
    return ["" if part == "-" else part for part in text.split()]


class Settings(NamedTuple):
    """How a language writes what is in no list; by default as English does."""

    endings: tuple[str, ...] = ("com", "org", "net")
    """Three endings of addresses, the most usual first."""
    sounds: tuple[str, ...] = (*_syllables(_ONSETS, _VOWELS), *_parts("- n r x l s nd m"))
    """256 syllables and 8 codas of coined words."""
    surname_ends: tuple[str, ...] = tuple(_parts("son berg ski man ton well ford -"))
    phones: tuple[str, ...] = ()
    """Forms of telephone numbers; none for those of the United States."""
    ids: tuple[str, ...] = ()
    """Forms of national ids."""
    check_weights: tuple[int, ...] = ()
    check: str = ""
    """What checks the digits of a national id: a text for every remainder of their weighted sum."""
    check_modulus: int = 0
    address: tuple[str, ...] = ("number", "streets", "street kinds", "places")
    highest_number: int = 9999
    listed_surnames: float = 0.55
    place_link: float = 0.5
    blank_every: int = 1


ENGLISH = Settings()


def read_settings(lines: list[str]) -> Settings:
    """Read lines such as `endings = de com org`."""
    given = {name.strip(): value.strip() for name, _, value in (line.partition("=") for line in lines)}
    syllables = tuple(given["syllables"]) if "syllables" in given else _syllables(given["onsets"], given["vowels"])
    sounds = (*syllables, *_parts(given["codas"]))
    if len(sounds) != len(ENGLISH.sounds):
        raise AssertionError(f"a language has {len(ENGLISH.sounds)} syllables and codas, not {len(sounds)}")
    power, modulus = given.get("id modulus", "0 0").split()
    ids = tuple(_forms(given["ids"]))
    digits = sum(sign.isdigit() or sign in "#%&" for sign in ids[0])
    weights = tuple(map(int, given["id weights"].split())) if "id weights" in given else ()
    if int(power):  # the number itself, by its remainder
        weights = tuple(int(power) ** (digits - 1 - place) % int(modulus) for place in range(digits))
    return Settings(
        endings=tuple(given["endings"].split()),
        sounds=sounds,
        surname_ends=tuple(_parts(given["surname ends"])),
        phones=tuple(_forms(given["phones"])),
        ids=ids,
        check_weights=weights,
        check="".join(given["id check"].split()) if "id check" in given else "",
        check_modulus=int(modulus),
        address=tuple(_forms(given["address"])),
        highest_number=int(given["highest number"]),
        listed_surnames=float(given["listed surnames"]),
        place_link=float(given["place link"]),
        blank_every=int(given["blank every"]),
    )


def _forms(value: str) -> list[str]:
    return [form.strip() for form in value.split("|")]
