"""What a publisher says about a release."""

import json

import pyarrow as pa
import pytest

import queryveil as qv
from queryveil.errors import QueryveilError
from queryveil.methods.recipe import load_recipe
from queryveil.release.summary import title_of

HOSTILE = "<script>alert(1)</script> [x](http://evil.example) | `y`"
SAID = qv.About.of(
    title=HOSTILE,
    source="example.com",
    contact="data@example.com",
    published="2026-05-01",
    covers="2026-01-01/2026-03-31",
)


@pytest.fixture
def log():
    return qv.read_log(pa.table({"user": ["a", "b"], "query": ["tea", "tea"]}))


def test_it_is_in_all_files_and_inert(log, tmp_path):
    qv.Equality(k=2).anonymize(log).save(tmp_path / "r", about=SAID)
    assert json.loads((tmp_path / "r" / "manifest.json").read_text())["about"]["title"] == HOSTILE
    assert json.loads((tmp_path / "r" / "schema.json").read_text())["about"]["contact"] == "data@example.com"
    report = (tmp_path / "r" / "report.md").read_text()
    assert report.startswith("# \\<script\\>alert\\(1\\)")
    assert "| covers | 2026-01-01 to 2026-03-31 |" in report
    assert "<script>" not in report
    assert "](" not in report
    assert qv.verify(tmp_path / "r", log).holds
    qv.export(tmp_path / "r", tmp_path / "e")
    assert json.loads((tmp_path / "e" / "schema.json").read_text())["about"]["source"] == "example.com"


def test_without_it_a_release_is_titled_by_what_it_is(log, tmp_path):
    release = qv.Equality(k=2).anonymize(log)
    release.save(tmp_path / "r")
    assert "about" not in json.loads((tmp_path / "r" / "manifest.json").read_text())
    assert (tmp_path / "r" / "report.md").read_text().startswith("# Release of events by equality\n")
    assert title_of(release.manifest) == "Release of events by equality"


def test_a_manifest_with_other_words_is_refuted(log, tmp_path):
    qv.Equality(k=2).anonymize(log).save(tmp_path / "r", about=qv.About.of(title="one"))
    manifest = tmp_path / "r" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"title": "one"', '"title": "two"'))
    assert not qv.verify(tmp_path / "r", log).holds
    manifest.write_text(manifest.read_text().replace('"title": "two"', '"title": "a\\u202eb"'))
    with pytest.raises(QueryveilError, match=r"damaged at 'about\.title'"):
        qv.Release.load(tmp_path / "r")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("title", ""),
        ("title", "a\nb"),
        ("source", "x" * 201),
        ("contact", "\x1b[31m"),
        ("published", "2026-02-30"),
        ("published", "20260201"),
        ("covers", "2026-03-01"),
        ("covers", "2026-03-02/2026-03-01"),
    ],
)
def test_what_cannot_be_said_is_one_sentence(name, value):
    with pytest.raises(QueryveilError, match=f"The '{name}' parameter of About.of takes"):
        qv.About.of(**{name: value})


def test_a_recipe_has_it_too(tmp_path):
    path = tmp_path / "r.toml"
    path.write_text('method = "equality"\n[about]\ntitle = "Queries"\n')
    assert load_recipe(str(path)).about == qv.About.of(title="Queries")
    path.write_text('method = "equality"\n[about]\npublished = "today"\n')
    with pytest.raises(QueryveilError, match=r"fault at 'about\.published'"):
        load_recipe(str(path))
