import stat
import sys

import pytest

import queryveil as qv


def test_another_key_is_refused(copy, tmp_path):
    other = qv.new_key(tmp_path / "other")
    found = qv.verify_signature(copy / "release", other, statement=copy / "release.statement.json")
    assert [(verdict.holds, verdict.counterexample) for verdict in found.verdicts] == [(False, "it names another key")]
    assert found.statement is None


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


def test_without_the_package_that_signs_a_sentence_says_how_to_get_it(home, monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(qv.QueryveilError, match=r"pip install 'queryveil\[sign\]'"):
        qv.verify_signature(home / "release", home / "key.pub")
