"""The whole way in a real browser, from a log to a signed release, as a person goes it."""

import os
import signal
import subprocess
import sys
import time
from itertools import product
from pathlib import Path

import pytest

import queryveil as qv
from queryveil.methods.recipe import load_recipe
from tests.reports.browser import CHROMIUM, DRIVER, browser
from tests.reports.compared import made_up
from tests.reports.conftest import HOSTILE
from tests.studio.app import running
from tests.studio.conftest import write_hostile

pytestmark = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs chromium and chromedriver")
WAY = ("log", "choose", "ask", "browse", "decide", "judge", "sign")


@pytest.fixture(scope="module")
def chromium():
    with browser() as found:
        yield found


@pytest.fixture
def page(chromium):
    """An empty page: that of the test before still asks for its server."""
    for tab in chromium.tabs():
        chromium.to_tab(tab)
        chromium.visit("about:blank")
    chromium.logged("browser")
    return chromium


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Where screenshots are kept: SCREENSHOTS names a folder."""
    folder = Path(os.environ.get("SCREENSHOTS") or tmp_path_factory.mktemp("screenshots"))
    folder.mkdir(exist_ok=True, parents=True)
    return folder


class Studio:
    """The command, in a process of its own."""

    def __init__(self, *words):
        command = [sys.executable, "-m", "queryveil.cli", "studio", *map(str, words), "--no-browser"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.process.stdout.readline()
        self.address = self.process.stdout.readline().removeprefix("Open ").strip()
        assert self.address.startswith("http://127.0.0.1:"), self.process.stderr.read()

    def __enter__(self):
        return self

    def __exit__(self, *why):
        self.stop()

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=60)
        return out + err

    def at(self, path):
        return self.address.partition("/open")[0] + path


def click(page, selector):
    page.run("document.querySelector(arguments[0]).click()", selector)


def type_in(page, selector, text):
    page.run(
        "const e = document.querySelector(arguments[0]); e.value = arguments[1];"
        "e.dispatchEvent(new Event('input', {bubbles: true})); e.dispatchEvent(new Event('change', {bubbles: true}))",
        selector,
        text,
    )


def press(page, words):
    """Press the button with these words."""
    page.until(
        f"return [...document.querySelectorAll('main button')].some(b => b.innerText === '{words}' && !b.disabled)"
    )
    page.run("[...document.querySelectorAll('main button')].find(b => b.innerText === arguments[0]).click()", words)


def done(page, kind, times=1):
    """Wait until a job is done."""
    page.until(
        "const jobs = JSON.parse(document.documentElement.dataset.jobs ?? '[]')"
        f".filter(([, kind]) => kind === '{kind}'); const bad = jobs.find(([, , state]) => state === 'failed');"
        "if (bad) throw new Error(document.getElementById('jobs').innerText);"
        f"return jobs.filter(([, , state]) => state === 'done').length >= {times}"
    )


def settled(page):
    page.until("return document.querySelectorAll('.htmx-request').length === 0")


def slide(page, name, value):
    """Move a slider to a value, and wait for its numbers."""
    page.run(
        "const e = document.getElementById(arguments[0]); const at = e.dataset.values.split(',').indexOf(arguments[1]);"
        "document.getElementById('numbers').dataset.old = 'yes';"
        "e.value = at; e.dispatchEvent(new Event('input', {bubbles: true}))",
        f"f-{name}",
        value,
    )
    page.until("return document.querySelector('#numbers .tile strong') !== null")
    time.sleep(0.3)
    settled(page)


def tiles(page):
    return page.run("return [...document.querySelectorAll('#numbers .tile strong')].map(e => e.innerText)")


def picture(page, folder, name):
    page.until("return document.querySelectorAll('.chart[data-chart]:not(:has(svg))').length === 0")
    page.screenshot(folder / f"{name}.png")


def fits(page):
    wide = page.run(
        "return document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll('main *')]"
        ".filter(e => e.getBoundingClientRect().right > innerWidth && !e.closest('.scroll')).map(e => e.outerHTML)"
    )
    assert wide == []
    assert page.run("return document.documentElement.scrollWidth <= innerWidth")


def test_from_a_log_to_a_signed_release(page, pictures, synthetic, tmp_path):
    project = tmp_path / "project"
    log = qv.read_log(synthetic)
    with Studio(synthetic, "--project", project) as studio:
        page.visit(studio.address)
        page.until("return document.querySelector('h1')?.innerText === 'The log' && document.querySelector('.tile')")
        assert f"{log.n_users:,}" in page.run("return document.querySelector('.tiles').innerText")
        assert page.run("return location.href") == studio.at("/")
        picture(page, pictures, "log")

        page.visit(studio.at("/choose"))
        press(page, "Count what every setting releases")
        page.visit(studio.at("/choose"))  # reloaded in the middle of the work, which goes on
        done(page, "count")
        page.until("return document.querySelector('#numbers .tile')")
        type_in(page, "#name", "affinity")
        press(page, "Begin")
        page.until("return document.getElementById('f-0.theta')")
        found = qv.sweep(log, ks=[4, 5], thetas=[0.8, 0.9])
        for point in found.points:
            if point.theta is None:
                continue
            slide(page, "0.k", str(point.k))
            slide(page, "0.theta", f"{point.theta:g}")
            assert tiles(page)[:2] == [f"{point.queries:,}", f"{point.events:,}"]
        page.run("document.getElementById('f-0.k').focus()")
        page.press("ArrowRight")  # by keyboard, too
        page.until("return document.querySelector('output').innerText === '6'")
        slide(page, "0.k", "4")
        picture(page, pictures, "choose")

        page.visit(studio.at("/decide"))
        for number, (of, text) in enumerate((("query", "google"), ("word", "free")), 1):
            type_in(page, "#of", of)
            type_in(page, "#text", text)
            page.until("return document.querySelector('#hits')?.innerText.includes('This blocks')")
            type_in(page, "#by", "Ann Able")
            press(page, "Add the decision")
            page.until(f"return document.querySelectorAll('main table:has(button) tbody tr').length === {number}")
        picture(page, pictures, "decide")

        page.visit(studio.at("/choose"))
        press(page, "Make the release")
        done(page, "anonymize")

        page.visit(studio.at("/ask"))
        type_in(page, "#query", "google")
        press(page, "Ask")
        assert "It is not in the release" in page.until("return document.querySelector('#answer section')?.innerText")
        released = qv.Release.load(project / "runs/0001/release").to_arrow()["query"].to_pylist()
        assert "google" not in released
        type_in(page, "#query", max(set(released), key=lambda q: (released.count(q), q)))
        press(page, "Ask")
        page.until("return document.querySelector('#answer')?.innerText.includes('It is in the release')")
        if page.run("return document.querySelectorAll('.graph .node').length") > 1:
            page.run("document.querySelectorAll('.graph .node')[1].focus()")
            page.press("Enter")
            settled(page)
        picture(page, pictures, "ask")

        page.visit(studio.at("/browse"))
        page.until("return document.querySelector('.queries tbody tr')")
        assert "·" in page.run("return document.querySelector('.queries').innerText")
        picture(page, pictures, "browse")
        press(page, "Lift the mask")
        page.until("return document.querySelector('main').innerText.includes('as they were typed')")
        type_in(page, "#which", "held")
        page.until("return document.querySelector('#lines').innerText.includes('page 1 of')")
        press(page, "Next")
        page.until("return document.querySelector('#lines').innerText.includes('page 2 of')")
        assert page.run("return document.querySelector('.queries tbody th').innerText") not in released

        page.visit(studio.at("/judge"))
        press(page, "Evaluate and attack")
        done(page, "judge")
        page.until("return document.querySelector('#verdict')")
        picture(page, pictures, "judge")

        page.visit(studio.at("/sign"))
        press(page, "Make a key")
        page.until("return document.querySelector('#key').value")
        type_in(page, "#comment", "Looks fine.")
        press(page, "Sign the release")
        done(page, "sign")
        page.until("return document.querySelector('main').innerText.includes('Signed by Ann Able on ')")
        picture(page, pictures, "sign")
        commands = page.run("return document.querySelector('#commands').innerText").splitlines()
        assert page.logged("browser") == []
        printed = studio.stop()
        assert "free" not in printed

    assert (project.stat().st_mode & 0o777) == 0o700
    run = project / "runs/0001"
    signed = qv.verify_signature(run / "release", project / "signing.key.pub")
    assert signed.holds
    assert signed.statement.predicate.review.name == "Ann Able"
    # The command that it shows gives the same bytes.
    again = subprocess.run(
        commands[0].replace("queryveil", f"{sys.executable} -m queryveil.cli", 1),
        shell=True, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert again.returncode == 0, again.stderr
    for file in ("log.parquet", "manifest.json", "report.md", "schema.json"):
        assert (tmp_path / "again" / file).read_bytes() == (run / "release" / file).read_bytes()
    assert load_recipe(str(run / "recipe.toml")).seed is not None


def test_killed_and_started_again_it_goes_on_with_two_tabs(page, synthetic, tmp_path):
    project = tmp_path / "project"
    with Studio(synthetic, "--project", project) as studio:
        page.visit(studio.address)
        page.until("return document.querySelector('.tile')")
        first = page.tabs()[0]
        page.visit(studio.at("/choose"))
        page.new_tab()
        page.visit(studio.at("/choose"))
        page.run(
            "const e = document.getElementById('f-0.k'); e.value = 1;"
            "e.dispatchEvent(new Event('change', {bubbles: true}))"
        )
        settled(page)
        press(page, "Make the release")
        done(page, "anonymize")
        page.to_tab(first)
        done(page, "anonymize")  # the other tab follows, as soon as it is seen
        page.until("return document.querySelector('#jobs').innerText.includes('Making the release')")
        assert page.run("return document.querySelector('#jobs').innerText").count("Making the release") == 1
        page.until("return document.querySelector('output').innerText === '3'")
        page.run(
            "const e = document.getElementById('f-0.k'); for (const at of [2, 3, 4, 5, 6]) { e.value = at;"
            "for (const kind of ['input', 'change']) e.dispatchEvent(new Event(kind, {bubbles: true})) }"
        )
        time.sleep(0.5)
        settled(page)
        assert page.run("return document.getElementById('alert').innerText") == ""
        slid_to = page.run("return document.querySelector('output').innerText")
        page.to_tab(page.tabs()[1])  # which shows what was chosen before
        page.run("document.getElementById('f-0.k').dispatchEvent(new Event('change', {bubbles: true}))")
        page.until("return document.getElementById('alert').innerText.includes('changed elsewhere')")
        page.visit(studio.at("/choose"))
        assert page.run("return document.querySelector('output').innerText") == slid_to
        studio.stop(signal.SIGKILL)
    with Studio(synthetic, "--project", project) as studio:
        page.visit(studio.address)
        page.until("return document.querySelector('.tile')")
        page.visit(studio.at("/sign"))
        page.until("return document.querySelector('#recipe')?.innerText.includes('k = 3')")
        assert "keeps its promises" in page.run("return document.querySelector('main').innerText")
        command = [sys.executable, "-m", "queryveil.cli", "studio", synthetic, "--project", project, "--no-browser"]
        second = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (second.returncode, "open in another studio" in second.stderr) == (2, True)


def test_hostile_queries_do_nothing_on_any_screen_of_any_width(page, tmp_path):
    log = write_hostile(tmp_path / "log.csv")
    with Studio(log, "--project", tmp_path / "project") as studio:
        page.visit(studio.address)
        page.until("return document.querySelector('.tile')")
        page.visit(studio.at("/decide"))
        for name, text in (("text", HOSTILE[0]), ("comment", HOSTILE[1]), ("by", HOSTILE[1])):
            type_in(page, f"#{name}", text)
        press(page, "Add the decision")
        page.until("return document.querySelector('tbody')")
        page.visit(studio.at("/choose"))
        press(page, "Make the release")
        done(page, "anonymize")
        page.visit(studio.at("/browse"))
        press(page, "Lift the mask")
        page.until("return document.querySelector('main').innerText.includes('as they were typed')")
        for screen, (width, dark) in product(WAY, ((1280, False), (390, True))):
            page.visit(studio.at("/" if screen == "log" else f"/{screen}"), width, dark=dark)
            if screen == "browse":
                page.until("return document.querySelector('.queries tbody')?.innerText.includes('onerror')")
            if screen == "ask":
                type_in(page, "#query", HOSTILE[1])
                press(page, "Ask")
                page.until("return document.querySelector('#answer h2')")
            settled(page)
            fits(page)
            strange = "script:not([src]), img, iframe, [onerror], [onload], [onmouseover]"
            assert page.run(f"return document.querySelectorAll('{strange}').length") == 0
            with pytest.raises(AssertionError, match="no such alert"):
                page.alert()
        page.visit(studio.at("/ask"))
        page.run("document.getElementById('query').value = 'no such query'; document.getElementById('asking').submit()")
        page.until("return document.querySelector('main')?.innerText.includes('Nobody issued')")
        assert page.run("return location.href") == studio.at("/ask")  # even if htmx were not ready
        assert page.logged("browser") == []


def test_a_point_of_the_frontier_loads_its_parameters(page, tmp_path):
    log = write_hostile(tmp_path / "log.csv")
    with running([log], tmp_path / "project") as app:
        app.session.comparison = made_up()
        page.visit(str(app.address))
        page.until("return document.querySelector('.tile')")
        page.visit(f"http://{app.host}/judge")
        page.until("return document.querySelector('[data-click] svg .mark-symbol.role-mark path')")
        x, y, named = page.run(
            "const all = [...document.querySelectorAll('[data-click] svg .mark-symbol.role-mark path')];"
            "const e = all.find(e => e.__data__.datum.name.startsWith('affinity'));"
            "e.scrollIntoView({block: 'center', behavior: 'instant'}); const r = e.getBoundingClientRect();"
            "return [r.x + r.width / 2, r.y + r.height / 2, e.__data__.datum.name]"
        )
        for kind in ("mousePressed", "mouseReleased"):
            page.tell("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        page.until("return document.querySelector('h1').innerText === 'What to release'")
        assert page.run("return location.pathname") == "/choose"
        assert page.run("return document.querySelector('[aria-current]').innerText") == "Choose"
        (step,) = app.session.state.steps
        point = next(one for one in made_up().configurations if one.name == named)
        assert (step.method, step.parameters) == (point.method, point.parameters)
        assert page.logged("browser") == []
        page.visit("about:blank")
