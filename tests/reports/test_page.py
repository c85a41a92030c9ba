import base64
import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryveil.reports.page import Drawing, Figure, inert_json, render
from tests.reports.html import Page

TEXTS = st.text(st.characters(codec="utf-8"), max_size=40)


@given(st.dictionaries(TEXTS, st.lists(TEXTS)))
def test_json_in_a_page_reads_the_same_and_cannot_leave_its_element(value):
    text = str(inert_json(value))
    assert json.loads(text) == value
    assert not set(text) & set("<>&")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_no_browser_reads_is_not_written(value):
    with pytest.raises(ValueError, match="not JSON compliant"):
        inert_json({"value": value})


def figure(text):
    return Figure(
        "one", text, (Drawing(text, {"description": text}, text),), (("dot main", text),), (text, "n"), ((text, "1"),)
    )


def page(text="</script><b>"):
    given = {"title": text, "version": "1", "fingerprint": "f", "seed": 0, "counts": [], "recommendations": []}
    return render("base.html", [figure(text)], **given)


def test_the_policy_knows_script_and_style_by_their_hashes_and_allows_nothing_else():
    found = Page(page())
    (policy,) = [meta["content"] for meta in found.all("meta") if "http-equiv" in meta]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert "unsafe" not in policy
    texts = {kind: text for kind, text in found.inside if kind == "style" or not text.startswith('{"one-0')}
    for kind in ("script", "style"):
        digest = base64.b64encode(hashlib.sha256(texts[kind].encode()).digest()).decode()
        assert rules[f"{kind}-src"] == f"'sha256-{digest}'"


def test_text_in_titles_and_charts_is_inert():
    found = Page(page("</title></script><img src=x>"))
    assert [tag for tag, _ in found.elements].count("script") == 2
    assert not found.all("img")
