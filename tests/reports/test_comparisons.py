import re
from dataclasses import replace

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


def test_it_is_small_and_never_says_that_something_is_without_risk():
    page = comparison_page(made_up())
    assert len(page.encode()) < 1_500_000
    assert not re.search(r"\bsafe", Page(page).text, re.IGNORECASE)
