"""A comparison as it could come out, made up: numbers that fit together, and nothing measured."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from queryveil.bands import Band
from queryveil.manifest import Counts

SIZES = [(1, 1, 24_899), (2, 4, 812), (5, 9, 112), (10, 29, 51), (30, 99, 22), (100, None, 5)]
BANDS = tuple(Band(least=least, most=most, queries=n, events=2 * n) for least, most, n in SIZES)
METHODS = ["equality", "affinity", "odp", "search", "mdav", "clump", "partition", "wngen", "poblete"]
ATTACKS = [
    *(("singling out", "known queries", f"{m} random") for m in (1, 3, 5)),
    ("singling out", "unique queries", ""),
    ("singling out", "unique pairs", ""),
    ("singling out", "classic risks", ""),
    ("linkability", "record linkage", ""),
    ("linkability", "same user", ""),
    ("inference", "differencing", ""),
]


@dataclass(frozen=True)
class Cell:
    name: str
    method: str
    k: int | None
    parameters: dict[str, Any]
    status: str = "done"
    why: str = ""
    promises: tuple[str, ...] = ()
    holds: bool = True


@dataclass(frozen=True)
class Row:
    cell: str
    kind: str
    group: str
    measure: str
    setting: str
    value: float | None
    low: float | None = None
    high: float | None = None
    best: float | None = None
    baseline: float | None = None
    control: float | None = None
    unit: str = "share"
    succeeds: bool | None = None
    why: str = ""


@dataclass(frozen=True)
class Frontier:
    utility: str
    points: dict[str, tuple[float, float]]
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Recommendation:
    aim: str
    rule: str
    cell: str | None
    reason: str


@dataclass(frozen=True)
class Comparison:
    fingerprint: str
    seed: int
    counts: Counts
    bands: tuple[Band, ...]
    cells: tuple[Cell, ...]
    rows: tuple[Row, ...]
    recommendations: tuple[Recommendation, ...]
    found: dict[str, tuple[float, float]] = field(default_factory=dict)
    """The share of queries kept and the risk of each cell."""

    def risk(self, cell):
        return self.found[cell][1] if cell in self.found else None

    def kept(self, cell):
        share = self.found[cell][0]
        return {"distinct queries": share, "tail": share / 2, "interests": None, "terms": share}

    @property
    def frontiers(self):
        best, most = [], -1.0
        for name, (kept, _) in sorted(self.found.items(), key=lambda point: (point[1][1], -point[1][0])):
            if kept > most:
                best.append(name)
                most = kept
        return (Frontier("distinct queries kept", self.found, tuple(best)), Frontier("interests left", {}, ()))


def made_up(text=""):
    """Several methods with several settings; `text` is put wherever a text can stand."""
    rng = np.random.default_rng(0)
    cells, rows, found = [], [], {}
    for method in METHODS:
        for k in (2, 5, 10, 20):
            for users in ("", ", no users") if method in ("equality", "affinity", "poblete") else ("",):
                parameters = {"k": k} | ({"users": "drop"} if users else {})
                cells.append(Cell(f"{method}, k = {k}{users}{text}", method, k, parameters))
    cells.append(Cell(f"zealous, ε = 10{text}", "zealous", None, {"epsilon": 10.0, "delta": 1e-6}))
    cells.append(Cell("zealous, ε = 1", "zealous", None, {"epsilon": 1.0, "delta": 1e-6}, "empty", f"Nothing.{text}"))
    cells.append(Cell("search, k = 50", "search", 50, {"k": 50}, "failed", f"The log has only 40 users.{text}"))
    for cell in cells:
        if cell.status != "done":
            continue
        k = cell.k or 30
        level = float(rng.uniform(0.5, 1.0)) / k
        dropped = cell.parameters.get("users") == "drop" or cell.k is None
        level = level / 4 if dropped else level
        risk = 0.0 if dropped else min(1.0, 1.6 * level)
        found[cell.name] = (level, risk)
        typed = cell.method not in ("clump", "partition", "wngen")
        for band in BANDS if typed else ():
            kept = 1.0 if band.least >= k else level * (band.least / k) ** 0.5
            rows.append(Row(cell.name, "utility", "retention", f"distinct queries of {band.label}", "", kept, best=1.0))
        for group, measure, setting in ATTACKS if typed else ATTACKS[5:6]:
            value = float(min(1.0, rng.uniform(0.2, 1.8) * risk))
            low, high = max(0.0, value - 0.03), min(1.0, value + 0.03)
            rest = {"baseline": 0.002, "control": 0.01, "succeeds": low > 0.02}
            rows.append(Row(cell.name, "risk", group, measure, setting, value, low, high, **rest))
        rows.append(
            Row(
                cell.name,
                "risk",
                "inference",
                "planting",
                "",
                float(k),
                baseline=float(k),
                unit="accounts",
                succeeds=False,
            )
        )
        rows.append(Row(cell.name, "risk", "inference", "disambiguation", "", None, why=f"it does not apply{text}"))
    aims = (
        Recommendation(f"Keep the long tail{text}", f"The most.{text}", cells[9].name, f"It keeps 12.0 % of it.{text}"),
        Recommendation("A strict guarantee", "The smallest epsilon.", None, "No private cell released anything."),
        Recommendation("Keep users' histories", "The most of interests.", cells[-4].name, "It keeps 44.1 %."),
    )
    counts = Counts(rows=60_000, events=51_450, users=1_000, queries=25_901, clicks=35_438)
    return Comparison("f" * 64, 3, counts, BANDS, tuple(cells), tuple(rows), aims, found)
