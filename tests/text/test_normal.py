import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from queryveil.text import fold_blanks, normal_form
from tests.oracles import text as oracle

# Letters whose lower case is one letter, in Python as in Arrow, from several scripts, and every kind of blank.
LETTERS = "abzAZ019 \t\n\x00\x1f\x7f\x85\xa0\u2003\u3000\u1680\u2028&-'\"éÉñÑßЖжΑαΩωאب中文ＡａｋＫ①ﬁ½あ가e\u0301K"


@given(st.lists(st.text(LETTERS, max_size=12), max_size=8))
def test_is_nfkc_lower_case_folded_and_stripped(values):
    assert normal_form(pa.array(values, pa.string())).to_pylist() == [oracle.normal_form(v) for v in values]


@given(st.lists(st.text(max_size=20), max_size=8))
def test_twice_is_once(values):
    once = normal_form(pa.array(values, pa.string()))
    assert normal_form(once).equals(once)


@given(st.lists(st.text(max_size=20) | st.none(), min_size=1, max_size=8))
def test_nothing_that_could_break_a_line_or_a_terminal_is_left(values):
    for text in normal_form(pa.array(values, pa.string())).to_pylist():
        assert text is None or not any(c in text for c in map(chr, [*range(32), *range(0x7F, 0xA0), 0x2028, 0x2029]))


def test_large_strings_and_nulls_keep_their_type_and_place():
    found = normal_form(pa.array(["A  b", None, "c"], pa.large_string()))
    assert found.type == pa.large_string()
    assert found.to_pylist() == ["a b", None, "c"]


def test_fold_blanks_leaves_case_alone():
    assert fold_blanks(pa.array(["  http://A.com/\tX ", "ok"])).to_pylist() == ["http://A.com/ X", "ok"]
