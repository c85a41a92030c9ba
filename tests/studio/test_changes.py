"""What changes while others look: two tabs, work that waits, a kill, a full disk."""

import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from queryveil.errors import QueryveilError
from queryveil.studio.decided import mark
from queryveil.studio.project import Project, Reading
from queryveil.studio.session import Session
from tests.studio.app import running, shown

ROWS = [(f"u{u}", query) for query in ("cat food", "dog food", "weather") for u in range(6)]


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    path = tmp_path_factory.mktemp("changes") / "log.csv"
    path.write_text("user,query\n" + "".join(f"{user},{query}\n" for user, query in ROWS))
    return path


@pytest.fixture
def app(log, tmp_path):
    with running([log], tmp_path / "project") as found:
        yield found.open()


def block(app, text, by="Ann"):
    return app.post("/decide", kind="block", of="query", text=text, by=by)


def blocker(app):
    """Work that the next job waits for."""
    go = threading.Event()
    app.session.jobs.start("slow", "Slow work", lambda update: go.wait(20))
    return go


def test_decisions_of_many_at_once_are_all_kept(app):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: block(app, f"query {i}"), range(16)))
    assert {one.text for one in app.session.decisions} == {f"query {i}" for i in range(16)}
    named = [mark(one) for one in app.session.decisions[:8]]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda one: app.post("/decide/drop", decision=one, by="Ann"), named))
    assert len(app.session.decisions) == 8


def test_a_decision_is_taken_back_by_what_it_is_and_not_by_its_place(app):
    block(app, "weather")
    block(app, "cat food")
    page = app.get("/decide")
    first, second = re.findall(r'"decision": "(\w+)"', page)
    app.post("/decide/drop", decision=first, by="Ann")
    status, _, text = app.ask("POST", "/decide/drop", {"decision": first, "by": "Ann"})  # of the other tab
    assert (status, "no such decision" in text) == (422, True)
    assert [one.text for one in app.session.decisions] == ["cat food"]
    assert "hx-include" in page
    assert second in app.get("/decide")


def test_a_release_is_not_signed_after_decisions_changed(app):
    app.do("anonymize")
    app.post("/sign/key")
    form = {"name": "Ann", "key": app.session.project.file("signing.key"), "manifest": app.session.manifest_sha256}
    block(app, "weather")
    assert "differs from what this release was made with" in shown(app.get("/sign"))
    assert "differs from what this release was made with" in shown(app.get("/judge"))
    status, _, text = app.ask("POST", "/sign", form)
    assert (status, "changed since the release was made" in text) == (422, True)
    app.post("/decide/drop", decision=mark(app.session.decisions[0]), by="Ann")
    assert "differs" not in shown(app.get("/sign"))
    go = blocker(app)
    app.post("/sign", **form)
    block(app, "weather")  # while signing waits
    go.set()
    app.session.jobs.wait()
    job = app.session.jobs.last("sign")
    assert (job.state, "changed since" in job.error) == ("failed", True)
    assert app.session.found.statement is None


def test_a_newer_release_than_the_one_on_the_page_is_not_signed(app):
    app.do("anonymize")
    app.post("/sign/key")
    seen = re.search(r'name="manifest" value="(\w+)"', app.get("/sign"))[1]
    go = blocker(app)
    app.post("/jobs/start", kind="anonymize")
    app.post("/sign", name="Ann", key=app.session.project.file("signing.key"), manifest=seen)
    go.set()
    app.session.jobs.wait()
    assert app.session.state.release == 2
    job = app.session.jobs.last("sign")
    assert (job.state, "another one than the page showed" in job.error) == ("failed", True)


def test_a_release_is_made_with_what_was_chosen_when_it_was_begun(app):
    block(app, "weather")
    steps = list(app.session.state.steps)
    go = blocker(app)
    app.post("/jobs/start", kind="anonymize")
    block(app, "cat food")
    app.post("/choose/begin", name="affinity")
    go.set()
    app.session.jobs.wait()
    assert (app.session.release.manifest.steps[-1].method, app.session.state.released) == ("equality", steps)
    assert set(app.session.release.to_arrow()["query"].to_pylist()) == {"cat food", "dog food"}
    assert app.session.outdated


def test_a_form_about_other_steps_changes_nothing(app):
    app.post("/choose/begin", name="dma-30-5")
    page = app.get("/choose")
    stale = re.search(r'name="steps" value="(\w+)"', page)[1]
    fresh = re.search(r'name="steps" value="(\w+)"', app.post("/choose/at", **{"0.max_terms": "4"}))[1]
    steps = list(app.session.state.steps)
    for path, form in (
        ("/choose/at", {"0.form": "yes", "0.k": "5"}),
        ("/choose/drop", {"place": "0"}),
        ("/jobs/start", {"kind": "anonymize"}),
    ):
        for named in (stale, ""):
            status, _, text = app.ask("POST", path, form | {"steps": named})
            assert (status, "changed elsewhere" in text) == (422, True)
    assert (app.session.state.steps, mark(steps)) == (steps, fresh)
    assert app.session.jobs.last("anonymize") is None


@pytest.mark.parametrize("broken", ["note", "save"])
def test_the_mask_is_not_lifted_if_that_cannot_be_written_down(app, monkeypatch, broken):
    def full(*given, **named):
        raise QueryveilError("The disk is full.")

    monkeypatch.setattr(app.session.project, broken, full)
    assert app.ask("POST", "/mask", {"lift": "yes", "by": "Ann"})[0] == 422
    assert app.session.state.masked
    app.session.state.masked = False
    assert app.ask("POST", "/mask", {})[0] == 422
    assert app.session.state.masked  # which needs no disk


def test_the_journal_that_cannot_be_written_is_one_sentence(app):
    app.session.project.file("journal.jsonl").mkdir()
    status, _, text = app.ask("POST", "/mask", {"lift": "yes", "by": "Ann"})
    assert (status, "The journal" in text, app.session.state.masked) == (422, True, True)


def test_what_a_kill_left_is_removed_and_a_comparison_is_found_again(log, tmp_path):
    with running([log], tmp_path / "project") as app:
        app.open().do("anonymize")
        app.post("/judge/compare", ks="5", method__equality="on")
        app.session.jobs.wait()
        found = app.session.comparison
        assert found is not None
        left = app.session.project.file("runs") / "0002"
        left.mkdir()
        (left / "recipe.toml").write_text("seed = 1")
    with running([log], tmp_path / "project") as app:
        assert not left.exists()
        assert (app.session.state.release, app.session.found.verification.holds) == (1, True)
        assert app.session.comparison == found
        assert "figure-frontier" in app.open().get("/judge")


def test_a_log_can_be_read_otherwise_until_something_is_released(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("a,b,c\n" + "".join(f"u{u},x,dogs\n" for u in range(6)))
    with running([path], tmp_path / "project", reading=Reading(columns={"user": "c", "query": "a"})) as app:
        app.open()
        assert "Users 1 " in shown(app.get("/"))
        assert "Role of the column" in app.post("/map", look="yes")
        app.post("/map", format="csv", role__0="user", role__2="query")
        app.session.jobs.wait()
        assert "Users 6 " in shown(app.get("/"))
    with running([path], tmp_path / "project") as app:
        assert app.open().session.profile.users == 6
        app.do("anonymize")
        assert "Choose the columns again" not in app.get("/")
        for form in ({"look": "yes"}, {"format": "csv", "role.0": "user", "role.2": "query"}):
            status, _, text = app.ask("POST", "/map", form)
            assert (status, "begin another project" in text) == (422, True)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"steps": [{"method": "nothing", "parameters": {}}]}, "unknown method"),
        ({"steps": [{"method": "equality", "parameters": {"k": "x"}}]}, "must be an integer"),
        ({"steps": []}, "no steps"),
    ],
)
def test_an_edited_project_is_refused_in_a_sentence(log, tmp_path, change, sentence):
    project = Project(tmp_path / "p", [str(log)], Reading())
    project.close()
    state = json.loads(project.file("project.json").read_text())
    project.file("project.json").write_text(json.dumps(state | change))
    again = Project(tmp_path / "p", [str(log)], Reading())
    with pytest.raises(QueryveilError, match=sentence):
        Session([str(log)], Reading(), None, again)


def test_a_release_that_is_gone_is_one_sentence(log, tmp_path):
    with running([log], tmp_path / "project") as app:
        app.session.change(release=77)
    with running([log], tmp_path / "project") as app:
        app.open()
        assert "bug" not in app.session.jobs.last("read").error
        for path in ("/", "/choose", "/browse", "/judge", "/sign"):
            assert app.ask("GET", path)[0] == 200, path
        app.do("anonymize")
        assert app.session.release is not None


def test_texts_that_scrubbing_masked_are_found_and_stay_masked(tmp_path):
    path = tmp_path / "log.csv"
    rows = [(f"u{u}", f"gizmo person{u}@example.com") for u in range(25)]
    rows += [(f"u{u}", f"zanzibar person{u}@example.com") for u in range(6)]
    rows += [(f"u{u}", "gizmo parts") for u in range(8)]
    path.write_text("user,query\n" + "".join(f"{user},{query}\n" for user, query in rows))
    with running([path], tmp_path / "project") as app:
        app.open()
        app.post("/choose/begin", name="affinity")
        app.post("/choose/add", name="scrub")
        app.post("/choose/at", **{"0.how": "mask", "1.theta": "0.75"})
        app.do("anonymize")
        released = set(app.session.release.to_arrow()["query"].to_pylist())
        assert released == {"gizmo <email>", "zanzibar <email>", "gizmo parts"}
        page = app.post("/browse", which="released", order="longest")
        assert ("z······· &lt;email&gt;" in page, "zanzibar" in page) == (True, False)
        app.post("/mask", lift="yes", by="Ann")
        assert "zanzibar &lt;email&gt;" in app.post("/browse", which="released", order="longest")
        assert "It is in the release (6 rows)" in re.sub(" +", " ", shown(app.post("/ask", query="Zanzibar <email>")))
        assert "so it is not released" in shown(app.post("/ask", query="zanzibar <phone>"))
        app.post("/choose/at", **{"1.theta": "0.95"})
        assert "at theta = 0.75" in shown(app.post("/ask", query="gizmo parts"))  # as it was made
