"""All methods on one log: cells are made, two at a time, stored as they are finished, and put together."""

import csv
import hashlib
import io
import multiprocessing as mp
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from queryveil import __version__
from queryveil.assess.comparison.cells import EPSILONS, KS, Job, as_json, grid
from queryveil.assess.comparison.results import Cell, Comparison
from queryveil.assess.policy import Policy, load_policy
from queryveil.errors import QueryveilError
from queryveil.files.folders import write_whole
from queryveil.knowledge import Taxonomy, open_taxonomy
from queryveil.knowledge.opened import ABOUT
from queryveil.log import LocalLog, QueryLog, local
from queryveil.log.sharing import sharing
from queryveil.methods import METHODS
from queryveil.release import counts_of
from queryveil.release.bands import bands

REPORT = "report.html"
_SETTINGS, _CELLS = "comparison.json", "cells"
_TABLES = ("measures.parquet", "measures.csv")
_SLOW = ("poblete", "mdav", "search", "odp", "affinity")
"""Methods to begin with, so that two processes end at about the same time."""

State = Literal["waiting", "at work", "done", "empty", "failed"]
_STATES: tuple[State, ...] = ("waiting", "at work", "done", "empty", "failed")


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
    taxonomy: str = "wordnet",
    directory: str | None = None,
    tests: int = 2_000,
    seed: int = 0,
    read: Callable[[pa.Table], LocalLog] | None = None,
    again: Callable[[], LocalLog] | None = None,
    policy: Policy | None = None,
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
        taxonomy: Where queries are looked up, by methods and measures.
        directory: Where `search` looks sites up; by default in the same.
        tests: On how many events of the log a task is tried.
        seed: Decides all that is random but the noise of differential privacy.
        read: Reads a log from a table, such as `queryveil.read_log`; without it nothing is planted.
        again: Reads the same log once more; then a second process makes every other cell.
        policy: What a release must meet to be recommended; by default the policy that comes with queryveil. Another
            policy needs no new run: it is applied to what is stored.
        overwrite: Whether an earlier comparison of another log, seed or version may be replaced.
        watch: Called once with the board before the first cell is made.
    """
    here = local(log, "compare")
    bases = {
        "taxonomy": _digest(open_taxonomy(taxonomy)),
        "directory": None if directory is None else _digest(open_taxonomy(directory)),
    }
    some = [k for k in ks if k <= here.n_users]
    cells = grid(methods, ks=some, epsilons=epsilons, taxonomy=taxonomy, directory=directory, times=here.has_times)
    if not cells:
        raise QueryveilError("Nothing is to be compared; give an epsilon, or a k of at most the users of the log.")
    for cell in cells:  # a wrong value must not wait for its turn
        METHODS[cell.method](**cell.parameters)
    place = Path(folder)
    settings = {
        "software": f"queryveil {__version__}",
        "fingerprint": here.fingerprint,
        **bases,
        "tests": tests,
        "seed": seed,
        "sybil": read is not None,
    }
    _prepare(place, settings, overwrite)
    job = Job(place / _CELLS, taxonomy, tests, seed, read)
    _run(job, here, cells, again, watch)
    comparison = _gathered(job, here, cells, policy or load_policy())
    _write_tables(place, comparison)
    return comparison


def _digest(base: Taxonomy) -> str:
    """A digest of a taxonomy: of its tree and, if it was built, of what is known of its files."""
    about = b"" if base.folder is None else (base.folder / ABOUT).read_bytes()
    return hashlib.sha256(base.digest.encode() + about).hexdigest()


def _prepare(place: Path, settings: dict[str, Any], overwrite: bool) -> None:
    """Make the folder, or find the one that the same comparison was begun in."""
    known = place / _SETTINGS
    if place.exists() and not place.is_dir():
        raise QueryveilError(f"{place} is a file; name a folder for the comparison.")
    if known.is_file():
        if known.read_bytes() == as_json(settings):
            (place / _CELLS).mkdir(exist_ok=True)
            return
        if not overwrite:
            raise QueryveilError(
                f"{place} holds a comparison of another log, or with another seed, version or setting; name another "
                "folder, or replace it with --overwrite."
            )
        for old in (*(place / _CELLS).glob("*.json"), *(place / name for name in (*_TABLES, REPORT))):
            old.unlink(missing_ok=True)
    elif place.exists() and any(place.iterdir()):
        raise QueryveilError(f"{place} exists already and is no comparison; name another folder.")
    if not place.parent.is_dir():
        raise QueryveilError(f"The folder {place.parent} does not exist; make it first.")
    place.mkdir(mode=0o700, exist_ok=True)  # what is found of a log is for those who may see it
    (place / _CELLS).mkdir(exist_ok=True)
    write_whole(known, as_json(settings), overwrite=True, private=True)


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
        if done is None or not done.finished:
            todo.append(place)
        else:
            board.states[place] = _STATES.index(done.cell.status)
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
            if (done := job.stored(cells[place])) is None or not done.finished:
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


def _gathered(job: Job, log: LocalLog, cells: Sequence[Cell], policy: Policy) -> Comparison:
    found = [*(job.stored(cell) for cell in cells), *job.others(cells)]
    whole = sorted((one for one in found if one is not None), key=lambda one: _order(one.cell))
    made = [one.cell for one in whole]
    rows = [row for one in whole for row in one.rows]
    return Comparison(
        log.fingerprint, job.seed, job.tests, counts_of(log), bands(log.frequencies()), tuple(made), tuple(rows), policy
    )


def _order(cell: Cell) -> tuple[int, float, str]:
    return list(METHODS).index(cell.method), cell.k or cell.parameters.get("epsilon", 0), cell.name


def _write_tables(place: Path, comparison: Comparison) -> None:
    table = comparison.table()
    sink = io.BytesIO()
    pq.write_table(table, sink)
    write_whole(place / _TABLES[0], sink.getvalue(), overwrite=True, private=True)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.column_names)
    writer.writerows([row.values() for row in table.to_pylist()])
    write_whole(place / _TABLES[1], text.getvalue().encode(), overwrite=True, private=True)
