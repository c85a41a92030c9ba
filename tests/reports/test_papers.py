import json
import re

import pytest

from queryveil.assess.reproduce import PAPERS, Figure
from queryveil.reports import paper_page
from tests.reports.conftest import HOSTILE, hostile_log
from tests.reports.html import Page


def figures(text="first 5 categories"):
    """Figures as reproduce makes them, with a text wherever one can stand."""
    kept = [
        {"level": level, "k": k, "groups": groups, "SRP": 1 / (level + k)}
        for level in range(1, 6)
        for k in (2, 5)
        for groups in ("first category", "at random", text)
    ]
    grown = [{"queries": n, "groups": text, "seconds": n / 1000} for n in (100, 200, 400)]
    return [
        Figure("figure-3", text, kept, "level", "SRP", "groups", "k"),
        Figure("figure-4-queries", "Time", grown, "queries", "seconds", "groups", share=False),
        Figure("table-9", "A table", [{"of": text, "number": 7}, {"of": "x", "number": None}], "of", "number"),
        Figure("figure-5b", "One person", [{"k": 2, "y": 0.123456}], "k", "y", private=True),
    ]


@pytest.fixture(scope="module")
def log():
    return hostile_log()


@pytest.fixture(scope="module")
def page(log):
    return paper_page("erola2011", figures(), log, taxonomy="sites.qvd", seed=7, command="queryveil reproduce x")


def charts(page):
    (text,) = [text for kind, text in Page(page).inside if kind == "script" and text.startswith('{"')]
    return json.loads(text)


def test_what_the_paper_says_stands_beside_what_was_found(page):
    text = Page(page).text.replace("\N{NO-BREAK SPACE}", " ")
    assert PAPERS["erola2011"].citation in text
    said = ("SRP is above 1/k", "on all levels, for every k", "in 0 of 10 cases", "section 4.2.2")
    assert re.search(r"\s*".join(map(re.escape, said)), text)
    assert "queryveil reproduce x" in text
    assert "with seed 7" in text


def test_charts_are_large_and_have_the_values_of_the_paper(page):
    found = charts(page)
    assert set(found) == {"figure-3-0", "figure-3-1", "figure-4-queries-0"}  # a table is no chart
    for chart in found.values():
        assert chart["width"] == "container"
        assert chart["height"] >= 300
    assert "the paper" in json.dumps(found["figure-3-0"])
    kinds = [found[name]["layer"][0]["encoding"]["x"]["type"] for name in ("figure-3-0", "figure-4-queries-0")]
    assert kinds == ["ordinal", "quantitative"]
    elements = [one for one in Page(page).all("div") if "chart" in one.get("class", "").split()]
    assert all(len(chart["aria-label"].split()) >= 4 for chart in elements)


def drawn(figure, log, paper="carpineto2015"):
    page = paper_page(paper, [figure], log, taxonomy="wordnet", seed=0, command="x")
    return page, charts(page)[f"{figure.name}-0"]


def released(*ks):
    """Figure 5a of carpineto2015 at some k."""
    rows = [{"method": m, "k": k, "released queries": 0.2 / k} for m in ("EQ", "AFF θ = 0.9") for k in ks]
    return Figure("figure-5a", "Released queries", rows, "k", "released queries", "method")


def test_values_of_the_paper_name_their_line_and_have_its_colour(log):
    page, chart = drawn(released(2, 3, 80), log)
    points = [(one["x"], one["line"], one["stroke"]) for one in chart["datasets"][chart["layer"][2]["data"]["name"]]]
    assert points == [(3, "the paper, EQ", "var(--c1)"), (80, "the paper, AFF θ = 0.9", "var(--c2)")]
    assert chart["layer"][2]["encoding"]["stroke"]["scale"] is None
    assert key_of_the_paper(page)


def test_a_key_is_only_for_what_is_drawn(log):
    page, chart = drawn(released(2, 5), log)
    assert len(chart["layer"]) == 2
    assert chart["layer"][0]["encoding"]["y"]["scale"]["domain"][1] == pytest.approx(0.1 * 1.06)
    assert not key_of_the_paper(page)


def key_of_the_paper(page):
    return any("diamond muted" in one.get("class", "") for _, one in Page(page).elements)


def test_a_figure_in_which_nothing_was_measured_is_drawn(log):
    rows = [{"k": k, "m": None} for k in (2, 5)]
    page, chart = drawn(Figure("figure-9", "Nothing", rows, "k", "m"), log)
    assert chart["layer"][0]["encoding"]["y"]["scale"]["domain"] == [0, 1]
    assert "This report has no value from the text of the paper to set beside this figure." in Page(page).text


def test_what_is_about_one_person_is_not_on_the_page(page):
    assert "One person" not in page
    assert "12.3" not in page


def test_texts_are_inert_and_nothing_is_fetched(log):
    text = " ".join(HOSTILE)
    page = paper_page("erola2011", figures(text), log, taxonomy=text, seed=0, command=text)
    found = Page(page)
    assert len(found.all("script")) == 2
    assert not found.all("img")
    assert not any(name.startswith("on") for _, attributes in found.elements for name in attributes)
    assert not [one for one in found.elements if "src" in one[1] or one[1].get("href", "#")[0] != "#"]
    (policy,) = [one["content"] for one in found.all("meta") if one.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")
    assert "\u202e" not in page
