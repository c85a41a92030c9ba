"""How much affinity releases, for many k and theta at once.

Carpineto and Romano, K-theta-affinity privacy: releasing infrequent query refinements safely, Information Processing
and Management 51, 2015, figure 5a: the share of released queries against k, for equality and for affinity.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import chain, product
from pathlib import Path
from typing import Any

import pyarrow as pa

from queryveil.assess.arguments import at_least, several
from queryveil.assess.charts import sweep_chart
from queryveil.assess.drawings import check_chart, save_chart
from queryveil.errors import QueryveilError
from queryveil.log import QueryLog, local
from queryveil.methods.affinity.method import Affinity, Candidates
from queryveil.methods.base import check_k
from queryveil.text.show import percent
from queryveil.text.tabular import Tabular, html_rows

KS = (2, 5, 10, 20, 50)


@dataclass(frozen=True)
class Point:
    """What one setting releases."""

    theta: float | None
    """None for equality."""
    k: int
    concept_min_users: int
    """Least users of a concept."""
    min_term_users: int
    """Least users of each word of a released query with a concept."""
    concepts: int
    """Concepts of the log."""
    queries: int
    """Distinct queries released."""
    events: int

    @property
    def method(self) -> str:
        """The method as the paper writes it."""
        return "EQ" if self.theta is None else f"AFF θ = {self.theta:g}"


@dataclass(frozen=True)
class Sweep(Tabular):
    """What equality and affinity release of a log, setting by setting."""

    queries: int
    """Distinct queries in the log."""
    events: int
    points: tuple[Point, ...]

    def as_dict(self) -> dict[str, Any]:
        """The sweep as plain values, for JSON."""
        shares = [
            asdict(p)
            | {"method": p.method, "query_share": p.queries / self.queries, "event_share": p.events / self.events}
            for p in self.points
        ]
        return asdict(self) | {"points": shares}

    def save_chart(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Draw the released shares of distinct queries and of events against k, on a logarithmic axis.

        Args:
            path: The file: .svg, .png, or .html, which needs no network.
            overwrite: Whether a file at this place may be replaced.
        """
        check_chart(path, overwrite=overwrite)  # before the chart is drawn
        save_chart(self.chart(), path, overwrite=overwrite)

    def chart(self) -> Any:
        """The released shares of distinct queries and of events against k, as an Altair chart."""
        return sweep_chart(self)

    def to_arrow(self) -> pa.Table:
        """One row per setting."""
        return pa.Table.from_pylist(self.as_dict()["points"], schema=_SCHEMA)

    def _repr_html_(self) -> str:
        title = f"What equality and affinity release of {self.queries:,} distinct queries and {self.events:,} events"
        names = ("method", "k", "queries", "share of queries", "events", "share of events")
        rows = [
            (p.method, p.k, p.queries, percent(p.queries / self.queries), p.events, percent(p.events / self.events))
            for p in self.points
        ]
        return html_rows(title, names, rows, names[1:])


_SCHEMA = pa.schema(
    [
        ("method", pa.string()),
        ("theta", pa.float64()),
        *((name, pa.int64()) for name in ("k", "concept_min_users", "min_term_users", "concepts", "queries", "events")),
        *((name, pa.float64()) for name in ("query_share", "event_share")),
    ]
)


def sweep(
    log: QueryLog,
    *,
    ks: int | Sequence[int] | None = None,
    thetas: float | Sequence[float] = (0.9, 0.8),
    **parameters: Any,
) -> Sweep:
    """Count what equality and affinity release for every k and theta, in one run.

    Concepts, vectors and the graph are made once for every k and theta. By default `min_term_users` is k itself, as in
    `anonymize`. Each number is what `anonymize` with the same parameters releases.

    Args:
        log: The log.
        ks: Values of k, the least distinct users; by default 2, 5, 10, 20 and 50, up to the users of the log.
        thetas: Values of theta, the least cosine.
        **parameters: Further parameters of `Affinity`.
    """
    log = local(log, "sweep")
    ks = [k for k in KS if k <= log.n_users] if ks is None else several(ks)
    thetas = several(thetas)
    if not ks or not thetas:
        raise QueryveilError("A sweep needs at least one k and one theta.")
    if {"k", "theta"} & set(parameters):
        raise QueryveilError("A sweep takes lists, 'ks' and 'thetas', instead of 'k' and 'theta'.")
    at_least(2, "sweep", "ks", *ks, flag="k")
    for one_k, one_theta in product(ks, thetas):  # each setting is checked as the method checks it
        Affinity(k=one_k, theta=one_theta, **parameters)
    ks, thetas = sorted(set(ks)), sorted(set(thetas))
    methods = {k: Affinity(k=k, **parameters) for k in ks}
    for method in methods.values():
        check_k(method, log.n_users)
    users, events = log.users_per_query, log.events_per_query
    candidates = Candidates(methods[ks[0]], log, ks)
    concept_users, concepts = methods[ks[0]].concept_users(log), int(candidates.concepts.key.sum())
    equality = ((None, k, users >= k) for k in ks)
    affine = ((one.theta, one.k, one.queries) for one in candidates.released(ks, thetas))
    found = {
        (theta, k): Point(
            theta, k, concept_users, methods[k].term_users, concepts, int(kept.sum()), int(events[kept].sum())
        )
        for theta, k, kept in chain(equality, affine)
    }
    lines = [None, *reversed(thetas)]
    return Sweep(log.n_queries, len(log.events), tuple(found[theta, k] for theta in lines for k in ks))
