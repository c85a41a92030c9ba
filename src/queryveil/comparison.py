"""All methods on one log: what each keeps, what each gives away, and which of them serves an aim best."""

import csv
import io
import json
import multiprocessing as mp
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from queryveil import __version__
from queryveil.attacks import Finding, attack
from queryveil.bands import Band, bands
from queryveil.errors import QueryveilError
from queryveil.evaluation import Measured, evaluate
from queryveil.files import write_whole
from queryveil.knowledge import knowledge_name, open_knowledge
from queryveil.log import LocalLog, QueryLog, local
from queryveil.manifest import Counts
from queryveil.methods import METHODS
from queryveil.methods.recipe import load_recipe, shipped
from queryveil.release import counts_of
from queryveil.sharing import sharing
from queryveil.verifier import verify

KS = (2, 5, 10, 20)
EPSILONS = (1.0, 10.0)
DELTA = 1e-6
MOST_RISK = 0.09
"""The chance of being found that clinical reports may have at most (European Medicines Agency, policy 0070)."""
TAIL = ("1 user", "2-4 users")
KNOWN = (1, 3, 5)
"""How many queries of a person the attacker saw."""

_SETTINGS, _CELLS = "comparison.json", "cells"
_TABLES = ("measures.parquet", "measures.csv")
REPORT = "report.html"
_SLOW = ("poblete", "mdav", "search", "odp", "affinity")
"""Methods to begin with, so that two processes end at about the same time."""

Status = Literal["done", "empty", "failed"]
State = Literal["waiting", "at work", "done", "empty", "failed"]
_STATES: tuple[State, ...] = ("waiting", "at work", "done", "empty", "failed")


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
        promises: What the release promises, as far as the verifier found it to hold.
        holds: Whether the verifier found everything to hold.
    """

    name: str
    method: str
    k: int | None
    parameters: dict[str, Any]
    status: Status = "done"
    why: str = ""
    promises: tuple[str, ...] = ()
    holds: bool = False


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
    tests: int = field(default=2_000, kw_only=True)
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
        """How likely a person is found in a release; None for a cell without one.

        The chance that a record is linked to its person by someone who has the log (RL). Where records hold items
        instead of queries, the chance of a person in his group. Of hashed words, the share that is found out if that
        is more. Where users are not told apart there is no record to be found, and it is 0.
        """
        if self._cell(cell).status != "done":
            return None
        linked = self.value(cell, "linkability", "record linkage")
        found = linked if linked is not None else self.value(cell, "singling out", "classic risks")
        words = self.value(cell, "inference", "token hashing")
        return max(found or 0.0, words or 0.0)

    @property
    def frontiers(self) -> tuple[Frontier, ...]:
        """Risk against three kinds of utility; each method is on those that apply to it."""
        return tuple(self._frontier(name, utility) for name, utility in UTILITIES.items())

    def _frontier(self, name: str, utility: str) -> Frontier:
        points = {}
        for cell in self.cells:
            kept, risk = self.kept(cell.name)[name], self.risk(cell.name)
            if kept is not None and risk is not None:
                points[cell.name] = (kept, risk)
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
            f"Of the releases with a risk of at most {MOST_RISK:g}, the one that keeps the most {of}; none of tokens."
        )
        found = []
        for cell in self.cells:
            kept, risk = self.kept(cell.name)[name], self.risk(cell.name)
            if kept and risk is not None and risk <= MOST_RISK and cell.holds and cell.method != "hash":
                found.append((kept, -risk, cell))
        if not found:
            return Recommendation(aim, rule, None, f"No release of so little risk keeps anything {of}.")
        kept, less, cell = max(found, key=lambda one: one[:2])
        told = f"It keeps {_share(kept)} {of}. A record is linked to its person with a chance of {_share(-less)}."
        if alone := self.value(cell.name, "singling out", "unique queries"):
            told += f" Of the released queries, {_share(alone)} were issued by one person alone."
        return Recommendation(aim, rule, cell.name, told)

    def _strictest(self) -> Recommendation:
        aim = "A strict guarantee"
        rule = (
            "Of the differentially private cells that release anything, the one of the smallest epsilon, and of equals "
            "the one with the most distinct queries."
        )
        found = [
            (-cell.parameters["epsilon"], self.value(cell.name, "retention", "distinct queries") or 0.0, cell)
            for cell in self.cells
            if cell.status == "done" and cell.holds and "epsilon" in cell.parameters
        ]
        if not found:
            return Recommendation(
                aim, rule, None, "No differentially private cell released anything: the log has too few users."
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

    def _cell(self, name: str) -> Cell:
        return next(cell for cell in self.cells if cell.name == name)

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


def grid(
    methods: Sequence[str] | None = None,
    *,
    ks: Sequence[int] = KS,
    epsilons: Sequence[float] = EPSILONS,
    knowledge: str = "wordnet",
    directory: str | None = None,
) -> list[Cell]:
    """The cells of a comparison.

    A method with a k has a cell for each; one of differential privacy a cell for each epsilon; `rules` a cell for each
    shipped recipe; `hash` has one. A method that can drop the users has each cell a second time without them.

    Args:
        methods: Which methods; by default all.
        ks: Values of k.
        epsilons: Values of epsilon; delta is 1e-6.
        knowledge: Where the methods that need it look queries up.
        directory: Where `search` looks sites up; by default in the same.
    """
    cells: list[Cell] = []
    for name in METHODS if methods is None else dict.fromkeys(methods):
        if name not in METHODS:
            raise QueryveilError(f"There is no method '{name}'; there are {', '.join(METHODS)}.")
        fields = METHODS[name].model_fields
        settings: list[tuple[str, int | None, dict[str, Any]]] = [("", None, {})]
        if "k" in fields:
            settings = [(f"k = {k}", k, {"k": k}) for k in ks]
        elif "epsilon" in fields:
            settings = [(f"ε = {epsilon:g}", None, {"epsilon": epsilon, "delta": DELTA}) for epsilon in epsilons]
        elif name == "rules":
            settings = [(recipe, None, load_recipe(recipe).parameters) for recipe in shipped()]
        for label, k, parameters in settings:
            if "knowledge" in fields:
                wanted = knowledge if fields["knowledge"].default is not None else directory or knowledge
                parameters = parameters | {"knowledge": wanted}
            title = ", ".join(part for part in (name, label) if part)
            cells.append(Cell(title, name, k, parameters))
            if "users" in fields and name != "hash" and parameters.get("users", "fresh") == "fresh":
                cells.append(Cell(f"{title}, no users", name, k, parameters | {"users": "drop"}))
    return cells


@dataclass(frozen=True)
class Board:
    """How far a comparison is, for whoever watches."""

    cells: tuple[Cell, ...]
    states: Any
    """A number a cell; shared between processes."""

    def state(self, place: int) -> State:
        """The state of a cell, by its place."""
        return _STATES[int(self.states[place])]


def compare(
    log: QueryLog,
    folder: str | Path,
    *,
    methods: Sequence[str] | None = None,
    ks: Sequence[int] = KS,
    epsilons: Sequence[float] = EPSILONS,
    knowledge: str = "wordnet",
    directory: str | None = None,
    tests: int = 2_000,
    seed: int = 0,
    read: Callable[[pa.Table], LocalLog] | None = None,
    again: Callable[[], LocalLog] | None = None,
    overwrite: bool = False,
    watch: Callable[[Board], None] | None = None,
) -> Comparison:
    """Make a release by every method, measure and attack each, and put all numbers into one table.

    A cell is stored as soon as it is finished. Who calls again with the same folder, log, seed and version goes on
    where the last call ended, also with further methods or values.

    Args:
        log: The log.
        folder: The folder for cells and tables; it tells of the log, and is for those who may see that.
        methods: Which methods; by default all.
        ks: Values of k, for methods that have one; those above the number of users are left out.
        epsilons: Values of epsilon, for methods that have one.
        knowledge: Where queries are looked up, by methods and measures.
        directory: Where `search` looks sites up; by default in the same.
        tests: On how many events of the log a task is tried.
        seed: Decides all that is random but the noise of differential privacy.
        read: Reads a log from a table, such as `queryveil.read_log`; without it nothing is planted.
        again: Reads the same log once more; then a second process makes every other cell.
        overwrite: Whether an earlier comparison of another log, seed or version may be replaced.
        watch: Called once with the board before the first cell is made.
    """
    here = local(log, "compare")
    for name in (knowledge, directory):
        if name is not None:
            open_knowledge(name)
    some = [k for k in ks if k <= here.n_users]
    if not some or not epsilons:
        raise QueryveilError("A comparison needs at least one epsilon, and one k of at most the users of the log.")
    cells = grid(methods, ks=some, epsilons=epsilons, knowledge=knowledge, directory=directory)
    for cell in cells:  # a wrong value must not wait for its turn
        METHODS[cell.method](**cell.parameters)
    place = Path(folder)
    settings = {
        "software": f"queryveil {__version__}",
        "fingerprint": here.fingerprint,
        "knowledge": knowledge_name(knowledge),
        "directory": None if directory is None else knowledge_name(directory),
        "tests": tests,
        "seed": seed,
        "planting": read is not None,
    }
    _prepare(place, settings, overwrite)
    job = Job(place / _CELLS, knowledge, tests, seed, read)
    _run(job, here, cells, again, watch)
    comparison = _gathered(job, here, cells)
    _write_tables(place, comparison)
    return comparison


def _prepare(place: Path, settings: dict[str, Any], overwrite: bool) -> None:
    """Make the folder, or find the one that the same comparison was begun in."""
    known = place / _SETTINGS
    if place.exists() and not place.is_dir():
        raise QueryveilError(f"{place} is a file; name a folder for the comparison.")
    if known.is_file():
        if known.read_bytes() == _json(settings):
            return
        if not overwrite:
            raise QueryveilError(
                f"{place} holds a comparison of another log, seed or version; name another folder, or replace it with "
                "--overwrite."
            )
        for old in (*(place / _CELLS).glob("*.json"), *(place / name for name in (*_TABLES, REPORT))):
            old.unlink(missing_ok=True)
    elif place.exists() and any(place.iterdir()):
        raise QueryveilError(f"{place} exists already and is no comparison; name another folder.")
    if not place.parent.is_dir():
        raise QueryveilError(f"The folder {place.parent} does not exist; make it first.")
    (place / _CELLS).mkdir(parents=True, exist_ok=True)
    write_whole(known, _json(settings))


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=2, sort_keys=True) + "\n").encode()


@dataclass(frozen=True)
class Job:
    """What is done to every cell."""

    folder: Path
    knowledge: str
    tests: int
    seed: int
    read: Callable[[pa.Table], LocalLog] | None

    def file(self, cell: Cell) -> Path:
        """Where a cell is stored."""
        parts = [cell.method, *(f"{name}-{value}" for name, value in sorted(cell.parameters.items()))]
        if cell.method == "rules":  # its parameters are many, and have a name
            parts = [cell.name]
        if "knowledge" in cell.parameters:
            parts = [part for part in parts if not part.startswith("knowledge-")]
        return self.folder / (
            "_".join("".join(c if c.isalnum() or c in ".-" else "-" for c in p) for p in parts) + ".json"
        )

    def stored(self, cell: Cell) -> tuple[Cell, list[Row]] | None:
        """A cell that is finished."""
        try:
            found = json.loads(self.file(cell).read_bytes())
            found["cell"]["promises"] = tuple(found["cell"]["promises"])
            return Cell(**found["cell"]), [Row(**row) for row in found["rows"]]
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def do(self, cell: Cell, log: LocalLog) -> Cell:
        """Make a cell, and store it."""
        made, rows = self._made(cell, log)
        write_whole(self.file(cell), _json({"cell": asdict(made), "rows": [asdict(row) for row in rows]}))
        return made

    def _made(self, cell: Cell, log: LocalLog) -> tuple[Cell, list[Row]]:
        method = METHODS[cell.method](**cell.parameters)
        knowledge = cell.parameters.get("knowledge", "wordnet")
        if "knowledge" in cell.parameters:  # its name alone, as in a manifest
            cell = replace(cell, parameters=cell.parameters | {"knowledge": knowledge_name(knowledge)})
        try:
            release = method.anonymize(log, seed=self.seed)
        except QueryveilError as error:
            return replace(cell, status="failed", why=str(error)), []
        if release.manifest.counts.rows == 0:
            return replace(cell, status="empty", why="Nothing is released."), []
        checked = verify(release, log)
        made = replace(
            cell,
            promises=tuple(claim.statement for claim in release.manifest.claims),
            holds=checked.holds,
            why="" if checked.holds else "The verifier refutes it.",
        )
        kept = evaluate(release, log, knowledge=self.knowledge, tests=self.tests, seed=self.seed)
        rows = [_kept(cell, measured) for measured in kept.measured]
        found = attack(
            release,
            log,
            m=KNOWN,
            seed=self.seed,
            read=self.read,
            knowledge=None if knowledge == "wordnet" else knowledge,
        )
        rows += [_found(cell, finding) for finding in found.findings]
        rows += [
            Row(cell.name, "risk", skipped.question, skipped.attack, "", None, why=skipped.why)
            for skipped in found.skipped
        ]
        return made, rows


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


def _run(
    job: Job,
    log: LocalLog,
    cells: Sequence[Cell],
    again: Callable[[], LocalLog] | None,
    watch: Callable[[Board], None] | None,
) -> None:
    """Make what is not yet made, a method after the other, so that what its cells share is made once."""
    context = mp.get_context("spawn")
    board = Board(tuple(cells), context.Array("b", len(cells), lock=False))
    todo = []
    for place, cell in enumerate(cells):
        done = job.stored(cell)
        if done is None or done[0].status == "failed":  # what stood in its way may be gone
            todo.append(place)
        else:
            board.states[place] = _STATES.index(done[0].status)
    if watch is not None:
        watch(board)
    families = [list(family) for _, family in groupby(todo, key=lambda place: cells[place].method)]
    families.sort(key=lambda family: (cells[family[0]].method not in _SLOW, -len(family)))
    turn = context.Value("i", 0)
    work = partial(_work, job, families, board, turn)
    if again is None or len(families) < 2:
        work(log)
        return
    with _second(context, partial(_in_second, work, again, os.getpid())) as second:
        work(log)
    if second.exitcode:
        # It stored what it finished; what it left is made here, where an error can be told.
        for place in todo:
            if job.stored(cells[place]) is None:
                job.do(cells[place], log)


@contextmanager
def _second(context: Any, target: Callable[[], None]) -> Iterator[Any]:
    """A second process, which ends with the first."""
    process = context.Process(target=target, daemon=True)
    process.start()
    try:
        yield process
        process.join()
    finally:
        if process.is_alive():
            process.terminate()
            process.join()


def _in_second(work: Callable[[LocalLog], None], again: Callable[[], LocalLog], parent: int) -> None:
    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)  # the first process was killed, and nobody waits for this one

    threading.Thread(target=watch, daemon=True).start()
    work(again())
    os._exit(0)  # all is stored; some packages would complain of being taken down


def _work(job: Job, families: list[list[int]], board: Board, turn: Any, log: LocalLog) -> None:
    """Take one method after the other, as long as there is one that nobody took."""
    with sharing(log):
        while True:
            with turn.get_lock():
                mine = turn.value
                turn.value += 1
            if mine >= len(families):
                return
            for place in families[mine]:
                board.states[place] = _STATES.index("at work")
                board.states[place] = _STATES.index(job.do(board.cells[place], log).status)


def _gathered(job: Job, log: LocalLog, cells: Sequence[Cell]) -> Comparison:
    made: list[Cell] = []
    rows: list[Row] = []
    for cell in cells:
        found = job.stored(cell)
        assert found is not None  # noqa: S101  # all are made by now
        made.append(found[0])
        rows += found[1]
    return Comparison(log.fingerprint, job.seed, counts_of(log), bands(log.frequencies()), tuple(made), tuple(rows))


def _write_tables(place: Path, comparison: Comparison) -> None:
    table = comparison.table()
    sink = io.BytesIO()
    pq.write_table(table, sink)
    write_whole(place / _TABLES[0], sink.getvalue())
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.column_names)
    writer.writerows([row.values() for row in table.to_pylist()])
    write_whole(place / _TABLES[1], text.getvalue().encode())
