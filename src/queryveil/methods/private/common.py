"""What the differentially private methods have in common."""

from abc import abstractmethod
from typing import ClassVar, Literal

from queryveil.claims import DifferentialPrivacy
from queryveil.errors import QueryveilError, option
from queryveil.log import QueryLog
from queryveil.methods.base import Method
from queryveil.methods.private.noise import opendp

UNSEEDED = "The noise comes from OpenDP's secure randomness and is not seeded: another run gives another release."


class PrivateMethod(Method):
    """A method whose release is differentially private."""

    makes = "counts"
    extras: ClassVar[tuple[str, ...]] = ("dp",)

    @property
    @abstractmethod
    def claim(self) -> DifferentialPrivacy:
        """What a release promises."""

    @property
    def private(self) -> bool:
        """Always."""
        return True

    @property
    def repeats(self) -> Literal["always", "seed", "never"]:
        """Never, because noise is random."""
        return "never"

    def warnings(self, log: QueryLog) -> list[str]:
        """What only the publisher should know, because it reveals something exact about the log."""
        return delta_warning(self.claim.delta, log)


def delta_warning(delta: float, log: QueryLog) -> list[str]:
    """A warning about a delta that is too large for the users of a log; none if it is not."""
    if delta * log.n_users < 1:
        return []
    return [
        f"Warning: delta is {delta:g}, which is not below 1 / users; such a large delta promises nothing, because it"
        " allows publishing the whole log of a user."
    ]


def prepare(log: QueryLog) -> None:
    """Load OpenDP, and refuse a log from which rare words were removed, or whose languages were detected.

    Which words are rare, and which languages there are, depends on all users together.
    """
    opendp()
    if log.language.detected:
        raise QueryveilError(
            "The languages of the log were detected, which depends on all users together, so differential privacy"
            f" cannot be promised; name them with {option('language', ','.join(log.language.ids))}."
        )
    if log.stats.scrub is not None and log.stats.scrub.rare_term_users is not None:
        scrubbed = option("scrub_rare_users", python="'rare_term_users' of scrub")
        raise QueryveilError(
            "Rare terms were scrubbed, which depends on all users together, so differential privacy cannot be promised;"
            f" leave {scrubbed} out."
        )
