"""What is found in other languages and of other countries, and what only looks like it."""

import pyarrow as pa
import pytest

from queryveil import Equality, read_log, verify
from queryveil.errors import QueryveilError
from queryveil.scrubbing import DEFAULT_KINDS, KINDS, mask, scope_of, scrub
from queryveil.text import LANGUAGES, language, normal_form

pytest.importorskip("phonenumbers", reason="needs the extra scrub")
pytest.importorskip("stdnum", reason="needs the extra scrub")

FOUND = {
    "de": {
        "030 23125123": "<phone>",
        "handy 0171/39200 12 mobil": "handy <phone> mobil",
        "06199283454": "<national_id>",
        "65 170839 j 008 rente": "<national_id> rente",
        "lindenstr. 12a 50667 köln": "<address>",
        "am alten markt 3, 50667 köln": "<address>",
        "petra müller wuppertal": "<name_place>",
        "müller petra wuppertal": "<name_place>",
        "jens von der weiden aus mainz": "<name_place>",
        "kontonummer 1234567": "kontonummer <iban>",
    },
    "fr": {
        "06 39 98 12 34": "<phone>",
        "2 90 23 99 928 851 93": "<national_id>",
        "12 bis rue de la république 69001 lyon": "<address>",
        "nathalie durand angoulême": "<name_place>",
    },
    "es": {
        "móvil 612 34 56 78": "móvil <phone>",
        "99020568-w": "<national_id>",
        "c/ mayor 12 madrid": "<address>",
        "maría garcía lópez cuenca": "<name_place>",
    },
    "pl": {
        "44051401359": "<national_id>",
        "ul. jana pawła ii 12/4 warszawa": "<address>",
        "anna kowalska w krakowie": "<name_place>",
        "61 1090 1014 0000 0712 1981 2874": "<iban>",
    },
    "el": {"αφμ 094014201": "αφμ <national_id>", "οδός ερμού 15 αθήνα": "<address>",
           "γιώργος παπαδόπουλος πάτρα": "<name_place>"},
    "it": {"rssmra85t10a562s": "<national_id>", "via giuseppe verdi 12 milano": "<address>"},
    "ro": {"cnp 1800101221144": "cnp <national_id>"},
    "nl": {"bsn 111222333": "bsn <national_id>", "jan van der berg zwolle": "<name_place>"},
    "zh": {"张伟上海": "<name_place>", "北京建国路88号": "<address>",
           "身份证11010118070512833x": "身份证11010118070512833x"},
    "ja": {"佐藤花子 横浜": "<name_place>", "東京都新宿区西新宿2丁目8番1号": "<address>", "090-1234-5678": "<phone>"},
}  # fmt: skip
NOBODY = {
    "de": ["24.12.2006 wetter", "ean 4000067521550", "65615868", "berlin marathon 2006",
           "trauring 585", "rosa kleider köln"],
    "fr": ["roman policier paris", "24 heures du mans", "290-18-18", "rue de paris"],
    "es": ["rosa blanca madrid", "carreteras precio 1292", "colegio santa maría madrid"],
    "pl": ["tanie kino 1434 grudziądz", "471 93"],
    "el": ["τουρισμός 6330 πειραιάς", "000682657"],
    "zh": ["北京 天气", "高铁 上海", "手机 13 寸"],
    "ja": ["東京 天気", "横浜 ランチ"],
}  # fmt: skip


def texts(queries: list[str], code: str, countries: list[str] | None = None) -> list[str]:
    scope = scope_of(language(code), countries)
    return mask(normal_form(pa.array(queries)), DEFAULT_KINDS, scope).texts.to_pylist()


@pytest.mark.parametrize("code", FOUND)
def test_what_is_personal_is_found(code):
    assert dict(zip(FOUND[code], texts(list(FOUND[code]), code), strict=True)) == FOUND[code]


@pytest.mark.parametrize("code", NOBODY)
def test_what_is_about_nobody_stays(code):
    assert texts(NOBODY[code], code) == NOBODY[code]


@pytest.mark.parametrize("code", LANGUAGES)
def test_every_language_masks_what_has_one_form_everywhere_and_twice_changes_nothing(code):
    queries = ["jane@example.com", "+49 30 23125123", "de89 3704 0044 0532 0130 00", "4111 1111 1111 1111"]
    once = texts(queries, code)
    assert once == ["<email>", "<phone>", "<iban>", "<card>"]
    assert texts(once, code) == once


def test_countries_decide_whose_numbers_count():
    assert texts(["85031312345 x", "212-555-0123"], "en", ["PL"]) == ["85031312345 x", "212-555-0123"]
    assert texts(["212-555-0123"], "en") == ["<phone>"]
    assert texts(["44051401359"], "en", ["PL"]) == ["<national_id>"]
    assert texts(["44051401359"], "en") == ["44051401359"]


def test_an_unknown_country_is_refused_in_one_sentence():
    log = read_log(pa.table({"user": ["a", "b"], "query": ["pizza", "pizza"]}))
    for wrong in (["DEU"], ["de"], []):
        with pytest.raises(QueryveilError, match="must be codes of countries"):
            scrub(log, countries=wrong)


def test_a_release_says_which_countries_and_is_verified():
    rows = [(user, query) for user in "abc" for query in ("wetter", f"06199283454 {user}", "petra müller wuppertal")]
    table = pa.table({"user": [u for u, _ in rows], "query": [q for _, q in rows]})
    log = read_log(table, language="de")
    scrubbed = scrub(log, "mask")
    assert scrubbed.stats.scrub.countries[:2] == ("DE", "AT")
    release = Equality(k=2).anonymize(scrubbed, seed=1)
    assert verify(release, log).holds
    assert "petra" not in str(release.to_arrow().to_pydict())
    english = scrub(read_log(table), "mask")
    assert english.stats.scrub.countries is None
    assert "countries" not in english.stats.scrub.model_dump(mode="json")
    assert all(kind in KINDS for kind in english.stats.scrub.hits)
