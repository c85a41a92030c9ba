import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from queryveil.text import language, normal_form, split_at_blanks
from tests.oracles import text as oracle


def by_query(queries: list[str]) -> list[list[str]]:
    found = language().words(normal_form(pa.array(queries, pa.string())))
    texts = found.text.to_pylist()
    result, at = [], 0
    for count in found.per_query:
        result.append(texts[at : at + count])
        at += count
    return result


@given(st.lists(st.text("ab& .,'()+é€дहि\u0940 \U0001f600", max_size=15), max_size=8))
def test_words_are_parts_without_the_punctuation_around_them(queries):
    assert by_query(queries) == [oracle.words(oracle.normal_form(query)) for query in queries]


@given(st.lists(st.lists(st.sampled_from(["<email>", "<rare>", "<h1>", "<", ">", "email", "a", " "]), max_size=8)))
def test_masks_are_no_words_and_separate_words(parts):
    queries = ["".join(some) for some in parts]
    assert by_query(queries) == [oracle.words(oracle.normal_form(query)) for query in queries]


def test_masks_are_words_where_texts_are_only_cut():
    assert language().words(pa.array(["<email> tea"])).text.to_pylist() == ["tea"]
    assert split_at_blanks(pa.array(["<email> tea"])).text.to_pylist() == ["email", "tea"]


def test_examples():
    assert by_query(["AT&T (wireless) - plans", "c++", "rock'n'roll!", "...", "हिन्दी"]) == [
        ["at&t", "wireless", "plans"],
        ["c"],
        ["rock'n'roll"],
        [],
        ["हिन्दी"],
    ]


def test_no_queries_have_no_words():
    assert language().words(pa.array([])).text.to_pylist() == []  # an array of Arrow's null type
