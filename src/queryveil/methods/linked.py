"""What methods that release events share: the choice of what ties them together."""

from typing import Any

from pydantic import Field

from queryveil.log.sessions import Link, Linking
from queryveil.methods.base import Method


class LinkedMethod(Method):
    """A method that releases events of the log, each by itself or linked by pseudonyms."""

    link: Link = Field(
        "none",
        description="what ties released events together: nothing; a pseudonym for each session of a user; or one for"
        " each user, by which most users are found again",
    )
    session_gap: int = Field(
        30, ge=1, le=1_000_000, description="minutes without an event after which a new session begins"
    )
    session_events: int = Field(10, ge=1, description="most events of a session; a longer one is cut")

    def parameters(self) -> dict[str, Any]:
        """The parameters that count, as the manifest holds them: what a session is, only where there are sessions."""
        given = super().parameters()
        return given if self.link == "session" else {n: v for n, v in given.items() if not n.startswith("session_")}

    @property
    def linking(self) -> Linking:
        """What ties released events together."""
        return Linking(self.link, self.session_gap, self.session_events)
