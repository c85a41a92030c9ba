"""Hashed words are read again by an attacker who has a log of the same kind."""

from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import queryveil as qv
from queryveil.assess.attacks import InapplicableError, attack, record_linkage, token_frequency_attack, token_hashing
from queryveil.assess.attacks.token_hashing import linked_by_words, token_matching
from queryveil.assess.attacks.token_texts import released_texts, same_words, typed_texts
from queryveil.errors import QueryveilError
from queryveil.release import with_user_map
from tests.assess.attacks.helpers import owners, read, records
from tests.strategies import examples


@pytest.fixture(scope="module")
def hashed(tmp_path_factory):
    """A log, the release of its hashed words, and the truth."""
    folder = tmp_path_factory.mktemp("hashed")
    qv.generate(folder / "log.tsv", users=600, seed=3)
    (folder / "key").write_bytes(bytes(32))
    log = qv.read_log(folder / "log.tsv")
    method = qv.Hash(key_file=folder / "key", link="user")
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
    total = int((log.events_per_query * log.tokens.sizes).sum())
    expected = sum(n for n, is_right in zip(occurrences, right, strict=True) if is_right) / total
    assert found.recovered.occurrences == pytest.approx(expected)
    assert found.recovered.tokens == pytest.approx(sum(right) / log.stats.words)
    assert found.by_frequency.tokens == pytest.approx(sum(by_frequency) / log.stats.words)


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
    other = token_frequency_attack(qv.Hash(link="user").anonymize(tiny), tiny)
    assert other.guesses["word"].to_pylist() == ["tea", "red"]


def test_only_hashed_words_are_attacked(hashed):
    log = hashed[0]
    with pytest.raises(QueryveilError, match="on hashed words, and the release was made by 'equality'"):
        token_frequency_attack(qv.Equality(k=2).anonymize(log), log)


def test_words_are_known_again_by_their_company_and_never_wrongly(hashed):
    log, release, truth = hashed
    found = same_words(released_texts(release), typed_texts(log, log.events_per_query)).to_pylist()
    assert len(found) > 0.5 * log.stats.words
    assert all(truth[row["token"]] == row["word"] for row in found)


def test_two_words_that_nothing_tells_apart_are_not_known_again():
    log = qv.read_log(pa.table({"user": ["a", "b", "c", "c"], "query": ["tea", "mug", "dog cat", "tea mug"]}))
    found = same_words(released_texts(qv.Hash(link="user").anonymize(log)), typed_texts(log, log.events_per_query))
    assert set(found["word"].to_pylist()) == {"tea", "mug", "dog", "cat"}
    log = qv.read_log(pa.table({"user": ["a", "b"], "query": ["tea", "mug"]}))
    assert (
        len(same_words(released_texts(qv.Hash(link="user").anonymize(log)), typed_texts(log, log.events_per_query)))
        == 0
    )


def test_hashing_is_shown_to_be_broken(synthetic, tmp_path):
    release = qv.Hash(link="user").anonymize(synthetic)
    found = token_hashing(release, synthetic)
    assert found.succeeds
    assert found.setting == "with the log of other users"
    assert found.control.value < 0.02
    release.save(tmp_path / "r")
    easier = token_hashing(qv.Release.load(tmp_path / "r"), synthetic)
    assert easier.setting == "with half of the log"
    assert easier.estimate.value > 0.5 > found.estimate.value
    tried = attack(release, synthetic, n_known=(1,))
    assert {"token_hashing", "reidentification_risk", "record_linkage"} == {
        f.attack for f in tried.findings if f.succeeds
    }
    assert [f.setting for f in tried.findings if f.attack == "token_hashing"] == [
        "with the log of other users", "with the log itself",
    ]  # fmt: skip
    assert "Inference (can something be learnt about a person): yes, by 2 of 2. Tokens whose words" in tried.summary
    assert "Linkability (can records or queries of one person be brought together): yes" in tried.summary


def test_few_tokens_that_are_read_are_a_success_too(tmp_path):
    """Of a small log, one who has another half reads 5 of 300, where less than one is right by chance."""
    qv.generate(tmp_path / "log.tsv", users=200, seed=1)
    log = qv.read_log(tmp_path / "log.tsv")
    (tmp_path / "key").write_bytes(bytes(32))
    found = token_hashing(qv.Hash(key_file=tmp_path / "key", link="user").anonymize(log), log)
    assert (found.trials, found.estimate.value) == (300, pytest.approx(5 / 300))
    assert 0 < found.control.low == found.control.high <= 1 / 300
    assert found.succeeds


def test_who_has_the_log_reads_what_its_company_tells_apart(hashed):
    log, release, truth = hashed
    found = token_matching(release, log)
    read = same_words(released_texts(release), typed_texts(log, log.events_per_query)).to_pylist()
    assert all(truth[row["token"]] == row["word"] for row in read)
    assert (found.trials, found.estimate.value) == (log.stats.words, pytest.approx(len(read) / log.stats.words))
    assert found.control.value < 0.1 < 0.5 < found.estimate.value
    assert found.succeeds
    assert 0.5 < found.details["of_text"] <= 1
    with pytest.raises(InapplicableError, match="no hashed words"):
        token_matching(qv.Equality(k=2).anonymize(log), log)


PAIRS = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from(["tea", "mug", "red tea", "my cat", "red mug", "x y tea"])),
    min_size=4,
    max_size=30,
)


@settings(max_examples=examples(13))
@given(PAIRS)
def test_records_are_linked_by_the_words_that_are_read(pairs):
    """Against the literal comparison of the words of every record with those of every user."""
    log = read(pairs)
    release = qv.Hash(link="user").anonymize(log)
    known = {
        row["token"]: row["word"]
        for row in same_words(released_texts(release), typed_texts(log, log.events_per_query)).to_pylist()
    }
    typed, told = defaultdict(Counter), {}
    for u, query in pairs:
        typed[f"u{u}"].update(word for word in query.split() if word in known.values())
    for record, bag in records(release)[0].items():
        told[record] = Counter(known[t] for query in bag.elements() for t in query.split() if t in known)
    expected = []
    for user, record in sorted(owners(release).items(), key=lambda pair: pair[1]):
        common = {other: (told[record] & typed[other]).total() for other in {f"u{u}" for u, _ in pairs}}
        best = [other for other, n in common.items() if n == max(common.values())]
        expected.append(1 / len(best) if user in best else 0)
    assert linked_by_words(release, log)[0].tolist() == pytest.approx(expected)


def test_an_attacker_who_has_the_log_links_hashed_records(hashed, tmp_path):
    log, release, _ = hashed
    found = record_linkage(release, log)
    assert found.succeeds
    assert found.estimate.value > 0.9
    assert found.control.value < 0.02
    assert len(linked_by_words(release, log, people=50)[0]) == 50
    release.save(tmp_path / "r")
    with pytest.raises(InapplicableError, match="needs the user map"):
        record_linkage(qv.Release.load(tmp_path / "r"), log)


def test_users_are_known_by_name_where_scrubbing_left_some_out(tmp_path):
    """Those of the log and of what was hashed are numbered differently."""
    pairs = [(u, "jane@example.com") for u in range(0, 40, 2)]
    pairs += [(u, f"w{(u * i) % 13} w{i}") for u in range(1, 40, 2) for i in range(8)]
    log = read(pairs)
    made = qv.Hash(link="user").anonymize(qv.scrub(log, "remove"))
    made.save(tmp_path / "r")
    made.save_user_map(tmp_path / "map.csv")
    release = with_user_map(qv.Release.load(tmp_path / "r"), log, tmp_path / "map.csv")
    same = qv.Hash(link="user").anonymize(read([pair for pair in pairs if "@" not in pair[1]]))
    expected = dict(zip(sorted(owners(same), key=owners(same).get), linked_by_words(same, same.log)[0], strict=True))
    found = dict(zip(sorted(owners(release), key=owners(release).get), linked_by_words(release, log)[0], strict=True))
    assert found == pytest.approx(expected)
    assert sum(found.values()) > 5


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
    release = qv.Hash(link="user").anonymize(synthetic)
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
    assert not token_matching(nothing, synthetic).succeeds


def test_a_scrubbed_log_is_read_as_it_was_hashed(synthetic):
    release = qv.Hash(link="user").anonymize(qv.scrub(synthetic, "mask"))
    found = token_hashing(release, synthetic)
    assert found.succeeds
    assert token_matching(release, synthetic).estimate.value > 0.5


def test_other_releases_have_no_tokens(hashed):
    with pytest.raises(InapplicableError, match="no hashed words"):
        token_hashing(qv.Equality(k=2).anonymize(hashed[0]), hashed[0])
