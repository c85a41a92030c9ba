"""What was made."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Summary:
    """Counts of a synthetic log.

    An event is one search; it fills one row for each click, or a single row when nothing was clicked. With views, it
    fills one row for each result.
    """

    users: int
    events: int
    rows: int
    clicks: int

    def plus(self, users: int, events: int, rows: int, clicks: int) -> "Summary":
        """Add the counts of another part."""
        return Summary(self.users + users, self.events + events, self.rows + rows, self.clicks + clicks)
