"""Which languages queries are in."""

import pyarrow as pa
import pytest

import queryveil as qv
from queryveil.errors import QueryveilError, missing
from queryveil.text.detection import detected, named, parsed

needs_detector = pytest.mark.skipif(missing("py3langid") is not None, reason="needs the extra languages")
GERMAN = ["wetter morgen berlin", "günstige flüge nach rom", "kündigung schreiben vorlage", "rezept für apfelkuchen"]
POLISH = ["pogoda jutro warszawa", "przepis na sernik", "tanie loty do rzymu", "samochody używane"]


def test_languages_are_given_with_commas_or_in_a_list():
    assert parsed("de, en") == parsed(["de", "en"]) == ("de", "en")


def test_case_and_region_make_no_difference():
    assert parsed("DE, zh-CN") == parsed(["de", "zh_Hans_CN"]) == ("de", "zh")


@pytest.mark.parametrize("given", [None, 5, ["de", None]])
def test_what_is_no_language_is_refused_in_one_sentence(given):
    with pytest.raises(QueryveilError, match=r"'language' must be the code of a language.* Got .* instead\.$"):
        qv.read_log(pa.table({"user": ["a"], "query": ["tea"]}), language=given)


def test_chinese_characters_alone_are_japanese_in_a_log_with_kana():
    japanese = ["東京の天気", "ラーメン", "新宿駅", "横浜市", "大学入試"]
    assert detected(pa.array(japanese)) == {"ja": 5}
    assert detected(pa.array([*japanese, "你们好吗", "手机价格"])) == {"ja": 6, "zh": 1}  # 手机价格 could be either
    assert detected(pa.array(["新宿駅", "横浜市", "大学入試", "手机价格", "北京大学", "の"])) == {"ja": 1, "zh": 5}


@pytest.mark.parametrize("given", ["de,xx", "", ["german"]])
def test_an_unknown_language_is_refused(given):
    with pytest.raises(QueryveilError, match="There is no language"):
        qv.read_log(pa.table({"user": ["a"], "query": ["tea"]}), language=given)


@needs_detector
def test_auto_stands_alone_and_not_where_languages_must_be_known():
    with pytest.raises(QueryveilError, match="give no other beside it"):
        parsed("auto,de")
    with pytest.raises(QueryveilError, match="cannot be detected here, because why"):
        named("auto", "why")


@needs_detector
def test_scripts_decide_first_and_then_the_detector():
    found = detected(pa.array([*GERMAN, "你们好吗", "東京の天気", "ไทย", "καιρός αύριο", "12", "погода в москве"]))
    assert found["de"] == 4
    assert (found["zh"], found["ja"], found["th"], found["el"], found["ru"]) == (1, 1, 1, 1, 1)


def test_without_the_detector_only_scripts_decide(monkeypatch):
    monkeypatch.setattr("queryveil.text.detection.missing", lambda module: "is missing")
    assert detected(pa.array(["手机价格", *GERMAN])) == {"zh": 1}


@needs_detector
def test_the_languages_of_a_log_are_those_of_many_queries_the_most_frequent_first():
    queries = [*GERMAN * 3, *POLISH, "北京天气"]
    queries = [f"{query} {i}" for i, query in enumerate(queries)]
    log = qv.read_log(pa.table({"user": ["a"] * len(queries), "query": queries}), language="auto")
    assert log.language.ids == ("de", "pl", "zh")
    assert log.language.detected
    with pytest.raises(QueryveilError, match=r"were detected.*name them with language='de,pl,zh'"):
        qv.DpSet(epsilon=1, delta=1e-6).anonymize(log)
