import json
import re
from dataclasses import replace

import pytest

from queryveil.comparison import Cell, Comparison, Row
from queryveil.reports import comparison_page
from tests.reports.compared import made_up
from tests.reports.conftest import HOSTILE
from tests.reports.html import Page


def test_recommendations_come_first_and_say_why():
    comparison = made_up()
    comparison = replace(comparison, cells=tuple(cell for cell in comparison.cells if cell.method != "zealous"))
    text = Page(comparison_page(comparison)).text
    places = [text.index(one.aim) for one in comparison.recommendations]
    assert places == sorted(places)
    assert places[-1] < text.index("What is kept, against what is given away")
    for one in comparison.recommendations:
        assert one.reason in text.replace("\N{NO-BREAK SPACE}", " ")
        assert one.rule in text
    assert "none of them" in text


def test_every_release_is_in_the_table_and_every_other_has_its_reason():
    comparison = made_up()
    text = Page(comparison_page(comparison)).text
    for cell in comparison.cells:
        assert cell.name in text
        assert cell.why in text


def test_every_chart_has_words_and_a_table():
    found = Page(comparison_page(made_up()))
    charts = [one for one in found.all("div") if "chart" in one.get("class", "").split()]
    assert len(charts) == 3
    assert all(len(chart["aria-label"].split()) > 8 for chart in charts)
    assert len(found.all("figcaption")) == 3


def test_the_frontier_is_told_by_its_ends():
    comparison = made_up()
    least, most = comparison.frontiers[0].cells[0], comparison.frontiers[0].cells[-1]
    text = Page(comparison_page(comparison)).text
    assert re.search(rf"The frontier goes from {re.escape(least)} \(.*to {re.escape(most)} \(", text)


def test_a_refuted_release_is_named_on_top():
    comparison = made_up()
    wrong = replace(comparison.cells[3], holds=False)
    cells = (*comparison.cells[:3], wrong, *comparison.cells[4:])
    text = Page(comparison_page(replace(comparison, cells=cells))).text
    assert f"The verifier refutes 1 of the releases: {wrong.name}." in text


def test_releases_with_the_same_queries_have_one_line_in_the_long_tail():
    comparison = made_up()
    first, twin = (cell.name for cell in comparison.cells[:2])
    rows = [row for row in comparison.rows if row.cell != twin or row.kind == "risk"]
    rows += [replace(row, cell=twin) for row in rows if row.cell == first and row.kind == "utility"]
    page = comparison_page(replace(comparison, rows=tuple(rows)))
    tail = page[page.index('id="bands"') : page.index('id="cells"')]
    assert f">{first}<" in tail
    assert f">{twin}<" not in tail


def test_releases_that_differ_in_more_than_users_are_all_in_the_long_tail():
    """Two recipes, and two epsilons, that keep the same; none of them has a k."""
    comparison = made_up()
    settings = [("zealous", {"epsilon": e, "delta": 1e-6}) for e in (1.0, 10.0)] + [
        ("rules", {"max_digits": d}) for d in (1, 2)
    ]
    cells = [Cell(f"cell {i}", method, None, given, holds=True) for i, (method, given) in enumerate(settings)]
    cells.append(Cell("twin", "rules", None, {"max_digits": 2, "users": "drop"}, holds=True))
    rows = [
        Row(cell.name, "utility", "retention", f"distinct queries of {band.label}", "", 0.5, best=1.0)
        for cell in cells
        for band in comparison.bands
    ]
    page = comparison_page(replace(comparison, cells=tuple(cells), rows=tuple(rows)))
    tail = page[page.index('id="bands"') : page.index('id="cells"')]
    assert [f">{cell.name}<" in tail for cell in cells] == [True, True, True, True, False]


def test_where_nothing_is_kept_there_is_no_frontier_but_a_page():
    comparison = made_up()
    rows = (
        Row("hash", "utility", "retention", "distinct queries", "", 0.0, best=1.0),
        Row("hash", "risk", "linkability", "record linkage", "", 0.4, 0.3, 0.5, baseline=0.1, succeeds=True),
    )
    alone = replace(comparison, cells=(Cell("hash", "hash", None, {}, holds=True),), rows=rows)
    assert any(frontier.points for frontier in alone.frontiers)
    text = Page(comparison_page(alone)).text
    assert "No release keeps anything of it, so that there is no frontier." in text


@pytest.mark.parametrize("without", [None, 0.0])
def test_where_users_are_not_told_apart_there_are_no_records(without, monkeypatch):
    comparison = made_up()
    risk, frontiers = Comparison.risk, comparison.frontiers
    monkeypatch.setattr(Comparison, "frontiers", frontiers)  # in which such a release is at 0
    monkeypatch.setattr(Comparison, "risk", lambda self, cell: risk(self, cell) or without)
    page = comparison_page(comparison)
    table = page[page.index('<section id="cells"') : page.index('<section id="attacks"')]
    lines = {line.split("</th>")[0].split(">")[-1]: line for line in table.split("<tr>") if 'scope="row"' in line}
    for cell in comparison.cells:
        if cell.status == "done":
            dropped = cell.parameters.get("users") == "drop" or cell.method == "zealous"
            assert (">no records<" in lines[cell.name]) == dropped, cell.name
    charts = next(text for kind, text in Page(page).inside if kind == "script" and text.startswith('{"frontier'))
    values = [
        value for some in json.loads(charts)["frontier-0"]["datasets"].values() for value in some if "fill" in value
    ]
    hollow = {value["name"] for value in values if value["fill"] == "var(--page)"}
    assert "equality, k = 2, no users" in hollow
    assert "equality, k = 2" not in hollow
    assert {value["found"] for value in values if value["name"] in hollow} == {"no records"}


def test_attacks_that_work_are_told_as_shares_of_those_tried():
    """Of one release one attack alone was tried, and worked; of the other two of three."""
    comparison = made_up()
    tried = [("one", [True]), ("other", [True, True, False])]
    rows = [
        Row(name, "risk", "linkability", f"attack {i}", "", 0.4, 0.3, 0.5, baseline=0.1, succeeds=won)
        for name, every in tried
        for i, won in enumerate(every)
    ]
    cells = tuple(Cell(name, "equality", 2, {"k": 2}, holds=True) for name, _ in tried)
    text = Page(comparison_page(replace(comparison, cells=cells, rows=tuple(rows)))).text.replace(
        "\N{NO-BREAK SPACE}", " "
    )
    assert "the smallest share works on other (66.7 %), the largest on one (100.0 %)." in text
    text = Page(comparison_page(replace(comparison, cells=cells[:1], rows=tuple(rows[:1])))).text
    assert "On every release, 100.0" in text


def test_accounts_are_not_drawn_as_shares():
    page = comparison_page(made_up())
    charts = next(text for kind, text in Page(page).inside if kind == "script" and text.startswith('{"frontier'))
    assert "planting" not in charts
    assert "20 accounts" in Page(page).text


def test_where_nothing_was_released_there_is_still_a_page():
    comparison = made_up()
    cells = tuple(replace(cell, status="failed", why="It failed.") for cell in comparison.cells)
    text = Page(comparison_page(replace(comparison, cells=cells, rows=()))).text
    assert "No release has both." in text
    assert "No attack could be tried." in text


def test_hostile_text_is_text_wherever_it_stands():
    found = Page(comparison_page(made_up(" ".join(HOSTILE))))
    assert [tag for tag, _ in found.elements].count("script") == 2
    assert not {tag for tag, _ in found.elements} & {"img", "svg"}
    assert found.text.count("<script>alert(1)</script>") > 20


def test_the_same_can_be_made_again():
    text = Page(comparison_page(made_up())).text
    methods = "equality,affinity,odp,search,mdav,clump,partition,wngen,poblete,zealous"
    assert f"queryveil compare LOG --methods {methods} -k 2,5,10,20,50 --epsilon 1,10 --seed 3 -o comparison" in text


def test_how_many_events_were_tried_is_told_if_it_is_not_the_usual():
    text = Page(comparison_page(replace(made_up(), tests=50))).text
    assert "--epsilon 1,10 --tests 50 --seed 3 -o comparison" in text
    assert "such as --format and --columns, are to be given as before" in text


def test_it_is_small_and_never_says_that_something_is_without_risk():
    page = comparison_page(made_up())
    assert len(page.encode()) < 1_500_000
    assert not re.search(r"\bsafe", Page(page).text, re.IGNORECASE)
