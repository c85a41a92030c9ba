"""UBI indices by the interface of OpenSearch, against a server on this machine that speaks it."""

import json
import threading

import pytest

import queryveil as qv
from queryveil.errors import QueryveilError
from queryveil.formats import ubi
from queryveil.sources import opensearch
from tests.sources.conftest import reply, served

QUERIES = [
    {"query_id": f"q{i}", "client_id": f"c{i % 3}", "user_query": f"tea {i % 4}", "timestamp": "2026-01-01T10:00:00Z"}
    for i in range(25)
]
EVENTS = [
    {
        "query_id": f"q{i}",
        "client_id": f"c{i % 3}",
        "action_name": "click",
        "timestamp": "2026-01-01T10:00:01Z",
        "event_attributes": {"object": {"object_id": f"https://e.org/{i}"}, "position": {"ordinal": 1}, "secret": "x"},
    }
    for i in range(0, 25, 5)
]


class Server:
    """Scrolls over documents by index, as OpenSearch does."""

    def __init__(self, **indices):
        self.indices, self.seen, self.open, self.damage = indices, [], {}, None
        self.lock = threading.Lock()

    def __call__(self, handler):
        asked = json.loads(handler.rfile.read(int(handler.headers.get("Content-Length") or 0)) or b"{}")
        with self.lock:
            self.seen.append((handler.command, handler.path, asked, dict(handler.headers)))
            status, found = self.answer(handler.command, handler.path, asked)
            if self.damage is not None:
                status, found = self.damage(len(self.seen), handler.path, status, found)
        if found is None:
            handler.close_connection = True
            handler.connection.close()
            return
        reply(handler, found if isinstance(found, bytes) else json.dumps(found).encode(), status)

    def answer(self, method, path, asked):
        if path == "/_search/scroll" and method == "DELETE":
            return 200, {"succeeded": self.open.pop(asked["scroll_id"], None) is not None}
        if path == "/_search/scroll":
            return 200, self.page(asked["scroll_id"])
        index, _, how = path.strip("/").partition("/")
        assert how == "_search?scroll=5m"
        if index not in self.indices:
            return 404, {"error": {"type": "index_not_found_exception"}}
        assert asked["sort"] == ["_doc"]
        name = f"scroll-{len(self.seen)}"
        self.open[name] = [list(self.indices[index]), asked["size"], len(self.indices[index])]
        return 200, self.page(name)

    def page(self, name):
        left, size, total = self.open[name]
        some, self.open[name][0] = left[:size], left[size:]
        hits = [{"_id": str(i), "_source": one} for i, one in enumerate(some)]
        value = {"value": total, "relation": "eq"}
        return {
            "_scroll_id": name,
            "timed_out": False,
            "_shards": {"failed": 0},
            "hits": {"total": value, "hits": hits},
        }


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(opensearch, "_PAGE", 10)
    found = Server(ubi_queries=QUERIES, ubi_events=EVENTS)
    with served(found) as address:
        found.address = address.replace("http://", "opensearch+http://")
        yield found


def test_all_pages_of_both_indices_become_a_log(server, tmp_path):
    local = tmp_path / "ubi.ndjson"
    local.write_text("".join(json.dumps(one) + "\n" for one in (*QUERIES, *EVENTS)))
    log = qv.read_log(server.address)
    assert (log.stats.rows, log.stats.clicks) == (25, 5)
    assert log.stats.content == qv.read_log(local).stats.content
    assert not server.open  # no snapshot is left on the server


def test_only_what_the_format_reads_is_asked_for(server):
    qv.read_log(f"{server.address}/ubi_queries")
    asked = next(asked for _, path, asked, _ in server.seen if path.startswith("/ubi_queries"))
    assert {"/" + field.replace(".", "/") for field in asked["_source"]} == set(ubi._FIELDS.values())


def test_who_asks_is_said_and_not_shown(server, monkeypatch):
    monkeypatch.setenv("OPENSEARCH_USERNAME", "me")
    monkeypatch.setenv("OPENSEARCH_PASSWORD", "pass-word")
    qv.read_log(server.address)
    assert {headers["Authorization"] for *_, headers in server.seen} == {"Basic bWU6cGFzcy13b3Jk"}
    server.damage = lambda n, path, status, found: (401, b"pass-word")
    with pytest.raises(QueryveilError, match="refuses to show it") as caught:
        qv.read_log(server.address.replace("//", "//you:other-word@"))
    assert "word" not in str(caught.value).replace("password", "")
    assert server.seen[-1][3]["Authorization"] == "Basic eW91Om90aGVyLXdvcmQ="


def later(change):
    """Damage an answer to a question for a further page."""

    def damage(n, path, status, found):
        return change(status, found) if path == "/_search/scroll" and "hits" in found else (status, found)

    return damage


def without_a_shard(status, found):
    return status, found | {"_shards": {"failed": 1}}


def without_a_page(status, found):
    return status, found | {"hits": found["hits"] | {"hits": []}}


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (later(lambda status, found: (500, b"secret")), "answers with an error"),
        (later(lambda status, found: (200, b"secret")), "stopped, or is not OpenSearch"),
        (later(lambda status, found: (200, None)), "cannot be reached"),
        (later(without_a_shard), "did not answer in full"),
        (later(without_a_page), "gave 10 of 25 documents"),
        (lambda n, path, status, found: (200, b"[]"), "stopped, or is not OpenSearch"),
        (lambda n, path, status, found: (200, {"hits": {"hits": 3}}), "did not answer in full"),
    ],
)
def test_a_server_that_fails_in_the_middle_is_one_sentence(server, damage, sentence):
    server.damage = damage
    with pytest.raises(QueryveilError, match=sentence) as caught:
        qv.read_log(f"{server.address}/ubi_queries")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("path", "sentence"),
    [("/nothing", "There is nothing at opensearch://localhost:[0-9]+/nothing"), ("/_all", "must be written as")],
)
def test_an_index_that_is_not_there(server, path, sentence):
    with pytest.raises(QueryveilError, match=sentence):
        qv.read_log(server.address + path)


def test_without_encryption_only_on_this_machine():
    with pytest.raises(QueryveilError, match="without encryption"):
        qv.read_log("opensearch+http://me:pass-word@example.com:9200")
