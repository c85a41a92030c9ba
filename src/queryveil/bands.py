"""Frequency bands: queries by how many users issued them. The long tail is the point, so it is always shown."""

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

_EDGES = (1, 2, 5, 10, 30, 100)


class Band(BaseModel):
    """Queries that `least` to `most` users issued, and how much of them is kept."""

    model_config = ConfigDict(frozen=True)
    least: int
    most: int | None
    queries: int
    events: int
    kept_queries: int = 0
    kept_events: int = 0

    @property
    def label(self) -> str:
        """The band in words."""
        if self.most is None:
            return f"{self.least}+ users"
        return f"{self.least} user" if self.most == 1 else f"{self.least}-{self.most} users"


def bands(
    users: NDArray[np.int64],
    events: NDArray[np.int64],
    kept_events: NDArray[np.int64] | None = None,
) -> tuple[Band, ...]:
    """Band by band, how many queries and events there are, and how many are kept.

    Args:
        users: Distinct users of each query.
        events: Events of each query.
        kept_events: Released events of each query; a query with none is not kept.
    """
    kept = np.zeros_like(events) if kept_events is None else kept_events
    result = []
    for least, after in zip(_EDGES, (*_EDGES[1:], None), strict=True):
        inside = users >= least if after is None else (users >= least) & (users < after)
        result.append(
            Band(
                least=least,
                most=None if after is None else after - 1,
                queries=int(inside.sum()),
                events=int(events[inside].sum()),
                kept_queries=int((kept[inside] > 0).sum()),
                kept_events=int(kept[inside].sum()),
            )
        )
    return tuple(result)
