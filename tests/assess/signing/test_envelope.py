"""A statement is accepted, byte for byte, only as it was signed."""

import base64
import json
import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queryveil.assess.signing.envelope import to_sign
from tests.assess.signing.signed import enveloped, holds, refused, spelt, stated
from tests.strategies import examples


def test_a_statement_is_what_in_toto_and_dsse_say(home):
    place = home / "release.statement.json"
    envelope, statement = json.loads(place.read_bytes()), stated(place)
    assert envelope["payloadType"] == "application/vnd.in-toto+json"
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert [one["name"] for one in statement["subject"]] == sorted(p.name for p in (home / "release").iterdir())
    # The example of the DSSE specification.
    assert to_sign("http://example.com/HelloWorld", b"hello world") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )


def test_every_changed_byte_of_a_statement_is_refused(home):
    content = (home / "release.statement.json").read_bytes()
    assert not refused(home, content)
    for at in range(len(content)):
        for other in {content[at] ^ 1, content[at] ^ 0x20, content[at] ^ 0x80, ord("A")} - {content[at]}:
            assert refused(home, content[:at] + bytes([other]) + content[at + 1 :]), at


def test_bytes_that_are_missing_or_too_many_are_refused(home):
    content = (home / "release.statement.json").read_bytes()
    for at in range(len(content)):
        assert refused(home, content[:at])
        assert refused(home, content[:at] + content[at + 1 :])
        assert refused(home, content[:at] + b" " + content[at:])
    assert refused(home, content + b" ")
    assert refused(home, content + content)
    assert refused(home, b"\xef\xbb\xbf" + content)


def _renamed(value, old, new):
    value[new] = value.pop(old)


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.update(more=1),
        lambda s: s["predicate"].update(more=1),
        lambda s: s["subject"][0].update(more=1),
        lambda s: s["subject"][0]["digest"].update(sha512="00"),
        lambda s: s["predicate"].pop("policy"),
        lambda s: s["predicate"]["checks"].update(state="checked by everybody"),
        lambda s: s.update(predicateType="urn:queryveil:release-statement:2"),
        lambda s: s.update(_type="https://in-toto.io/Statement/v0.1"),
        lambda s: _renamed(s, "predicateType", "predicate_type"),
        lambda s: s["subject"].reverse(),
        lambda s: s["subject"].append(s["subject"][-1]),
        lambda s: s["subject"].pop(),
        lambda s: s["subject"][0]["digest"].update(sha256=s["subject"][0]["digest"]["sha256"].upper()),
        lambda s: s["predicate"].update(method="affinity"),
        lambda s: s["predicate"]["parameters"].update(k=50),
        lambda s: s["predicate"]["parameters"].update(k=float("nan")),
        lambda s: s["predicate"]["parameters"].update(k=float("inf")),
    ],
)
def test_a_statement_of_another_form_is_refused_even_when_it_is_signed(copy, change):
    statement = stated(copy / "release.statement.json")
    assert holds(copy, enveloped(copy, spelt(statement)))
    change(statement)
    assert not holds(copy, enveloped(copy, spelt(statement)))


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace(b'{"_type"', b'{"_type":"x","_type"'),
        lambda text: text.replace(b'"k":5', b'"k":5,"k":5'),
        lambda text: text.replace(b'"k":5', b'"k": 5'),
        lambda text: text.replace(b'"k":5', b'"k":1e999'),
        lambda text: text.replace(b"equality", b"\\u0065quality"),
        lambda text: text.replace(b'"k":5', b'"k":' + b"[" * 100_000),
        lambda text: text.replace(b'"k":5', b'"k":' + b"9" * 10_000),
        lambda text: text.rstrip(),
    ],
)
def test_a_statement_in_another_spelling_is_refused_even_when_it_is_signed(copy, change):
    text = spelt(stated(copy / "release.statement.json"))
    assert change(text) != text
    assert not holds(copy, enveloped(copy, change(text)))


@pytest.mark.parametrize(
    "change",
    [
        lambda e: e["signatures"].clear(),
        lambda e: e["signatures"].append(e["signatures"][0]),
        lambda e: e["signatures"][0].pop("keyid"),
        lambda e: e["signatures"][0].update(more=1),
        lambda e: e.update(more=1),
        lambda e: e.update(payloadType="application/json"),
        lambda e: e.update(payload=e["payload"].rstrip("=") + "\n"),
        lambda e: _renamed(e, "payloadType", "payload_type"),
    ],
)
def test_an_envelope_of_another_form_is_refused(copy, change):
    envelope = json.loads((copy / "release.statement.json").read_bytes())
    assert holds(copy, spelt(envelope))
    change(envelope)
    assert not holds(copy, spelt(envelope))


def test_the_kind_of_payload_is_signed_too(copy):
    payload = base64.b64decode(json.loads((copy / "release.statement.json").read_bytes())["payload"])
    signed_as_json = enveloped(copy, payload, kind="application/json")
    assert not holds(copy, signed_as_json.replace(b"application/json", b"application/vnd.in-toto+json"))


def test_a_signature_with_bits_that_base64_ignores_is_refused(copy):
    envelope = json.loads((copy / "release.statement.json").read_bytes())
    sig = envelope["signatures"][0]["sig"]
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    other = sig[:-3] + alphabet[alphabet.index(sig[-3]) ^ 1] + "=="
    assert base64.b64decode(other) == base64.b64decode(sig)
    envelope["signatures"][0]["sig"] = other
    assert not holds(copy, spelt(envelope))


@settings(max_examples=examples(50))
@given(st.binary(max_size=200) | st.recursive(st.none() | st.text(), st.lists, max_leaves=5).map(spelt))
def test_anything_else_in_the_place_of_a_statement_is_refused(home, content):
    assert refused(home, content)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_another_program_accepts_the_signature(home, tmp_path):
    envelope = json.loads((home / "release.statement.json").read_bytes())
    payload = base64.b64decode(envelope["payload"])
    (tmp_path / "signed").write_bytes(to_sign(envelope["payloadType"], payload))
    (tmp_path / "sig").write_bytes(base64.b64decode(envelope["signatures"][0]["sig"]))
    command = ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", home / "key.pub", "-rawin"]
    done = subprocess.run(
        [*command, "-in", tmp_path / "signed", "-sigfile", tmp_path / "sig"], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
