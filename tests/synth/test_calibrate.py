"""The measuring itself, on a log small enough to count by hand."""

import pytest

from queryveil.synth import calibrate

LOG = (
    "AnonID\tQuery\tQueryTime\tItemRank\tClickURL\n"
    "1\tred car\t2006-03-01 00:00:00\t1\thttp://www.a.com\n"
    "1\tred car\t2006-03-01 00:00:00\t2\thttp://www.b.com\n"  # the same event
    "1\tred car\t2006-03-01 00:00:09\t\t\n"
    "2\tred car\t2006-03-01 00:00:00\t\t\n"
    '2\t"big red car" !\t2006-03-01 00:01:00\t\t\n'  # three words, quotes are data
    "2\t-\t2006-03-01 00:02:00\t\t\n"  # no query
)


@pytest.fixture
def achieved(tmp_path):
    (tmp_path / "log.tsv").write_text(LOG)
    return {figure.figure: figure.achieved for figure in calibrate(tmp_path / "log.tsv")}


def test_events_and_queries(achieved):
    assert achieved["events per user"] == 2
    assert achieved["distinct queries / events"] == 0.5
    assert achieved["% of distinct queries issued by one user"] == 50


def test_lengths(achieved):
    assert achieved["% of distinct queries with 2 words"] == 50
    assert achieved["% of events with 2 words"] == 75
    assert achieved["% of events with 3 words"] == 25
    assert achieved["% of events with 1 word"] == 0


def test_n_grams(achieved):
    assert achieved["unigrams / events"] == 9 / 4
    assert achieved["distinct unigrams / events"] == 3 / 4
    assert achieved["frequent unigrams"] == 2
    assert achieved["distinct bigrams / events"] == 2 / 4
    assert achieved["occurrences of frequent bigrams / events"] == 1
    assert achieved["trigrams / events"] == 1 / 4


def test_empty_log_has_no_figures(tmp_path):
    (tmp_path / "log.tsv").write_text(LOG.splitlines(keepends=True)[0])
    assert calibrate(tmp_path / "log.tsv") == []
