"""Sentences beside the numbers about users."""

from queryveil.assess.measures.counts import pseudonym
from queryveil.assess.measures.random_groups import AboveRandom
from queryveil.assess.measures.registry import Assessment
from queryveil.text.show import percent

SESSIONS = "sessions of a user are put together by the user map; a reader of the release cannot"


def note_of(on: Assessment) -> str:
    """What is to be known of numbers about users where pseudonyms stand for sessions."""
    return SESSIONS if pseudonym(on.release) == "session" else ""


def beside_random(kept: AboveRandom) -> str:
    """What was kept before the correction, and by groups at random."""
    return f"before the correction {percent(kept.kept)}, groups at random {percent(kept.random)}"


def noted(*notes: str) -> str:
    """Several notes as one."""
    return "; ".join(note.rstrip(".") for note in notes if note)
