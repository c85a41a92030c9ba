"""What papers say in their text, beside our values."""

import pytest

from queryveil.assess.reproduce import PAPERS, Figure, beside
from queryveil.assess.reproduce.published import (
    NONE,
    Published,
    Values,
    counts,
    differences,
    gains,
    held,
    more,
    numbers,
    shares,
)

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


def test_lines_stand_side_by_side_by_panel_and_position():
    cells = {("a", 1, 2): 1.0, ("a", 1, 3): None, ("a", 1, 5): 3.0, ("b", 1, 2): 4.0, ("b", 1, 3): 5.0,
             ("b", 1, 5): 6.0, ("a", 2, 2): 7.0, ("b", 2, 5): 8.0, ("b", 2, 2): 9.0}  # fmt: skip
    rows = [{"m": m, "p": p, "k": k, "y": y} for (m, p, k), y in cells.items()]
    values = Values([Figure("figure-1", "Retention", rows, "k", "y", "m", "p")])
    # One that was not measured must not move those behind it.
    assert values.lines("figure-1", "m", "a", "b") == [(1.0, 4.0), (3.0, 6.0), (7.0, 9.0)]
    assert values.lines("figure-1", "m", "a", "b", p=2) == [(7.0, 9.0)]
    assert values.lines("figure-1", "m", "a", "c") == values.lines("figure-9", "m", "a", "b") == []


def test_what_is_not_measured_has_a_dash():
    assert shares() == numbers() == gains(None) == held([]) == counts(None) == differences() == NONE
    assert counts(1234.0, None) == f"1,234, {NONE}"
    assert differences(0.0123, -0.5) == "+0.012, -0.500"
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


@pytest.mark.parametrize("paper", PAPERS)
def test_every_figure_stands_beside_what_the_paper_says(reproduced, paper):
    said = {one.figure for one in PAPERS[paper].published}
    assert {figure.name for figure in reproduced(paper)} <= said


def test_so_do_figures_that_are_made_on_request(on_request):
    made = {figure.name: figure for figure in on_request}
    found = beside(PAPERS["carpineto2015"].published, on_request)
    assert {"figure-6", "figure-6-samples", "figure-5b", "table-4"} <= set(made) == {one.figure for one in found}
    assert not [one for one in found if one.ours == NONE]


@pytest.mark.parametrize("paper", PAPERS)
def test_values_of_a_paper_name_their_line_and_have_a_place(reproduced, paper):
    made = {figure.name: figure for figure in reproduced(paper)}
    for one in PAPERS[paper].published:
        figure = made.get(one.figure)
        for point in one.points if figure is not None else ():
            assert set(point) == {figure.x, figure.y, figure.colour, figure.panel} - {None}


@pytest.mark.parametrize("paper", PAPERS)
def test_a_paper_says_it_also_of_nothing(paper):
    """A figure may lack any of its lines, on a small log or without an optional package."""
    for one in PAPERS[paper].published:
        assert isinstance(one.ours(Values([])), str)
