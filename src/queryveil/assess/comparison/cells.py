"""The cells of a comparison: which there are, how one is made, and how it is stored."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pydantic import TypeAdapter, ValidationError

from queryveil.assess.attacks import Finding, attack
from queryveil.assess.comparison.results import Cell, Row
from queryveil.assess.evaluation import Measured, evaluate
from queryveil.assess.policy import gather
from queryveil.errors import QueryveilError
from queryveil.files.folders import write_whole
from queryveil.knowledge import taxonomy_name
from queryveil.log import LocalLog
from queryveil.methods import METHODS
from queryveil.methods.recipe import load_recipe, shipped
from queryveil.verification.verifier import run_checks

KS = (2, 5, 10, 20)
EPSILONS = (1.0, 10.0)
DELTA = 1e-6
KNOWN = (1, 3, 5)
"""How many queries of a person the attacker saw."""


def grid(
    methods: Sequence[str] | None = None,
    *,
    ks: Sequence[int] = KS,
    epsilons: Sequence[float] = EPSILONS,
    taxonomy: str = "wordnet",
    directory: str | None = None,
    times: bool = True,
) -> list[Cell]:
    """The cells of a comparison.

    A method with a k has a cell for each; one of differential privacy a cell for each epsilon; `rules` a cell for each
    shipped recipe; `hash` has one. A method that can link events has each cell with no links, by session and by user.

    Args:
        methods: Which methods; by default all.
        ks: Values of k.
        epsilons: Values of epsilon; delta is 1e-6.
        taxonomy: Where the methods that need it look queries up.
        directory: Where `search` looks sites up; by default in the same.
        times: Whether the log has times; without them there are no sessions.
    """
    cells: list[Cell] = []
    for name in METHODS if methods is None else dict.fromkeys(methods):
        if name not in METHODS:
            raise QueryveilError(f"There is no method '{name}'; there are {', '.join(METHODS)}.")
        fields = METHODS[name].model_fields
        settings: list[tuple[str, int | None, dict[str, Any]]] = [("", None, {})]
        if "k" in fields:
            settings = [(f"k = {k}", k, {"k": k}) for k in sorted(set(ks))]
        elif "epsilon" in fields:
            settings = [
                (f"ε = {epsilon:g}", None, {"epsilon": epsilon, "delta": DELTA}) for epsilon in sorted(set(epsilons))
            ]
        elif name == "rules":
            settings = [(recipe, None, load_recipe(recipe).parameters) for recipe in shipped()]
        for label, k, parameters in settings:
            if "taxonomy" in fields:
                wanted = taxonomy if fields["taxonomy"].default is not None else directory or taxonomy
                parameters = parameters | {"taxonomy": wanted}
            title = ", ".join(part for part in (name, label) if part)
            cells.append(Cell(title, name, k, parameters))
            if "link" in fields and "link" not in parameters and name != "hash":
                for link in ("session", "user") if times else ("user",):
                    cells.append(Cell(f"{title}, link {link}", name, k, parameters | {"link": link}))
    return cells


@dataclass(frozen=True)
class Job:
    """What is done to every cell."""

    folder: Path
    taxonomy: str
    tests: int
    seed: int
    read: Callable[[pa.Table], LocalLog] | None

    def file(self, cell: Cell) -> Path:
        """Where a cell is stored."""
        parts = [cell.method, *(f"{name}-{value}" for name, value in sorted(cell.parameters.items()))]
        if cell.method == "rules":  # its parameters are many, and have a name
            parts = [cell.name]
        if "taxonomy" in cell.parameters:
            parts = [part for part in parts if not part.startswith("taxonomy-")]
        return self.folder / (
            "_".join("".join(c if c.isalnum() or c in ".-" else "-" for c in p) for p in parts) + ".json"
        )

    def stored(self, cell: Cell) -> "Stored | None":
        """A cell that is finished; None if it is not, or cannot be read."""
        found = _stored(self.file(cell))
        return found if found is not None and found.cell.name == cell.name else None

    def others(self, cells: Sequence[Cell]) -> "list[Stored]":
        """What earlier runs stored in the same folder beside some cells."""
        mine = {self.file(cell) for cell in cells}
        found = [_stored(file) for file in sorted(self.folder.glob("*.json")) if file not in mine]
        return [one for one in found if one is not None and one.cell.method in METHODS]

    def do(self, cell: Cell, log: LocalLog) -> Cell:
        """Make a cell, and store it."""
        made, rows = self._made(cell, log)
        write_whole(self.file(cell), as_json(asdict(Stored(made, tuple(rows)))), overwrite=True, private=True)
        return made

    def _made(self, cell: Cell, log: LocalLog) -> tuple[Cell, list[Row]]:
        method = METHODS[cell.method](**cell.parameters)
        taxonomy = cell.parameters.get("taxonomy", "wordnet")
        if "taxonomy" in cell.parameters:  # its name alone, as in a manifest
            cell = replace(cell, parameters=cell.parameters | {"taxonomy": taxonomy_name(taxonomy)})
        try:
            release = method.anonymize(log, seed=self.seed)
        except QueryveilError as error:
            return replace(cell, status="failed", why=str(error)), []
        if release.manifest.counts.rows == 0:
            return replace(cell, status="empty", why="Nothing is released."), []
        checked = run_checks(release, log)
        kept = evaluate(release, log, taxonomy=self.taxonomy, tests=self.tests, seed=self.seed)
        rows = [_kept(cell, measured) for measured in kept.measured]
        found = attack(
            release,
            log,
            m=KNOWN,
            seed=self.seed,
            read=self.read,
            taxonomy=None if taxonomy == "wordnet" else taxonomy,
        )
        rows += [_found(cell, finding) for finding in found.findings]
        rows += [
            Row(cell.name, "risk", skipped.question, skipped.attack, "", None, why=skipped.why)
            for skipped in found.skipped
        ]
        made = replace(
            cell,
            promises=tuple(claim.statement for claim in release.manifest.claims),
            holds=checked.holds,
            linked=bool({"user", "session"} & set(release.schema.names)),
            known=gather(release, log, found, checked),
            why="" if checked.holds else "The verifier refutes it.",
        )
        return made, rows


@dataclass(frozen=True)
class Stored:
    """A cell with its numbers, as it is stored."""

    cell: Cell
    rows: tuple[Row, ...]

    @property
    def finished(self) -> bool:
        """Whether there is nothing to be gained by making it again: nothing failed, and no package was missing."""
        return self.cell.status != "failed" and not any("pip install" in row.why for row in self.rows)


def _stored(file: Path) -> Stored | None:
    try:
        return TypeAdapter(Stored).validate_json(file.read_bytes())
    except (OSError, ValidationError):
        return None


def _kept(cell: Cell, measured: Measured) -> Row:
    unit = "share" if measured.share else "number"
    return Row(
        cell.name,
        "utility",
        measured.group,
        measured.measure,
        "",
        measured.value,
        best=measured.best,
        unit=unit,
        why=measured.why,
        separates=measured.separates,
    )


def _found(cell: Cell, finding: Finding) -> Row:
    return Row(
        cell.name,
        "risk",
        finding.question,
        finding.attack,
        finding.setting,
        finding.estimate.value,
        low=finding.estimate.low,
        high=finding.estimate.high,
        baseline=finding.baseline,
        control=None if finding.control is None else finding.control.value,
        unit=finding.unit,
        succeeds=finding.succeeds,
    )


def as_json(value: object) -> bytes:
    """A value as a JSON file; the same value gives the same bytes."""
    return (json.dumps(value, indent=2, sort_keys=True, allow_nan=False) + "\n").encode()
