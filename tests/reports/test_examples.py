from hypothesis import given
from hypothesis import strategies as st

import queryveil as qv
from queryveil.assess.measures import retention
from queryveil.reports.examples import SHOWN, examples, shape
from tests.assess.attacks.helpers import identity, read
from tests.reports.conftest import FEW, hostile_log

WORDS = st.sampled_from(["cheap", "hotels", "zanzibar", "4711", "ü", "<email>", "<name>"])


def shown(release, log):
    return examples(release, log, retention(release, log).bands)


@given(st.lists(WORDS, min_size=1, max_size=12), st.sets(st.sampled_from(["cheap", "hotels", "4711"])), st.booleans())
def test_a_shape_keeps_words_that_may_be_shown_and_never_all_of_a_text_that_may_not(words, known, whole):
    text = " ".join(words)
    found = shape(text, known, whole=whole)
    kept = [word for word in found.split() if "·" not in word and word != "…" and len(word) > 1]
    assert set(kept) <= known | {"<email>", "<name>"}
    if whole and set(words) <= known and len(words) <= 8:
        assert found == text
    if not whole and len(words) <= 8 and any(len(word) > 1 and not word.startswith("<") for word in words):
        assert found != text


def test_a_hidden_number_does_not_show_its_first_digit():
    assert shape("call 4711", {"call"}, whole=False) == "call #···"


def test_queries_of_few_users_are_not_shown_whole():
    log = hostile_log()
    found = shown(qv.Equality(k=3).anonymize(log), log)
    assert {example.issued for example in found} == {"5-9 users", "30-99 users"}
    assert [example.text for example in found if example.issued == "5-9 users"] == [
        "x········ n·····",
        "z········ q·····",
    ]
    assert not set(FEW) & {example.text for example in found}


def test_only_released_queries_are_shown():
    log = hostile_log()
    found = shown(qv.Equality(k=3).anonymize(log), log)
    assert found
    assert not any("kept" in example.text for example in found)


def test_every_band_has_its_share_of_ten():
    pairs = [(u, f"mug{i}") for i in range(40) for u in range(1 if i < 25 else 3)]
    log = read(pairs)
    found = shown(identity(log), log)
    assert len(found) == SHOWN
    assert [example.issued for example in found] == ["1 user"] * 5 + ["2-4 users"] * 5


def test_what_scrubbing_finds_is_named_by_its_kind():
    log = read([(u, "jane.doe@example.com pizza") for u in range(30)])
    assert [example.text for example in shown(identity(log), log)] == ["<email> pizza"]


def test_tokens_are_cut_off():
    log = read([(u, "cheap pizza") for u in range(30)])
    (example,) = shown(qv.Hash().anonymize(log), log)
    assert [len(word) for word in example.text.split()] == [5, 5]


def test_items_stand_for_queries_where_there_are_none():
    log = read([(u, "dog") for u in range(6)])
    assert shown(qv.Wngen(k=3).anonymize(log), log)[0].issued == ""


def test_an_empty_release_has_no_examples():
    log = read([(u, f"mug{u}") for u in range(6)])
    assert shown(qv.Equality(k=3).anonymize(log), log) == []
