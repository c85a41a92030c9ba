"""The verifier and the words of a release: the same languages, the same dictionaries, or no verdict."""

import json
from dataclasses import replace

import pyarrow as pa
import pytest

import queryveil as qv
from queryveil.errors import QueryveilError
from queryveil.log import Hits
from queryveil.release.manifest import Languages, languages_of
from queryveil.text import language
from queryveil.text.cutting import CHARACTERS

needs_dictionaries = pytest.mark.skipif(
    CHARACTERS in language().dictionaries(-1).values(), reason="needs the extra cjk"
)
CHINESE = ["北京天气", "北京天气预报", "上海天气", "手机价格", "手机报价", "免费电影"]
ROWS = {"user": [f"u{i}" for i in range(6) for _ in CHINESE], "query": CHINESE * 6}


def log_of(rows, **more):
    return qv.read_log(pa.table(rows), **more)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A log in Chinese, and the folder of a release that depends on its words."""
    folder = tmp_path_factory.mktemp("zh") / "release"
    log = log_of(ROWS)
    qv.Rules(min_term_users=5, max_terms=3).anonymize(log, seed=1).save(folder)
    return log, folder


def stated(release, **changes):
    """A release whose manifest says something else about languages; the log and the table stay."""
    language = release.manifest.language.model_copy(update=changes)
    return replace(release, manifest=release.manifest.model_copy(update={"language": language}), folder=None)


@needs_dictionaries
def test_a_release_names_its_languages_and_dictionaries_and_holds(made):
    log, folder = made
    found = json.loads((folder / "manifest.json").read_text("utf-8"))["language"]
    assert found["ids"] == ["en"]
    assert list(found["dictionaries"]) == ["Chinese"]
    assert found["dictionaries"]["Chinese"].startswith("rjieba ")
    assert "## Language" in (folder / "report.md").read_text("utf-8")
    seen = qv.verify(folder, log)
    assert seen.holds
    assert seen.unchecked == ()


def test_a_release_in_english_says_nothing_of_language(tmp_path):
    log = log_of({"user": ["a", "b"], "query": ["tea pot", "tea pot"]})
    qv.Equality(k=2).anonymize(log, seed=1).save(tmp_path / "release")
    assert "language" not in json.loads((tmp_path / "release" / "manifest.json").read_text("utf-8"))
    assert "Language" not in (tmp_path / "release" / "report.md").read_text("utf-8")


@needs_dictionaries
def test_another_version_of_a_dictionary_is_said_where_everything_holds_all_the_same(made):
    log, folder = made
    other = stated(qv.Release.load(folder), dictionaries={"Chinese": "rjieba 0.0.1"})
    seen = qv.verify(other, log)
    assert seen.holds
    assert "Chinese was cut with rjieba 0.0.1 when it was made, and is cut with rjieba" in seen.unchecked[0]


@needs_dictionaries
def test_another_dictionary_does_not_refute_and_does_not_accept(made):
    log, folder = made
    release = qv.Release.load(folder)
    # Without a dictionary queries have more words than the three that are promised.
    characters = replace(
        log.language,
        cutters=tuple(replace(one, cutter=replace(one.cutter, dictionary=CHARACTERS)) for one in log.language.cutters),
    )
    rows = log_of(ROWS)
    rows.language = characters
    few = stated(release, dictionaries={"Chinese": "rjieba 0.0.1"})
    claims = tuple(claim.model_copy(update={"max_terms": 1}) if claim.kind == "query-spelling" else claim
                   for claim in few.manifest.claims)  # fmt: skip
    parameters = few.manifest.parameters | {"max_terms": 1}
    wrong = replace(few, manifest=few.manifest.model_copy(update={"claims": claims, "parameters": parameters}))
    with pytest.raises(QueryveilError, match=r"cannot be checked here, because Chinese was cut with rjieba 0\.0\.1"):
        qv.verify(wrong, log)
    same = stated(wrong, dictionaries=release.manifest.language.dictionaries)
    assert not qv.verify(same, log).holds  # with the same dictionary it is refuted
    with pytest.raises(QueryveilError, match="and is cut with characters here"):
        qv.verify(replace(wrong, manifest=same.manifest), rows)


@needs_dictionaries
@pytest.mark.parametrize("dictionaries", [{}, {"Thai": "pythainlp 5"}, {"Japanese": "x 1", "Chinese": "y 2"}])
def test_dictionaries_that_the_log_does_not_need_are_no_way_out(made, dictionaries):
    log, folder = made
    here = log.language.dictionaries(-1)
    forged = stated(qv.Release.load(folder), dictionaries={name: here[name] for name in dictionaries})
    assert "names dictionaries of other languages" in str(
        [verdict.counterexample for verdict in qv.verify(forged, log).verdicts if not verdict.holds]
    )


def test_a_false_version_excuses_nothing_but_words():
    """Somebody raises k in the manifest, and names a dictionary that nobody has."""
    log = log_of(ROWS)
    release = qv.Equality(k=2).anonymize(log, seed=1)
    more = {"claims": tuple(one.model_copy(update={"users": 50}) if one.kind == "query-users" else one
                            for one in release.manifest.claims)}  # fmt: skip
    more["parameters"] = release.manifest.parameters | {"k": 50}
    forged = replace(release, manifest=release.manifest.model_copy(update=more))
    for dictionaries in ({"Chinese": "rjieba 9.9.9"}, {"Chinese": "rjieba 9.9.9", "Thai": "pythainlp 9"}):
        assert not qv.verify(stated(forged, dictionaries=dictionaries), log).holds


def test_another_version_of_lists_of_numbers_does_not_refute_and_does_not_accept(monkeypatch):
    pytest.importorskip("phonenumbers")
    rows = {"user": list("abcd"), "query": ["tea", "tea", "tea", "call 212 555 0199 now"]}
    log = qv.read_log(pa.table(rows))
    release = qv.Pipeline([qv.Scrub(), qv.Equality(k=2)]).anonymize(log, seed=1)
    assert set(release.manifest.scrub.packages) == {"phonenumbers", "python-stdnum"}
    assert qv.verify(release, log).unchecked == ()

    def with_scrub(**changes):
        scrub = release.manifest.scrub.model_copy(update=changes)
        return replace(release, manifest=release.manifest.model_copy(update={"scrub": scrub}))

    older = {"phonenumbers": "1.0"}
    assert "scrubbed with phonenumbers 1.0, which is" in qv.verify(with_scrub(packages=older), log).unchecked[0]
    none = {"hits": {}, "total": Hits(queries=0, events=0)}
    assert not qv.verify(with_scrub(**none), log).holds
    with pytest.raises(QueryveilError, match=r"cannot be checked here, because its log was scrubbed with phonenumbers"):
        qv.verify(with_scrub(**none, packages=older), log)
    with pytest.raises(QueryveilError, match="with os 1, which is not used here"):
        qv.verify(with_scrub(**none, packages={"os": "1"}), log)


def test_a_log_read_in_another_language_is_refused_with_what_to_do(made):
    with pytest.raises(QueryveilError, match="in the languages en, and the log was read in de,en; read it with"):
        qv.verify(made[1], log_of(ROWS, language=["de", "en"]))


def test_draws_differ_between_languages_so_that_releases_cannot_be_matched():
    rows = {"user": [f"u{i}" for i in range(40)], "query": ["tea", "pot"] * 20}
    english, german = (
        qv.Equality(k=2, link="user").anonymize(log_of(rows, language=id), seed=3).to_arrow()["query"].to_pylist()
        for id in ("en", "de")
    )
    assert english != german


@pytest.mark.parametrize("wrong", [{"ids": []}, {"ids": ["e"]}, {"ids": ["en"], "dictionaries": {"C": "x\x1b[2J"}}])
def test_a_manifest_with_hostile_languages_is_refused(wrong):
    with pytest.raises(ValueError, match="validation error"):
        Languages(**wrong)


def test_a_private_release_names_only_dictionaries_of_named_languages():
    log = log_of(ROWS)
    assert languages_of(log, private=True) is None
    assert list(languages_of(log_of(ROWS, language="zh"), private=True).dictionaries) == ["Chinese"]
