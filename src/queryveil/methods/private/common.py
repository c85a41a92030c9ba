"""What the differentially private methods have in common."""

from queryveil.errors import QueryveilError, option
from queryveil.log import QueryLog

UNSEEDED = "The noise comes from OpenDP's secure randomness and is not seeded: another run gives another release."


def refuse_rare_terms(log: QueryLog) -> None:
    """Refuse a log from which rare words were removed, because which words are rare depends on all users together."""
    if log.stats.scrub is not None and log.stats.scrub.rare_term_users is not None:
        scrubbed = option("scrub_rare_users", python="'rare_term_users' of scrub")
        raise QueryveilError(
            "Rare terms were scrubbed, which depends on all users together, so differential privacy cannot be promised;"
            f" leave {scrubbed} out."
        )


def meaningless(delta: float, log: QueryLog) -> list[str]:
    """A warning if delta is so large that some user's whole log could be published."""
    if delta * log.n_users < 1:
        return []
    return [
        f"Warning: delta is {delta:g}, which is not below 1 / users; such a large delta promises nothing, because it"
        " allows publishing the whole log of a user."
    ]
