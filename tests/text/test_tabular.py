import sys
from html.parser import HTMLParser

import polars
import pyarrow as pa
import pytest

from queryveil.errors import QueryveilError
from queryveil.text.tabular import ROWS, Tabular, html_facts, html_list, html_rows, html_table

HOSTILE = '<script>alert("&")</script>\x1b[31m'


class Numbers(Tabular):
    def __init__(self, n=3):
        self.n = n

    def to_arrow(self):
        texts = [None, *[f"{HOSTILE}{i}" for i in range(1, self.n)]]
        return pa.table({"n": range(self.n), "half": [i / 2 for i in range(self.n)], "text": texts})


class Page(HTMLParser):
    """The tags of a page, and the texts of its cells with their style."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.cells, self._style = [], [], None
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag in ("td", "th"):
            self._style = dict(attrs)["style"]
            self.cells.append([self._style, ""])

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self._style = None

    def handle_data(self, data):
        if self._style is not None:
            self.cells[-1][1] += data


def sides(page):
    return {text: style.removeprefix("text-align:") for style, text in Page(page).cells}


def test_a_table_is_taken_by_arrow_pandas_and_polars():
    numbers = Numbers()
    assert pa.table(numbers).equals(numbers.to_arrow())
    assert polars.DataFrame(numbers).equals(numbers.to_polars())
    assert numbers.to_polars().rows() == [tuple(row.values()) for row in numbers.to_arrow().to_pylist()]
    assert numbers.to_pandas()["half"].tolist() == [0.0, 0.5, 1.0]


def test_a_consumer_may_ask_for_another_schema():
    wanted = pa.schema([("n", pa.int32()), ("half", pa.float32()), ("text", pa.large_string())])
    assert pa.table(Numbers(), schema=wanted).schema == wanted


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_missing_package_is_one_sentence(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(QueryveilError) as caught:
        getattr(Numbers(), f"to_{package}")()
    assert str(caught.value) == (
        f"A data frame needs {package}, which is not installed; get it with: pip install 'queryveil[frames]'."
    )


def test_a_preview_has_a_title_the_first_rows_and_how_many_there_are():
    page = Numbers(30)._repr_html_()
    assert "<strong>Numbers</strong>" in page
    assert f"<p>The first {ROWS} of 30 rows.</p>" in page
    assert len(Page(page).cells) == 3 * (ROWS + 1)
    assert "<p>3 rows.</p>" in Numbers()._repr_html_()
    assert "<p>1 row.</p>" in Numbers(1)._repr_html_()
    assert "<p>The first 20 of 5,000 rows.</p>" in html_table("", Numbers(20).to_arrow(), 5_000)


def test_numbers_are_aligned_right_and_texts_left():
    found = sides(Numbers()._repr_html_())
    assert (found["n"], found["2"], found["0.5"], found["text"]) == ("right", "right", "right", "left")
    facts = sides(html_facts("", [("events", 12_345), ("share", 0.25), ("method", "odp"), ("holds", True)]))
    assert (facts["12,345"], facts["0.25"], facts["odp"], facts["yes"]) == ("right", "right", "left", "left")
    given = sides(html_rows("", ("share", "note"), [("14.8 %", "5")], ("share",)))
    assert given == {"share": "right", "14.8 %": "right", "note": "left", "5": "left"}


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (False, "no"), (1_234, "1,234"), (1 / 3, "0.3333"), (1_234_567.8, "1,234,568"), (-0.00001, "-1e-05")],
)
def test_how_values_are_shown(value, text):
    assert [cell[1] for cell in Page(html_rows("", ("x",), [(value,)], ())).cells] == ["x", text]


@pytest.mark.parametrize(
    "page",
    [
        Numbers()._repr_html_(),
        html_table(HOSTILE, pa.table({HOSTILE: [HOSTILE]})),
        html_facts(HOSTILE, [(HOSTILE, HOSTILE)]),
        html_list(HOSTILE, [HOSTILE]),
    ],
)
def test_whatever_a_text_is_it_stays_text(page):
    tags = {"div", "p", "strong", "table", "thead", "tbody", "tr", "th", "td", "ul", "li"}
    assert set(Page(page).tags) <= tags
    assert "&lt;script&gt;" in page
    assert page.isprintable()


def test_of_a_long_text_the_beginning_is_shown():
    (_, cell) = Page(html_rows("", ("query",), [("x" * 1_000,)], ())).cells
    assert cell[1] == "x" * 199 + "…"


def test_a_list_without_sentences_is_nothing():
    assert html_list("Not tried", []) == ""
