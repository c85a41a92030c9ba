"""Keys to sign with: Ed25519, in PEM."""

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from queryveil.assess.signing.files import read_bounded
from queryveil.errors import QueryveilError, require
from queryveil.release import MANIFEST

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey


def new_key(path: str | Path) -> Path:
    """Make a key to sign with: a private key that only its owner can read, and a public key to give to others.

    Args:
        path: The file of the private key; the public key goes to the same name with `.pub`.

    Returns:
        The file of the public key.

    Raises:
        QueryveilError: If one of the two exists already or cannot be written.
    """
    require("A signature", "cryptography")
    from cryptography.hazmat.primitives import serialization as forms
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    private = Path(path)
    public = private.with_name(f"{private.name}.pub")
    if (private.parent / MANIFEST).exists():
        raise QueryveilError(f"{private.parent} is a release, so nothing may be added to it; name another folder.")
    key = Ed25519PrivateKey.generate()
    secret = key.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.NoEncryption())
    shown = key.public_key().public_bytes(forms.Encoding.PEM, forms.PublicFormat.SubjectPublicKeyInfo)
    _write_new(public, shown, 0o666)
    try:
        _write_new(private, secret, 0o600)
    except BaseException:
        public.unlink()
        raise
    return public


def private_key(path: str | Path) -> "Ed25519PrivateKey":
    """A key to sign with, which only its owner can read."""
    require("A signature", "cryptography")
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    content = read_bounded(Path(path), "private key")
    if Path(path).stat().st_mode & 0o077:
        raise QueryveilError(f"Other users can read the private key {path}; run 'chmod 600' on it first.")
    try:
        key = load_pem_private_key(content, None)
    except TypeError:
        raise QueryveilError(f"The private key {path} has a passphrase; save it without one first.") from None
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise QueryveilError(f"{path} is not an Ed25519 private key in PEM; make one with 'queryveil keygen'.")
    return key


def public_key(path: str | Path) -> "Ed25519PublicKey":
    """The key of a signer."""
    require("A signature", "cryptography")
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(read_bounded(Path(path), "public key"))
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise QueryveilError(f"{path} is not an Ed25519 public key in PEM; give the .pub file of the signer.")
    return key


def key_id(key: "Ed25519PublicKey") -> str:
    """The name of a key in a statement: the SHA-256 of its standard form."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()


def _write_new(path: Path, content: bytes, mode: int) -> None:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:
        sentence = f"{path} exists already, and keys are not replaced; name another."
        raise QueryveilError(sentence, code="exists") from None
    except OSError as error:
        raise QueryveilError(f"The key cannot be written to {path}: {error.strerror}; name another place.") from None
    with os.fdopen(handle, "wb") as file:
        file.write(content)
