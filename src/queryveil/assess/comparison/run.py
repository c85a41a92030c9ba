"""All methods on one log: configurations are made, some at a time, stored as they are finished, and put together."""

import csv
import hashlib
import io
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

import pyarrow.parquet as pq

from queryveil import __version__
from queryveil.assess.arguments import at_least, several
from queryveil.assess.comparison.configurations import EPSILONS, KS, Job, as_json, grid
from queryveil.assess.comparison.results import Comparison, Configuration
from queryveil.assess.policy import Policy, load_policy
from queryveil.errors import QueryveilError, old_names, option
from queryveil.files.folders import write_whole
from queryveil.knowledge import Taxonomy, open_taxonomy
from queryveil.knowledge.opened import ABOUT
from queryveil.log import LocalLog, QueryLog, local
from queryveil.log.sharing import sharing
from queryveil.methods import METHODS
from queryveil.release import counts_of
from queryveil.release.bands import bands

REPORT = "report.html"
_SETTINGS, _STORED = "comparison.json", "configurations"
_TABLES = ("measures.parquet", "measures.csv")
State = Literal["waiting", "at work", "done", "empty", "failed"]


@dataclass(frozen=True)
class Board:
    """How far a comparison is: the state of every configuration, which changes while it is made."""

    configurations: tuple[Configuration, ...]
    states: list[State]

    def __str__(self) -> str:
        ended = sum(state not in ("waiting", "at work") for state in self.states)
        return f"{ended} of {len(self.states)} releases"


@old_names(knowledge="taxonomy", directory="web_directory", watch="progress", read=None, again=None)
def compare(
    log: QueryLog,
    folder: str | Path,
    *,
    methods: str | Sequence[str] | None = None,
    ks: int | Sequence[int] = KS,
    epsilons: float | Sequence[float] = EPSILONS,
    taxonomy: str = "wordnet",
    web_directory: str | None = None,
    tests: int = 2_000,
    seed: int = 0,
    threads: int = 2,
    policy: Policy | None = None,
    overwrite: bool = False,
    progress: Callable[[Board], None] | None = None,
) -> Comparison:
    """Make a release by every method, measure and attack each, and put all numbers into one table.

    A configuration is stored as soon as it is finished. Another call with the same folder, log, seed and version
    continues where the last call ended, also with further methods or values.

    Args:
        log: The log.
        folder: The folder for configurations and tables. It describes the log, and is for those who may see that.
        methods: Which methods; by default all.
        ks: Values of k, for methods that have one; those above the number of users are left out.
        epsilons: Values of epsilon, for methods that have one.
        taxonomy: Where methods and measures look queries up.
        web_directory: Where `search` looks sites up; by default in the taxonomy.
        tests: On how many events of the log a task is tried.
        seed: Random seed, for everything but the noise of differential privacy.
        threads: How many configurations are made at a time.
        policy: What a release must meet to be recommended; by default the policy that comes with queryveil. Another
            policy needs no new run: it is applied to what is stored.
        overwrite: Whether an earlier comparison of another log, seed or version may be replaced.
        progress: Called with the board, which says how far each configuration is, when the first begins and whenever
            one is done.
    """
    here = local(log, "compare")
    at_least(1, "compare", "tests", tests)
    at_least(1, "compare", "threads", threads, flag="jobs")
    bases = {
        "taxonomy": _digest(open_taxonomy(taxonomy)),
        "web_directory": None if web_directory is None else _digest(open_taxonomy(web_directory)),
    }
    at_least(2, "compare", "ks", *several(ks), flag="k")
    configurations = grid(
        None if methods is None else several(methods),
        ks=[k for k in several(ks) if k <= here.n_users],
        epsilons=several(epsilons),
        taxonomy=taxonomy,
        web_directory=web_directory,
        times=here.has_times,
    )
    if not configurations:
        raise QueryveilError("Nothing is to be compared; give an epsilon, or a k of at most the users of the log.")
    for configuration in configurations:  # a wrong value must not wait for its turn
        METHODS[configuration.method](**configuration.parameters)
    place = Path(folder)
    settings = {
        "software": f"queryveil {__version__}",
        "fingerprint": here.fingerprint,
        **bases,
        "tests": tests,
        "seed": seed,
    }
    _prepare(place, settings, overwrite)
    job = Job(place / _STORED, taxonomy, tests, seed)
    _run(job, here, configurations, threads, progress)
    comparison = _gathered(job, here, configurations, policy or load_policy())
    _write_tables(place, comparison)
    return comparison


def _digest(base: Taxonomy) -> str:
    """A digest of a taxonomy: of its tree and, if it was built, of what is known of its files."""
    about = b"".join((folder / ABOUT).read_bytes() for folder in base.folders)
    return hashlib.sha256(base.digest.encode() + about).hexdigest()


def _prepare(place: Path, settings: dict[str, Any], overwrite: bool) -> None:
    """Make the folder, or find the one that the same comparison was begun in."""
    known = place / _SETTINGS
    if place.exists() and not place.is_dir():
        raise QueryveilError(f"{place} is a file; name a folder for the comparison.")
    if known.is_file():
        if known.read_bytes() == as_json(settings):
            (place / _STORED).mkdir(exist_ok=True)
            return
        if not overwrite:
            raise QueryveilError(
                f"{place} holds a comparison of another log, or with another seed, version or setting; name another "
                f"folder, or replace it with {option('overwrite', True)}."
            )
        for old in (*(place / _STORED).glob("*.json"), *(place / name for name in (*_TABLES, REPORT))):
            old.unlink(missing_ok=True)
    elif place.exists() and any(place.iterdir()):
        raise QueryveilError(f"{place} exists already and is no comparison; name another folder.", code="exists")
    if not place.parent.is_dir():
        raise QueryveilError(f"The folder {place.parent} does not exist; make it first.")
    place.mkdir(mode=0o700, exist_ok=True)  # what is found of a log is for those who may see it
    (place / _STORED).mkdir(exist_ok=True)
    write_whole(known, as_json(settings), overwrite=True, private=True)


def _run(
    job: Job,
    log: LocalLog,
    configurations: Sequence[Configuration],
    threads: int,
    progress: Callable[[Board], None] | None,
) -> None:
    """Make what is not yet made, a method after the other, so that what its configurations share is made once."""
    board = Board(tuple(configurations), ["waiting"] * len(configurations))
    todo = []
    for place, configuration in enumerate(configurations):
        done = job.stored(configuration)
        if done is None or not done.finished:
            todo.append(place)
        else:
            board.states[place] = done.configuration.status
    say = progress or (lambda board: None)
    say(board)
    families = [list(family) for _, family in groupby(todo, key=lambda place: configurations[place].method)]
    families.sort(key=lambda family: (not METHODS[configurations[family[0]].method].slow, -len(family)))
    waiting, failures = deque(families), deque[BaseException]()

    def work() -> None:
        while not failures:
            try:
                family = waiting.popleft()
            except IndexError:
                return
            for place in family:
                board.states[place] = "at work"
                board.states[place] = job.do(board.configurations[place], log).status
                say(board)

    def beside() -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    # This thread works as well, so that stopping the program stops it; the others end with it.
    others = [threading.Thread(target=beside, daemon=True) for _ in range(min(threads, len(families)) - 1)]
    with sharing(log):
        for other in others:
            other.start()
        work()
        for other in others:
            other.join()
    if failures:
        raise failures[0]


def _gathered(job: Job, log: LocalLog, configurations: Sequence[Configuration], policy: Policy) -> Comparison:
    found = [*(job.stored(configuration) for configuration in configurations), *job.others(configurations)]
    whole = sorted((one for one in found if one is not None), key=lambda one: _order(one.configuration))
    made = [one.configuration for one in whole]
    rows = [row for one in whole for row in one.rows]
    return Comparison(
        log.fingerprint, job.seed, job.tests, counts_of(log), bands(log.frequencies()), tuple(made), tuple(rows), policy
    )


def _order(configuration: Configuration) -> tuple[int, str, float, str]:
    return (
        list(METHODS).index(configuration.method),
        configuration.family,
        configuration.k or configuration.setting("epsilon") or 0,
        configuration.name,
    )


def _write_tables(place: Path, comparison: Comparison) -> None:
    table = comparison.to_arrow()
    sink = io.BytesIO()
    pq.write_table(table, sink)
    write_whole(place / _TABLES[0], sink.getvalue(), overwrite=True, private=True)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.column_names)
    writer.writerows([row.values() for row in table.to_pylist()])
    write_whole(place / _TABLES[1], text.getvalue().encode(), overwrite=True, private=True)
