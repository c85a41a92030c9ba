"""What the screens say: exact numbers, masked texts, decisions that hold; and that an audit writes nothing."""

import hashlib
import html
import json
import re
import subprocess
import sys
import threading

import pytest

import queryveil as qv
from queryveil.methods import METHODS
from queryveil.methods.recipe import RecipeStep, load_recipe, shipped
from queryveil.reports.examples import shape
from queryveil.scrubbing.decisions import Decision, Decisions
from queryveil.studio.app import ACTIONS, PAGES
from queryveil.studio.browsing import Browsing
from queryveil.studio.decided import mark
from queryveil.studio.mapping import mapped, preview
from queryveil.studio.project import Reading
from queryveil.studio.settings import begun_with, fields_of, method_of, steps_of, written_recipe
from tests.studio.app import running, shown

ROWS = [
    *[(f"u{u}", query) for query in ("cat food", "dog food", "weather", "zebra crossing") for u in range(8)],
    *[(f"u{u}", "cat food cheap") for u in range(3)],
    *[(f"u{u}", "my rare secret") for u in range(1)],
    *[(f"u{u}", f"john smith 212-555-01{u}0") for u in range(8)],
]


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    path = tmp_path_factory.mktemp("screens") / "log.csv"
    path.write_text("user,query\n" + "".join(f"{user},{query}\n" for user, query in ROWS))
    return path


@pytest.fixture(scope="module")
def app(log, tmp_path_factory):
    """An app with tables behind its sliders, two decisions and a release."""
    with running([log], tmp_path_factory.mktemp("screens") / "project") as found:
        found.open()
        found.do("count")
        found.post("/decide", kind="block", of="query", text="Weather", by="Ann", comment="no")
        found.post("/decide", kind="block", of="word", text="zebra", by="Ann")
        found.post("/choose/begin", name="equality")
        found.post("/choose/at", **at(k="4"))
        found.do("anonymize")
        yield found


def at(place=0, **values):
    """The fields of sliders at some values."""
    form = {f"{place}.form": "yes"}
    for name, value in values.items():
        form |= {f"{place}.{name}.values": f"1,{value}", f"{place}.{name}.at": "1"}
    return form


def tiles(text):
    return re.findall(r"<strong>([^<]*)</strong>", text)


def files_of(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("k", [2, 3, 5, 8])
@pytest.mark.parametrize("theta", [None, 0.7, 1.0])
def test_sliders_show_what_a_release_holds(app, log, k, theta):
    read = qv.read_log(log)
    steps = list(app.session.state.steps)
    app.post("/choose/begin", name="equality" if theta is None else "affinity")
    values = {"k": str(k)} if theta is None else {"k": str(k), "theta": f"{theta:g}"}
    found = tiles(app.post("/choose/at", **at(**values)))
    method = qv.Equality(k=k) if theta is None else qv.Affinity(k=k, theta=theta)
    counts = method.anonymize(read, seed=1).manifest.counts
    app.session.change(steps=steps)
    assert found[:2] == [f"{counts.queries:,}", f"{counts.events:,}"]


def test_a_setting_that_was_not_counted_says_so(app):
    steps = list(app.session.state.steps)
    app.post("/choose/begin", name="affinity")
    assert "other parameters" in shown(app.post("/choose/at", **at(k="5"), **{"0.link": "user"}))
    app.session.change(steps=steps)


@pytest.mark.parametrize(
    ("path", "form", "sentence"),
    [
        ("/choose/at", at(k="1"), "must be an integer of at least 2"),
        ("/choose/at", {"0.k.values": "2", "0.k.at": "7"}, "no such position"),
        ("/choose/at", {"0.k.values": "2", "0.k.at": "²"}, "no such position"),
        ("/choose/begin", {"name": "nothing"}, "no method"),
        ("/choose/add", {"name": "scrub2"}, "no such step"),
        ("/choose/add", {"name": "zealous"}, "cannot follow"),
        ("/choose/drop", {"place": "0"}, "at least one step"),
        ("/choose/load", {"name": "x"}, "no such release"),
        ("/ask", {"query": " "}, "Type a query"),
        ("/ask", {"query_id": "999999"}, "no such query"),
        ("/ask", {"query_id": "-1"}, "whole number"),
        ("/browse", {"which": "all"}, "no such list"),
        ("/mask", {"lift": "yes"}, "who lifts"),
        ("/decide", {"kind": "burn", "of": "query", "text": "x", "by": "x"}, "blocks or allows"),
        ("/decide", {"kind": "block", "of": "query", "text": "", "by": "x"}, "not empty"),
        ("/judge/compare", {"ks": "5"}, "at least one method"),
        ("/judge/compare", {"ks": "1", "method.equality": "on"}, "at least 2"),
        ("/jobs/start", {"kind": "x"}, "no such work"),
        ("/sign", {"key": "", "name": "Ann"}, "private key"),
        ("/sign", {"key": "x", "name": " "}, "A review has a name"),
        ("/sign", {"key": "x\0", "name": "Ann"}, "private key"),
        ("/sign", {"key": "x", "name": "Ann", "manifest": "00"}, "another one than the page showed"),
        ("/decide/drop", {"decision": "00", "by": "Ann"}, "no such decision"),
        ("/decide/drop", {"decision": "00"}, "who takes"),
    ],
)
def test_what_is_wrong_is_one_sentence_and_changes_nothing(app, path, form, sentence):
    before = app.session.state.model_copy(deep=True)
    status, headers, text = app.ask("POST", path, app.fresh(path, form))
    assert (status, sentence in shown(text), headers["hx-retarget"]) == (422, True, "#alert")
    assert app.session.state == before


def test_a_policy_that_was_not_judged_is_not_stated(app):
    form = {"key": "x", "name": "Ann", "policy": "on", "manifest": app.session.manifest_sha256}
    status, _, text = app.ask("POST", "/sign", form)
    assert (status, "not judged yet" in shown(text)) == (422, True)


def test_texts_are_masked_until_somebody_lifts_the_mask(app):
    lists = [
        {"which": which, "order": order} for which in ("released", "held") for order in ("random", "longest", "users")
    ]
    masked = "".join([*(app.post("/browse", **one) for one in lists), app.get("/decide"), app.get("/judge")])
    for word in ("secret", "smith", "555", "weather"):
        assert word not in masked.lower()
    app.post("/mask", lift="yes", by="Ann <b>", why="to see")
    assert "my rare secret" in app.post("/browse", which="held", order="random")
    app.post("/mask")
    assert "secret" not in app.post("/browse", which="held", order="random")
    assert [(one.what, one.by, one.about) for one in app.session.project.journal[:2]] == [
        ("masked texts again", "", ""),
        ("lifted the mask", "Ann <b>", "to see"),
    ]


def test_a_page_has_the_queries_that_were_asked_for(app, monkeypatch):
    for flagged in ({}, {"flagged": "on"}):  # on a busy machine these lists are not there at once
        app.post("/browse", **flagged)
        app.session.jobs.wait()
    assert "2 queries" in shown(app.post("/browse", which="released", order="users"))
    assert "1 query" in shown(app.post("/browse", which="held", contains="RARE"))
    assert "2 queries. query" in shown(app.post("/browse", which="released", page="999999999"))
    flagged = shown(app.post("/browse", which="held", flagged="on"))
    assert "8 queries" in flagged
    assert "phone" in flagged
    monkeypatch.setattr("queryveil.studio.pages.browse.SIZE", 1)
    assert "2 queries, page 1 of 2" in shown(app.post("/browse"))
    assert "2 queries, page 2 of 2" in shown(app.post("/browse", page="2"))


def test_a_list_that_takes_long_is_made_by_a_job(app, monkeypatch):
    go = threading.Event()
    app.session.jobs.start("slow", "Slow work", lambda update: go.wait(20))
    app.session._browsing = Browsing(app.session.jobs)
    monkeypatch.setattr("queryveil.studio.browsing._AT_ONCE", 0.05)
    assert "as soon as it is done" in app.post("/browse", which="released")
    go.set()
    app.session.jobs.wait()
    assert "2 queries" in shown(app.post("/browse", which="released"))


def test_decisions_are_applied_checked_and_explained(app):
    released = set(app.session.release.to_arrow()["query"].to_pylist())
    assert released == {"cat food", "dog food"}
    assert "It is not in the release" in shown(app.post("/ask", query="weather"))
    assert "fails rules: not blocked by a decision" in shown(app.post("/ask", query="weather"))
    assert "It is in the release" in shown(app.post("/ask", query="CAT food"))
    behind = shown(app.post("/ask", query_id=str(app.session.open_log.find("cat food cheap"))))
    assert "cheap" not in behind
    assert "Nobody issued" in shown(app.post("/ask", query="nothing like it"))
    app.do("check")
    assert app.session.found.verification.holds
    claims = [verdict.lines[0] for verdict in app.session.found.verification.verdicts]
    assert "Nothing that a reviewer blocked is released." in claims


@pytest.mark.parametrize(
    ("kind", "of", "text", "sentence"),
    [
        ("block", "word", "food", "This blocks 3 queries of the log with 19 events."),
        ("block", "word", "Food  cheap", "This blocks 1 query of the log with 3 events."),
        ("block", "word", "cheap food", "No query of the log has this in it, so blocking it changes nothing."),
        ("block", "word", "-01", "would block every query with '01'"),
        ("block", "word", "c++", "would block every query with 'c'; write that if you want it"),
        ("block", "word", "--", "No query of the log has this in it"),
        ("block", "query", "cat food", "This blocks 1 query of the log with 8 events."),
        ("block", "query", "food", "Nobody issued this query"),
        ("allow", "word", "john smith", "This allows 8 queries of the log with 8 events, as far as"),
        ("allow", "word", "ohn smith", "No query of the log has this in it, so allowing"),
        ("allow", "query", " ", ""),
    ],
)
def test_what_a_decision_is_about_is_shown_before(app, kind, of, text, sentence):
    before = app.session.decisions
    found = shown(app.post("/decide/look", kind=kind, of=of, text=text))
    assert sentence in html.unescape(found)
    assert app.session.decisions == before
    if sentence.startswith("This"):
        made = Decision(kind=kind, of=of, text=text)
        counted = Decisions.of([made]).block(app.session.open_log.query_text, app.session.open_log.language).sum()
        assert kind == "allow" or counted == app.session.hits(made).queries  # as the rule counts


def test_what_a_decision_is_about_is_shown_after(app):
    table = shown(app.get("/decide"))
    assert re.search(r"block query 1 8 no Ann", table)
    assert re.search(r"block word 1 8 Ann", table)


def test_a_long_list_of_decisions_is_counted_bit_by_bit(app, monkeypatch):
    monkeypatch.setattr("queryveil.studio.pages.decide._AT_ONCE", -1.0)
    monkeypatch.setattr(app.session, "_hits", {})
    assert "block word – – Ann" in shown(app.get("/decide"))
    assert "not counted yet" in shown(app.get("/decide"))
    monkeypatch.undo()
    assert "not counted yet" not in shown(app.get("/decide"))


def test_a_blocked_word_with_signs_is_refused_and_nothing_is_decided(app):
    before = app.session.decisions
    status, _, text = app.ask("POST", "/decide", {"kind": "block", "of": "word", "text": "c++", "by": "Ann"})
    assert (status, app.session.decisions) == (422, before)
    assert "would block every query with 'c'" in html.unescape(text)


def test_a_query_is_blocked_in_the_list_and_the_decision_taken_back(app):
    number = re.search(r'"query_id": "(\d+)"', app.post("/browse", which="released"))[1]
    before = app.session.decisions
    assert app.post("/decide/quick", query_id=number, of="query", kind="block").strip() == "blocked"
    assert app.session.decisions[-1].text in ("cat food", "dog food")
    app.post("/decide/drop", decision=mark(app.session.decisions[-1]), by="Bob")
    assert app.session.decisions == before
    last = app.session.project.journal[0]
    assert (last.what, last.by) == ("took a decision back", "Bob")
    assert last.about.startswith("block a query, decided by Ann")


def test_commands_that_it_shows_repeat_the_release_and_the_statement(app, tmp_path):
    app.post("/sign/key")
    key = app.session.project.file("signing.key")
    app.post("/sign", name="Ann Able", comment='it\'s "fine" & <b>', key=str(key), manifest=app.session.manifest_sha256)
    app.session.jobs.wait()
    assert app.session.jobs.last("sign").state == "done"
    page = app.get("/sign")
    assert re.search(r"seed = \d", page) is None
    lines = re.search(r'<pre id="commands">(.*?)</pre>', page, re.DOTALL)[1]
    commands = html.unescape(lines).strip().splitlines()
    script = "\n".join(
        f"{sys.executable} -m queryveil.cli {line.removeprefix('queryveil ')}" for line in (commands[0], commands[-1])
    )
    done = subprocess.run(["bash", "-e", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    run = app.session.run
    assert {path.name: content for path, content in files_of(tmp_path / "again").items()} == {
        path.name: content for path, content in files_of(run / "release").items()
    }
    signed = qv.verify_signature(run / "release", f"{key}.pub")
    assert signed.statement.predicate.lists["decisions"].entries == len(app.session.decisions) == 2
    assert (tmp_path / "again.statement.json").read_bytes() == (run / "release.statement.json").read_bytes()


def test_the_release_folder_holds_nothing_of_the_list(app):
    for content in files_of(app.session.release_folder).values():
        assert b"zebra" not in content
        assert b"Ann" not in content


def test_started_again_it_finds_what_was_done(log, tmp_path):
    with running([log], tmp_path / "project") as app:
        app.open()
        app.post("/choose/at", **at(k="6"))
        app.do("anonymize")
        manifest = (app.session.release_folder / "manifest.json").read_bytes()
    with running([log], tmp_path / "project") as app:
        app.open()
        assert app.session.state.steps[0].parameters["k"] == 6
        assert app.session.found.verification.holds
        assert "keeps its promises" in app.get("/sign")
        assert (app.session.release_folder / "manifest.json").read_bytes() == manifest
        app.do("anonymize")  # a second one stands beside the first
        assert [run.name for run in sorted(app.session.project.file("runs").iterdir())] == ["0001", "0002"]
    content = log.read_text()
    try:
        log.write_text(content + "u9,more\n")
        with running([log], tmp_path / "project") as app:
            assert "another one" in app.session.jobs.last("read").error
    finally:
        log.write_text(content)


def test_a_failed_release_leaves_nothing(app):
    steps = list(app.session.state.steps)
    runs = sorted(app.session.project.file("runs").iterdir())
    app.post("/choose/at", **at(k="50"))
    app.post("/jobs/start", kind="anonymize")
    app.session.jobs.wait()
    job = app.session.jobs.last("anonymize")
    assert (job.state, "only 8 users" in job.error) == ("failed", True)
    assert sorted(app.session.project.file("runs").iterdir()) == runs
    app.session.change(steps=steps)


def test_an_audit_looks_and_changes_nothing(log, tmp_path):
    read = qv.read_log(log)
    qv.Equality(k=5).anonymize(read, seed=1).save(tmp_path / "release")
    before = files_of(tmp_path)
    with running([log], release=tmp_path / "release") as app:
        app.open()
        assert re.findall(r'<li><a href="(.*?)"', app.get("/")) == ["/", "/ask", "/browse", "/judge"]
        assert "It is in the release" in shown(app.post("/ask", query="cat food"))
        assert "Lift the mask" not in app.get("/browse")  # there is no project in which that would be written down
        app.post("/browse")
        app.session.jobs.wait()
        assert "4 queries" in shown(app.post("/browse", which="released"))
        app.do("check")
        assert "The release" not in app.session.jobs.last("check").error
        assert app.session.found.verification.holds
        for path, form in (
            ("/jobs/start", {"kind": "anonymize"}),
            ("/jobs/start", {"kind": "count"}),
            ("/mask", {"lift": "yes", "by": "Ann"}),
        ):
            assert app.ask("POST", path, form)[0] == 422, path
        routed = {path for path in ACTIONS if app.ask("POST", path, {})[0] not in (404, 405)}
        assert routed == {"/ask", "/browse", "/mask", "/jobs/start", "/jobs/cancel"}
        assert {path for path in PAGES if app.ask("GET", path)[0] == 200} == {"/", "/ask", "/browse", "/judge", "/jobs"}
    assert files_of(tmp_path) == before


def test_an_audit_shows_a_forged_release_as_refuted(log, tmp_path):
    qv.Equality(k=5).anonymize(qv.read_log(log), seed=1).save(tmp_path / "release", format="csv")
    table, manifest = (tmp_path / "release" / name for name in ("log.csv", "manifest.json"))
    table.write_text(table.read_text().replace("dog food", "my rare secret", 1))
    stated = json.loads(manifest.read_text())
    stated["files"]["log.csv"] = hashlib.sha256(table.read_bytes()).hexdigest()
    manifest.write_text(json.dumps(stated))
    with running([log], release=tmp_path / "release") as app:
        app.open()
        app.do("check")
        assert not app.session.found.verification.holds
        page = shown(app.get("/judge"))
        assert "refuted" in page
        assert "secret" not in page


def test_columns_are_mapped_by_clicking(tmp_path):
    path = tmp_path / "strange.tsv"
    path.write_text("wer\twas\twann\n" + "".join(f"u{u}\tcats and dogs\t2026-01-0{u % 9 + 1}\n" for u in range(6)))
    with running([path], tmp_path / "project") as app:
        app.open()
        page = app.get("/")
        assert "No column of" in shown(app.get("/jobs"))
        assert "cats" not in page
        assert re.findall(r'Role of the column ([^"]+)', page) == ["w··", "w··", "w···"]
        app.post("/mask", lift="yes", by="Ann")
        assert re.findall(r"Role of the column (\w+)", app.get("/")) == ["wer", "was", "wann"]
        app.post("/map", format="tsv", role__0="user", role__1="query", role__2="time")
        app.session.jobs.wait()
        assert "Users 6" in shown(app.get("/"))
        assert "failed" not in shown(app.get("/jobs"))  # which another try has mended
        assert app.session.state.reading.columns == {"user": "wer", "query": "was", "time": "wann"}


@pytest.mark.parametrize(
    ("name", "content", "format", "columns"),
    [
        ("a.csv", "wer;was\nu1;x y\n", "csv", ("wer", "was")),
        ("a.jsonl", '{"wer": "u1", "was": "x"}\n{"noch": 1}\n[]\nno\n', "jsonl", ("wer", "was", "noch")),
        ("a.txt", "no header here\nx\n", "csv", ("no header here",)),
        ("a.tsv", "a\tb\n", "tsv", ("a", "b")),
    ],
)
def test_the_beginning_of_a_log_is_masked(tmp_path, name, content, format, columns):
    (tmp_path / name).write_text(content)
    found = preview([str(tmp_path / name)], None)
    assert (found.format, found.columns) == (format, columns)
    assert not any("x" in cell or "u" in cell for row in found.rows for cell in row)
    assert found.shapes == (
        columns if format == "jsonl" else tuple(shape(name, set(), whole=False) for name in columns)
    )


def test_a_file_without_a_header_shows_nobodys_query(tmp_path):
    (tmp_path / "a.tsv").write_text("u17\tjane doe disease\nu18\tx\n")
    assert preview([str(tmp_path / "a.tsv")], "tsv").shapes == ("u··", "j··· d·· d······")
    (tmp_path / "a.tsv").write_text("AnonID\tQuery\tsecret\nu18\tx\ty\n")
    assert preview([str(tmp_path / "a.tsv")], "tsv").shapes == ("AnonID", "Query", "s·····")


@pytest.mark.parametrize(
    ("form", "sentence"),
    [
        ({"format": "nothing"}, "Choose a format"),
        ({"format": "tsv", "role.0": "user"}, "which the queries"),
        ({"format": "tsv", "role.0": "user", "role.1": "user"}, "Two columns"),
        ({"format": "tsv", "role.0": "x"}, "no such role"),
        ({"format": "parquet"}, "not a Parquet file"),
    ],
)
def test_a_wrong_mapping_is_refused(tmp_path, form, sentence):
    (tmp_path / "a.tsv").write_text("a\tb\nx\ty\n")
    with pytest.raises(qv.QueryveilError, match=sentence):
        mapped([str(tmp_path / "a.tsv")], form, Reading())


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16-le"])
def test_names_of_columns_are_in_the_encoding_of_the_log(tmp_path, encoding):
    (tmp_path / "a.csv").write_bytes("kürzel;gesucht\nu1;tee\n".encode(encoding))
    form = {"format": "csv", "encoding": encoding, "role.0": "user", "role.1": "query"}
    reading = mapped([str(tmp_path / "a.csv")], form, Reading())
    assert reading.columns == {"user": "kürzel", "query": "gesucht"}


def test_work_is_cancelled_from_the_page_and_another_tab_sees_it(app):
    begun, ends = threading.Event(), []

    def work(update):
        begun.set()
        for _ in range(1000):
            update("slowly")
            threading.Event().wait(0.02)
        ends.append("whole")

    job = app.session.jobs.start("slow", "Slow work", work)
    assert begun.wait(10)
    assert "Slow work" in app.get("/jobs")
    app.post("/jobs/cancel", id=str(job.id))
    app.session.jobs.wait()
    assert (job.state, ends) == ("cancelled", [])
    assert "cancelled" in app.get("/jobs")


def test_every_field_has_a_label(app):
    pages = [app.get(path) for path in ("/choose", "/ask", "/browse", "/decide", "/judge", "/sign")]
    pages.append(app.post("/ask", query="cat food"))
    fields = [
        (page, field)
        for page in pages
        for field in re.findall(r"<(?:input|select)\b[^>]*>", page)
        if 'type="hidden"' not in field
    ]
    assert len(fields) > 30
    for page, field in fields:
        name = re.search(r'\sid="([^"]+)"', field)
        assert "aria-label" in field or f'<label for="{name[1]}"' in page, field


def test_a_form_changes_what_it_names_and_nothing_else():
    before = [RecipeStep(method="rules", parameters={"min_query_users": 3, "no_digits": True, "metadata": ("a", "b")})]
    (after,) = steps_of({"0.max_terms": "4", "0.metadata": " x , y"}, before)
    assert after.parameters == {"min_query_users": 3, "no_digits": True, "metadata": ("x", "y"), "max_terms": 4}
    (after,) = steps_of({"0.form": "yes", "0.min_query_users": ""}, [after])
    assert after.parameters == {"metadata": ("x", "y"), "max_terms": 4}
    with pytest.raises(qv.QueryveilError, match="must be an integer"):
        steps_of({"0.max_terms": "many"}, before)


@pytest.mark.parametrize("name", [*sorted(METHODS.keys() - {"pipeline", "rules"}), *shipped()])
def test_what_is_begun_with_is_a_method_with_a_form_and_a_recipe(name, tmp_path):
    steps = begun_with(name)
    assert len(fields_of(steps)) == len(steps)
    (tmp_path / "recipe.toml").write_text(written_recipe(steps, 7))
    recipe = load_recipe(str(tmp_path / "recipe.toml"))
    again = METHODS[recipe.method](**recipe.parameters)
    assert (again.parameters(), recipe.seed) == (method_of(steps).parameters(), 7)
