"""What the differentially private methods have in common."""

from queryveil.errors import QueryveilError
from queryveil.log import QueryLog

UNSEEDED = "The noise comes from OpenDP's secure randomness and is not seeded: another run gives another release."


def refuse_rare_terms(log: QueryLog) -> None:
    """Refuse a log from which rare words were taken: which these are depends on all users together."""
    if log.stats.scrub is not None and log.stats.scrub.rare_term_users is not None:
        raise QueryveilError(
            "Rare terms were scrubbed, which depends on all users together, so that no differential privacy could be"
            " promised; leave --scrub-rare-users out."
        )


def meaningless(delta: float, log: QueryLog) -> list[str]:
    """A warning if delta is so large that it would allow to publish some user's whole log."""
    if delta * log.n_users < 1:
        return []
    return [
        f"Warning: delta is {delta:g}, which is not below 1 / users; so large a delta promises nothing, because the"
        " whole log of one user in as many could be published within it."
    ]
