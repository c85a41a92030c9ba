"""An app in this process, and a browser's side of it: requests with a cookie, and nothing that follows redirects."""

import re
import threading
from contextlib import contextmanager
from http.client import HTTPConnection
from urllib.parse import urlencode

import queryveil as qv
from queryveil.studio import serve
from queryveil.studio.decided import mark
from queryveil.studio.guard import HOST
from queryveil.studio.project import Project, Reading
from queryveil.studio.results import Audit
from queryveil.studio.session import Session


def read(paths, reading, progress):
    named = {} if reading.language is None else {"language": reading.language}
    return qv.read_log(
        paths, format=reading.format, columns=reading.columns, encoding=reading.encoding, progress=progress, **named
    )


class App:
    """A running app as its own browser sees it."""

    def __init__(self, session, address):
        self.session, self.address = session, address
        self.host = f"{HOST}:{address.port}"
        self.cookie = None

    def ask(self, method, path, form=None, **headers):
        """One request: status, headers and text. A header that is None is left out."""
        given = {"Host": self.host, "Cookie": self.cookie, "HX-Request": "true"}
        if method == "POST":
            given |= {"Origin": f"http://{self.host}", "Content-Type": "application/x-www-form-urlencoded"}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = HTTPConnection(HOST, self.address.port, timeout=60)
        body = None if form is None else urlencode(form)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in given.items():
            if value is not None:
                connection.putheader(name, value)
        connection.putheader("Content-Length", str(len(body or "")))
        connection.endheaders((body or "").encode())
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, text

    def open(self):
        """Open the app with the token, as the browser does."""
        status, headers, _ = self.ask("GET", f"/open?token={self.address.token}", Origin=None)
        assert status == 200
        self.cookie = headers["set-cookie"].partition(";")[0]
        return self

    def get(self, path):
        status, _, text = self.ask("GET", path)
        assert status == 200, text
        return text

    def fresh(self, path, form):
        """A form of a page that shows what is chosen now."""
        return form | ({"steps": mark(self.session.state.steps)} if path in ("/choose/at", "/choose/drop") else {})

    def post(self, path, **form):
        form = self.fresh(path, {name.replace("__", "."): value for name, value in form.items()})
        status, _, text = self.ask("POST", path, form)
        assert status == 200, text
        return text

    def do(self, kind):
        """Run a job to its end."""
        self.post("/jobs/start", kind=kind)
        self.session.jobs.wait()
        job = self.session.jobs.last(kind)
        assert job.state == "done", job.error
        return job


@contextmanager
def running(logs, project=None, *, release=None, reading=None, wait=True, browser=False, **audit):
    """An app on a log."""
    logs, reading = [str(log) for log in logs], reading or Reading()
    kept = None if project is None else Project(project, logs, reading)
    looked_at = None if release is None else Audit(str(release), **audit)
    session = Session(logs, reading, read, kept, looked_at)
    session.read()
    ready, found = threading.Event(), []

    def known(address):
        found.append(address)
        ready.set()

    server = threading.Thread(target=serve, args=(session,), kwargs={"ready": known, "browser": browser}, daemon=True)
    server.start()
    assert ready.wait(120)
    try:
        if wait:
            session.jobs.wait()
        yield App(session, found[0])
    finally:
        found[0].stop()
        server.join(20)


def shown(text):
    """The text of a page without its tags."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", text))
