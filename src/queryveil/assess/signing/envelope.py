"""A statement in its envelope (DSSE 1.0), signed by Ed25519.

There is one spelling only: an envelope that `seal` would not write byte for byte the same is refused.
"""

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Literal

from pydantic import Field

from queryveil.assess.signing.files import RefusedError
from queryveil.assess.signing.keys import key_id
from queryveil.assess.signing.statement import Part, Sha256, Statement, encoded

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

PAYLOAD: Final = "application/vnd.in-toto+json"


class Signature(Part):
    """A signature, and whose it is."""

    keyid: Sha256
    sig: str


class Envelope(Part):
    """A statement with its signature, as in a file."""

    payload: str
    payload_type: Literal["application/vnd.in-toto+json"] = Field(alias="payloadType")
    signatures: tuple[Signature]


def seal(statement: Statement, key: "Ed25519PrivateKey") -> bytes:
    """A statement in its envelope, signed."""
    payload = encoded(statement)
    return _enveloped(payload, key_id(key.public_key()), key.sign(to_sign(PAYLOAD, payload)))


def _enveloped(payload: bytes, keyid: str, sealed: bytes) -> bytes:
    signature = Signature(keyid=keyid, sig=base64.b64encode(sealed).decode())
    payload_text = base64.b64encode(payload).decode()
    return encoded(Envelope(payload=payload_text, payloadType=PAYLOAD, signatures=(signature,)))


def open_envelope(content: bytes, key: "Ed25519PublicKey") -> Statement:
    """The statement in an envelope, which must be signed by a key and written as `sign` writes it."""
    from cryptography.exceptions import InvalidSignature

    shape = "it is not written as 'queryveil sign' writes it"
    with _refusing(shape):
        envelope = Envelope.model_validate_json(content)
        (signature,) = envelope.signatures
        payload = base64.b64decode(envelope.payload, validate=True)
        sealed = base64.b64decode(signature.sig, validate=True)
        if _enveloped(payload, signature.keyid, sealed) != content:
            raise RefusedError(shape)
    if signature.keyid != key_id(key):
        raise RefusedError("it names another key")
    try:
        key.verify(sealed, to_sign(envelope.payload_type, payload))
    except InvalidSignature:
        raise RefusedError("the signature does not fit what it says") from None
    with _refusing("what is signed is not a statement that this version can read"):
        statement = Statement.model_validate_json(payload)
        names = [subject.name for subject in statement.subject]
        if encoded(statement) != payload or names != sorted(set(names)):
            raise RefusedError(shape)
    return statement


@contextmanager
def _refusing(why: str) -> Iterator[None]:
    """Turn any error that a bad file causes into one."""
    try:
        yield
    except (ValueError, RecursionError):
        raise RefusedError(why) from None


def to_sign(kind: str, payload: bytes) -> bytes:
    """What DSSE signs (its PAE): the kind and the content, each with its length."""
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind.encode(), len(payload), payload)
