import pytest

from queryveil.text.show import percent, printable


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
