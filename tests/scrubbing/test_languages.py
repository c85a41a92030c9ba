"""What is found in other languages and of other countries, and what only looks like it."""

import random

import numpy as np
import pyarrow as pa
import pytest

from queryveil import Equality, read_log, verify
from queryveil.errors import QueryveilError
from queryveil.scrubbing import DEFAULT_KINDS, KINDS, mask, scope_of, scrub
from queryveil.scrubbing.lists import CITY, FIRST, LAST, lists_of, plain_word
from queryveil.scrubbing.people import PARTICLES
from queryveil.scrubbing.texts import _doubtful, _finders
from queryveil.text import LANGUAGES, language, normal_form
from queryveil.text.folding import folded

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
        "personalausweis l3x7k9tn2": "personalausweis <national_id>",
        "reisepass c01x00t47": "reisepass <national_id>",
        "bundesstraße 55 hamburg": "<address>",
        "petra müller hauptstr. 12 köln": "<name_place> <address>",
        "hauptstr. 12 köln petra müller": "<address> <name_place>",
        "tho\u200bmas schnei\u00adder hamburg": "<name_place>",
        "sabine krüger leipzig": "<name_place>",
    },
    "fr": {
        "06 39 98 12 34": "<phone>",
        "2 90 23 99 928 851 93": "<national_id>",
        "12 bis rue de la république 69001 lyon": "<address>",
        "nathalie durand angoulême": "<name_place>",
        "passeport 09ar12345": "passeport <national_id>",
        "1-85-05-78-006-084-91": "<national_id>",
        "mohamed el amrani roubaix": "<name_place>",
    },
    "es": {
        "móvil 612 34 56 78": "móvil <phone>",
        "99020568-w": "<national_id>",
        "c/ mayor 12 madrid": "<address>",
        "maría garcía lópez cuenca": "<name_place>",
        "12.345.678-z": "<national_id>",
        "pasaporte aab123456": "pasaporte <national_id>",
        "612345678 quien es": "<phone> quien es",
        "telf 958123456": "telf <phone>",
        "c/ alcalá 123 3ºb 28009 madrid": "<address>",
        "maria del carmen ruiz fernández málaga": "<name_place>",
        "rodríguez pérez javier zaragoza": "<name_place>",
    },
    "pl": {
        "44051401359": "<national_id>",
        "ul. jana pawła ii 12/4 warszawa": "<address>",
        "anna kowalska w krakowie": "<name_place>",
        "61 1090 1014 0000 0712 1981 2874": "<iban>",
        "501234567 kto dzwonił": "<phone> kto dzwonił",
        "dluga 5 gdansk": "<address>",
        "ulica długa 5 m. 3 gdańsk": "<address>",
        "anna nowak krakow": "<name_place>",
    },
    "el": {"αφμ 094014201": "αφμ <national_id>", "οδός ερμού 15 αθήνα": "<address>",
           "γιώργος παπαδόπουλος πάτρα": "<name_place>", "ΓΕΩΡΓΙΟΣ ΠΑΠΑΔΑΚΗΣ ΧΑΝΙΑ": "<name_place>",
           "ΟΔΟΣ ΕΡΜΟΥ 15": "<address>", "οδος ερμου 15": "<address>", "ταυτοτητα αβ 123456": "ταυτοτητα <national_id>",
           "τηλεφωνο 2101234567": "τηλεφωνο <phone>", "διαβατήριο αε1234567": "διαβατήριο <national_id>"},
    "it": {"rssmra85t10a562s": "<national_id>", "via giuseppe verdi 12 milano": "<address>",
           "carta d'identità ca12345ab": "carta d'identità <national_id>", "francesca de luca napoli": "<name_place>",
           "anna maria esposito salerno": "<name_place>", "giovanni di stefano catania": "<name_place>"},
    "cs": {"namesti miru 9": "<address>", "603123456 kdo volal": "<phone> kdo volal"},
    "hu": {"kossuth ter 3": "<address>", "utlevel ba123456": "utlevel <national_id>"},
    "mt": {"id card 12345m": "id card <national_id>"},
    "pt": {"praca da republica 5": "<address>", "912345678 quem ligou": "<phone> quem ligou"},
    "sv": {"storvagen 5": "<address>"},
    "ro": {"cnp 1800101221144": "cnp <national_id>", "piata unirii 5": "<address>",
           "popescu mihai cluj": "<name_place>"},
    "nl": {"bsn 111222333": "bsn <national_id>", "jan van der berg zwolle": "<name_place>",
           "bart van 't hof arnhem": "<name_place>", "burgemeester van der pollaan 5 zeist": "<address>"},
    "zh": {"张伟上海": "<name_place>", "北京建国路88号": "<address>",
           "身份证11010118070512833x": "身份证11010118070512833x", "建国路八十八号": "<address>",
           "建国路88号soho现代城3号楼1201室": "<address>", "人民路100号幸福小区5栋2单元301室张伟": "<address>",
           "张伟 人民路100号": "<address>"},
    "ja": {"佐藤花子 横浜": "<name_place>", "東京都新宿区西新宿2丁目8番1号": "<address>", "090-1234-5678": "<phone>"},
}  # fmt: skip
NOBODY = {
    "de": ["24.12.2006 wetter", "ean 4000067521550", "65615868", "berlin marathon 2006",
           "trauring 585", "rosa kleider köln", "bundesstraße 9 sperrung", "hotel königsallee 5 sterne",
           "hugo boss metzingen"],
    "fr": ["roman policier paris", "24 heures du mans", "290-18-18", "rue de paris", "louis vuitton paris"],
    "es": ["rosa blanca madrid", "carreteras precio 1292", "colegio santa maría madrid",
           "camino de santiago 5 etapas"],
    "it": ["via col vento 2", "corso inglese 10 lezioni", "giorgio armani milano"],
    "nl": ["albert heijn groningen"],
    "pl": ["tanie kino 1434 grudziądz", "471 93", "godzina 12 warszawa", "szkoła 12 gdańsk"],
    "el": ["τουρισμός 6330 πειραιάς", "000682657", "γραμμή 3 αθήνα"],
    "zh": ["北京 天气", "高铁 上海", "手机 13 寸", "平安里4号线", "五道口1号口"],
    "ja": ["東京 天気", "横浜 ランチ", "交響曲第9番"],
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


SCOPES = [("en",), *((code,) for code in LANGUAGES if code != "en"), ("en", "es"), ("nl", "de", "fr"), ("zh", "en")]
SAID = """
passport reisepass kontonummer personalausweis perso dni id carta d'identità bsn str. platz via ul. οδός 路 号 八
张伟 北京 anna-maria 12345m ca12345ab l3x7k9tn2 krmpfgtvw rssmralmtmlaslns <address>
"""


@pytest.mark.parametrize("ids", SCOPES, ids=",".join)
def test_whatever_can_be_found_in_a_text_is_looked_for_in_it(ids):
    scope = scope_of(language(*ids), None)
    listed = lists_of(tuple(code for code in ids if code not in ("zh", "ja", "ko")) or ("en",)).words
    kinds = [[word for word, kind in listed.items() if kind & bit] for bit in (FIRST, LAST, CITY)]
    draw = random.Random(5)
    pools = [*filter(None, kinds), sorted(PARTICLES), SAID.split()]

    def word() -> str:
        return (
            draw.choice(draw.choice(pools)) if draw.random() < 0.8 else str(draw.randrange(10 ** draw.randint(1, 11)))
        )

    queries = normal_form(pa.array([" ".join(word() for _ in range(draw.randint(2, 5))) for _ in range(250)]))
    doubts, found = _doubtful(queries, KINDS, scope), 0
    for kind, doubtful in zip(KINDS, doubts, strict=True):
        hits = np.array([any(True for _ in _finders(scope)[kind](query)) for query in queries.to_pylist()])
        assert not np.any(hits & ~doubtful), (kind, queries.filter(pa.array(hits & ~doubtful)).to_pylist())
        found += hits.sum()
    assert found


def test_folding_keeps_the_place_of_every_character():
    texts = pa.array(["náměstí", "ΟΔΟΣ Ερμού", "størvägen", "straße", "й", "ﬁ ½ é"])
    for text in normal_form(texts).to_pylist():
        assert len(folded(text)) == len(text)
        assert plain_word(folded(text)) == plain_word(text)


def test_an_unknown_country_is_refused_in_one_sentence():
    log = read_log(pa.table({"user": ["a", "b"], "query": ["pizza", "pizza"]}))
    for wrong in (["DEU"], ["de"], [], [None], 5):
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
