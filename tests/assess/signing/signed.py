"""What tests of signatures have in common."""

import base64
import json

import queryveil as qv
from queryveil.assess.attacks import attack
from queryveil.assess.signing.envelope import PAYLOAD, open_envelope, to_sign
from queryveil.assess.signing.files import RefusedError, sha256_of
from queryveil.assess.signing.keys import key_id, private_key, public_key


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
        open_envelope(content, public_key(home / "key.pub"))
    except RefusedError:
        return True
    return False


def stated(place):
    """The statement in an envelope."""
    return json.loads(base64.b64decode(json.loads(place.read_bytes())["payload"]))


def enveloped(home, payload, kind=PAYLOAD):
    """Any bytes, signed with the key in a folder."""
    key = private_key(home / "key")
    payload_text, sealed = (base64.b64encode(some).decode() for some in (payload, key.sign(to_sign(kind, payload))))
    signature = {"keyid": key_id(key.public_key()), "sig": sealed}
    return spelt({"payload": payload_text, "payloadType": kind, "signatures": [signature]})


def spelt(value):
    """JSON in the one spelling that is accepted."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def findings(log, place, manifest=None):
    """Findings of attacks on the release in a folder, as the command line prints them."""
    release = qv.Release.load(place.parent / "release")
    found = attack(release, log, only=("unique_queries", "history_linkage")).as_dict()
    digest = sha256_of(place.parent / "release", "manifest.json")
    place.write_text(json.dumps({"manifest_sha256": manifest or digest} | found))
    return place
