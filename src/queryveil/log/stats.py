"""What is known of a log as a whole: how much there is of everything, and how it was scrubbed."""

from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict

from queryveil.formats import BadRows


class Hits(BaseModel):
    """How much of a log holds something of a kind."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    queries: int
    """Distinct queries."""
    events: int
    urls: int = 0
    """Distinct addresses that were clicked."""
    clicks: int = 0
    """Clicks on these addresses."""


class Size(BaseModel):
    """How much there is in a log."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    queries: int
    """Distinct queries."""
    events: int
    users: int
    clicks: int


class Scrub(BaseModel):
    """How a log was scrubbed, and what was found."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    how: Literal["remove", "mask"]
    kinds: tuple[str, ...]
    rare_term_users: int | None
    hits: dict[str, Hits]
    """By kind; a query or an address that holds several kinds counts for each."""
    total: Hits
    """What holds anything at all."""
    left_out: Hits = Hits(queries=0, events=0)
    """Of that, what is not in the scrubbed log: with `remove` all of it, with `mask` queries with no word left."""
    log: Size | None = None
    """How much there was before; None where it is not told."""

    @property
    def untold(self) -> "Scrub":
        """The same without how much was found, which is exact, and so nothing for a differentially private release."""
        nothing = Hits(queries=0, events=0)
        return self.model_copy(update={"hits": {}, "total": nothing, "left_out": nothing, "log": None})


@dataclass(frozen=True)
class LogStats:
    """What is known of a log as a whole."""

    rows: int
    """Rows that were read and kept. Of a scrubbed log, the rows in which it could be written without loss: one a click,
    and one an event without a click; rows that told the same event twice are not told apart there."""
    events: int
    users: int
    queries: int
    words: int
    """Distinct words."""
    clicks: int
    timed: int
    """Events that have a time."""
    extras: tuple[str, ...]
    """The names of the extra columns."""
    empty_rows: int
    """Rows whose query was empty, which are no events."""
    bad_rows: BadRows
    """Rows that were left out, by kind."""
    content: bytes
    """A digest of all rows, whatever their order; of a scrubbed log, those of the original."""
    scrub: Scrub | None = None
    """How the log was scrubbed, if it was."""
