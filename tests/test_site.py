"""The built site, as it is read from disk: every page in a browser, wide and narrow."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.reports.browser import CHROMIUM, DRIVER, browser

pytest.importorskip("material", reason="needs mkdocs-material")
pytestmark = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs chromium and chromedriver")

ROOT = Path(__file__).resolve().parent.parent
WIDTHS = (1280, 390)
CLIPPED = """
const wide = (e) => e.scrollWidth > e.clientWidth + 1;
const named = (e) => e.tagName + " " + e.textContent.trim().slice(0, 60);
const found = [...document.querySelectorAll("article table:not(.highlighttable), .signature pre > code")]
  .map((e) => (e.tagName === "TABLE" ? e.closest(".md-typeset__scrollwrap, .shown") ?? e : e));
return [
  ...(document.documentElement.scrollWidth > innerWidth ? ["the page"] : []),
  ...found.filter((e) => !e.matches(".shown") && wide(e)).map(named),
];
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
        cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, check=True,
    )  # fmt: skip
    return folder


@pytest.fixture(scope="module")
def chromium():
    with browser() as found:
        yield found


def test_no_page_and_no_table_or_signature_on_it_is_wider_than_the_window(site, chromium):
    found = []
    pages = sorted(page for page in site.rglob("*.html") if page.name != "404.html")
    assert len(pages) > 50
    chromium.logged("performance")
    for page in pages:
        chromium.visit(page.as_uri(), WIDTHS[0])
        for width in WIDTHS:
            screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
            chromium.tell("Emulation.setDeviceMetricsOverride", **screen)
            found += [f"{page.relative_to(site)} at {width}: {what}" for what in chromium.run(CLIPPED)]
    assert found == []
    assert [address for address in chromium.requests() if address.startswith("http")] == []


def test_search_works_from_disk(site, chromium):
    chromium.visit((site / "guides" / "dma.html").as_uri())
    chromium.run("document.querySelector('[data-md-component=search-query]').focus()")
    for letter in "zealous":
        for event in ("keyDown", "keyUp"):  # the search begins when a key is let go
            chromium.tell("Input.dispatchKeyEvent", type=event, key=letter, text=letter if event == "keyDown" else "")
    links = chromium.until(
        "const all = [...document.querySelectorAll('.md-search-result__link')].map((e) => e.href);"
        "return all.length ? JSON.stringify(all) : null"
    )
    assert any(link.startswith((site / "methods" / "zealous.html").as_uri()) for link in json.loads(links))


def test_files_that_a_page_shows_are_on_it(site):
    page = (site / "pipeline" / "index.html") if (site / "pipeline").is_dir() else site / "pipeline.html"
    text = page.read_text("utf-8")
    assert "8&lt;" not in text
    assert "query_log_releases" in text
