"""What methods that release events have in common: whether events of a session or user are linked."""

from typing import Any

from pydantic import Field

from queryveil.log.sessions import Link, Linking
from queryveil.methods.base import Method


class LinkedMethod(Method):
    """A method that releases events of the log, each by itself or linked by pseudonyms."""

    link: Link = Field(
        "none",
        description="how released events are linked: not at all; by a pseudonym for each session of a user; or by one"
        " for each user, with which most users can be re-identified",
    )
    session_gap: int = Field(
        30, ge=1, le=1_000_000, description="minutes without an event after which a new session begins"
    )
    session_events: int = Field(10, ge=1, description="most events of a session; a longer one is cut")

    def parameters(self) -> dict[str, Any]:
        """The parameters as they are written in the manifest, those of sessions only if events are linked by them."""
        given = super().parameters()
        return given if self.link == "session" else {n: v for n, v in given.items() if not n.startswith("session_")}

    @property
    def linking(self) -> Linking:
        """How released events are linked."""
        return Linking(self.link, self.session_gap, self.session_events)
