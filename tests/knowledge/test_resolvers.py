"""Resolvers: clicks, the sites of a directory, and a search engine that may fail in every way."""

import json
import socket
import sqlite3
import threading
import time
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

import queryveil as qv
from queryveil.errors import QueryveilError
from queryveil.knowledge import Clicks, Remote, Sites, categorize, open_taxonomy
from queryveil.knowledge.directory import build_directory
from tests.knowledge import rdf
from tests.knowledge.test_directory import PATHS, SITES
from tests.oracles.directory import Site


def read(tmp_path, text):
    path = tmp_path / "log.tsv"
    path.write_text(text, "utf-8")
    return qv.read_log(path)


def resolved(log, resolver):
    return dict(zip(log.query_text.to_pylist(), resolver.resolve(log).to_pylist(), strict=True))


HEAD = "user\tquery\ttime\trank\turl\n"


def test_the_most_clicked_host(tmp_path):
    rows = [
        ("a", "cats", 1, "http://www.cats.com/1"),
        ("b", "cats", 2, "http://cats.com/2"),
        ("c", "cats", 1, "http://other.com"),
        ("a", "tie", 3, "http://b.com"),
        ("b", "tie", 2, "http://c.com"),
        ("a", "even", 1, "http://z.com"),
        ("b", "even", 1, "http://y.com"),
        ("a", "wiki", 1, "http://en.wikipedia.org/wiki/X"),
        ("b", "wiki", 2, "http://x.org"),
    ]
    text = HEAD + "".join(f"{u}\t{q}\t2006-03-01 00:00:0{i}\t{r}\t{url}\n" for i, (u, q, r, url) in enumerate(rows))
    log = read(tmp_path, text + "a\tnothing\t2006-03-01 00:00:09\t\t\n")
    assert resolved(log, Clicks()) == {
        "cats": "cats.com", "tie": "c.com", "even": "y.com", "wiki": "x.org", "nothing": None,
    }  # fmt: skip


def test_clicks_that_lead_nowhere(tmp_path):
    log = read(tmp_path, HEAD + "a\tdog\t2006-03-01 00:00:00\t1\thttp://localhost/\n")
    assert resolved(log, Clicks()) == {"dog": None}


def test_a_log_without_clicks(tmp_path):
    with pytest.raises(QueryveilError, match="has no clicks to find the sites"):
        Clicks().resolve(read(tmp_path, "user\tquery\na\tcats\n"))


@pytest.fixture
def taxonomy(tmp_path):
    sites = [*SITES, Site("Arts/Music", "en.wikipedia.org", "Barcelona", "Barcelona Barcelona")]
    (tmp_path / "s").write_text(rdf.structure(PATHS), "utf-8")
    (tmp_path / "c").write_text(rdf.content(sites), "utf-8")
    build_directory([tmp_path / "s", tmp_path / "c"], tmp_path / "odp.qvd")
    return open_taxonomy(tmp_path / "odp.qvd")


def test_the_best_site(tmp_path, taxonomy):
    log = read(tmp_path, 'user\tquery\na\tbarcelona club\na\tdives\na\tquark\na\t+-"( !\na\tand or (not\n')
    found = resolved(log, Sites(taxonomy, threads=2))
    assert found["barcelona club"] == "http://fcb.example.org/a?b&c"
    assert found["dives"] == "http://192.0.2.7/a?b&c"
    assert found["quark"] is None
    assert found['+-"( !'] is None
    links = categorize(log, taxonomy, "domains", resolver=Sites(taxonomy))
    assert links.coverage(log.events_per_query)[0].queries == pytest.approx(2 / 5)


def test_a_directory_without_texts(tmp_path):
    (tmp_path / "t.tsv").write_text("Arts\thttp://a.com\n")
    build_directory([tmp_path / "t.tsv"], tmp_path / "d")
    with pytest.raises(QueryveilError, match="has no titles or descriptions to search"):
        Sites(open_taxonomy(tmp_path / "d")).resolve(read(tmp_path, "user\tquery\na\tcats\n"))


def test_no_sites_to_search(tmp_path):
    with pytest.raises(QueryveilError, match="'wordnet' has no sites to search"):
        Sites(open_taxonomy("wordnet")).resolve(read(tmp_path, "user\tquery\na\tcats\n"))


@contextmanager
def engine(answer):
    """A search engine on this machine; `answer` gets a query and what was asked before, and gives status and body."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            parts = urlsplit(self.path)
            self.send(parse_qs(parts.query).get("q", [""])[0])

        def do_POST(self):
            """As an index of OpenSearch: the query is in the body."""
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            assert (self.path, self.headers["Content-Type"]) == ("/pages/_search", "application/json")
            assert list(body) == ["size", "_source", "query"]
            self.send(body["query"]["multi_match"]["query"])

        def send(self, query):
            asked.append(query)
            status, body, *headers = answer(query, asked)
            try:
                self.send_response(status)
                for name, value in headers:
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body if isinstance(body, bytes) else json.dumps(body).encode())
            except BrokenPipeError:
                pass

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def results(*urls):
    return 200, {"results": [{"url": url} for url in urls]}


def remote(url, tmp_path, **options):
    return Remote(url, tmp_path / "answers.db", **{"rate": 1000, "wait": 0.01, "timeout": 5, **options})


def hits(*urls):
    return 200, {"took": 1, "hits": {"hits": [{"_index": "pages", "_source": {"url": url}} for url in urls]}}


LOG = "user\tquery\na\tcats & dogs\na\tbirds\na\tfish\n"


def test_a_search_engine_is_asked_once_a_query(tmp_path):
    def answer(query, asked):
        return (
            results("ftp://no", "https://en.wikipedia.org/x", f"https://www.{query.split()[0]}.com/")
            if query != "fish"
            else results()
        )

    log = read(tmp_path, LOG)
    with engine(answer) as (url, asked):
        expected = {"cats & dogs": "https://www.cats.com/", "birds": "https://www.birds.com/", "fish": None}
        assert resolved(log, remote(url, tmp_path)) == expected
        assert sorted(asked) == ["birds", "cats & dogs", "fish"]
        assert resolved(log, remote(url, tmp_path)) == expected
        assert len(asked) == 3
    assert (tmp_path / "answers.db").stat().st_mode & 0o77 == 0
    assert b"cats & dogs" not in (tmp_path / "answers.db").read_bytes()


def test_an_index_of_opensearch_is_searched(tmp_path):
    def answer(query, asked):
        return hits("https://en.wikipedia.org/x", f"https://www.{query.split()[0]}.com/") if query != "fish" else hits()

    log = read(tmp_path, LOG.replace("birds", "+birds -(a* OR"))
    with engine(answer) as (url, asked):
        found = resolved(log, remote(f"{url}/pages/_search", tmp_path))
        assert found["cats & dogs"] == "https://www.cats.com/"
        assert found["fish"] is None
        assert sorted(asked) == ["+birds -(a* or", "cats & dogs", "fish"]  # words, whatever signs they have
        resolved(log, remote(f"{url}/pages/_search/", tmp_path))
        assert len(asked) == 3


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ((200, b"<html>hello</html>"), "something that is not the hits of an index"),
        ((200, {"results": []}), "something that is not the hits of an index"),
        ((200, {"hits": {"hits": ["x"]}}), "something that is not the hits of an index"),
        ((404, {"error": {"type": "index_not_found_exception"}}), "status 404; check the address"),
        ((403, b""), "status 403; check the address"),
    ],
)
def test_an_index_that_answers_garbage(tmp_path, answer, sentence):
    with engine(lambda query, asked: answer) as (url, _), pytest.raises(QueryveilError, match=sentence) as error:
        remote(f"{url}/pages/_search", tmp_path).resolve(read(tmp_path, LOG))
    assert "cats" not in str(error.value)


def test_a_busy_engine_is_asked_again(tmp_path):
    with engine(lambda query, asked: (429, b"") if len(asked) < 3 else results("http://x.com/")) as (url, asked):
        assert set(resolved(read(tmp_path, LOG), remote(url, tmp_path)).values()) == {"http://x.com/"}
        assert len(asked) == 5


def test_a_run_that_was_broken_off_goes_on(tmp_path):
    log = read(tmp_path, LOG)
    working = [True]

    def answer(query, asked):
        return results("http://x.com/") if len(asked) <= 2 or working[0] else (503, b"")

    working[0] = False
    with engine(answer) as (url, asked):
        with pytest.raises(
            QueryveilError, match=r"answers with status 503, also after 2 more tries; 2 of 3 queries .* run it again"
        ):
            remote(url, tmp_path, retries=2).resolve(log)
        assert len(asked) == 5
        working[0] = True
        assert set(resolved(log, remote(url, tmp_path)).values()) == {"http://x.com/"}
        assert len(asked) == 6


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ((200, b"<html>hello</html>"), "something that is not SearXNG's JSON"),
        ((200, {"results": 7}), "something that is not SearXNG's JSON"),
        ((200, []), "something that is not SearXNG's JSON"),
        ((403, b""), "status 403; allow format json in its settings"),
        ((404, b""), "status 404; check the address"),
        ((302, b"", ("Location", "http://127.0.0.1:9/")), "status 302; check the address"),
    ],
)
def test_an_engine_that_answers_garbage(tmp_path, answer, sentence):
    with engine(lambda query, asked: answer) as (url, asked):
        with pytest.raises(QueryveilError, match=sentence) as error:
            remote(url, tmp_path).resolve(read(tmp_path, LOG))
        assert len(asked) == 1
    assert "cats" not in str(error.value)


@contextmanager
def server(*answers, pause=0.0):
    """Something that listens, and sends bytes whatever it is asked."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection, suppress(OSError):
                    connection.recv(65536)
                    for part in answers:
                        connection.sendall(part)
                        time.sleep(pause)

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.close()


OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n", "does not use HTTP"),
        (b"\x00\x01\x02\xff", "does not use HTTP"),
        (OK + b"X: " + b"y" * 100_000 + b"\r\n\r\n", "does not use HTTP"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", "closes the connection"),
        (OK + b'Content-Length: 500\r\n\r\n{"results": []', "closes the connection"),
        (OK + b"\r\n" + b"[" * 200_000, "not SearXNG's JSON"),
        (OK + b"\r\n" + b" " * (5 << 20), "answers with over 4 MiB"),
    ],
)
def test_an_engine_that_is_something_else(tmp_path, answer, sentence):
    with server(answer) as url, pytest.raises(QueryveilError, match=sentence):
        remote(url, tmp_path, retries=1).resolve(read(tmp_path, LOG))


def test_an_answer_that_trickles(tmp_path):
    with server(OK + b"\r\n", *[b" "] * 40, pause=0.05) as url:
        begun = time.monotonic()
        with pytest.raises(QueryveilError, match=r"does not answer within 0.2 seconds"):
            remote(url, tmp_path, timeout=0.2, retries=0).resolve(read(tmp_path, LOG))
        assert time.monotonic() - begun < 1.5


def test_a_proxy_of_the_environment_is_not_used(tmp_path, monkeypatch):
    with (
        engine(lambda query, asked: results()) as (proxy, seen),
        engine(lambda query, asked: results()) as (url, asked),
    ):
        monkeypatch.setenv("http_proxy", proxy)
        remote(url, tmp_path).resolve(read(tmp_path, LOG))
        assert (len(seen), len(asked)) == (0, 3)


def test_an_engine_that_is_slow(tmp_path):
    def answer(query, asked):
        time.sleep(0.5)
        return results()

    with engine(answer) as (url, _), pytest.raises(QueryveilError, match=r"does not answer within 0.05 seconds"):
        remote(url, tmp_path, timeout=0.05, retries=1).resolve(read(tmp_path, LOG))


def test_an_engine_that_is_down(tmp_path):
    with engine(lambda query, asked: results()) as (url, _):
        pass
    with pytest.raises(QueryveilError, match="cannot be reached, also after 1 more"):
        remote(url, tmp_path, retries=1).resolve(read(tmp_path, LOG))


def test_the_rate_is_kept(tmp_path):
    log = read(tmp_path, LOG)
    with engine(lambda query, asked: results()) as (url, _):
        begun = time.monotonic()
        remote(url, tmp_path, rate=20).resolve(log)
        assert time.monotonic() - begun >= 0.1  # three requests, two pauses of a twentieth


@pytest.mark.parametrize(
    "url",
    [
        "searx",
        "file:///etc/passwd",
        "http://",
        "http://[::1",
        "http://a b/",
        "http://h:port",
        "http://h\n",
        "http://ü.de",
    ],
)
def test_what_is_no_search_engine(tmp_path, url):
    with pytest.raises(QueryveilError, match="is not the address of a search engine"):
        Remote(url, tmp_path / "c")


def test_an_address_with_a_password(tmp_path):
    with pytest.raises(QueryveilError, match="must not hold a user or a password") as error:
        Remote("http://alice:secret@host/", tmp_path / "c")
    assert "secret" not in str(error.value)


def test_a_cache_that_is_something_else(tmp_path):
    (tmp_path / "answers.db").write_text("no database " * 100)
    with pytest.raises(QueryveilError, match="cannot be used for answers; name another file"):
        remote("http://127.0.0.1:9", tmp_path).resolve(read(tmp_path, LOG))
    (tmp_path / "answers.db").unlink()
    with sqlite3.connect(tmp_path / "answers.db") as other:
        other.execute("CREATE TABLE answers (x INT)")
    with pytest.raises(QueryveilError, match="cannot be used for answers; name another file"):
        remote("http://127.0.0.1:9", tmp_path).resolve(read(tmp_path, LOG))


def test_a_cache_that_others_could_read_is_closed_to_them(tmp_path):
    (tmp_path / "answers.db").touch(0o644)
    with engine(lambda query, asked: results("http://10.0.0.5/", "http://x.org")) as (url, asked):
        found = resolved(read(tmp_path, LOG), remote(url, tmp_path))
        assert set(found.values()) == {"http://10.0.0.5/"}
        remote(url + "/", tmp_path).resolve(read(tmp_path, LOG))
        assert len(asked) == 3
    assert (tmp_path / "answers.db").stat().st_mode & 0o77 == 0
