"""Phone numbers, national ids and bank accounts as single countries write them.

In the log of a country, its own forms are likelier than anything else that looks like them. So fewer of them need a
word that says what they are than in `patterns` and `ids`, which look for the forms of many countries in English logs.
"""

import importlib
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import NamedTuple

from queryveil.scrubbing.patterns import Finder, Span
from queryveil.text.folding import folded

_BEFORE, _BEHIND = r"(?<![0-9a-zà-ɏ])(?<![0-9][./,-])", r"(?![0-9a-zà-ɏ]|[./,-][0-9])"
"""What no number has beside it: letters, except of scripts without blanks, and more digits."""


class _Id(NamedTuple):
    """A kind of national id."""

    check: str
    """The module of stdnum that checks it; empty if the form is all there is."""
    form: str
    """How it is written, if that is enough."""
    bare: str = ""
    """How it is written, if a word beside it must say what it is."""
    words: str = ""
    """Such words."""
    few_digits: bool = False
    """Whether it may have fewer than six digits."""


_DATE = r"(?:0[1-9]|[12][0-9]|3[01])(?:0[1-9]|1[0-2])[0-9]{2}"
_IDS = {
    "AT": (
        _Id(
            "at.vnr",
            rf"[1-9][0-9]{{3}}[ /-]{_DATE}",
            r"[1-9][0-9]{9}",
            "svnr|sv-nummer|sozialversicherungsnummer|versicherungsnummer|sv",
        ),
    ),
    "BE": (
        _Id("be.nn", r"[0-9]{2}[. ]?[0-9]{2}[. ]?[0-9]{2}[- ]?[0-9]{3}[. ]?[0-9]{2}"),
        _Id("", "", r"[0-9]{3}-?[0-9]{7}-?[0-9]{2}", "eid|identiteitskaart|carte d'identité"),
    ),
    "BG": (_Id("bg.egn", r"[0-9]{10}"),),
    "CH": (_Id("ch.ssn", r"756[. ]?[0-9]{4}[. ]?[0-9]{4}[. ]?[0-9]{2}"),),
    "CN": (_Id("iso7064.mod_11_2", r"[1-9][0-9]{5} ?(?:18|19|20)[0-9]{2}[0-9]{4} ?[0-9]{3}[0-9x]"),),
    "CY": (_Id("cy.vat", "", r"[0-9]{8}[a-z]", "tic|αφμ|afm"), _Id("", "", r"[0-9]{6,10}", "ταυτότητα|adt|αδτ")),
    "CZ": (_Id("cz.rc", r"[0-9]{6}/[0-9]{3,4}|[0-9]{6} ?[0-9]{4}"),),
    "DE": (
        _Id("de.idnr", r"[0-9]{2} ?[0-9]{3} ?[0-9]{3} ?[0-9]{3}"),
        _Id("iso7064.mod_11_10", r"0[0-9] ?[0-9]{3} ?[0-9]{3} ?[0-9]{3}"),
        _Id("", rf"[0-9]{{2}} ?{_DATE} ?[a-z] ?[0-9]{{3}}"),
        _Id(
            "",
            "",
            r"(?=[a-z]*[0-9])[cfghjklmnprtvwxyz0-9]{9}[0-9]?d?",
            "personalausweis|personalausweisnummer|ausweisnummer|perso",
            few_digits=True,
        ),
        _Id("", "", r"[0-9]{2,3}[/ ][0-9]{3}[/ ][0-9]{4,5}", "steuernummer|steuernr|st-nr|finanzamt"),
    ),
    "DK": (_Id("", rf"{_DATE}[- ][0-9]{{4}}", rf"{_DATE}[0-9]{{4}}", "cpr|cpr-nummer|cpr-nr|personnummer"),),
    "EE": (_Id("ee.ik", r"[1-8][0-9]{10}"),),
    "ES": (
        _Id("es.dni", r"[0-9]{2}\.?[0-9]{3}\.?[0-9]{3}[ -]?[a-z]"),
        _Id("es.nie", r"[xyz][ -]?[0-9]{7}[ -]?[a-z]"),
        _Id("", "", r"[0-9]{2}[ /]?[0-9]{8}[ /]?[0-9]{2}", "seguridad social|nuss|afiliación|afiliacion"),
        _Id("", "", r"[0-9]{8}", "dni|nif"),
    ),
    "FI": (_Id("fi.hetu", r"[0-9]{6}[-+a-fu-y][0-9]{3}[0-9a-y]"),),
    "FR": (
        _Id("fr.nir", r"[1-478](?:[ .-]?[0-9]{2}){2}[ .-]?[0-9][0-9ab][ .-]?[0-9]{3}[ .-]?[0-9]{3}[ .-]?[0-9]{2}"),
        _Id("fr.nif", "", r"[0-3](?: ?[0-9]){12}", "fiscal|spi|impôts|impots|fiscale"),
        _Id("", "", r"[0-9]{12}|[0-9a-z]{2}[0-9]{2}[a-z]{2}[0-9]{5}", "carte d'identité|cni|identité"),
    ),
    "GB": (
        _Id("", r"(?!bg|gb|nk|kn|tn|nt|zz)[abceghj-prstw-z][abceghj-nprstw-z] ?[0-9]{2} ?[0-9]{2} ?[0-9]{2} ?[a-d]"),
        _Id("gb.nhs", r"[0-9]{3}[ -][0-9]{3}[ -][0-9]{4}", r"[0-9]{10}", "nhs"),
    ),
    "GR": (
        _Id("gr.amka", rf"{_DATE}[ -]?[0-9]{{5}}"),
        _Id("gr.vat", "", r"[0-9]{9}", "αφμ|α\\.φ\\.μ\\.?|afm|φορολογικού|φορολογικό"),
        _Id("", "", r"[a-zα-ω]{1,2}[ -]?[0-9]{6}", "ταυτότητα|ταυτότητας|αδτ|α\\.δ\\.τ\\.?|adt|taftotita"),
    ),
    "HR": (_Id("hr.oib", "", r"[0-9]{11}", "oib"), _Id("si.emso", r"[0-9]{13}")),
    "HU": (
        _Id("", "", r"[0-9]{3}[ -]?[0-9]{3}[ -]?[0-9]{3}", "taj|taj-szám|tajszám|taj-kártya"),
        _Id("", "", r"8[0-9]{9}", "adóazonosító|adószám|adóazonosítója"),
        _Id("", r"[1-8][ -]?[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])[ -]?[0-9]{4}"),
    ),
    "IE": (_Id("ie.pps", r"[0-9]{7} ?[a-w][abhtwx]?"),),
    "IT": (
        _Id(
            "it.codicefiscale",
            r"(?=[a-z ]*[0-9])[a-z]{3} ?[a-z]{3} ?[0-9lmnp-v]{2} ?[a-ehlmprst] ?"
            r"[0-9lmnp-v]{2} ?[a-z] ?[0-9lmnp-v]{3} ?[a-z]",
            few_digits=True,
        ),
        _Id(
            "",
            "",
            r"[a-z]{2}[0-9]{5}[a-z]{2}|[a-z]{2} ?[0-9]{7}",
            "carta d'identità|carta identità|identità",
            few_digits=True,
        ),
    ),
    "JP": (_Id("jp.in_", r"[0-9]{4}[ -][0-9]{4}[ -][0-9]{4}", r"[0-9]{12}", "マイナンバー|個人番号"),),
    "KR": (_Id("", r"[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])-[1-8][0-9]{6}"),),
    "LT": (_Id("lt.asmens", r"[1-8][0-9]{10}"),),
    "LU": (_Id("", r"(?:18|19|20)[0-9]{2} ?(?:0[1-9]|1[0-2]) ?(?:0[1-9]|[12][0-9]|3[01]) ?[0-9]{3} ?[0-9]{2}"),),
    "LV": (_Id("", rf"{_DATE}-[0-2][0-9]{{4}}|32[0-9]{{4}}-[0-9]{{5}}", r"[0-9]{11}", "personas kods|personas kodu"),),
    "MT": (_Id("", "", r"[0-9]{3,7} ?[mgaphlbz]", "id card|identità|karta tal-identità", few_digits=True),),
    "NL": (_Id("nl.bsn", "", r"[0-9]{3,4}[. ]?[0-9]{2,3}[. ]?[0-9]{3}", "bsn|burgerservicenummer|sofinummer|sofi"),),
    "NO": (_Id("no.fodselsnummer", rf"{_DATE}[ -]?[0-9]{{5}}"),),
    "PL": (
        _Id("pl.pesel", r"[0-9]{11}|[0-9]{6}[ -][0-9]{5}"),
        _Id("pl.nip", "", r"[0-9]{3}[ -]?[0-9]{2,3}[ -]?[0-9]{2}[ -]?[0-9]{2,3}", "nip"),
        _Id("", "", r"[a-z]{3} ?[0-9]{6}", "dowód|dowodu|dowód osobisty|dowod"),
    ),
    "PT": (
        _Id("pt.cc", r"[0-9]{8}[ -]?[0-9][ -]?[a-z0-9]{2}[0-9]"),
        _Id("pt.nif", "", r"[0-9]{3} ?[0-9]{3} ?[0-9]{3}", "nif|contribuinte|fiscal"),
    ),
    "RO": (_Id("ro.cnp", r"[1-9][0-9]{12}|[1-9] [0-9]{6} [0-9]{6}"),),
    "SE": (_Id("se.personnummer", r"(?:19|20)?[0-9]{6}[-+ ]?[0-9]{4}"),),
    "SI": (_Id("si.emso", r"[0-9]{13}|[0-9]{7} [0-9]{6}"),),
    "SK": (_Id("sk.rc", r"[0-9]{6}/[0-9]{3,4}|[0-9]{6} ?[0-9]{4}"),),
    "TH": (_Id("th.pin", r"[0-9][ -]?[0-9]{4}[ -]?[0-9]{5}[ -]?[0-9]{2}[ -]?[0-9]"),),
    "TW": (_Id("", r"[a-z][1289][0-9]{8}"),),
    "US": (
        _Id("", r"(?!000|666)[0-9]{3}-(?!00)[0-9]{2}-(?!0000)[0-9]{4}"),
        _Id("us.ssn", "", r"[0-9]{3} ?[0-9]{2} ?[0-9]{4}", "ssn|social|social security"),
    ),
}
COUNTRIES = frozenset((*_IDS, "AU", "CA", "HK", "IS", "LI", "MC", "MX", "AR", "BR", "CO", "CL", "PE", "SG"))
"""Countries of the Union and others. Of those without a form above, phone numbers are looked for."""

_PASSPORTS = (
    "passport|reisepass|reisepassnummer|passnummer|passeport|pasaporte|passaporto|passaporte|paspoort|paszport|paszportu|pass|pas|pasoš"
    "|cestovní pas|cestovný pas|útlevél|útlevélszám|pașaport|pasaport|паспорт|διαβατήριο|διαβατηρίου|passi|putovnica"
    "|potni list|pasas|护照|護照|パスポート|旅券"
)
_NUMBERS = (
    r"(?:[ .:#-]{0,3}(?:no|nr|num|number|nummer|numero|número|numéro|numer|numeru|nummeret|szám|číslo|n°|nº|№"
    r"|αριθμός|αρ|номер|号码|番号|号|is|id)(?![a-z])\.?)"
)
_PASSPORT = re.compile(
    rf"(?<![a-zà-ɏα-ωа-я])(?:{folded(_PASSPORTS)}){folded(_NUMBERS)}{{0,2}}[ .:#-]{{0,3}}(?<![a-zα-ω0-9])"
    rf"([a-zα-ω]{{0,3}} ?[0-9]{{6,9}}[a-z]?|[cfghjklmnprtvwxyz](?=[a-z]*[0-9])[cfghjklmnprtvwxyz0-9]{{8}}[0-9]?d?"
    rf"|[0-9]{{2}}[a-z]{{2}}[0-9]{{5}}){_BEHIND}"
)


_SIX = 6


class _Known(NamedTuple):
    check: Callable[[str], bool] | None
    form: re.Pattern[str] | None
    bare: re.Pattern[str] | None
    words: re.Pattern[str] | None
    few_digits: bool


@cache
def _ids_of(countries: tuple[str, ...]) -> list[_Known]:
    def alone(form: str) -> re.Pattern[str] | None:
        # A match does not use up what it looks at, because the form may begin anywhere between other numbers.
        return re.compile(rf"{_BEFORE}(?=({form}){_BEHIND})") if form else None

    found = []
    for one in (one for country in countries for one in _IDS.get(country, ())):
        check = importlib.import_module(f"stdnum.{one.check}").is_valid if one.check else None
        words = re.compile(rf"(?<![a-zà-ɏα-ωа-я])(?:{folded(one.words)})(?![a-zà-ɏα-ωа-я])") if one.words else None
        found.append(_Known(check, alone(one.form), alone(one.bare), words, one.few_digits))
    return found


def _national_ids(text: str, *, countries: tuple[str, ...]) -> Iterator[Span]:
    text = folded(text)
    for found in _PASSPORT.finditer(text):
        yield found.span(1)
    few = sum(map(str.isdigit, text)) < _SIX
    for known in _ids_of(countries):
        if few and not known.few_digits:
            continue
        beside = known.bare if known.words is not None and known.words.search(text) else None
        for form in (known.form, beside):
            for found in form.finditer(text) if form is not None else ():
                if known.check is None or any(map(known.check, _as_checked(found[1]))):
                    yield found.span(1)


def _as_checked(number: str) -> tuple[str, str]:
    """A number without blanks, and without any of the signs between its groups: in a few of them the sign counts."""
    return number.replace(" ", "").upper(), re.sub("[ ./-]", "", number).upper()


def national_ids(countries: Sequence[str]) -> Finder:
    """Ids of these states for a person, by form and check digits; and what is called a passport."""
    return partial(_national_ids, countries=tuple(countries))


_RUN = re.compile(
    r"(?<![0-9a-zà-ɏ+#$€£])(?<![0-9][.,])\(?[0-9](?:[0-9]|[ ()./-]{1,2}(?=[0-9(])|\)){5,19}(?![0-9a-zà-ɏ%€$])"
)
_GROUP = re.compile(r"[0-9]+")
_DATES = re.compile(
    r"(?:0?[1-9]|[12][0-9]|3[01])[ ./-](?:0?[1-9]|1[0-2])[ ./-](?:19|20)?[0-9]{2}"
    r"|(?:19|20)[0-9]{2}(?:[ ./-][0-9]{1,2}){1,2}|(?:19|20)[0-9]{2}[ /-](?:(?:19|20)[0-9]{2})|[0-9]{1,3}(?:\.000)+"
)
_FEWEST, _MOST = 7, 13
_ALL_BEGIN_WITH_0 = ("FR", "JP")
"""Countries where every number begins with 0 and has the same length."""
_LONG = 10
"""Digits from which on a number without groups is likelier a phone number, if it is a valid one."""


def _phones(text: str, *, countries: tuple[str, ...], cues: re.Pattern[str] | None) -> Iterator[Span]:
    called = cues is not None and cues.search(folded(text)) is not None
    for run in _RUN.finditer(text):
        groups = [found.span() for found in _GROUP.finditer(text, run.start(), run.end())]
        done = -1
        for first in range(len(groups)):
            if groups[first][0] < done:
                continue
            # Another number beside it looks like a part of it, so all groups in a row are tried, the most first.
            for last in range(min(len(groups), first + 7), first, -1):
                start, end = groups[first][0], groups[last - 1][1]
                start -= text[start - 1 : start] == "("
                if _is_phone(text, start, end, last - first, countries, called):
                    yield start, end
                    done = end
                    break


def _is_phone(text: str, start: int, end: int, groups: int, countries: tuple[str, ...], called: bool) -> bool:
    import phonenumbers

    written = text[start:end]
    digits = re.sub("[^0-9]", "", written)
    if not _FEWEST <= len(digits) <= _MOST or _DATES.fullmatch(written):
        return False
    whole = not (text[:start] + text[end:]).strip(" ()")
    for country in countries:
        try:
            number = phonenumbers.parse(digits, country)
        except phonenumbers.NumberParseException:
            continue
        valid = phonenumbers.is_valid_number(number)
        # Numbers that were never given out count too, if they are written as numbers are: people mistype their own.
        possible = valid or phonenumbers.is_possible_number(number)
        if called and possible:
            return True
        trunk = digits[0] == "0"
        dialled = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.NATIONAL)
        if not possible or digits[:2] == "00" or re.sub("[^0-9]", "", dialled) != digits:
            continue
        if groups > 1:
            if valid and len(digits) > _FEWEST and (whole or trunk or groups > 2 or len(digits) >= _LONG):
                return True
            if trunk and groups > 2 and len(digits) >= _LONG:
                return True
        elif trunk and len(digits) >= _LONG and (valid or country in _ALL_BEGIN_WITH_0):
            return True
        elif valid and len(digits) >= _LONG - 1:
            kinds = phonenumbers.PhoneNumberType
            kind = phonenumbers.number_type(number)
            mobile = kind == kinds.MOBILE or (kind == kinds.FIXED_LINE_OR_MOBILE and (whole or len(digits) >= _LONG))
            if mobile or (whole and len(digits) == _LONG):
                return True
    return False


def phones(countries: Sequence[str], words: frozenset[str]) -> Finder:
    """Phone numbers of these countries, as they are dialled there.

    Args:
        countries: The countries.
        words: Words that go with a phone number.
    """
    alone = "|".join(re.escape(folded(word)) for word in sorted(words, key=len, reverse=True))
    cues = re.compile(rf"(?<![a-zà-ɏα-ωа-я])(?:{alone})(?![a-zà-ɏα-ωа-я])") if words else None
    return partial(_phones, countries=tuple(countries), cues=cues)


_ACCOUNTS = {
    "BE": r"[0-9]{3}[ -][0-9]{7}[ -][0-9]{2}",
    "ES": r"[0-9]{4}[ -]?[0-9]{4}[ -]?[0-9]{2}[ -]?[0-9]{10}|(?:[0-9]{4}[ -]?){5}",
    "FR": r"[0-9]{5}[ -]?[0-9]{5}[ -]?[0-9a-z]{11}[ -]?[0-9]{2}",
    "PL": r"[0-9]{2}(?:[ -]?[0-9]{4}){6}",
    "DE": r"(?<=kontonummer )[0-9](?: ?[0-9]){5,9}|(?<=konto )[0-9]{6,10}|(?<=kto )[0-9]{6,10}"
    r"|(?<=kto\. )[0-9]{6,10}|(?<=blz )[0-9]{3} ?[0-9]{3} ?[0-9]{2}",
}
_LETTERS = str.maketrans("abcdefghijklmnopqrstuvwxyz", "12345678912345678923456789")
"""Letters of French accounts as digits."""


def _is_account(number: str, country: str) -> bool:
    from stdnum import iban
    from stdnum.es import ccc

    if country == "ES":
        return bool(ccc.is_valid(number))
    if country == "PL":
        return bool(iban.is_valid(f"PL{number}"))
    if country == "BE":
        return int(number[:10]) % 97 % 97 == int(number[10:]) % 97
    if country == "FR":
        plain = number.translate(_LETTERS)
        return (89 * int(plain[:5]) + 15 * int(plain[5:10]) + 3 * int(plain[10:21]) + int(plain[21:])) % 97 == 0
    return True  # behind a word that says what it is


def _accounts(text: str, *, countries: tuple[str, ...]) -> Iterator[Span]:
    for country in countries:
        if country in _ACCOUNTS:
            for found in _account(country).finditer(text):
                if _is_account(re.sub("[ -]", "", found[1]), country):
                    yield found.start(1), found.start(1) + len(found[1].rstrip(" -"))


@cache
def _account(country: str) -> re.Pattern[str]:
    return re.compile(rf"{_BEFORE}(?=({_ACCOUNTS[country]}){_BEHIND})")


def accounts(countries: Sequence[str]) -> Finder:
    """Bank accounts of these countries as they were written before there was the international number."""
    return partial(_accounts, countries=tuple(countries))
