"""Only the one browser gets in: whatever a page of another site, a name or another user on this machine tries."""

import re
import socket
from pathlib import Path

import pytest

from queryveil.studio.guard import HEADERS, HOST
from queryveil.studio.serving import Address
from tests.studio.app import running
from tests.studio.conftest import write_hostile

PAGES = ("/", "/choose", "/ask", "/browse", "/decide", "/judge", "/sign", "/jobs", "/events", "/static/studio.js")


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    folder = tmp_path_factory.mktemp("guarded")
    with running([write_hostile(folder / "log.csv")], folder / "project") as found:
        yield found.open()


@pytest.mark.parametrize("path", PAGES)
def test_nothing_is_shown_without_the_cookie(app, path):
    for cookie in (None, "queryveil=1", f"{app.cookie}x", f"queryveil-{app.address.port}="):
        status, _, text = app.ask("GET", path, Cookie=cookie)
        assert (status, "closed to you" in text) == (403, True)


def test_cookies_of_other_servers_on_this_machine_hide_nothing(app):
    for other in ('prefs={"a": 1}', "odd", "a=b c", "="):
        assert app.ask("GET", "/jobs", Cookie=f"{other}; {app.cookie}")[0] == 200
    assert app.ask("GET", "/jobs", Cookie=f"{app.cookie}; {app.cookie}x")[0] == 403


def test_a_form_with_too_many_fields_is_refused_in_a_sentence(app):
    status, _, text = app.ask("POST", "/ask", [("query", "x")] * 1001)
    assert (status, "too many fields" in text) == (422, True)


def test_the_token_opens_once(app):
    for token in (app.address.token, "", "x", app.address.token[:-1]):
        status, headers, _ = app.ask("GET", f"/open?token={token}", Cookie=None)
        assert status == 403
        assert "set-cookie" not in headers


def test_the_cookie_is_for_this_site_and_no_script(tmp_path):
    with running([write_hostile(tmp_path / "log.csv")], tmp_path / "project", wait=False) as app:
        _, headers, _ = app.ask("GET", f"/open?token={app.address.token}", Cookie=None)
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= {part.strip() for part in headers["set-cookie"].split(";")}
    assert app.address.token not in headers["set-cookie"]


@pytest.mark.parametrize("host", ["evil.example:{port}", "localhost:{port}", "127.0.0.1", "127.0.0.1:1", "", None])
def test_a_name_that_leads_here_is_refused(app, host):
    """DNS rebinding: the browser of the victim sends the cookie of the site to what the name resolves to."""
    named = host and host.format(port=app.address.port)
    for path in (*PAGES[:2], f"/open?token={app.address.token}"):
        assert app.ask("GET", path, Host=named)[0] in (400, 403)
    assert app.ask("POST", "/jobs/start", {"kind": "read"}, Host=named)[0] in (400, 403)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": None},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "http://localhost:{port}"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
)
def test_a_form_of_another_site_is_refused(app, headers):
    given = {name: value and value.format(port=app.address.port) for name, value in headers.items()}
    before = app.session.jobs.version
    status, _, text = app.ask("POST", "/decide", {"kind": "block", "of": "word", "text": "x", "by": "x"}, **given)
    assert (status, "refused" in text) == (403, True)
    assert (app.session.decisions, app.session.jobs.version) == ((), before)


def test_a_form_sent_without_a_script_is_taken(app):
    status, _, text = app.ask(
        "POST", "/ask", {"query": "x"}, Origin="null", Sec_Fetch_Site="same-origin", HX_Request=None
    )
    assert (status, "Nobody issued" in text, "<nav" in text) == (200, True, True)


def test_no_text_can_be_in_an_address(app):
    assert app.ask("GET", "/ask?query=secret")[0] == 400
    for path in PAGES[:7]:
        for form in re.findall(r"<form\b[^>]*>", app.get(path)):
            assert 'method="post" action="/' in form


def test_pages_of_other_sites_cannot_load_anything_of_it(app):
    for path in PAGES[:-2]:
        assert app.ask("GET", path, Sec_Fetch_Site="cross-site")[0] == 403
        assert app.ask("GET", path, Origin="http://evil.example")[0] == 403


@pytest.mark.parametrize("path", ["/", "/sign", "/static/htmx.min.js", "/static/nothing.js", "/nothing"])
def test_every_answer_has_the_headers(app, path):
    _, headers, _ = app.ask("GET", path)
    assert {name: headers.get(name) for name in HEADERS} == HEADERS
    assert "unsafe" not in headers["content-security-policy"]
    assert "access-control-allow-origin" not in headers
    assert "server" not in headers


def test_pages_have_no_script_or_style_of_their_own(app):
    for path in PAGES[:-3]:
        text = app.get(path)
        assert re.findall(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=|javascript:", text) == []


def test_what_changes_something_is_no_get(app):
    for path in ("/jobs/start", "/jobs/cancel", "/mask", "/map", "/choose/at", "/decide/drop", "/sign/key"):
        assert app.ask("GET", path)[0] == 405


def test_a_long_request_is_refused(app):
    assert app.ask("POST", "/ask", {"query": "x" * (1 << 20)})[0] == 413
    assert app.ask("POST", "/ask", {"query": "x"}, Content_Length="-1")[0] in (400, 413)


def test_a_long_request_of_unknown_length_is_refused(app):
    with socket.create_connection((HOST, app.address.port), 10) as sent:
        head = f"POST /ask HTTP/1.1\r\nHost: {app.host}\r\nOrigin: http://{app.host}\r\nCookie: {app.cookie}\r\n"
        sent.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        for _ in range(20):
            sent.sendall(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
        sent.sendall(b"0\r\n\r\n")
        assert sent.recv(100).startswith(b"HTTP/1.1 422 ")


def test_the_browser_is_opened_by_a_private_file_with_no_token_in_the_list_of_processes(tmp_path, monkeypatch):
    opened = []
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr("webbrowser.open", lambda place: opened.append((place, Path(place[7:]).read_text())))
    with running([write_hostile(tmp_path / "log.csv")], tmp_path / "project", browser=True, wait=False) as app:
        pass
    ((place, page),) = opened
    assert place == (tmp_path / "project" / "open.html").as_uri()
    assert f'content="0;url={app.address}"' in page
    assert not (tmp_path / "project" / "open.html").exists()


def test_it_listens_on_this_machine_alone(app):
    others = {one[4][0] for one in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)} - {HOST}
    for other in others:
        with socket.socket() as attempt:
            attempt.settimeout(2)
            assert attempt.connect_ex((other, app.address.port)) != 0
    assert str(Address(1, "t", lambda: None)) == "http://127.0.0.1:1/open?token=t"


def test_an_error_says_nothing_of_the_log(app, monkeypatch, capfd):
    def broken(*given):
        raise ValueError("my secret query")

    monkeypatch.setattr(type(app.session), "decisions", property(broken))
    status, _, text = app.ask("GET", "/decide")
    assert (status, "bug in queryveil (ValueError)" in text) == (500, True)
    assert "secret" not in text
    assert "secret" not in "".join(capfd.readouterr())
