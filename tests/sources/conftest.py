"""Servers that run on this machine while the tests do."""

import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.request import Request, urlopen

import pytest

HEADER = "AnonID\tQuery\tQueryTime\tItemRank\tClickURL\n"


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    """The servers are on this machine, whatever stands between it and others."""
    monkeypatch.setenv("no_proxy", "*")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def wait_for(port, process, seconds=60):
    """Wait until a server answers."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if process.poll() is not None:
                break
            time.sleep(0.05)
    pytest.skip("a server for the test did not start")


class Bucket:
    """A bucket on an S3 server, by its address `s3://bucket`."""

    def __init__(self, process, port):
        self.process, self.port = process, port
        self.address = "s3://bucket"
        urlopen(Request(self.url(), method="PUT"))

    def url(self):
        return f"http://127.0.0.1:{self.port}/bucket"

    @property
    def store(self):
        from obstore.store import from_url

        return from_url(self.address, client_options={"allow_http": True})

    def put(self, key, content):
        import obstore

        obstore.put(self.store, key, content if isinstance(content, bytes) else content.encode())
        return f"{self.address}/{key}"

    def names(self):
        import obstore

        return sorted(one["path"] for some in obstore.list(self.store) for one in some)

    def clear(self):
        import obstore

        obstore.delete(self.store, self.names())

    def uploads(self):
        """How many uploads were begun and not ended."""
        return urlopen(f"{self.url()}?uploads").read().count(b"<Upload>")


@contextmanager
def s3_server():
    pytest.importorskip("obstore")
    pytest.importorskip("flask_cors", reason="moto's server needs flask-cors")
    pytest.importorskip("moto")
    port = free_port()
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([sys.executable, "-m", "moto.server", "-p", str(port)], **quiet)
    try:
        wait_for(port, process)
        yield Bucket(process, port)
    finally:
        process.kill()
        process.wait()


def credentials(monkeypatch, port):
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "somebody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "very-secret")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")


@pytest.fixture(scope="module")
def s3_of_module():
    with s3_server() as bucket:
        yield bucket


@pytest.fixture
def bucket(s3_of_module, monkeypatch):
    """An empty bucket, with credentials in the environment."""
    credentials(monkeypatch, s3_of_module.port)
    s3_of_module.clear()
    return s3_of_module


@pytest.fixture
def own_bucket(monkeypatch):
    """A bucket on a server that the test may end."""
    with s3_server() as bucket:
        credentials(monkeypatch, bucket.port)
        yield bucket


@contextmanager
def served(answer, tls=None):
    """A web server on this machine that answers with `answer(handler)`; gives its address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        do_GET = do_POST = do_DELETE = do_HEAD = lambda self: answer(self)  # noqa: N815

        def log_message(self, *words):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http{'' if tls is None else 's'}://localhost:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def reply(handler, content, status=200, **headers):
    """Answer a request."""
    handler.send_response(status)
    for name, value in {"Content_Length": len(content), **headers}.items():
        handler.send_header(name.replace("_", "-"), str(value))
    handler.end_headers()
    handler.wfile.write(content)


@pytest.fixture
def rows():
    """A small AOL file: `tea` by three users, `mug` by two, a secret by one."""
    some = [("u-1", "tea"), ("u-2", "Tea"), ("u-3", "tea"), ("u-1", "mug"), ("u-2", "mug"), ("u-3", "my secret")]
    return HEADER + "".join(f"{user}\t{query}\t2006-03-01 10:00:0{i}\t\t\n" for i, (user, query) in enumerate(some))
