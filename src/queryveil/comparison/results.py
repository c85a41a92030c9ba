"""What a comparison found: releases, numbers, frontiers and recommendations."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import pyarrow as pa

from queryveil.bands import Band
from queryveil.manifest import Counts

MOST_RISK = 0.09
"""The chance of being found that clinical reports may have at most (European Medicines Agency, policy 0070)."""
TAIL = ("1 user", "2-4 users")

Status = Literal["done", "empty", "failed"]


@dataclass(frozen=True)
class Cell:
    """One release of the comparison.

    Attributes:
        name: What it is called, such as `affinity, k = 5`.
        method: The method.
        k: The k, where it has one.
        parameters: What differs from the method's defaults.
        status: What became of it.
        why: Why nothing was released.
        promises: What the release promises.
        holds: Whether the verifier found everything to hold.
        guards: Whether any of it is a promise about people: so many of them behind something, or differential privacy.
    """

    name: str
    method: str
    k: int | None
    parameters: dict[str, Any]
    status: Status = "done"
    why: str = ""
    promises: tuple[str, ...] = ()
    holds: bool = False
    guards: bool = False


@dataclass(frozen=True)
class Row:
    """One number of one cell.

    Attributes:
        cell: The cell.
        kind: Whether it tells of what is kept, or of what is given away.
        group: Such as `retention`, or `singling out`.
        measure: The measure, or the attack.
        setting: What the attacker knows.
        value: What was found; None where the measure does not apply.
        low: The lower end of its interval.
        high: The upper end.
        best: Of what is kept: what the log itself has.
        baseline: Of an attack: what guessing finds.
        control: Of an attack: what its control finds.
        unit: What kind of number it is.
        succeeds: Of an attack: whether it beats guessing and control by more than chance.
        why: Why it does not apply.
    """

    cell: str
    kind: Literal["utility", "risk"]
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
    """The cells that no other beats in both what is kept and what is given away.

    Attributes:
        utility: What is kept, in words.
        points: The utility and the risk of every cell that has both.
        cells: Those on the frontier, from the least risk to the most.
    """

    utility: str
    points: dict[str, tuple[float, float]]
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Recommendation:
    """The cell that serves an aim best, by a stated rule.

    Attributes:
        aim: The aim.
        rule: How the cell was chosen.
        cell: The cell; None if none will do.
        reason: The numbers behind it.
    """

    aim: str
    rule: str
    cell: str | None
    reason: str


@dataclass(frozen=True)
class Comparison:
    """What every method keeps and gives away.

    Attributes:
        fingerprint: That of the log.
        seed: Decided all that is random but the noise of differential privacy.
        tests: On how many events of the log a task was tried.
        counts: What the log holds.
        bands: Its queries, by how many users issued them.
        cells: The releases.
        rows: Every number of them.
    """

    fingerprint: str
    seed: int
    tests: int
    counts: Counts
    bands: tuple[Band, ...]
    cells: tuple[Cell, ...]
    rows: tuple[Row, ...]
    _index: dict[tuple[str, str, str], Row] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        found = {(row.cell, row.group, row.measure): row for row in reversed(self.rows)}
        object.__setattr__(self, "_index", found)

    def value(self, cell: str, group: str, measure: str) -> float | None:
        """A number of a cell; of an attack in several settings, the first."""
        row = self._index.get((cell, group, measure))
        return None if row is None else row.value

    def kept(self, cell: str) -> dict[str, float | None]:
        """What a release keeps, in the numbers that decide.

        Of `distinct queries`, of those of the `tail` of fewer than five users, of users' `interests` (SRP, level 1) and
        of the certainty of `terms` (1 - NCP); each None where it does not apply.
        """
        lost = self.value(cell, "interests", "normalized certainty penalty (NCP)")
        return {
            "distinct queries": self.value(cell, "retention", "distinct queries"),
            "tail": self._tail(cell),
            "interests": self.value(cell, "interests", "users' interests left, level 1 (SRP)"),
            "terms": None if lost is None else 1 - lost,
        }

    def _tail(self, cell: str) -> float | None:
        few = [band for band in self.bands if band.queries and band.label in TAIL]
        kept = [self.value(cell, "retention", f"distinct queries of {band.label}") for band in few]
        if not few or None in kept:
            return None
        total = sum(band.queries for band in few)
        return sum((share or 0.0) * band.queries for share, band in zip(kept, few, strict=True)) / total

    def risk(self, cell: str) -> float | None:
        """How likely a person is found in a release; None where there is no record to be found.

        The chance that a record is linked to its person by someone who has the log (RL). Where records hold items
        instead of queries, the chance of a person in his group. Of hashed words, the share that is found out if that
        is more. A release that does not tell users apart has no records.
        """
        linked = self.value(cell, "linkability", "record linkage")
        found = linked if linked is not None else self.value(cell, "singling out", "classic risks")
        words = self.value(cell, "inference", "token hashing")
        both = [one for one in (found, words) if one is not None]
        return max(both) if both else None

    @property
    def frontiers(self) -> tuple[Frontier, ...]:
        """Risk against three kinds of utility; each release is on those that apply to it."""
        return tuple(self._frontier(name, utility) for name, utility in UTILITIES.items())

    def _frontier(self, name: str, utility: str) -> Frontier:
        points = {}
        for cell in self.cells:
            kept = self.kept(cell.name)[name]
            if kept is not None and cell.holds:
                points[cell.name] = (kept, self.risk(cell.name) or 0.0)
        best: list[str] = []
        most = 0.0  # who keeps nothing has nothing to compare
        for found, (kept, _) in sorted(points.items(), key=lambda point: (point[1][1], -point[1][0], point[0])):
            if kept > most:
                best.append(found)
                most = kept
        return Frontier(utility, points, tuple(best))

    @property
    def recommendations(self) -> tuple[Recommendation, ...]:
        """A cell for each of three aims."""
        return (
            self._most("Keep the long tail", "tail", "of the distinct queries of fewer than 5 users"),
            self._strictest(),
            self._most("Keep users' histories", "interests", "of users' interests (SRP, level 1)"),
        )

    def _most(self, aim: str, name: str, of: str) -> Recommendation:
        rule = (
            f"Of the releases that promise something about people, have a risk of at most {MOST_RISK:g} or no records, "
            f"and are not of tokens, the one that keeps the most {of}."
        )
        able = [cell for cell in self.cells if cell.holds and cell.guards and self.kept(cell.name)[name]]
        found = [
            (self.kept(cell.name)[name] or 0.0, -(self.risk(cell.name) or 0.0), cell)
            for cell in able
            if (self.risk(cell.name) or 0.0) <= MOST_RISK
        ]
        if not found:
            why = "is of so little risk" if able else "promises something about people"
            return Recommendation(aim, rule, None, f"No release that keeps anything {of} {why}.")
        kept, _, cell = max(found, key=lambda one: one[:2])
        risk = self.risk(cell.name)
        told = f"It keeps {_share(kept)} {of}. " + (
            "Users are not told apart, so that there is no record to be linked to a person."
            if risk is None
            else f"A record is linked to its person with a chance of {_share(risk)}."
        )
        if alone := self.value(cell.name, "singling out", "unique queries"):
            told += f" Of the released queries, {_share(alone)} were issued by one person alone."
        return Recommendation(aim, rule, cell.name, told)

    def _strictest(self) -> Recommendation:
        aim = "A strict guarantee"
        rule = (
            "Of the differentially private releases, the one of the smallest epsilon, and of equals the one with the "
            "most distinct queries."
        )
        tried = [cell for cell in self.cells if "epsilon" in cell.parameters]
        found = [
            (-cell.parameters["epsilon"], self.value(cell.name, "retention", "distinct queries") or 0.0, cell)
            for cell in tried
            if cell.holds
        ]
        if not tried:
            return Recommendation(aim, rule, None, "No differentially private method was tried.")
        if not found:
            why = " ".join(dict.fromkeys(cell.why for cell in tried))
            return Recommendation(
                aim, rule, None, f"None of {len(tried)} differentially private releases came about. {why}"
            )
        less, kept, cell = max(found, key=lambda one: one[:2])
        told = (
            "Whatever an attacker knows, one user's whole log changes the chance of any release by at most a factor of "
            f"e^{-less:g}, but for a chance of {cell.parameters['delta']:g}. It keeps {_share(kept)} of distinct "
            "queries."
        )
        if -less > 1:
            told += (
                f" An epsilon of {-less:g} is large: the guarantee is weak, and a larger log would allow a smaller one."
            )
        return Recommendation(aim, rule, cell.name, told)

    def table(self) -> pa.Table:
        """Every number in a row of its own, with all that is needed to make it again."""
        of = {cell.name: cell for cell in self.cells}
        said = [
            {
                "method": of[row.cell].method,
                "k": of[row.cell].k,
                "parameters": json.dumps(of[row.cell].parameters),
                "seed": self.seed,
                "fingerprint": self.fingerprint,
                **asdict(row),
            }
            for row in self.rows
        ]
        return pa.Table.from_pylist(said, schema=_SCHEMA)


UTILITIES = {
    "distinct queries": "distinct queries kept",
    "interests": "interests of users left (SRP, level 1)",
    "terms": "certainty of terms left (1 - NCP)",
}

_SCHEMA = pa.schema(
    [
        ("cell", pa.string()),
        ("method", pa.string()),
        ("k", pa.int64()),
        ("parameters", pa.string()),
        ("seed", pa.int64()),
        ("fingerprint", pa.string()),
        ("kind", pa.string()),
        ("group", pa.string()),
        ("measure", pa.string()),
        ("setting", pa.string()),
        *((name, pa.float64()) for name in ("value", "low", "high", "best", "baseline", "control")),
        ("unit", pa.string()),
        ("succeeds", pa.bool_()),
        ("why", pa.string()),
    ]
)


def _share(value: float) -> str:
    return f"{100 * value:.1f} %" if value >= 0.001 or value == 0 else "<0.1 %"
