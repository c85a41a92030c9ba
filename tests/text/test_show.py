import pytest

from queryveil.text.show import isolated, percent, printable, shortened


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0.0 %"),
        (1e-9, "< 0.1 %"),
        (0.00099, "< 0.1 %"),
        (0.001, "0.1 %"),
        (0.148, "14.8 %"),
        (0.999, "99.9 %"),
        (0.9991, "> 99.9 %"),
        (1 - 1e-9, "> 99.9 %"),
        (1, "100.0 %"),
        (1.25, "125.0 %"),
        (-0.03, "-3.0 %"),
        (-1e-9, "> -0.1 %"),
    ],
)
def test_something_is_not_rounded_to_nothing_nor_almost_everything_to_everything(value, text):
    assert percent(value) == text


def test_sums_of_floats_that_miss_nothing_or_everything_by_a_last_digit():
    assert percent(sum([0.1] * 10)) == "100.0 %"
    assert percent(sum([0.1] * 3) - 0.3) == "0.0 %"


def test_what_could_steer_a_terminal_is_not_shown():
    assert printable("tea\x1b[31m") == "tea\N{REPLACEMENT CHARACTER}[31m"


def test_joiners_are_part_of_words_and_what_steers_direction_is_not():
    assert printable("می\u200cخواهم") == "می\u200cخواهم"
    assert printable("a\u202eb\u2068c\x1b[2J") == "a\ufffdb\ufffdc\ufffd[2J"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("tea", "tea"),
        ("北京 café", "北京 café"),
        ("the query 'שלום עולם' has 3 rows", "the query '\u2068שלום עולם\u2069' has 3 rows"),
        ("قهوة 50 شاي tea", "\u2068قهوة 50 شاي\u2069 tea"),
        ("שָׁלוֹם", "\u2068שָׁלוֹם\u2069"),
        ("\u2069שלום\u2068 x", "\u2068שלום\u2069 x"),  # what a text brings along cannot end or open an isolate
    ],
)
def test_right_to_left_text_is_isolated_from_what_stands_beside_it(text, shown):
    assert isolated(text) == shown
    assert isolated(shown) == shown


def test_no_mark_is_cut_off_its_letter():
    assert shortened("tea", 3) == "tea"
    assert shortened("teapot", 4) == "tea…"
    assert shortened("e\u0301" * 4, 4) == "e\u0301…"
