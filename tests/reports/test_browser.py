import time

import pytest

from queryveil.reports import comparison_page, paper_page
from tests.reports.browser import CHROMIUM, DRIVER, browser
from tests.reports.compared import made_up
from tests.reports.conftest import HOSTILE, hostile_log
from tests.reports.test_papers import figures

pytestmark = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs chromium and chromedriver")


@pytest.fixture(scope="module")
def chromium():
    with browser() as found:
        yield found


@pytest.fixture(scope="module")
def comparisons(tmp_path_factory):
    """The page of a comparison, and of one with hostile text wherever text can stand."""
    folder = tmp_path_factory.mktemp("comparisons")
    pages = {"comparison": made_up(), "hostile comparison": made_up(" ".join(HOSTILE))}
    for name, comparison in pages.items():
        (folder / f"{name}.html").write_text(comparison_page(comparison))
    return {name: folder / f"{name}.html" for name in pages}


@pytest.fixture(scope="module")
def paper(tmp_path_factory):
    """The page of a paper, with hostile text wherever text can stand."""
    file = tmp_path_factory.mktemp("papers") / "paper.html"
    hostile = " ".join(HOSTILE)
    made = paper_page("erola2011", figures(hostile), hostile_log(), taxonomy=hostile, seed=0, command=hostile)
    file.write_text(made)
    return file


@pytest.fixture(params=["release", "hostile release", "comparison", "hostile comparison", "paper"])
def page(request):
    if request.param == "paper":
        return request.getfixturevalue("paper")
    if request.param == "release":
        return request.getfixturevalue("reported")[2]
    if request.param == "hostile release":
        return request.getfixturevalue("hostile_page")
    return request.getfixturevalue("comparisons")[request.param]


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_it_draws_all_charts_without_an_error_a_request_or_overflow(chromium, page, width, dark):
    chromium.open(page, width, dark=dark)
    assert chromium.logged("browser") == []
    assert chromium.requests() == [page.resolve().as_uri()]
    charts, marks = chromium.run(
        "const all = [...document.querySelectorAll('.chart')];"
        "return [all.length, all.map(e => e.querySelectorAll('svg .role-mark > *').length)]"
    )
    assert charts == len(marks) >= 3
    assert min(marks) >= 3
    assert chromium.run("return document.documentElement.scrollWidth <= innerWidth")
    assert chromium.run(
        "return [...document.querySelectorAll('.chart:not(.wide) svg')]"
        ".every(e => e.getBoundingClientRect().right <= innerWidth)"
    )


def test_hostile_queries_do_nothing(chromium, page):
    chromium.open(page)
    assert chromium.run("return document.querySelectorAll('script').length") == 2
    assert (
        chromium.run("return document.querySelectorAll('img, iframe, [onerror], [onload], [onmouseover]').length") == 0
    )
    with pytest.raises(AssertionError, match="no such alert"):
        chromium.alert()


def test_the_policy_stops_what_is_not_of_the_page(chromium, page):
    chromium.open(page)
    chromium.run(
        "const s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s);"
        "const i = document.createElement('img'); i.src = 'http://127.0.0.1:9/x.png'; document.body.append(i);"
        "setTimeout(() => { window.evaluated = eval('1 + 1') });"  # the driver's own script may evaluate
        "fetch('http://127.0.0.1:9/').catch(() => {})"
    )
    time.sleep(0.3)
    assert chromium.run("return [window.ran ?? null, window.evaluated ?? null]") == [None, None]
    assert len([line for line in chromium.logged("browser") if "Content Security Policy" in line]) >= 3


def test_marks_have_tooltips(chromium, page):
    chromium.open(page)
    x, y = chromium.run(
        "const at = (mark) => [...document.querySelectorAll(`.chart svg .mark-${mark}.role-mark path`)];"
        "const all = [...at('symbol'), ...at('rect')];"
        "const e = all.find((one) => one.getBoundingClientRect().width > 5);"
        "e.scrollIntoView({block: 'center', behavior: 'instant'}); const r = e.getBoundingClientRect();"
        "return [r.x + r.width / 2, r.y + r.height / 2]"
    )
    chromium.hover(x, y)
    time.sleep(0.3)
    shown = chromium.run("return document.querySelector('#vg-tooltip-element.visible')?.innerText ?? ''")
    assert len(shown.split("\n")) >= 3


def test_on_paper_the_tables_are_unfolded(chromium, page):
    chromium.open(page)
    chromium.run(
        "window.seen = 0; addEventListener('afterprint', () => 0);"
        "addEventListener('beforeprint', () => { window.seen = document.querySelectorAll('details[open]').length })"
    )
    chromium.tell("Page.printToPDF")
    assert chromium.run("return window.seen") == chromium.run(
        "return document.querySelectorAll('details:not(.long)').length"
    )
    assert chromium.run("return document.querySelectorAll('details[open]').length") == 0


def test_charts_that_cannot_be_drawn_are_reported(chromium, reported, tmp_path):
    """The data of the charts is no part of the script, so that the policy still lets that run."""
    page = reported[2].read_text()
    broken = tmp_path / "broken.html"
    broken.write_text(page.replace('id="charts">{', 'id="charts">{NaN', 1))
    chromium.open(broken)
    texts = chromium.run("return [...document.querySelectorAll('.chart')].map((chart) => chart.textContent)")
    assert len(texts) >= 5
    assert set(texts) == {"This chart could not be drawn; the table holds the same numbers."}
    assert chromium.run("return document.documentElement.dataset.drawn") == "no"
