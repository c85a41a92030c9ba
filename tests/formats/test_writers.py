"""Cells that begin like a formula are no formula in a spreadsheet, and come back as they were."""

import csv

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import queryveil as qv
from queryveil.formats import writers
from queryveil.release import with_user_map

STARTS = "=+-@\t\r\n＝＋－＠"
TEXTS = ["=1+1", "+1", "-1", "@a", "'=1+1", "''=1+1", "'quoted", "plain", "a=b"]


def batch(texts):
    return pa.record_batch({"query": pa.array(texts, pa.string()), "count": pa.array(range(len(texts)))})


@given(st.lists(st.none() | st.text("=+-@'\t\r\n＝ab\N{GRINNING FACE}"), max_size=8))
@example(["", None, "'", "''", "'='", "'\n", "="])
def test_no_cell_begins_like_a_formula_and_none_is_lost(texts):
    safe = writers.escaped(batch(texts))
    assert not any(text and text[0] in STARTS for text in safe["query"].to_pylist())
    assert writers.unescaped(safe).equals(batch(texts))


def test_other_cells_stay_as_they_are():
    texts = ["a", "'quoted", "a=b", "", None, "1"]
    assert writers.escaped(batch(texts)).equals(batch(texts))


def released_log() -> qv.QueryLog:
    rows = [(f"={user}", text) for user in "ab" for text in TEXTS]
    return qv.read_log(pa.table({"user": [user for user, _ in rows], "query": [text for _, text in rows]}))


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_a_release_with_formulas_holds(tmp_path, format):
    log = released_log()
    qv.Equality(k=2).anonymize(log).save(tmp_path / "r", format=format)
    assert qv.verify(tmp_path / "r", log).holds
    found = {text for part in qv.Release.load(tmp_path / "r").batches() for text in part["query"].to_pylist()}
    assert found == set(TEXTS)


def test_the_file_of_a_release_has_no_formula(tmp_path):
    qv.Equality(k=2).anonymize(released_log()).save(tmp_path / "r", format="csv")
    rows = list(csv.DictReader((tmp_path / "r" / "log.csv").read_text("utf-8").splitlines()))
    assert {row["query"] for row in rows} == {"'" + t if t.lstrip("'")[0] in STARTS else t for t in TEXTS}


def test_the_aol_format_keeps_texts_as_they_are(tmp_path):
    qv.Equality(k=2, link="user").anonymize(released_log()).save(tmp_path / "r", format="aol")
    assert "\t=1+1\t" in (tmp_path / "r" / "log.tsv").read_text("utf-8")


def test_a_user_map_with_formulas_is_read_again(tmp_path):
    log = released_log()
    release = qv.Equality(k=2, link="user").anonymize(log)
    release.save(tmp_path / "r")
    release.save_user_map(tmp_path / "map.csv")
    assert '"\'=a",' in (tmp_path / "map.csv").read_text("utf-8")
    known = with_user_map(qv.Release.load(tmp_path / "r"), log, tmp_path / "map.csv")
    assert [part.to_pylist() for part in known.user_map()] == [part.to_pylist() for part in release.user_map()]
