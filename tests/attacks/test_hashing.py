"""Hashed words are read again by whoever has a log of the same kind."""

import numpy as np
import pyarrow as pa
import pytest

import queryveil as qv
from queryveil.attacks import token_frequency_attack
from queryveil.errors import QueryveilError


@pytest.fixture(scope="module")
def hashed(tmp_path_factory):
    """A log, the release of its hashed words, and the truth."""
    folder = tmp_path_factory.mktemp("hashed")
    qv.generate(folder / "log.tsv", users=600, seed=3)
    (folder / "key").write_bytes(bytes(32))
    log = qv.read_log(folder / "log.tsv")
    method = qv.Hash(key_file=folder / "key")
    truth = {row["token"]: row["word"] for row in method.tokens(log).to_pylist()}
    return log, method.anonymize(log), truth


def test_who_has_the_same_log_reads_the_frequent_tokens(hashed):
    log, release, truth = hashed
    found = token_frequency_attack(release, log, truth, most=200)
    rows = found.guesses.to_pylist()
    right = [truth[row["token"]] == row["word"] for row in rows]
    by_frequency = [truth[row["token"]] == row["by_frequency"] for row in rows]
    assert len(rows) == 200
    assert np.mean(right) > 0.95 > 0.7 > np.mean(by_frequency)
    occurrences = [row["occurrences"] for row in rows]
    assert occurrences == sorted(occurrences, reverse=True)
    total = int((log.events_per_query * log.tokens.per_query).sum())
    expected = sum(n for n, is_right in zip(occurrences, right, strict=True) if is_right) / total
    assert found.recovered.occurrences == pytest.approx(expected)
    assert found.recovered.tokens == pytest.approx(sum(right) / log.facts.words)
    assert found.by_frequency.tokens == pytest.approx(sum(by_frequency) / log.facts.words)


def test_no_word_is_guessed_twice_and_the_same_is_guessed_again(hashed):
    log, release, _ = hashed
    found = token_frequency_attack(release, log, most=100)
    assert len(set(found.guesses["word"].to_pylist())) == 100
    assert found.recovered is found.by_frequency is None
    assert found.guesses == token_frequency_attack(release, log, most=100).guesses


def test_neighbours_help_where_frequencies_are_drawn_anew(hashed):
    """The reference is another draw from the same queries, so that ranks no longer agree."""
    log, release, truth = hashed
    draw = np.random.default_rng(1)
    query = log.events["query_id"].to_numpy()
    some = log.query_text.take(pa.array(draw.choice(query, len(query)))).cast(pa.string())
    reference = qv.read_log(pa.table({"user": pa.array(["x"] * len(some)), "query": some}))
    found = token_frequency_attack(release, reference, truth, most=150)
    assert found.recovered.occurrences > 2 * found.by_frequency.occurrences


def test_a_small_reference_and_a_small_release(hashed):
    _, release, truth = hashed
    tiny = qv.read_log(pa.table({"user": ["a", "b"], "query": ["red tea", "tea"]}))
    assert len(token_frequency_attack(release, tiny, truth).guesses) == 2
    other = token_frequency_attack(qv.Hash().anonymize(tiny), tiny)
    assert other.guesses["word"].to_pylist() == ["tea", "red"]


def test_only_hashed_words_are_attacked(hashed):
    log = hashed[0]
    with pytest.raises(QueryveilError, match="on hashed words, and the release was made by 'equality'"):
        token_frequency_attack(qv.Equality(k=2).anonymize(log), log)
