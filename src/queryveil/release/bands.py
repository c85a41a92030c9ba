"""Frequency bands: queries by how many users issued them. The long tail matters most, so it is always shown."""

import pyarrow as pa
from pydantic import BaseModel, ConfigDict

_EDGES = (1, 2, 5, 10, 30, 100)


class Band(BaseModel):
    """Queries that `least` to `most` users issued, and how much of them is kept.

    The band of 0 users has the masked queries of a scrubbed log. Each stands for several queries, so nobody issued what
    is released of them.
    """

    model_config = ConfigDict(frozen=True)
    least: int
    most: int | None
    queries: int
    events: int
    kept_queries: int = 0
    kept_events: int = 0

    @property
    def masked(self) -> bool:
        """Whether these are masked queries."""
        return self.least == 0

    @property
    def label(self) -> str:
        """The band in words."""
        if self.masked:
            return "masked"
        if self.most is None:
            return f"{self.least}+ users"
        return f"{self.least} user" if self.most == 1 else f"{self.least}-{self.most} users"


def bands(frequencies: pa.Table) -> tuple[Band, ...]:
    """Band by band, how many queries and events there are, and how many are kept; masked queries last, if any.

    Args:
        frequencies: For each number of `users`, how many `queries` that many users issued, their `events`, and how many
            of these are `kept_queries` and `kept_events`.
    """
    users = frequencies["users"].to_numpy()
    result = []
    edges = [*zip(_EDGES, (*_EDGES[1:], None), strict=True), *([(0, 1)] if 0 in users else [])]
    for least, after in edges:
        inside = users >= least if after is None else (users >= least) & (users < after)
        sums = {
            name: int(frequencies[name].to_numpy()[inside].sum())
            for name in ("queries", "events", "kept_queries", "kept_events")
        }
        result.append(Band(least=least, most=None if after is None else after - 1, **sums))
    return tuple(result)
