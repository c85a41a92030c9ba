"""Attacks on releases: what somebody else could find out, one file each."""

from queryveil.attacks.hashing import Guesses, TokenAttack, token_frequency_attack

__all__ = ["Guesses", "TokenAttack", "token_frequency_attack"]
