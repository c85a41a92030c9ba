"""Sentences beside the numbers about users."""

from queryveil.assess.measures.counts import pseudonym
from queryveil.assess.measures.random_groups import AboveRandom
from queryveil.assess.measures.registry import Assessment
from queryveil.errors import QueryveilError
from queryveil.text.show import percent

SESSIONS = "sessions of a user are put together by the user map; a reader of the release cannot"


def note_of(on: Assessment) -> str:
    """What is to be known of numbers about users where pseudonyms stand for sessions."""
    return SESSIONS if pseudonym(on.release) == "session" else ""


def why_no_records(on: Assessment, error: QueryveilError) -> str:
    """Why nothing can be said about single users."""
    linked = pseudonym(on.release) is not None and on.has_queries
    return str(error) if linked else "it is for releases of queries with user or session ids"


def beside_random(kept: AboveRandom) -> str:
    """What was kept before the correction, and by groups at random."""
    return f"before the correction {percent(kept.kept)}, groups at random {percent(kept.random)}"


def noted(*notes: str) -> str:
    """Several notes as one."""
    return "; ".join(note.rstrip(".") for note in notes if note)
