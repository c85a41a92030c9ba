"""What a publisher wants to know of a log first."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow.compute as pc

from queryveil.bands import Band, bands
from queryveil.log import QueryLog

KS = (2, 5, 10, 30, 100)


@dataclass(frozen=True)
class Kept:
    """What releasing the queries of at least k users would keep."""

    k: int
    queries: int
    events: int


@dataclass(frozen=True)
class Length:
    """Queries of one length."""

    words: str
    queries: int
    events: int


@dataclass(frozen=True)
class Profile:
    """A log in numbers."""

    rows: int
    empty_rows: int
    bad_rows: dict[str, int]
    events: int
    users: int
    queries: int
    words: int
    clicks: int
    first: str | None
    last: str | None
    queries_per_user: dict[str, float]
    extras: dict[str, int]
    lengths: tuple[Length, ...]
    bands: tuple[Band, ...]
    kept: tuple[Kept, ...]
    fingerprint: str

    def as_dict(self) -> dict[str, Any]:
        """The profile as plain values, for JSON."""
        return asdict(self) | {"bands": [band.model_dump() for band in self.bands]}


def profile(log: QueryLog) -> Profile:
    """Rows, events, users, queries, their lengths and frequencies, and what each k would keep of them."""
    users, events = log.users_per_query, log.events_per_query
    span = pc.min_max(log.events["time"]).as_py()
    per_user = np.bincount(log.events["user_id"].to_numpy(), minlength=log.n_users)
    words = log.tokens.per_query
    lengths = []
    for length in range(6):
        inside = words == length if length < 5 else words >= 5
        if length or inside.any():
            label = str(length) if length < 5 else "5+"
            lengths.append(Length(label, int(inside.sum()), int(events[inside].sum())))
    return Profile(
        rows=log.rows,
        empty_rows=log.empty_rows,
        bad_rows=log.bad_rows.count,
        events=len(log.events),
        users=log.n_users,
        queries=log.n_queries,
        words=len(log.tokens.text),
        clicks=len(log.clicks),
        first=span["min"] and span["min"].isoformat(" ", "seconds"),
        last=span["max"] and span["max"].isoformat(" ", "seconds"),
        queries_per_user={
            "mean": float(per_user.mean()),
            "median": float(np.median(per_user)),
            "90 %": float(np.quantile(per_user, 0.9)),
            "99 %": float(np.quantile(per_user, 0.99)),
            "most": float(per_user.max()),
        },
        extras={name: len(values) for name, values in log.extras.items()},
        lengths=tuple(lengths),
        bands=bands(users, events),
        kept=tuple(Kept(k, int((users >= k).sum()), int(events[users >= k].sum())) for k in KS),
        fingerprint=log.fingerprint,
    )
