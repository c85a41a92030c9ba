"""A statement about a release, signed by its publisher: an in-toto statement in a DSSE envelope, by Ed25519.

It names the SHA-256 of every file of the release, and says what the signer checked and was given: verdicts, findings of
attacks, a policy, lists.
"""

from queryveil.assess.signing.files import statement_beside
from queryveil.assess.signing.keys import new_key
from queryveil.assess.signing.signer import NotSignedError, sign
from queryveil.assess.signing.statement import Review
from queryveil.assess.signing.verify import SignedVerification, verify_signature

__all__ = ["NotSignedError", "Review", "SignedVerification", "new_key", "sign", "statement_beside", "verify_signature"]
