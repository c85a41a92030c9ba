"""The independent verifier: what a release must promise, whether it holds, and the release made again from its log."""

from queryveil.verification.rebuild import verify
from queryveil.verification.verifier import Verification
from queryveil.verification.without_log import verify_files

__all__ = ["Verification", "verify", "verify_files"]
