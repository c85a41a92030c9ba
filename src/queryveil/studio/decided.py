"""The list of decisions of a project, and names for what a form is about."""

import hmac
import secrets
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from queryveil.errors import QueryveilError
from queryveil.methods.recipe import RecipeStep
from queryveil.scrubbing.decisions import Decision, read_decisions, write_decisions

_KEY = secrets.token_bytes(32)


def mark(about: Decision | Sequence[RecipeStep]) -> str:
    """A name for a decision or for steps that does not say their texts, and is another one at each start.

    A page may be older than what it shows, so its forms name what they are about.
    """
    parts = [about] if isinstance(about, Decision) else about
    return hmac.new(_KEY, "\n".join(part.model_dump_json() for part in parts).encode(), "sha256").hexdigest()


def decisions_in(file: Path) -> tuple[Decision, ...]:
    """The decisions in a file; none if it is not there."""
    return read_decisions(file) if file.exists() else ()


class DecisionList:
    """The decisions of a project. Any number of requests may change it at the same time.

    Args:
        file: Its file, which need not exist.
        lock: Who changes it has this.
    """

    def __init__(self, file: Path, lock: AbstractContextManager[object]) -> None:
        self._file = file
        self._lock = lock

    @property
    def all(self) -> tuple[Decision, ...]:
        """What was decided, in order."""
        return decisions_in(self._file)

    def add(self, decision: Decision) -> None:
        """Add a decision."""
        with self._lock:
            write_decisions([*self.all, decision], self._file, overwrite=True)

    def take_back(self, named: str) -> Decision:
        """Remove a decision, and return it.

        Args:
            named: Its mark.

        Raises:
            QueryveilError: If it is gone.
        """
        with self._lock:
            known = self.all
            place = next((here for here, one in enumerate(known) if mark(one) == named), None)
            if place is None:
                raise QueryveilError("There is no such decision any more; load the page again.")
            write_decisions([*known[:place], *known[place + 1 :]], self._file, overwrite=True)
            return known[place]
