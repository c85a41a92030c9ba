"""The page of a series; what it shows is made up."""

from datetime import datetime
from types import SimpleNamespace

from queryveil.assess.attacks import Estimate, Finding, Skipped
from queryveil.reports.series import series_page
from queryveil.series.attacks import Exposure, SeriesFindings
from queryveil.series.ledger import Period
from queryveil.series.status import Status
from tests.reports.conftest import HOSTILE
from tests.reports.html import Page


def series(text="equality"):
    """A series and what attacks found, with a text wherever one can stand."""
    periods = tuple(
        Period(
            number=i, added=datetime(2026, 3, i), fingerprint="f", start=None, end=datetime(2026, 3, i), events=900 + i,
            users=90, expired=3, late=1, released=500 - i, queries=40, new_queries=40 - 2 * i, waiting=400 + i,
            waited=i / 3,
        )
        for i in range(1, 13)
    )  # fmt: skip
    settings = SimpleNamespace(method=text, parameters={"k": 5, text: text})
    status = Status(SimpleNamespace(settings=settings, periods=periods, releases=periods, forgotten=()))
    finding = Finding("differencing", text, text, "share", Estimate(0.4, 0.3, 0.5), 0.0004, text, None, text, 50)
    exposure = tuple(Exposure(i, 40, 0, 60, i) for i in range(1, 13))
    return series_page(status, SeriesFindings(text, (finding,), (Skipped("personal_data", text),), exposure=exposure))


def test_it_says_what_happened_and_what_it_means():
    text = Page(series()).text.replace("\N{NO-BREAK SPACE}", " ")
    assert "A series of releases by equality" in text
    assert "0 in this series, and 78 if every release were made of the whole log so far" in text
    assert "40.0 % (30.0 to 50.0)" in text
    assert "< 0.1 %" in text
    assert "An event is one search." in text


def test_every_link_of_the_contents_has_its_section():
    found = Page(series())
    anchors = {attributes["id"] for _, attributes in found.elements if "id" in attributes}
    assert {one["href"].removeprefix("#") for one in found.all("a")} <= anchors


def test_hostile_text_is_text_wherever_it_stands():
    found = Page(series(" ".join(HOSTILE)))
    assert [tag for tag, _ in found.elements].count("script") == 2
    assert not {tag for tag, _ in found.elements} & {"img", "svg"}
    assert found.text.count("<script>alert(1)</script>") >= 6
