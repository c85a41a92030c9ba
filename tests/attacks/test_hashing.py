"""Hashed words are read again by whoever has a log of the same kind."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import queryveil as qv
from queryveil.attacks import InapplicableError, attack, token_frequency_attack, token_hashing
from queryveil.attacks.hashing import _released, _truth, _typed
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


def test_words_are_known_again_by_their_company_and_never_wrongly(hashed):
    log, release, truth = hashed
    found = _truth(_released(release), _typed(log, log.events_per_query)).to_pylist()
    assert len(found) > 0.5 * log.facts.words
    assert all(truth[row["token"]] == row["word"] for row in found)


def test_two_words_that_nothing_tells_apart_are_not_known_again():
    log = qv.read_log(pa.table({"user": ["a", "b", "c", "c"], "query": ["tea", "mug", "dog cat", "tea mug"]}))
    found = _truth(_released(qv.Hash().anonymize(log)), _typed(log, log.events_per_query))
    assert set(found["word"].to_pylist()) == {"tea", "mug", "dog", "cat"}
    log = qv.read_log(pa.table({"user": ["a", "b"], "query": ["tea", "mug"]}))
    assert len(_truth(_released(qv.Hash().anonymize(log)), _typed(log, log.events_per_query))) == 0


def test_hashing_is_shown_to_be_broken(synthetic, tmp_path):
    release = qv.Hash().anonymize(synthetic)
    found = token_hashing(release, synthetic)
    assert found.succeeds
    assert found.setting == "with the log of other users"
    assert found.control.value < 0.02
    assert found.details["with_the_log"] > 0.5
    release.save(tmp_path / "r")
    easier = token_hashing(qv.Release.load(tmp_path / "r"), synthetic)
    assert easier.setting == "with half of the log"
    assert easier.estimate.value > 0.5 > found.estimate.value
    tried = attack(release, synthetic, m=(1,))
    assert {"token hashing", "classic risks"} == {f.attack for f in tried.findings if f.succeeds}
    assert "Inference (can something be learnt about a person): yes" in tried.summary


def test_what_is_told_right_is_right(hashed):
    """Against the key: the guesses of the attack, counted one by one."""
    log, release, truth = hashed
    found = token_hashing(release, log, reference=log, most=200)
    rows = token_frequency_attack(release, log, truth, most=200).guesses.to_pylist()
    assert found.setting == "with another log"
    right = np.mean([truth[row["token"]] == row["word"] for row in rows])
    assert right - 0.1 < found.estimate.value <= right


def test_tokens_that_stand_for_nothing_are_not_read(synthetic):
    """A new token for every word of every event: nothing to know again."""
    release = qv.Hash().anonymize(synthetic)
    rng = np.random.default_rng(1)

    def batches():
        for batch in release.batches():
            made = [
                " ".join(f"{n:016x}" for n in rng.integers(0, 2**62, len(q.split())))
                for q in batch["query"].to_pylist()
            ]
            yield batch.set_column(batch.schema.names.index("query"), "query", pa.array(made))

    nothing = replace(release, batches=batches)
    found = token_hashing(nothing, synthetic)
    assert (found.estimate.value, found.succeeds) == (0, False)


def test_a_scrubbed_log_is_read_as_it_was_hashed(synthetic):
    release = qv.Hash().anonymize(qv.scrub(synthetic, "mask"))
    found = token_hashing(release, synthetic)
    assert found.succeeds
    assert found.details["with_the_log"] > 0.5


def test_other_releases_have_no_tokens(hashed):
    with pytest.raises(InapplicableError, match="no hashed words"):
        token_hashing(qv.Equality(k=2).anonymize(hashed[0]), hashed[0])
