"""A signed release is, byte for byte, the one that was signed; whatever else is shown in its place is refused."""

import base64
import json
import os
import shutil
import stat
import subprocess
import sys
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import queryveil as qv
from queryveil.assess import signing
from queryveil.assess.attacks import Finding, Findings, attack
from queryveil.assess.attacks.finding import Estimate
from queryveil.assess.signing import CHECKED, GIVEN, UNCHECKED, WITHHELD, NotSignedError


@pytest.fixture(scope="module")
def log():
    rows = [(f"u{i}", query) for i in range(12) for query in ("tea", "red tea", "mug")] + [("u1", "my secret")]
    users, queries = zip(*rows, strict=True)
    return qv.read_log(pa.table({"user": users, "query": queries}))


@pytest.fixture(scope="module")
def home(tmp_path_factory, log):
    """A folder with a signed release, which nobody changes."""
    home = tmp_path_factory.mktemp("signed")
    qv.Equality(k=5).anonymize(log, seed=1).save(home / "release")
    qv.new_key(home / "key")
    qv.sign(home / "release", home / "key")
    return home


@pytest.fixture
def copy(home, tmp_path):
    """A copy of that folder, to be changed."""
    return shutil.copytree(home, tmp_path / "copy")


def holds(home, content=None):
    """Whether the release in a folder is found to be the one that was signed, by its statement or by another."""
    place = home / "release.statement.json"
    if content is not None:
        place = home / "other.json"
        place.write_bytes(content)
    return qv.verify_signature(home / "release", home / "key.pub", statement=place).holds


def refused(home, content):
    """Whether a statement is refused before a file is looked at."""
    try:
        signing._opened(content, signing._public_key(home / "key.pub"))
    except signing._RefusedError:
        return True
    return False


def stated(place):
    """The statement in an envelope."""
    return json.loads(base64.b64decode(json.loads(place.read_bytes())["payload"]))


def enveloped(home, payload, kind=signing.PAYLOAD):
    """Any bytes, signed with the key in a folder."""
    key = signing._private_key(home / "key")
    sealed = signing._Signature(
        keyid=signing._key_id(key.public_key()), sig=signing._base64(key.sign(signing._to_sign(kind, payload)))
    )
    envelope = {"payload": signing._base64(payload), "payloadType": kind, "signatures": [sealed.model_dump()]}
    return json.dumps(envelope, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def spelt(value):
    """JSON in the one spelling that is accepted."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def findings(log, place, manifest=None):
    """Findings of attacks on the release in a folder, as the command line prints them."""
    release = qv.Release.load(place.parent / "release")
    found = attack(release, log, only=("unique_queries", "history_linkage")).as_dict()
    digest = signing._sha256(place.parent / "release", "manifest.json")
    place.write_text(json.dumps({"manifest_sha256": manifest or digest} | found))
    return place


def test_what_was_signed_holds(home):
    assert holds(home)


def test_a_statement_is_what_in_toto_and_dsse_say(home):
    place = home / "release.statement.json"
    envelope, statement = json.loads(place.read_bytes()), stated(place)
    assert envelope["payloadType"] == "application/vnd.in-toto+json"
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert [one["name"] for one in statement["subject"]] == sorted(p.name for p in (home / "release").iterdir())
    # The example of the DSSE specification.
    assert signing._to_sign("http://example.com/HelloWorld", b"hello world") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )


def test_the_same_input_gives_the_same_bytes(home, tmp_path):
    again = qv.sign(home / "release", home / "key", output=tmp_path / "again.json")
    assert again.read_bytes() == (home / "release.statement.json").read_bytes()


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


@pytest.mark.parametrize("name", ["manifest.json", "report.md", "log.parquet"])
def test_every_changed_byte_of_a_file_is_refused(copy, name):
    file = copy / "release" / name
    content = file.read_bytes()
    for at in range(0, len(content), max(len(content) // 100, 1)):
        file.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        assert not holds(copy), at
    for other in (content[:-1], content + b"\n", b""):
        file.write_bytes(other)
        assert not holds(copy)
    file.write_bytes(content)
    assert holds(copy)


def _add(folder):
    (folder / "extra.txt").write_text("the log")


def _add_below(folder):
    (folder / "below").mkdir()
    (folder / "below" / "extra.txt").write_text("the log")


def _add_folder(folder):
    (folder / "u-1 asked for my secret").mkdir()


def _remove(folder):
    (folder / "report.md").unlink()


def _rename(folder):
    (folder / "report.md").rename(folder / "REPORT.md")


def _swap(folder):
    (folder / "report.md").rename(folder / "x")
    (folder / "manifest.json").rename(folder / "report.md")
    (folder / "x").rename(folder / "manifest.json")


def _link(folder):
    (folder / "report.md").rename(folder.parent / "report.md")
    (folder / "report.md").symlink_to("../report.md")


def _link_to_a_folder(folder):
    (folder / "more").symlink_to("..")


def _pipe(folder):
    (folder / "report.md").unlink()
    os.mkfifo(folder / "report.md")


def _device(folder):
    (folder / "report.md").unlink()
    (folder / "report.md").symlink_to("/dev/zero")


def _strange_name(folder):
    (folder / os.fsdecode(b"\xff\x1b[31m")).write_text("")


@pytest.mark.parametrize(
    "change",
    [
        _add,
        _add_below,
        _add_folder,
        _remove,
        _rename,
        _swap,
        _link,
        _link_to_a_folder,
        _pipe,
        _device,
        _strange_name,
    ],
    ids=lambda change: change.__name__,
)
def test_a_release_with_other_files_is_refused(copy, change):
    change(copy / "release")
    assert not holds(copy)


def test_another_key_is_refused(copy, tmp_path):
    other = qv.new_key(tmp_path / "other")
    found = qv.verify_signature(copy / "release", other, statement=copy / "release.statement.json")
    assert [(verdict.holds, verdict.counterexample) for verdict in found.verdicts] == [(False, "it names another key")]
    assert found.statement is None


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


@settings(max_examples=100)
@given(st.binary(max_size=200) | st.recursive(st.none() | st.text(), st.lists, max_leaves=5).map(spelt))
def test_anything_else_in_the_place_of_a_statement_is_refused(home, content):
    assert refused(home, content)


def test_without_the_log_a_statement_says_that_nothing_was_checked(home):
    checks = stated(home / "release.statement.json")["predicate"]["checks"]
    assert checks == {"state": UNCHECKED, "verdicts": []}


def test_with_the_log_a_statement_holds_the_verdicts_and_they_can_be_repeated(copy, log):
    place = qv.sign(copy / "release", copy / "key", log=log, output=copy / "checked.json")
    found = qv.verify(copy / "release", log)
    checks = stated(place)["predicate"]["checks"]
    assert checks["state"] == CHECKED
    assert [(one["claim"], one["holds"]) for one in checks["verdicts"]] == [(v.claim, v.holds) for v in found.verdicts]
    signed = qv.verify_signature(copy / "release", copy / "key.pub", statement=place)
    assert [verdict.holds for verdict in signed.repeated(found)] == [True]
    fewer = type(found)(found.verdicts[:-1])
    assert [verdict.holds for verdict in signed.repeated(fewer)] == [True]
    other = type(found)((replace(found.verdicts[0], holds=False),))
    assert [verdict.holds for verdict in signed.repeated(other)] == [False]


def test_a_release_that_a_check_refutes_is_not_signed(copy):
    other = qv.read_log(pa.table({"user": ["a"], "query": ["tea"]}))
    with pytest.raises(NotSignedError, match="a check refutes what it promises"):
        qv.sign(copy / "release", copy / "key", log=other, output=copy / "checked.json")
    assert not (copy / "checked.json").exists()


def test_a_release_whose_files_are_not_those_of_its_manifest_is_not_signed(copy):
    _add(copy / "release")
    with pytest.raises(qv.QueryveilError, match="not those that its manifest names"):
        qv.sign(copy / "release", copy / "key", output=copy / "other.json")


def test_findings_are_stated_without_examples(copy, log):
    place = findings(log, copy / "findings.json")
    (attacks,) = stated(qv.sign(copy / "release", copy / "key", attacks=[place], overwrite=True))["predicate"][
        "attacks"
    ]
    assert attacks["state"] == GIVEN
    assert {one["attack"] for one in attacks["findings"]} == {"unique_queries", "history_linkage"}
    assert not {"examples", "details", "beside"} & attacks["findings"][0].keys()
    assert holds(copy)


def test_findings_of_another_release_are_refused(copy, log):
    place = findings(log, copy / "findings.json", manifest="0" * 64)
    with pytest.raises(qv.QueryveilError, match="those of another release"):
        qv.sign(copy / "release", copy / "key", attacks=[place], overwrite=True)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"manifest_sha256": 1, "findings": [1]}', "[" * 100_000])
def test_a_file_without_findings_is_refused(copy, content):
    (copy / "findings.json").write_text(content)
    with pytest.raises(qv.QueryveilError, match="no findings of attacks"):
        qv.sign(copy / "release", copy / "key", attacks=[copy / "findings.json"], overwrite=True)


def test_a_policy_that_is_not_met_is_not_signed(copy, log):
    place = findings(log, copy / "findings.json")
    with pytest.raises(NotSignedError, match="planted accounts"):
        qv.sign(
            copy / "release",
            copy / "key",
            log=log,
            attacks=[place],
            policy=qv.load_policy(),
            output=copy / "other.json",
        )
    assert not (copy / "other.json").exists()


def test_a_policy_that_is_met_is_stated_with_its_rules(copy, log):
    def found(name, unit, value, setting=""):
        estimate = Estimate(value, value, value)
        return Finding(name, setting, "what it found", unit, estimate, 0.0, "", None, "", 1)

    tried = (
        found("history_linkage", "share", 0.01, "random half"),
        found("sybil", "accounts", 5),
        found("personal_data", "rate", 0.0),
    )
    digest = signing._sha256(copy / "release", "manifest.json")
    place = copy / "findings.json"
    place.write_text(json.dumps({"manifest_sha256": digest} | Findings("equality", tried, ()).as_dict()))
    rules = qv.load_policy()
    signed = qv.sign(copy / "release", copy / "key", log=log, attacks=[place], policy=rules, overwrite=True)
    policy = stated(signed)["predicate"]["policy"]
    assert (policy["meets"], policy["rules"]) == (True, rules.model_dump())
    assert {"id": "linkage", "limit": rules.max_linkage, "met": True} in policy["criteria"]
    assert holds(copy)


def test_a_policy_needs_the_log_and_findings(copy):
    with pytest.raises(qv.QueryveilError, match="needs checks and attacks"):
        qv.sign(copy / "release", copy / "key", policy=qv.load_policy(), overwrite=True)


def test_exact_numbers_about_the_log_are_withheld_of_a_differentially_private_release(tmp_path, log):
    qv.Zealous(epsilon=100.0, delta=0.1).anonymize(log).save(tmp_path / "release", allow_empty=True)
    qv.new_key(tmp_path / "key")
    place = findings(log, tmp_path / "findings.json")
    (attacks,) = stated(qv.sign(tmp_path / "release", tmp_path / "key", attacks=[place]))["predicate"]["attacks"]
    assert attacks == {"state": WITHHELD, "sha256": None, "findings": [], "skipped": []}


def test_lists_of_a_release_are_stated_by_their_digest(tmp_path, log):
    block = tmp_path / "block.txt"
    block.write_text("mug\n")
    qv.Rules(min_query_users=5, block_list=block).anonymize(log).save(tmp_path / "release")
    qv.new_key(tmp_path / "key")
    without = stated(qv.sign(tmp_path / "release", tmp_path / "key"))
    assert without["predicate"]["lists"] == {"block_list": {"name": "block.txt", "sha256": None}}
    given = stated(qv.sign(tmp_path / "release", tmp_path / "key", lists=[block], overwrite=True))
    assert given["predicate"]["lists"]["block_list"]["sha256"] == signing._sha256(tmp_path, "block.txt")
    with pytest.raises(qv.QueryveilError, match=r"without a list 'key\.pub'"):
        qv.sign(tmp_path / "release", tmp_path / "key", lists=[tmp_path / "key.pub"], overwrite=True)


def test_the_list_of_names_is_stated_where_a_log_was_scrubbed(tmp_path, log):
    qv.Equality(k=5).anonymize(qv.scrub(log)).save(tmp_path / "release")
    qv.new_key(tmp_path / "key")
    lists = stated(qv.sign(tmp_path / "release", tmp_path / "key"))["predicate"]["lists"]
    assert lists["scrubbing"]["name"] == "names.parquet"


def test_a_statement_is_never_written_into_a_release(home):
    with pytest.raises(qv.QueryveilError, match="is a release"):
        qv.sign(home / "release", home / "key", output=home / "release" / "statement.json")
    with pytest.raises(qv.QueryveilError, match="is a release"):
        qv.new_key(home / "release" / "key")


def test_a_statement_is_not_replaced_unasked(home):
    with pytest.raises(qv.QueryveilError, match="exists already"):
        qv.sign(home / "release", home / "key")


def test_the_statement_lies_beside_the_release_however_that_is_named(home, monkeypatch):
    monkeypatch.chdir(home / "release")
    assert qv.verify_signature(".", "../key.pub").holds
    monkeypatch.chdir(home)
    assert str(signing.statement_beside("release/")) == "release.statement.json"


def test_a_private_key_is_for_its_owner_alone(home, copy):
    assert stat.S_IMODE((home / "key").stat().st_mode) == 0o600
    (copy / "key").chmod(0o640)
    with pytest.raises(qv.QueryveilError, match="Other users can read the private key"):
        qv.sign(copy / "release", copy / "key", overwrite=True)


def test_keys_are_not_replaced(home):
    before = (home / "key").read_bytes()
    with pytest.raises(qv.QueryveilError, match="keys are not replaced"):
        qv.new_key(home / "key")
    assert (home / "key").read_bytes() == before


def test_a_private_key_that_cannot_be_written_leaves_no_public_key(tmp_path):
    (tmp_path / "key").write_text("something else")
    with pytest.raises(qv.QueryveilError, match="keys are not replaced"):
        qv.new_key(tmp_path / "key")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["key"]


def test_what_is_no_key_of_the_right_kind_is_refused(copy):
    from cryptography.hazmat.primitives import serialization as forms
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key

    with pytest.raises(qv.QueryveilError, match="is not an Ed25519 public key"):
        qv.verify_signature(copy / "release", copy / "key")
    (copy / "key.pub").chmod(0o600)
    with pytest.raises(qv.QueryveilError, match="is not an Ed25519 private key"):
        qv.sign(copy / "release", copy / "key.pub", overwrite=True)
    other = generate_private_key(SECP256R1())
    form = (forms.Encoding.PEM, forms.PrivateFormat.PKCS8)
    (copy / "key").write_bytes(other.private_bytes(*form, forms.NoEncryption()))
    with pytest.raises(qv.QueryveilError, match="is not an Ed25519 private key"):
        qv.sign(copy / "release", copy / "key", overwrite=True)
    (copy / "key").write_bytes(other.private_bytes(*form, forms.BestAvailableEncryption(b"words")))
    with pytest.raises(qv.QueryveilError, match="has a passphrase"):
        qv.sign(copy / "release", copy / "key", overwrite=True)


def test_a_statement_that_is_too_large_or_no_file_is_not_read(copy):
    with (copy / "large.json").open("wb") as file:
        file.truncate(signing._MOST_BYTES + 1)
    os.mkfifo(copy / "pipe.json")
    for name, why in (
        ("large.json", "larger than 16 MiB"),
        ("pipe.json", "not a regular file"),
        ("no.json", "cannot be"),
    ):
        with pytest.raises(qv.QueryveilError, match=why):
            qv.verify_signature(copy / "release", copy / "key.pub", statement=copy / name)


def test_without_the_package_that_signs_a_sentence_says_how_to_get_it(home, monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(qv.QueryveilError, match=r"pip install 'queryveil\[sign\]'"):
        qv.verify_signature(home / "release", home / "key.pub")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_another_program_accepts_the_signature(home, tmp_path):
    envelope = json.loads((home / "release.statement.json").read_bytes())
    payload = base64.b64decode(envelope["payload"])
    (tmp_path / "signed").write_bytes(signing._to_sign(envelope["payloadType"], payload))
    (tmp_path / "sig").write_bytes(base64.b64decode(envelope["signatures"][0]["sig"]))
    command = ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", home / "key.pub", "-rawin"]
    done = subprocess.run(
        [*command, "-in", tmp_path / "signed", "-sigfile", tmp_path / "sig"], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
