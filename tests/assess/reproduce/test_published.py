"""What papers say in their text, beside our values."""

import pytest

from queryveil.assess.reproduce import PAPERS, Figure, beside
from queryveil.assess.reproduce.published import NONE, Published, Values, gains, held, more, numbers, shares

ROWS = ({"k": 2, "m": "a", "y": 0.5}, {"k": 3, "m": "a", "y": None}, {"k": 2, "m": "b", "y": 0.25})
FIGURE = Figure("figure-1", "Retention", ROWS, "k", "y", "m")


def test_values_are_found_by_their_place():
    values = Values([FIGURE])
    assert values("figure-1", k=2, m="b") == 0.25
    assert values("figure-1", k=3) is None
    assert values("figure-1", k=9) is None
    assert values("figure-9", k=2) is None
    assert values.all("figure-1", m="a") == [0.5]
    assert values.lines("figure-1", "m", "a", "b") == [(0.5, 0.25)]
    assert values.places("figure-1", "m") == ["a", "b"]
    assert values.places("figure-9", "m") == []


def test_what_is_not_measured_has_a_dash():
    assert shares() == numbers() == gains(None) == held([]) == NONE
    assert shares(0.5, None) == f"50.0 %, {NONE}"
    assert gains(0.1, -0.05) == "+10 %, -5 %"
    assert gains(*(i / 100 for i in range(-2, 9))) == "-2 to +8 %"
    assert held([True, False]) == "in 1 of 2 cases"
    assert more(2.0, 0.0) is more(None, 1.0) is None


def test_only_figures_that_were_made_stand_beside_the_paper():
    published = [
        Published(name, "what", "50 %", "section 1", lambda v: shares(v("figure-1", k=2))) for name in ("figure-1", "x")
    ]
    (one,) = beside(published, [FIGURE])
    assert (one.figure, one.value, one.ours, one.where) == ("figure-1", "50 %", "50.0 %", "section 1")


@pytest.mark.parametrize("paper", PAPERS)
def test_every_paper_says_something_that_we_measure(reproduced, paper):
    made = reproduced(paper)
    found = beside(PAPERS[paper].published, made)
    assert PAPERS[paper].citation
    assert len(found) >= 4
    assert sum(one.ours != NONE for one in found) >= len(found) / 2
    columns = {figure.name: set(figure.rows[0]) for figure in made}
    for one in PAPERS[paper].published:
        for point in one.points:
            assert one.figure not in columns or set(point) <= columns[one.figure]


@pytest.mark.parametrize("paper", PAPERS)
def test_a_paper_says_it_also_of_nothing(paper):
    """A figure may lack any of its lines, on a small log or without an optional package."""
    for one in PAPERS[paper].published:
        assert isinstance(one.ours(Values([])), str)
