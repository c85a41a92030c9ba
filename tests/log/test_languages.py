"""A log in other languages than English, on both engines."""

from dataclasses import replace

import pyarrow as pa
import pytest

import queryveil as qv
from queryveil.errors import QueryveilError
from queryveil.log.ingest import spark as ingest
from queryveil.text import language
from queryveil.text.cutting import CHARACTERS
from tests.both import needs_spark, on_both_engines

QUERIES = ["北京天气预报", "北京天气", "東京の天気", "서울에서", "ไทยแลนด์", "wetter in berlin"]
TABLE = pa.table({"user": ["a", "b"] * 6, "query": QUERIES * 2})
pytestmark = pytest.mark.skipif(CHARACTERS in language().dictionaries(-1).values(), reason="needs the extra cjk")


@on_both_engines
def test_words_scripts_and_language_are_the_same_on_both_engines(read):
    log = read(TABLE, language="de,ja")
    words = log.engine.fetch(
        "SELECT q.query AS query, w.word AS word FROM query_terms t JOIN words w ON w.word_id = t.word_id"
        " JOIN queries q ON q.query_id = t.query_id ORDER BY q.query, t.position"
    ).to_pylist()
    found = {query: [row["word"] for row in words if row["query"] == query] for query in QUERIES}
    expected = language("de", "ja").words(pa.array(QUERIES))
    assert [word for query in QUERIES for word in found[query]] == expected.text.to_pylist()
    assert log.scripts == qv.read_log(TABLE).scripts
    assert log.language.ids == ("de", "ja")


def test_a_part_and_a_scrubbed_log_have_the_language_of_the_log():
    log = qv.read_log(TABLE, language="ja")
    assert qv.scrub(log, kinds=["email"]).language is log.language
    with log.workspace() as work:
        some = work.table("SELECT query_id FROM queries")
        assert log.only(some, "all").language is log.language


def test_rare_words_of_a_script_without_blanks_are_masked_up_to_the_next_blank():
    queries = ["北京 天气", "北京 天气", "天气 北京", "天气 北京", "北京 上海地图"]
    rows = {"user": ["a", "b", "a", "b", "a"], "query": queries}
    found = qv.scrub(qv.read_log(pa.table(rows)), "mask", kinds=[], rare_term_users=2)
    assert sorted(found.query_text.to_pylist()) == ["北京 <rare>", "北京 天气", "天气 北京"]


@needs_spark
def test_a_worker_without_the_dictionary_is_one_sentence(spark, monkeypatch):
    def with_another(languages, sample):
        found = language(*languages)
        cutters = [replace(one, cutter=replace(one.cutter, dictionary="rjieba 0.0.1")) for one in found.cutters]
        return replace(found, cutters=tuple(cutters))

    monkeypatch.setattr(ingest, "resolved", with_another)
    frame = spark.createDataFrame(pa.table({"user": ["a"], "query": ["北京天气"]}))
    sentence = r"^The words of Chinese are cut with rjieba 0\.0\.1, and a worker has rjieba .* as the driver\.$"
    with pytest.raises(QueryveilError, match=sentence):
        qv.read_log(frame, engine=spark)
