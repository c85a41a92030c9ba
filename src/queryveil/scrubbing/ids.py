"""National ids: found by their form and check digits if that is enough, else next to a word that says what they are.

Nine to eleven digits in a row are more often the number of a product or a parcel than of a person, and one in ten of
those passes any check digit. So such ids count only in their usual groups of digits, or next to such a word.
"""

import importlib
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from queryveil.scrubbing.patterns import Span


class _Id(NamedTuple):
    """A kind of national id."""

    check: str | None
    """The module of stdnum that checks it; None if the form is all there is."""
    grouped: str | None
    """Its form as it is written, which is enough."""
    bare: str | None = None
    """Its form in one piece, which needs a word beside it."""
    words: str = ""
    """Such words."""


_IDS = (
    # Nothing else is written 3-2-4. Numbers that were never issued count too: people mistype their own.
    _Id(None, r"(?!000|666)[0-9]{3}-(?!00)[0-9]{2}-(?!0000)[0-9]{4}"),
    _Id("us.ssn", None, r"[0-9]{3} ?[0-9]{2} ?[0-9]{4}", "ssn|social|social security"),
    _Id("us.itin", None, r"9[0-9]{2} ?[0-9]{2} ?[0-9]{4}", "itin|tin|tax id"),
    # National Insurance number.
    _Id(
        None,
        r"(?!bg|gb|nk|kn|tn|nt|zz)[abceghj-prstw-z][abceghj-nprstw-z] ?[0-9]{2} ?[0-9]{2} ?[0-9]{2} ?[a-d]",
    ),
    # In groups of 3, 3 and 4 it looks like an American phone number, so the beginning must not be that of one.
    _Id(
        "gb.nhs",
        r"(?![2-9][0-8][0-9].[2-9])[0-9]{3}[ -][0-9]{3}[ -][0-9]{4}",
        r"[0-9]{3}[ -]?[0-9]{3}[ -]?[0-9]{4}",
        "nhs",
    ),
    _Id(
        "de.idnr",
        r"[0-9]{2} [0-9]{3} [0-9]{3} [0-9]{3}",
        r"[0-9]{11}",
        "steuer|steuerid|steuer-id|idnr|steuernummer|steueridentifikationsnummer|identifikationsnummer|tin",
    ),
    _Id("fr.nir", r"[12][ ]?[0-9]{2} ?[0-9]{2} ?[0-9][0-9ab] ?[0-9]{3} ?[0-9]{3} ?[0-9]{2}"),
    _Id("es.dni", r"[0-9]{8}-?[a-z]"),
    _Id("es.nie", r"[xyz]-?[0-9]{7}-?[a-z]"),
    _Id(
        "it.codicefiscale",
        r"(?=(?:[a-z]*[0-9]){6})[a-z]{6}[0-9lmnp-v]{2}[a-ehlmprst][0-9lmnp-v]{2}[a-z][0-9lmnp-v]{3}[a-z]",
    ),
    _Id("nl.bsn", None, r"[0-9]{4}\.?[0-9]{2}\.?[0-9]{3}", "bsn|burgerservicenummer|sofinummer|sofi"),
    _Id("pl.pesel", None, r"[0-9]{11}", "pesel"),
    _Id("se.personnummer", r"(?:[0-9]{2})?[0-9]{6}[-+][0-9]{4}", r"(?:[0-9]{2})?[0-9]{10}", "personnummer|personnr"),
    _Id("fi.hetu", r"[0-9]{6}[-+a][0-9]{3}[0-9a-y]"),
    _Id("no.fodselsnummer", r"[0-9]{6} [0-9]{5}", r"[0-9]{11}", "fødselsnummer|fodselsnummer|personnummer"),
    _Id("dk.cpr", None, r"[0-9]{6}-?[0-9]{4}", "cpr|cpr-nummer|personnummer"),
    _Id(
        "be.nn",
        r"[0-9]{2}\.[0-9]{2}\.[0-9]{2}-[0-9]{3}\.[0-9]{2}",
        r"[0-9]{11}",
        "rijksregisternummer|rijksregister|niss|insz",
    ),
    _Id("ch.ssn", r"756\.?[0-9]{4}\.?[0-9]{4}\.?[0-9]{2}"),
    _Id("ie.pps", None, r"[0-9]{7}[a-w][abhtw]?", "pps|ppsn"),
    _Id("cz.rc", r"[0-9]{6}/[0-9]{3,4}"),
    _Id("br.cpf", r"[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}", r"[0-9]{11}", "cpf"),
    _Id("ca.sin", r"[0-9]{3}-[0-9]{3}-[0-9]{3}", r"[0-9]{3} ?[0-9]{3} ?[0-9]{3}", "sin|social insurance"),
    _Id("au.tfn", None, r"[0-9]{3} ?[0-9]{3} ?[0-9]{3}", "tfn|tax file"),
    _Id("in_.aadhaar", r"[2-9][0-9]{3} [0-9]{4} [0-9]{4}", r"[2-9][0-9]{11}", "aadhaar|aadhar|uid"),
)


_NUMBER = r"(?:[ .:#-]{0,3}(?:no|nr|num|number|nummer|numero|número|is|id|card)(?![a-z]))"
_AFTER_A_WORD = (
    # Any nine digits right after the word, even without a space, and even if the number was never issued.
    re.compile(
        rf"(?<!\w)(?:ssn|ss(?=[ ]?#| num| no)|soc(?:ial)? sec(?:urity)?){_NUMBER}{{0,2}}[ .:#-]{{0,3}}"
        r"(?<![0-9])([0-9]{3}[ .-]?[0-9]{2}[ .-]?[0-9]{4})(?![0-9]|[.-][0-9])"
    ),
    re.compile(
        rf"(?<!\w)(?:passport|reisepass|passeport|pasaporte|passaporto|paspoort){_NUMBER}{{0,2}}[ .:#-]{{0,3}}"
        r"(?<![a-z0-9])([a-z]{0,2}[0-9]{6,9}[a-z]?)(?!\w)"
    ),
    re.compile(
        rf"(?<!\w)(?:(?:driver'?s?|drivers'|driving) licen[sc]e|dl){_NUMBER}{{1,2}}[ .:#-]{{0,3}}"
        r"(?<![a-z0-9])([a-z]{0,5}[0-9]{6,14}[a-z]{0,2})(?!\w)"
    ),
    re.compile(rf"(?<!\w)(?:dni|c[eé]dula){_NUMBER}{{0,2}}[ .:#-]{{0,3}}(?<![a-z0-9])([0-9]{{7,10}})(?!\w)"),
)
"""Numbers without a check digit, right after a word that says what they are."""


@cache
def _compiled() -> list[tuple[Any, re.Pattern[str] | None, re.Pattern[str] | None, re.Pattern[str] | None]]:
    def alone(form: str) -> re.Pattern[str]:
        # The form may begin anywhere between other numbers, so a match does not use up what it looks at.
        return re.compile(rf"(?<![\w.])(?<![0-9]-)(?=({form})(?![\w-]|\.[0-9]))")

    found = []
    for one in _IDS:
        check = importlib.import_module(f"stdnum.{one.check}") if one.check is not None else None
        found.append(
            (
                check,
                alone(one.grouped) if one.grouped is not None else None,
                alone(one.bare) if one.bare is not None else None,
                re.compile(rf"(?<!\w)(?:{one.words})(?!\w)") if one.words else None,
            )
        )
    return found


def national_ids(text: str) -> Iterator[Span]:
    """Ids of a state for a person, in the forms of some twenty countries; and what is called a passport or the like."""
    for pattern in _AFTER_A_WORD:
        for found in pattern.finditer(text):
            yield found.span(1)
    for check, grouped, bare, words in _compiled():
        beside = bare if bare is not None and words is not None and words.search(text) else None
        for form in (grouped, beside):
            if form is None:
                continue
            for found in form.finditer(text):
                if check is None or check.is_valid(found[1].replace(" ", "")):
                    yield found.span(1)
