"""What changes while others look: two tabs, work that waits, a kill, a full disk."""

import re
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from queryveil.studio.decided import mark
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
