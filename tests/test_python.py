"""The Python side: public names, releases by path, tables, previews, charts, and names of version 0.1."""

import inspect
import sys
from dataclasses import replace
from pathlib import Path

import polars
import pyarrow as pa
import pytest

import queryveil as qv
from queryveil.assess import comparison, reproduce
from queryveil.claims import Verdict
from queryveil.errors import QueryveilWarning
from queryveil.text.tabular import Tabular
from queryveil.verification.verifier import Verification
from tests.reports.compared import made_up

HOSTILE = "<script>alert(1)</script>"
QUERIES = ["cell phone case", "cell phone", HOSTILE, "dogs and cats"]
COLUMNS = {
    "release": "user event query",
    "profile": "group name measure value",
    "evaluation": "group measure label detail value best why",
    "findings": "attack label question setting value low high baseline control succeeds trials",
    "comparison": "configuration method k parameters seed fingerprint kind group measure setting label value low high"
    " best baseline control unit succeeds why separates",
    "sweep": "method theta k concept_min_users min_term_users concepts queries events query_share event_share",
    "verification": "claim holds counterexample how",
}
FULL = ("configuration", "label", "value", "queries")


def functions():
    return [*filter(inspect.isfunction, (getattr(qv, name) for name in qv.__all__))]


@pytest.fixture(scope="module")
def log():
    rows = [(f"{HOSTILE}{i % 12}", QUERIES[(i // 12 + i % 12 // 5) % 4]) for i in range(96)]
    return qv.read_log(pa.table({"user": [user for user, _ in rows], "query": [query for _, query in rows]}))


@pytest.fixture(scope="module")
def release(log):
    return qv.Equality(k=2, link="user").anonymize(log, seed=1)


@pytest.fixture(scope="module")
def folder(release, tmp_path_factory):
    place = tmp_path_factory.mktemp("python") / "release"
    release.save(place)
    return place


@pytest.fixture(scope="module")
def results(log, release):
    """One of each kind of result."""
    wrong = Verdict("Every released query was issued by at least 5 users of the log.", False, HOSTILE)
    return {
        "release": release,
        "profile": qv.profile(log),
        "evaluation": qv.evaluate(release, log, tests=10),
        "findings": qv.attack(release, log, n_known=[1], only=["background_knowledge", "differencing", "attribution"]),
        "comparison": made_up(f" {HOSTILE}"),
        "sweep": qv.sweep(log, ks=[2, 5], thetas=[0.9]),
        "verification": Verification((Verdict("The release was made from this log.", True), wrong), (HOSTILE,)),
    }


def test_completion_shows_the_public_names():
    assert sorted(dir(qv)) == sorted([*qv.__all__, "__version__"])


@pytest.mark.parametrize("name", COLUMNS)
def test_every_result_is_a_table(results, name):
    result = results[name]
    table = result.to_arrow()
    assert isinstance(result, Tabular)
    assert table.column_names == COLUMNS[name].split()
    assert len(table) > 0
    assert [one for one in FULL if one in table.column_names and table[one].null_count == len(table)] == []
    assert pa.table(result).equals(table)
    frame = result.to_polars()
    assert frame.equals(polars.from_arrow(table))
    assert polars.DataFrame(result).equals(frame)
    assert result.to_pandas().shape == table.shape


def test_tables_have_the_numbers_of_their_results(log, results):
    profile, sweep = results["profile"], results["sweep"]
    numbers = {(row["group"], row["name"], row["measure"]): row["value"] for row in profile.to_arrow().to_pylist()}
    assert numbers["log", "", "users"] == profile.users == 12
    assert numbers["queries of at least k users", "k = 5", "queries"] == profile.kept[1].queries
    assert sweep.to_arrow()["query_share"].to_pylist() == [point.queries / log.n_queries for point in sweep.points]
    finding = results["findings"].findings[0]
    first = results["findings"].to_arrow().to_pylist()[0]
    assert (first["attack"], first["value"], first["low"]) == (
        "background_knowledge", finding.estimate.value, finding.estimate.low,
    )  # fmt: skip
    assert results["evaluation"].to_arrow()["label"].to_pylist() == [
        one.label for one in results["evaluation"].measured
    ]
    assert results["verification"].to_arrow()["holds"].to_pylist() == [True, False]


@pytest.mark.parametrize("name", COLUMNS)
def test_a_preview_is_inert(results, name):
    page = results[name]._repr_html_()
    assert page.startswith("<div><p><strong>")
    assert not [word for word in ("<script", "<style", "<link", "<img", "src=", "http:") if word in page]


@pytest.mark.parametrize("name", ["release", "comparison", "verification"])
def test_texts_of_a_log_are_escaped_in_previews(results, name):
    assert "&lt;script&gt;" in results[name]._repr_html_()


def test_the_preview_of_a_release_has_its_method_kind_counts_promises_and_first_rows(release, folder):
    for one in (release, qv.Release.load(folder)):
        page = one._repr_html_()
        assert [text for text in ("equality", "records", "k = 2, link = user", ">96<") if text not in page] == []
        assert [claim.headline for claim in one.manifest.claims if claim.headline not in page] == []
        assert "The first 20 of 96 rows" in page
        assert "cell phone case" in page


def test_the_preview_of_a_log_has_counts_and_no_texts(log):
    page = log._repr_html_()
    assert "distinct queries" in page
    assert ">96<" in page
    assert not [text for text in ("script", *QUERIES) if text in page]
    assert "scrubbed" not in page
    assert "remove: email" in qv.scrub(log, kinds=["email"])._repr_html_()


def test_previews_name_what_was_not_tried_or_checked(results):
    findings = results["findings"]
    assert findings.skipped
    assert "Not tried" in findings._repr_html_()
    assert "Not checked" in results["verification"]._repr_html_()
    assert "1 of 2 checks failed" in results["verification"]._repr_html_()


def test_a_release_is_handed_over_batch_by_batch(release):
    taken = []

    def batches():
        for batch in pa.table(release).to_batches(max_chunksize=10):
            taken.append(len(batch))
            yield batch

    stream = pa.RecordBatchReader.from_stream(replace(release, batches=batches))
    assert taken == []
    assert len(stream.read_next_batch()) == 10
    assert taken == [10]
    assert sum(map(len, stream)) == 86


def test_a_stream_keeps_the_tables_of_its_release(log):
    stream = pa.RecordBatchReader.from_stream(qv.Equality(k=2).anonymize(log, seed=1))
    assert len(stream.read_all()) == 96


def test_an_empty_release_is_an_empty_table(log):
    release = qv.Rules(max_characters=1).anonymize(log, seed=1)
    assert release.to_arrow().num_rows == 0
    assert pa.table(release).column_names == release.schema.names
    assert "0 rows" in release._repr_html_()


def test_a_sweep_is_a_chart_with_a_line_per_method(results):
    found = results["sweep"].chart().to_dict()
    assert len(found["hconcat"]) == 2
    for values in found["datasets"].values():
        assert [(value["method"], value["k"]) for value in values] == [
            (point.method, point.k) for point in results["sweep"].points
        ]


@pytest.mark.parametrize("utility", ["distinct queries", "profiles"])
def test_a_comparison_is_a_chart_with_a_point_per_release(utility):
    found = made_up()
    chart = found.chart(utility).to_dict()
    values = [value for values in chart["datasets"].values() for value in values]
    shown = {config.name for config in found.configurations if found.kept(config.name)[utility] is not None}
    assert {value["configuration"] for value in values} == shown
    meeting = {value["configuration"] for value in values if value["policy"] == "meets the policy"}
    assert meeting == shown & {*found.meeting}
    for part in chart.get("vconcat", [chart]):
        assert (part["encoding"]["color"]["field"], part["encoding"]["shape"]["field"]) == ("method", "policy")


def test_a_chart_that_cannot_be_drawn_is_a_sentence(results, monkeypatch):
    with pytest.raises(qv.QueryveilError, match="There is no utility 'term'; did you mean 'terms'"):
        made_up().chart("term")
    with pytest.raises(qv.QueryveilError, match="There is nothing to draw: no release has a value for term precision"):
        made_up().chart("terms")
    monkeypatch.setitem(sys.modules, "altair", None)
    for result in (results["sweep"], results["comparison"]):
        with pytest.raises(qv.QueryveilError, match=r"^A chart needs altair, .* pip install 'queryveil\[report\]'\.$"):
            result.chart()


def test_every_function_that_takes_a_release_takes_its_folder():
    given = {one.__name__: inspect.signature(one).parameters.get("release") for one in functions()}
    taking = {name: one.annotation for name, one in given.items() if one is not None}
    some = ["attack", "evaluate", "explain", "export", "judge_release", "report", "sign", "verify", "verify_files"]
    some += ["verify_signature"]
    assert taking == dict.fromkeys(some, str | Path | qv.Release)


@pytest.mark.parametrize("kind", [str, Path, qv.Release.load])
def test_a_folder_is_as_good_as_its_release(log, folder, kind, tmp_path):
    given = kind(folder)
    assert qv.verify(given, log).holds
    assert qv.explain(given, log, QUERIES[0]).released
    assert qv.evaluate(given, log, tests=5).method == "equality"
    assert qv.attack(given, log, only=["differencing"], other=given).method == "equality"
    assert qv.judge_release(qv.Policy(), given, log).meets is not True
    public = qv.new_key(tmp_path / "key")
    statement = qv.sign(given, tmp_path / "key", output=tmp_path / "signed.json")
    assert qv.verify_signature(given, public, statement=statement).holds


def test_a_release_that_was_not_saved_cannot_be_signed(release, tmp_path):
    qv.new_key(tmp_path / "key")
    with pytest.raises(qv.QueryveilError, match="save the release and give its folder"):
        qv.sign(release, tmp_path / "key")


def test_how_far_a_function_is_goes_to_progress():
    some = [*functions(), comparison.compare, reproduce.reproduce]
    names = {name for function in some for name in inspect.signature(function).parameters}
    assert not names & {"tell", "watch", "callback", "update", "on_progress"}
    assert "progress" in names


def test_names_of_version_0_1_work_with_a_warning(log, release):
    with pytest.warns(QueryveilWarning, match=r"queryveil\.link is now called queryveil\.categorize"):
        old = qv.link
    assert old is qv.categorize
    with pytest.warns(QueryveilWarning, match="'knowledge' of categorize is now called 'taxonomy'"):
        old(log, knowledge="wordnet")
    steps = []
    with pytest.warns(QueryveilWarning) as caught:
        qv.evaluate(release, log, tests=5, knowledge="wordnet", tell=steps.append)
    assert sorted(str(one.message).split("'")[1] for one in caught) == ["knowledge", "tell"]
    assert steps


@pytest.mark.parametrize(
    "call",
    [
        qv.profile,
        qv.scrub,
        qv.sweep,
        qv.categorize,
        qv.Equality(k=2).anonymize,
        lambda log: qv.verify("release", log),
        lambda log: qv.attack("release", log),
        lambda log: qv.explain("release", log, "tea"),
        lambda log: qv.evaluate("release", log),
        lambda log: qv.compare(log, "folder"),
        lambda log: qv.Release.load("release", log=log),
    ],
)
def test_the_path_of_a_log_is_no_log(call):
    with pytest.raises(qv.QueryveilError, match=r"needs a log: give what read_log returned\. Got a str instead\."):
        call("log.tsv")


def test_a_certificate_may_be_given_by_its_file(log, release, folder, tmp_path):
    release.save_certificate(tmp_path / "a.certificate")
    assert qv.verify(folder, log, certificate=tmp_path / "a.certificate", rebuild=False).holds
    with pytest.raises(qv.QueryveilError, match="cannot be read: it is no file"):
        qv.verify(folder, log, certificate="nowhere.certificate")


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda log: qv.read_log(pa.table({"user": ["a"], "query": ["b"]}), max_bad_rows=3),
            "'max_bad_rows' parameter of read_log must be a share",
        ),
        (lambda log: qv.evaluate("release", log, tests=0), "'tests' parameter of evaluate must be a whole number"),
        (lambda log: qv.compare(log, "folder", tests=0), "'tests' parameter of compare must be a whole number"),
        (lambda log: qv.compare(log, "folder", threads=0), "'threads' parameter of compare must be a whole number"),
        (lambda log: qv.compare(log, "folder", ks=[1, 5]), "'ks' parameter of compare must be a whole number of at le"),
        (lambda log: qv.sweep(log, ks=[1]), "'ks' parameter of sweep must be a whole number of at least 2. Got 1"),
    ],
)
def test_bounds_of_the_command_line_are_those_of_python(log, call, sentence):
    with pytest.raises(qv.QueryveilError, match=sentence):
        call(log)


def test_one_value_is_a_list_of_one(log, release, tmp_path):
    found = qv.attack(release, log, only="sybil", n_known=2)
    assert found == qv.attack(release, log, only=["sybil"], n_known=[2])
    assert {one.attack for one in (*found.findings, *found.skipped)} == {"sybil"}
    with pytest.raises(qv.QueryveilError, match="There is no method 'equalty'; did you mean 'equality'"):
        qv.compare(log, tmp_path / "comparison", methods="equalty", ks=2, epsilons=1.0)
    assert qv.sweep(log, ks=2, thetas=0.9) == qv.sweep(log, ks=[2], thetas=[0.9])


@pytest.mark.parametrize(
    ("call", "old", "new"),
    [
        (lambda log: qv.categorize(log, "wordnet", knowledge="x"), "knowledge", "taxonomy"),
        (lambda log: qv.attack("release", log, m=[1], n_known=[2]), "m", "n_known"),
        (lambda _: qv.Zealous(d=5, max_queries_per_user=6), "d", "max_queries_per_user"),
    ],
)
def test_an_old_name_beside_its_new_one_is_refused(log, call, old, new):
    with pytest.raises(qv.QueryveilError, match=f"'{old}' is the old name of '{new}', so both cannot be given"):
        call(log)


def test_arguments_that_are_not_needed_any_more_are_ignored_with_a_warning(log, release, tmp_path):
    with pytest.warns(QueryveilWarning, match="The argument 'read' of attack has no effect any more"):
        qv.attack(release, log, only="sybil", read=qv.read_log)
    with (
        pytest.warns(QueryveilWarning, match="The argument 'again' of compare has no effect any more"),
        pytest.raises(qv.QueryveilError, match="There is no method 'none'"),
    ):
        qv.compare(log, tmp_path / "comparison", methods="none", again=False)
