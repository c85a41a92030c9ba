"""What came, what was released, what waits and what was lost, period by period."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from queryveil.series.ledger import Ledger
from queryveil.text.tabular import Tabular, html_facts, html_table

if TYPE_CHECKING:
    from queryveil.series.ledger import Period

_COLUMNS = {
    "number": pa.int64(),
    "end": pa.timestamp("us"),
    "events": pa.int64(),
    "late": pa.int64(),
    "expired": pa.int64(),
    "forgotten": pa.int64(),
    "release": pa.int64(),
    "released": pa.int64(),
    "left_out": pa.int64(),
    "queries": pa.int64(),
    "new_queries": pa.int64(),
    "waited": pa.float64(),
    "waiting": pa.int64(),
    "waiting_queries": pa.int64(),
    "epsilon": pa.float64(),
}


@dataclass(frozen=True)
class Status(Tabular):
    """The state of a series: a row for each period, and the sums over all."""

    ledger: Ledger

    def __repr__(self) -> str:
        sums = self.sums
        return (
            f"<Series by {self.ledger.settings.method}: {sums['releases']:,} releases of {sums['periods']:,} periods,"
            f" {sums['released']:,} events released, {sums['waiting']:,} waiting>"
        )

    @property
    def periods(self) -> "tuple[Period, ...]":
        """What happened in each period."""
        return self.ledger.periods

    @property
    def sums(self) -> dict[str, int]:
        """Sums over all periods. Every event is released, left out, waiting, expired or forgotten."""
        periods = self.periods
        later = sum(one.events for one in self.ledger.forgotten)
        return {
            "periods": len(periods),
            "releases": len(self.ledger.releases),
            "events": sum(period.events for period in periods),
            "released": sum(period.released for period in periods),
            "waiting": self.waiting,
            "expired": sum(period.expired for period in periods),
            "forgotten": later,
            "late": sum(period.late for period in periods),
            "left_out": sum(period.left_out for period in periods),
            "lost": sum(one.left_out + one.expired + one.late for one in periods) + later,
            "queries": sum(period.new_queries for period in periods),
        }

    @property
    def waiting(self) -> int:
        """Events that wait now."""
        since = sum(one.events for one in self.ledger.forgotten if one.after == len(self.periods))
        return self.periods[-1].waiting - since if self.periods else 0

    @property
    def mean_wait(self) -> float | None:
        """Days that a released event waited on average; None before the first release."""
        released = self.sums["released"]
        return sum(one.waited * one.released for one in self.periods) / released if released else None

    def to_arrow(self) -> pa.Table:
        """One row per period."""
        rows = [{name: getattr(period, name) for name in _COLUMNS} for period in self.periods]
        return pa.Table.from_pylist(rows, schema=pa.schema(list(_COLUMNS.items())))

    def _repr_html_(self) -> str:
        return html_facts("Series", self.sums.items()) + html_table("Periods", self.to_arrow())
