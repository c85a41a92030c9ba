"""Logs by https, against servers on this machine."""

import datetime
import gzip
import io
import ipaddress
import re
import ssl

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import queryveil as qv
from queryveil.errors import QueryveilError
from tests.sources.conftest import reply, served


def by_parts(content, seen=None, stop_after=None):
    """Answers as servers do that give parts."""

    def answer(handler):
        start, end = map(int, re.fullmatch(r"bytes=(\d+)-(\d+)", handler.headers["Range"]).groups())
        (seen if seen is not None else []).append((handler.path, dict(handler.headers)))
        part = content[start : end + 1]
        where = f"bytes {start}-{start + len(part) - 1}/{len(content)}"
        if stop_after is not None and start >= stop_after:
            handler.close_connection = True
            reply(handler, part[:10], 206, Content_Range=where, ETag='"1"', Content_Length=len(part))
        else:
            reply(handler, part, 206, Content_Range=where, ETag='"1"')

    return answer


def whole(content):
    return lambda handler: reply(handler, content)


@pytest.mark.parametrize("answers", [by_parts, whole])
@pytest.mark.parametrize("packed", [bytes, gzip.compress])
def test_a_file_is_read_from_servers_of_both_kinds(rows, tmp_path, answers, packed):
    local = tmp_path / "log.tsv"
    local.write_text(rows)
    with served(answers(packed(rows.encode()))) as address:
        assert qv.read_log(f"{address}/log.tsv").stats.content == qv.read_log(local).stats.content


@pytest.mark.parametrize("answers", [by_parts, whole])
def test_parquet(answers):
    table = pa.table({"user": ["a", "b"] * 3000, "query": [f"q{i}" for i in range(6000)]})
    made = io.BytesIO()
    pq.write_table(table, made, row_group_size=500)
    with served(answers(made.getvalue())) as address:
        assert qv.read_log(f"{address}/log.parquet").stats.content == qv.read_log(table).stats.content


def test_an_empty_file_is_said_to_be_empty():
    def answer(handler):
        reply(handler, b"", 416 if "Range" in handler.headers else 200)

    with served(answer) as address, pytest.raises(QueryveilError, match=r"/log\.tsv is empty"):
        qv.read_log(f"{address}/log.tsv")


def test_signatures_and_passwords_are_used_and_not_shown(rows):
    seen = []
    with served(by_parts(rows.encode() + b"only\n", seen)) as address, pytest.raises(QueryveilError) as caught:
        qv.read_log(f"{address.replace('//', '//me:pass-word@')}/log.tsv?signature=very-secret#x")
    path, headers = seen[0]
    assert path == "/log.tsv?signature=very-secret"
    assert headers["Authorization"] == "Basic bWU6cGFzcy13b3Jk"
    assert f"first at {address}/log.tsv:8" in str(caught.value)
    assert "secret" not in str(caught.value)
    assert "pass-word" not in str(caught.value)


def test_a_password_does_not_follow_to_another_address(rows):
    seen = []
    with served(by_parts(rows.encode(), seen)) as other:
        moved = lambda handler: reply(handler, b"", 302, Location=f"{other}/log.tsv")  # noqa: E731
        with served(moved) as address:
            assert qv.read_log(f"{address.replace('//', '//me:pass-word@')}/log.tsv").stats.rows == 6
    assert "Authorization" not in seen[0][1]


def test_a_redirect_to_an_address_without_encryption_is_refused():
    moved = lambda handler: reply(handler, b"", 302, Location="http://example.com/log.tsv")  # noqa: E731
    with served(moved) as address, pytest.raises(QueryveilError, match="leads to an address without encryption"):
        qv.read_log(f"{address}/log.tsv")


@pytest.mark.parametrize(
    ("status", "sentence"),
    [(404, "There is nothing at"), (403, "refuses to show it"), (500, "answers with an error"), (429, "with an error")],
)
def test_errors_of_a_server_are_one_sentence(status, sentence):
    refused = pytest.raises(QueryveilError, match=sentence)
    with served(lambda handler: reply(handler, b"<secret>", status)) as address, refused as caught:
        qv.read_log(f"{address}/log.tsv")
    assert "secret" not in str(caught.value)


def test_plain_http_is_for_this_machine_only():
    with pytest.raises(QueryveilError, match=r"^http://example\.com/log\.tsv would be read without encryption"):
        qv.read_log("http://me:pass-word@example.com/log.tsv?token=1")


@pytest.mark.parametrize("address", ["https://", "https://[", "https://host:port/x"])
def test_what_is_no_address_is_said_to_be_none(address):
    with pytest.raises(QueryveilError, match="is not an address"):
        qv.read_log(address)


def test_a_server_that_is_not_there():
    with served(whole(b"")) as address:
        pass
    with pytest.raises(QueryveilError, match="cannot be reached"):
        qv.read_log(f"{address}/log.tsv")


def test_a_server_that_ends_in_the_middle(rows):
    content = (rows + rows.partition("\n")[2] * 40_000).encode()
    assert len(content) > 4 << 20
    stopping = served(by_parts(content, stop_after=1))
    with stopping as address, pytest.raises(QueryveilError, match="stopped in the middle"):
        qv.read_log(f"{address}/log.tsv")

    def cut(handler):
        handler.close_connection = True
        reply(handler, content[: 1 << 20], Content_Length=len(content))

    with served(cut) as address, pytest.raises(QueryveilError, match="stopped in the middle"):
        qv.read_log(f"{address}/log.tsv")


def test_https_with_a_certificate_that_is_trusted_or_not(rows, tmp_path, monkeypatch):
    key, name = certificate(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(name, key)
    with served(by_parts(rows.encode()), tls) as address:
        with pytest.raises(QueryveilError, match="its certificate is not trusted"):
            qv.read_log(f"{address}/log.tsv")
        monkeypatch.setenv("SSL_CERT_FILE", str(name))
        assert qv.read_log(f"{address}/log.tsv").stats.rows == 6


def certificate(folder):
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    who = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(who, who, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "key.pem").write_bytes(key.private_bytes(serialization.Encoding.PEM, *private))
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    return folder / "key.pem", folder / "cert.pem"
