import json
import re
from dataclasses import replace

import pytest

import queryveil as qv
from queryveil.assess.attacks import Findings
from queryveil.assess.evaluation import Measured
from queryveil.assess.measures import retention
from queryveil.assess.policy import Criterion, Judgement, Policy
from queryveil.claims import QueryUsers
from queryveil.reports import release_page, words
from queryveil.reports.charts import utility
from queryveil.reports.releases import commands
from tests.assess.attacks.helpers import read
from tests.reports.conftest import HOSTILE, made_up
from tests.reports.html import Page


def page(release, log, found=None):
    found = found or made_up(release.manifest.method)
    return release_page(found, release.manifest, retention(release, log).bands, [], seed=3)


def small():
    return read([(u, f"cheap dog {i % 3}") for u in range(12) for i in range(4)])


def test_it_shows_what_was_found(reported):
    _, release, path, found = reported
    text = Page(path.read_text()).text
    assert "Search queries, released by equality, k\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}3" in text
    for verdict in found.verification.verdicts:
        assert verdict.claim in text
    for limit in release.manifest.limits:
        assert limit.split("`")[0] in text
    for finding in found.findings.findings:
        assert finding.number in text
    for one in found.evaluation.measured:
        assert one.label in text
    for skipped in found.findings.skipped:
        assert skipped.why in text
    assert f'"input_fingerprint": "{release.manifest.input_fingerprint}"' in text
    assert "For those who may see the log." in text


def test_every_chart_has_words_and_a_table(reported):
    found = Page(reported[2].read_text())
    charts = [one for one in found.all("div") if "chart" in one.get("class", "").split()]
    assert len(charts) >= 5
    assert all(len(chart["aria-label"].split()) > 8 for chart in charts)
    assert len(found.all("figure")) == len(found.all("figcaption")) == 3
    assert len(found.all("table")) >= 4


def test_hostile_queries_are_text(reported):
    found = Page(reported[2].read_text())
    assert [tag for tag, _ in found.elements].count("script") == 2
    assert not {tag for tag, _ in found.elements} & {"img", "iframe", "link", "object", "embed", "base", "form", "svg"}
    assert not [name for _, attributes in found.elements for name in attributes if name.startswith("on")]
    assert {one["href"][0] for one in found.all("a")} == {"#"}
    assert "\u202e" not in found.text


def test_hostile_text_is_text_wherever_it_stands(hostile_page):
    found = Page(hostile_page.read_text())
    assert [tag for tag, _ in found.elements].count("script") == 2
    assert not {tag for tag, _ in found.elements} & {"img", "svg"}
    for text in HOSTILE:
        if text.isprintable():
            assert found.text.count(text) >= 6, text


def test_it_says_nothing_is_without_risk(reported):
    assert not re.search(r"\bsafe", Page(reported[2].read_text()).text, re.IGNORECASE)


def test_no_unreleased_query_and_no_path_is_in_it(reported):
    page = reported[2].read_text()
    assert "secret" not in Page(page).text
    assert str(reported[2].parent) not in page


def test_it_is_small_and_draws_with_one_copy_of_the_library(reported):
    page = reported[2].read_text()
    assert len(page.encode()) < 1_500_000
    assert page.count("window.vegaEmbed=") == 1


def test_the_same_again_gives_the_same_bytes(reported, tmp_path):
    log, release, path, _ = reported
    qv.report(release, log, tmp_path / "again.html")
    assert (tmp_path / "again.html").read_bytes() == path.read_bytes()


def judged(*lines, meets=False):
    return replace(made_up(), judgement=Judgement(meets, lines))


def line(met, found=0.4, why=""):
    return Criterion("linkage", "texts attributed to the right person", 0.09, False, found, found, "share", met, why)


def test_it_opens_with_the_verdict(reported):
    text = Page(reported[2].read_text()).text
    assert text.index(reported[3].judgement.verdict) < text.index("It holds the queries that")
    for one in reported[3].judgement.criteria:
        assert one.label in text
        assert one.limit_text in text.replace("\N{NO-BREAK SPACE}", " ")


@pytest.mark.parametrize(
    ("found", "sentences"),
    [
        (
            judged(line(False, why="Link less.")),
            [
                "The release does not meet the policy.",
                "High risk: texts attributed to the right person: 40.0 %; at most 9.0 % allowed.",
                "Not met:",
                "Link less.",
            ],
        ),
        (judged(line(True, 0.02), meets=True), ["The release meets the policy.", "Low risk:"]),
        (
            judged(line(None, None, "Rerun with the user map."), meets=None),
            ["It is not known whether", "Risk not measured.", "Cannot be said:", "Rerun with the user map."],
        ),
    ],
)
def test_the_verdict_says_why_and_what_to_run(found, sentences):
    log = small()
    text = Page(page(qv.Equality(k=3).anonymize(log), log, found)).text.replace("\N{NO-BREAK SPACE}", " ")
    opening = text[: text.index("It holds the queries that")]
    for sentence in sentences:
        assert sentence in opening


def test_attacks_that_were_not_tried_stand_in_the_opening():
    log = small()
    text = Page(page(qv.Equality(k=3).anonymize(log), log)).text
    assert "Attacks that were not tried: residual personal data" in text[: text.index("It holds the queries that")]


def test_a_release_is_judged_by_the_policy_that_is_given(tmp_path):
    log = small()
    release = qv.Equality(k=3).anonymize(log)
    found = [qv.report(release, log, tmp_path / f"{k}.html", policy=Policy(min_k=k)) for k in (3, 4)]
    assert ["k" in {one.id for one in each.judgement.missed} for each in found] == [False, True]
    assert "--policy POLICY" in (tmp_path / "3.html").read_text()
    qv.report(release, log, tmp_path / "default.html")
    assert "--policy POLICY" not in (tmp_path / "default.html").read_text()


def test_a_refuted_release_is_shown_as_such_without_the_counter_example():
    log = small()
    text = Page(page(qv.Equality(k=3).anonymize(log), log, made_up(holds=False))).text
    assert "The release is refuted." in text
    assert "my secret" not in text


def test_a_claim_that_does_not_hold_is_found(tmp_path):
    log = small()
    release = qv.Equality(k=3).anonymize(log)
    claims = (*release.manifest.claims, QueryUsers(users=13))
    lying = replace(release, manifest=release.manifest.model_copy(update={"claims": claims}))
    found = qv.report(lying, log, tmp_path / "report.html")
    assert not found.verification.holds
    assert "The release is refuted." in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
    ("method", "sentence"),
    [
        (qv.Equality(k=3), "It does not show which searches were one person's."),
        (qv.Wngen(k=3), "It holds no queries."),
        (qv.Odp(k=3), "At least 3 people with similar interests share one record"),
        (qv.Hash(), "This release is not anonymous"),
        (qv.Rules(max_characters=50), "It holds the queries that pass a list of rules"),
        (qv.DpSet(epsilon=50.0, delta=0.1), "random noise"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_releases_of_all_kinds_have_a_page(method, sentence):
    log = small()
    assert sentence in Page(page(method.anonymize(log), log)).text


def test_where_nothing_was_tried_it_says_so():
    log = small()
    nothing = replace(made_up(), findings=Findings("equality", (), ()))
    assert "No attack could be tried." in Page(page(qv.Equality(k=3).anonymize(log), log, nothing)).text


@pytest.mark.parametrize("inside", ["report.html", "deep/report.html"])
def test_it_is_not_written_into_the_release(tmp_path, inside):
    log = small()
    qv.Equality(k=3).anonymize(log).save(tmp_path / "release")
    place = tmp_path / "release" / inside
    place.parent.mkdir(exist_ok=True)
    with pytest.raises(qv.QueryveilError, match="release"):
        qv.report(tmp_path / "release", log, place)
    assert not place.exists()


@pytest.mark.parametrize("name", ["report.pdf", "there.html", "nowhere/report.html"])
def test_it_is_refused_where_it_cannot_be_written(tmp_path, name):
    (tmp_path / "there.html").write_text("mine")
    log = small()
    with pytest.raises(qv.QueryveilError):
        qv.report(qv.Equality(k=3).anonymize(log), log, tmp_path / name)
    assert (tmp_path / "there.html").read_text() == "mine"


def test_another_log_is_refused(tmp_path):
    release = qv.Equality(k=3).anonymize(small())
    with pytest.raises(qv.QueryveilError, match="made from another log"):
        qv.report(release, read([(u, "tea") for u in range(5)]), tmp_path / "report.html")


def caption(*measured):
    found = made_up()
    log = small()
    changed = replace(found, evaluation=replace(found.evaluation, measured=measured))
    text = Page(page(qv.Equality(k=3).anonymize(log), log, changed)).text
    return text.replace("\N{NO-BREAK SPACE}", " ")


def test_what_is_better_than_the_log_is_not_lost():
    better, worse = Measured("completion", "better", 0.9, 0.3), Measured("completion", "worse", 0.2, 0.3)
    unheard = Measured("completion", "unheard", 0.9, 0.0)
    error = Measured("trend_counts", "relative error", 0.6, 0.0)
    least = "Least is lost in completion, {} (90.0 %; the log: {} %), most in completion, worse (20.0 %"
    assert least.format("better", "30.0") in caption(better, worse)
    assert least.format("unheard", "0.0") in caption(worse, unheard)
    assert "most in trend counts, relative error (60.0 %" in caption(worse, error)
    assert "By no measure is the release worse than the log itself." in caption(better, unheard)


@pytest.mark.parametrize("taxonomy", [False, True])
def test_the_commands_name_what_the_report_was_made_with(taxonomy):
    log = small()
    release = qv.Wngen(k=3).anonymize(log)
    changed = release.manifest.model_copy(update={"parameters": release.manifest.parameters | {"taxonomy": "mine"}})
    made, *checks = commands(changed, 0, taxonomy=taxonomy, known_users=True)[1:]
    assert "--taxonomy TAXONOMY" in made
    assert "mine" not in made
    assert len(checks) == 4
    assert ["--taxonomy TAXONOMY" in line for line in checks] == [taxonomy] * 4


def test_the_commands_have_a_user_map_if_the_report_knew_who_is_who(tmp_path):
    log = small()
    qv.Equality(k=3, link="user").anonymize(log).save(tmp_path / "release")
    for release, known in ((tmp_path / "release", False), (qv.Equality(k=3, link="user").anonymize(log), True)):
        qv.report(release, log, tmp_path / "report.html", overwrite=True)
        text = Page((tmp_path / "report.html").read_text()).text
        assert ("queryveil evaluate release --original LOG --user-map map.csv" in text) == known
        assert "such as --format and --columns, are to be given as before" in text


def test_every_table_has_as_many_heads_as_columns():
    log = read([(u, query) for u in range(12) for query in ("cheap dog", f"mail me{u}@example.org", "red cat")])
    log = qv.scrub(log, "mask")
    release = qv.Equality(k=3).anonymize(log)
    source = page(release, log)
    tables = re.findall(r'<table class="data.*?</table>', source, re.DOTALL)
    assert len(tables) >= 6
    for table in tables:
        heads, *rows = re.findall(r"<tr.*?</tr>", table, re.DOTALL)
        sizes = {len(re.findall(r"<t[hd]\b", row)) for row in rows}
        assert sizes == {len(re.findall(r"<t[hd]\b", heads))}, heads
    (scrubbed,) = [table for table in tables if "distinct addresses" in table]
    assert ">email<" in scrubbed


def test_usefulness_is_a_share_of_what_the_log_has():
    measured = (
        Measured("completion", "MRR", 0.1, 0.4),
        Measured("query_frequencies", "", 0.3, 0.0),
        Measured("suggestion", "MRR", 0.02, 0.01, why="too low", separates=False),
    )
    found = utility(measured)
    by_title = {drawing.title: json.dumps(drawing.chart, ensure_ascii=False) for drawing in found.drawings}
    tasks = by_title["Tasks that learn from the release"]
    assert "25.0 % (10.0 of 40.0 %)" in tasks
    assert "share of the log's own value; higher is better →" in tasks
    assert "suggestion" not in tasks
    assert "← lower is better" in by_title["How frequent things are: what is lost"]
    assert "Not drawn, because they say nothing on this log (the table says why): suggestion, MRR." in found.caption
    shares = {row[1]: (row[2], row[5]) for row in found.rows}
    assert shares["completion, MRR"] == ("higher", "25.0 %")
    assert shares["distance of query frequencies (Jensen-Shannon)"] == ("lower", "–")


@pytest.mark.parametrize(
    ("method", "title"),
    [
        (qv.Equality(k=3), "Search queries, released by equality, k = 3"),
        (qv.Equality(k=3, link="user"), "Search histories, released by equality, k = 3"),
        (qv.Mdav(k=3), "Search histories of groups, released by mdav, k = 3"),
    ],
)
def test_the_title_says_what_was_released(method, title):
    manifest = method.anonymize(small()).manifest
    assert words.title(manifest).replace("\N{NO-BREAK SPACE}", " ") == title
