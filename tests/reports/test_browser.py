import shutil
import subprocess
import time

import pytest

from queryveil.reports import comparison_page, paper_page
from queryveil.reports.page import source, templates
from tests.reports.browser import CHROMIUM, DRIVER, browser
from tests.reports.compared import made_up
from tests.reports.conftest import HOSTILE, hostile_log
from tests.reports.test_papers import figures
from tests.reports.test_series import series as made_up_series

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


@pytest.fixture(scope="module")
def series(tmp_path_factory):
    """The page of a series, with hostile text wherever text can stand."""
    file = tmp_path_factory.mktemp("series") / "series.html"
    file.write_text(made_up_series(" ".join(HOSTILE)))
    return file


@pytest.fixture(params=["release", "hostile release", "comparison", "hostile comparison", "paper", "series"])
def page(request):
    if request.param in ("paper", "series"):
        return request.getfixturevalue(request.param)
    if request.param == "release":
        return request.getfixturevalue("reported")[2]
    if request.param == "hostile release":
        return request.getfixturevalue("hostile_page")
    return request.getfixturevalue("comparisons")[request.param]


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_it_draws_all_charts_without_an_error_a_request_or_overflow(chromium, page, width, dark):
    chromium.open(page, width, dark=dark)
    assert chromium.logged("browser") == []
    assert chromium.requests() == [page.resolve().as_uri()]
    charts, marks = chromium.run(
        "const all = [...document.querySelectorAll('.chart')];"
        "return [all.length, all.map(e => e.querySelectorAll('svg .role-mark > *').length)]"
    )
    assert charts == len(marks) >= 2
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


def releases(chromium):
    """The first cells of the rows of the table of all releases, in the order in which they are shown."""
    return chromium.run(
        "return [...document.querySelectorAll('#configurations tbody tr:not([hidden])')]"
        ".map((row) => [...row.cells].map((cell) => cell.innerText))"
    )


def head(chromium, name, do="click"):
    """Click, or bring the focus to, the head of a column; and say how the column is sorted."""
    return chromium.run(
        "const found = [...document.querySelectorAll('#configurations thead th')]"
        f".find((one) => one.innerText.startsWith(arguments[0])); found.querySelector('button').{do}();"
        "return found.getAttribute('aria-sort')",
        name,
    )


def as_number(text):
    return float(text.replace("\N{NO-BREAK SPACE}", " ").removesuffix(" %"))


def test_a_table_is_sorted_by_a_column_and_goes_back_to_its_order(chromium, comparisons):
    chromium.open(comparisons["comparison"])
    first = releases(chromium)
    assert head(chromium, "queries") == "ascending"
    up = [row[4] for row in releases(chromium)]
    assert head(chromium, "queries") == "descending"
    down = [row[4] for row in releases(chromium)]
    for found, order in ((up, 1), (down, -1)):
        known = [as_number(text) for text in found if text != "–"]
        assert 5 < len(known) < len(found)
        assert known == sorted(known)[::order]
        assert set(found[len(known) :]) == {"–"}  # what has no number is last in both directions
    assert head(chromium, "queries") == "none"
    assert releases(chromium) == first


def test_shares_of_different_wholes_are_sorted_as_shares(chromium, comparisons):
    chromium.open(comparisons["comparison"])
    head(chromium, "attacks that succeed")
    found = [row[8].split(" of ") for row in releases(chromium)]
    shares = [int(part) / int(whole) for part, whole in found]
    assert shares == sorted(shares)
    assert len({whole for _, whole in found}) > 1


def test_a_table_is_sorted_with_the_keyboard_and_one_column_at_a_time(chromium, comparisons):
    chromium.open(comparisons["comparison"])
    head(chromium, "risk", "focus")
    chromium.press("Enter")
    assert head(chromium, "risk", "focus") == "ascending"
    known = [as_number(row[3].replace("< ", "")) for row in releases(chromium)]
    assert known == sorted(known)
    head(chromium, "release")
    sorted_by = chromium.run(
        "return [...document.querySelectorAll('#configurations th[aria-sort]:not([aria-sort=none])')]"
        ".map((one) => one.innerText)"
    )
    assert sorted_by == ["release ↑"]


def test_a_table_shows_only_rows_with_all_words(chromium, comparisons):
    chromium.open(comparisons["hostile comparison"])
    every = len(releases(chromium))
    chromium.run(
        "const field = document.querySelector('#configurations .filter input');"
        "field.value = arguments[0]; field.dispatchEvent(new Event('input'))",
        "MEETS affinity <script>",
    )
    found = releases(chromium)
    assert 0 < len(found) < every
    assert all("affinity" in row[0] and row[2] == "meets" for row in found)
    shown = chromium.run("return document.querySelector('#configurations .filter output').innerText")
    assert shown == f"{len(found)} of {every} rows"


def test_numbers_are_understood_in_every_form_that_reports_have(chromium, tmp_path):
    order = ["-3.0 %", "0.0 %", "5 in 100,000", "< 0.1 %", "14.8 % (12.0 to 17.1)", "> 99.9 %", "2", "1,234", "–"]
    rows = [(f"row {i}", text) for i, text in enumerate(reversed(order))]
    environment = templates()
    table = environment.from_string('{% import "parts.html" as parts %}{{ parts.table(("n", "value"), rows) }}')
    script = source(environment, "tables.js")
    file = tmp_path / "numbers.html"
    file.write_text(f"<html data-drawn='yes'>{table.render(rows=rows)}<script>{script}</script>")
    chromium.open(file)
    chromium.run("document.querySelectorAll('thead button')[1].click()")
    found = chromium.run("return [...document.querySelectorAll('tbody tr')].map((row) => row.cells[1].innerText)")
    assert [text.replace("\N{NO-BREAK SPACE}", " ") for text in found] == order


def test_labels_of_rows_stay_when_a_heat_map_is_scrolled_sideways(chromium, comparisons):
    chromium.open(comparisons["comparison"], 390)
    before, after, moved = chromium.run(
        "const box = document.querySelector('#attacks .scroll'), label = box.querySelector('tbody th');"
        "const field = box.querySelector('tbody td'), at = (e) => e.getBoundingClientRect().left;"
        "const was = [at(label), at(field)]; box.scrollLeft = 150;"
        "return [was[0], at(label), was[1] - at(field)]"
    )
    assert moved >= 100
    assert after == pytest.approx(before, abs=1)


def test_fields_without_a_number_are_hatched_on_screen_and_paper(chromium, comparisons):
    chromium.open(comparisons["comparison"])
    script = (
        "const of = (name) => getComputedStyle(document.querySelector(`#attacks td.${name}`));"
        "return [of('none').backgroundImage, of('h10').backgroundImage, of('h10').printColorAdjust]"
    )
    for media in ("screen", "print"):
        chromium.tell("Emulation.setEmulatedMedia", media=media)
        hatched, plain, adjust = chromium.run(script)
        assert hatched.startswith("repeating-linear-gradient")
        assert plain == "none"
        assert adjust == "exact"
    chromium.tell("Emulation.setEmulatedMedia", media="")


@pytest.mark.skipif(not shutil.which("pdftoppm"), reason="needs pdftoppm, of poppler-utils")
@pytest.mark.parametrize("name", ["release", "comparison"])
def test_no_printed_page_is_nearly_empty(chromium, comparisons, reported, tmp_path, name):
    chromium.open(reported[2] if name == "release" else comparisons[name])
    chromium.pdf(tmp_path / "page.pdf")
    subprocess.run(["pdftoppm", "-r", "10", "-gray", tmp_path / "page.pdf", tmp_path / "page"], check=True)
    pages = sorted(tmp_path.glob("page-*.pgm"))
    assert len(pages) >= 5
    for page in pages[:-1]:
        lines = ink(page)
        assert max(lines) > 0.55 * 117, page.name
    assert max(ink(pages[-1])) > 0.1 * 117


def ink(file):
    """The lines of a picture that are not empty; it has 117 of them."""
    _, size, _, data = file.read_bytes().split(b"\n", 3)
    width = int(size.split()[0])
    return [i // width for i in range(0, len(data), width) if min(data[i : i + width]) < 200]


def test_charts_fit_on_a_page_and_are_not_split(chromium, page):
    chromium.open(page)
    chromium.tell("Emulation.setEmulatedMedia", media="print")
    found = chromium.run(
        "return [...document.querySelectorAll('.drawing')].map((one) => "
        "[getComputedStyle(one).breakInside, one.querySelector('svg').getBoundingClientRect().height])"
    )
    chromium.tell("Emulation.setEmulatedMedia", media="")
    assert {inside for inside, _ in found} == {"avoid"}
    assert max(height for _, height in found) <= 85 / 25.4 * 96 + 1
    assert chromium.run("return getComputedStyle(document.querySelector('.drawing')).breakInside") == "auto"


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
