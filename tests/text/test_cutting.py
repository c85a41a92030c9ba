"""Words of scripts without blanks."""

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import queryveil as qv
from queryveil.errors import QueryveilError, QueryveilWarning
from queryveil.text import cutting, language, languages, normal_form, split_at_blanks
from queryveil.text.cutting import CHARACTERS

needs_dictionaries = pytest.mark.skipif(
    CHARACTERS in language().dictionaries(-1).values(), reason="needs the extra cjk"
)
MIXED = st.text("ab 7&-北京大学の天気ラーメン서울에를ไทยที่é<>.", max_size=12).map(str.strip)


@pytest.fixture
def no_dictionaries(monkeypatch):
    """As if the extra was not installed."""
    monkeypatch.setattr(cutting, "_installed", lambda modules: CHARACTERS)
    languages._language.cache_clear()
    yield
    languages._language.cache_clear()


def words(text, *ids):
    return language(*ids).words(pa.array([text])).text.to_pylist()


@needs_dictionaries
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("手机价格", ["手机", "价格"]),
        ("iphone手机 c++教程", ["iphone", "手机", "c", "教程"]),
        ("《红楼梦》下载", ["红楼梦", "下载"]),
        ("猫の飼い方", ["猫", "の", "飼い", "方"]),
        ("東京 ラーメン", ["東京", "ラーメン"]),
        ("서울에서 고양이를", ["서울", "에서", "고양이", "를"]),
        ("서울에서의 학교에는 버스로", ["서울", "에서", "의", "학교", "에", "는", "버스", "로"]),
        ("고속도로 산부인과 첫사랑 콜라제로 만성피로", ["고속도로", "산부인과", "첫사랑", "콜라제로", "만성피로"]),
        ("ร้านอาหารใกล้ฉัน", ["ร้านอาหาร", "ใกล้", "ฉัน"]),
        ("at&t (wireless)", ["at&t", "wireless"]),
    ],
)
def test_texts_are_cut_by_their_script_whatever_the_language_of_the_log(text, found):
    assert words(text) == words(text, "de") == found


@needs_dictionaries
def test_chinese_characters_without_kana_are_japanese_where_japanese_is_named_first():
    assert words("天安门", "zh") == words("天安门", "en") == words("天安门", "zh", "ja") == ["天安门"]
    assert words("天安门", "ja") == words("天安门", "ja", "zh") == ["天安", "门"]


@needs_dictionaries
@given(st.lists(MIXED, max_size=5))
@settings(max_examples=60, deadline=None)
def test_cutting_only_adds_blanks_and_a_text_does_not_depend_on_those_beside_it(texts):
    whole = language().spaced(pa.array(texts, pa.string())).to_pylist()
    assert [text.replace(" ", "") for text in whole] == [text.replace(" ", "") for text in texts]
    alone = [language().spaced(pa.array([text])).to_pylist()[0] for text in texts]
    assert [text.split() for text in whole] == [text.split() for text in alone]


@given(st.lists(st.text("azß éüλήжщёعربيע 7&-'.,()", max_size=20), max_size=5))
def test_languages_with_blanks_are_cut_at_blanks_and_nowhere_else(texts):
    queries = normal_form(pa.array(texts, pa.string()))
    found, expected = language("de", "el").words(queries), split_at_blanks(queries)
    assert found.text.equals(expected.text)
    assert found.per_query.tolist() == expected.per_query.tolist()


def test_without_a_dictionary_characters_are_cut_singly_and_in_pairs(no_dictionaries):
    assert words("北京大") == ["北", "北京", "京", "京大", "大"]
    assert words("c 猫の") == ["c", "猫", "猫の", "の"]
    assert words("ที่นี่") == ["ที่", "ที่นี่", "นี่"]  # marks stay with their letters
    assert words("서울에서") == ["서울", "에서"]  # needs no dictionary


def test_without_a_dictionary_reading_says_so_once_a_script_needs_it(no_dictionaries, recwarn):
    qv.read_log(pa.table({"user": ["a"], "query": ["tea"]}))
    assert not [w for w in recwarn if "pairs" in str(w.message)]
    with pytest.warns(QueryveilWarning, match=r"Chinese is cut into single .* need rjieba, .*\[cjk"):
        qv.read_log(pa.table({"user": ["a"], "query": ["北京大学"]}))


def test_several_missing_packages_are_named_in_a_right_sentence(no_dictionaries):
    japanese = next(one.cutter for one in language("ja").cutters if one.cutter.label == "Japanese")
    assert japanese.missing.startswith("fugashi and unidic-lite, which are not both installed; get them with:")


def test_a_process_with_another_dictionary_refuses_to_cut():
    chinese = next(one.cutter for one in language().cutters if one.cutter.label == "Chinese")
    other = replace(chinese, dictionary="rjieba 0.0.1")
    with pytest.raises(QueryveilError, match=r"words of Chinese are cut with rjieba 0\.0\.1, and a worker"):
        other.spaced(pa.array(["北京"]))


def test_nothing_and_nulls_are_fine():
    assert language().spaced(pa.array([], pa.string())).to_pylist() == []
    assert language().words(pa.array([None, "北京"])).per_query.tolist()[0] == 0
    assert language().words(pa.array(["北\n京", "x"])).per_query.tolist()[1] == 1
