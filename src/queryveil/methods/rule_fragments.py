"""The rule about fragments: every word, run of words and noun phrase of a query must have enough users.

Runs that enough users typed are found one length after the other, each among the pairs of overlapping runs of the
length before (Agrawal and Srikant, Fast algorithms for mining association rules, VLDB 1994): a run has no more users
than what it consists of. So longer runs are few, and only integers are counted.
"""

import datetime
from collections.abc import Generator, Iterator
from contextlib import closing, nullcontext
from itertools import count, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queryveil.claims.fragment_list import SUFFIX, read_fragments, write_fragments
from queryveil.claims.fragments import MOST_WORDS
from queryveil.engines import Table, Workspace
from queryveil.errors import QueryveilError, option
from queryveil.files.folders import check_file
from queryveil.knowledge.phrases import noun_phrase_places
from queryveil.log import QueryLog, check_is_log
from queryveil.text import language


def made_of_fragments(
    log: QueryLog, work: Workspace, *, users: int, words: int, noun_phrases: bool, listed: Path | None
) -> Table:
    """The queries of a log that have a word and whose fragments are all allowed.

    Args:
        log: The log; users are counted in `log.counted`.
        work: Where the table is made.
        users: Least distinct users of a fragment.
        words: Every run of up to so many words is a fragment.
        noun_phrases: Whether every noun phrase is one too.
        listed: A list of further fragments that are allowed, however many users they have.

    Returns:
        The query_id of each.
    """
    with log.workspace() as steps, closing(_allowed(log, steps, users, listed)) as levels:
        runs = list(islice(levels, words))
        length = (
            "(SELECT query_id, count(*) AS words FROM query_terms GROUP BY query_id) AS n ON n.query_id = r.query_id"
        )
        # What is shorter than the longest runs is a run as a whole; of what is longer, each run must be allowed.
        parts = [
            f"SELECT r.query_id AS query_id FROM {run} r JOIN {length} WHERE n.words = {size}"
            for size, run in enumerate(runs, 1)
        ]
        if len(runs) == words:
            parts.append(
                f"SELECT r.query_id AS query_id FROM {runs[-1]} r JOIN {length} WHERE n.words > {words}"
                f" GROUP BY r.query_id, n.words HAVING count(*) = n.words - {words - 1}"
            )
        kept = " UNION ALL ".join(parts) or "SELECT query_id FROM queries WHERE 1 = 0"
        if not noun_phrases:
            return work.table(kept, "queries of allowed fragments")
        chosen = steps.table(kept, "queries of allowed runs")
        return _with_phrases(log, work, steps, chosen, words, levels)


def list_fragments(
    log: QueryLog,
    path: str | Path,
    *,
    min_users: int = 50,
    words: int = 2,
    since: datetime.date | None = None,
    keep: str | Path | None = None,
    overwrite: bool = False,
) -> int:
    """Write the list of fragments that enough users of a log typed, for the parameter `fragment_list` of `Rules`.

    Only its owner can read the file. It is not part of a release: keep it from one release to the next.

    Args:
        log: The log, such as that of the last 13 months.
        path: The file, which ends with `.tsv`: one fragment a line, a tab, and the date since when it is allowed.
        min_users: Least distinct users of a fragment.
        words: Every run of up to so many words is a fragment.
        since: The date of fragments that are new; by default today.
        keep: An earlier list, whose fragments stay, with their dates.
        overwrite: Whether an earlier file may be replaced.

    Returns:
        How many fragments are on the list.

    Raises:
        QueryveilError: If the file cannot or must not be written, or the earlier list cannot be read.
    """
    check_is_log(log, "list_fragments")
    if min_users < 2 or not 1 <= words <= MOST_WORDS:
        raise QueryveilError(
            f"A list of fragments needs {option('min_users')} of at least 2, and {option('words')} from 1 to"
            f" {MOST_WORDS}. Got {min_users} and {words} instead."
        )
    place = check_file(path, (SUFFIX,), overwrite=overwrite)
    stays = [] if keep is None else [read_fragments(Path(keep))]
    with log.workspace() as work, closing(_frequent(log, work, min_users)) as levels:
        found = pa.concat_arrays(list(islice(_texts(work, levels), words)))
    day = (since or datetime.datetime.now(datetime.UTC).date()).isoformat()
    new = pa.table({"fragment": found, "since": pa.array([day] * len(found), pa.string())})
    return write_fragments(pa.concat_tables([*stays, new]), place, overwrite=overwrite)


def _texts(work: Workspace, levels: "Iterator[Level]") -> Iterator[pa.Array]:
    """The texts of frequent runs, one length after the other."""
    for size, level in enumerate(levels, 1):
        yield pc.binary_join_element_wise(*_words_of(work, level.runs, size).columns, " ").combine_chunks()


def _words_of(work: Workspace, runs: Table, size: int) -> pa.Table:
    """Runs with the texts of their words in the place of their ids."""
    texts = ", ".join(f"t{n}.word AS w{n}" for n in range(1, size + 1))
    joins = "".join(f" JOIN words t{n} ON t{n}.word_id = r.w{n}" for n in range(1, size + 1))
    found = work.fetch(f"SELECT {texts} FROM {runs} r{joins}")
    return found.cast(pa.schema([(name, pa.string()) for name in found.column_names]))


def _with_phrases(
    log: QueryLog, work: Workspace, steps: Workspace, chosen: Table, words: int, levels: Iterator[Table]
) -> Table:
    """Those of the chosen queries whose longer noun phrases are allowed; the shorter ones are runs already."""
    schema = pa.schema([("query_id", log.id_type), ("position", pa.int64()), ("words", pa.int64())])

    def find(batch: pa.RecordBatch) -> pa.RecordBatch:
        query, position, size = noun_phrase_places(batch["query"].cast(pa.large_string()), language())
        some = size > words
        found = [batch["query_id"].take(pa.array(query[some])), pa.array(position[some]), pa.array(size[some])]
        return pa.RecordBatch.from_arrays(found, names=schema.names).cast(schema)

    phrases = steps.map(
        f"SELECT q.query_id AS query_id, q.query AS query FROM queries q JOIN {chosen} c ON c.query_id = q.query_id",
        find,
        schema,
        "noun phrases",
    )
    sizes = steps.fetch(f"SELECT words FROM {phrases} GROUP BY words")["words"].to_pylist()
    held = []
    for size in range(words + 1, max(sizes, default=0) + 1):
        runs = next(levels, None)
        if runs is None:  # no run is as long
            break
        held.append(
            f"SELECT p.query_id AS query_id FROM {phrases} p JOIN {runs} r ON r.query_id = p.query_id"
            f" AND r.position = p.position WHERE p.words = {size}"
        )
    allowed = " UNION ALL ".join(held) or f"SELECT query_id FROM {phrases} WHERE 1 = 0"
    have = f"SELECT query_id, count(*) AS n FROM {phrases} GROUP BY query_id"
    pass_ = f"SELECT query_id, count(*) AS n FROM ({allowed}) AS a GROUP BY query_id"
    return work.table(
        f"SELECT c.query_id AS query_id FROM {chosen} c LEFT JOIN ({have}) AS p ON p.query_id = c.query_id"
        f" LEFT JOIN ({pass_}) AS a ON a.query_id = c.query_id WHERE coalesce(p.n, 0) = coalesce(a.n, 0)",
        "queries of allowed fragments",
    )


class Level(NamedTuple):
    """The runs of one length: w1, w2, ... are the ids of their words."""

    runs: Table
    """The runs themselves."""
    places: Table
    """Where queries have them: query_id, position, and the run."""


def _allowed(log: QueryLog, work: Workspace, users: int, listed: Path | None) -> Generator[Table]:
    """Where queries have allowed runs of one, two, ... words, as long as there are any."""
    counted = log.counted
    entries = None if listed is None else _entries(work, listed)
    # Tables that the caller still uses when there are no longer runs must not be gone by then.
    with (
        nullcontext(work) if counted is log else counted.workspace() as there,
        closing(_frequent(counted, there, users)) as frequent,
    ):
        places: Table | None = None
        for size, level in enumerate(frequent, 1):
            if counted is log and entries is None:
                if not there.row(f"SELECT count(*) AS n FROM {level.runs}")[0]:
                    return
                yield level.places
                continue
            words = _columns(size)
            known = level.runs if counted is log else _here(work, _words_of(there, level.runs, size), size)
            runs = work.table(f"SELECT {words} FROM {known}{_of_list(entries, size)}", "allowed runs")
            if not work.row(f"SELECT count(*) AS n FROM {runs}")[0]:
                return
            places = work.table(_placed(places, runs, size), "places of allowed runs")
            yield places


def _frequent(log: QueryLog, work: Workspace, users: int) -> Generator[Level]:
    """The runs of one, two, ... words that enough users typed; at some length there are none."""
    log.ensure_tables("word_users", "per_query")
    runs = work.table(f"SELECT word_id AS w1 FROM word_users WHERE users >= {users}", "frequent words")
    places = work.table(_placed(None, runs, 1), "places of frequent words")
    for size in count(2):
        yield Level(runs, places)
        words, of_run = _columns(size), _columns(size, "o.")
        longer = work.table(_overlapping(places, size), "longer runs")
        once = f"SELECT query_id, {words} FROM {longer} GROUP BY query_id, {words}"
        # A run has no more users than its queries have together; this drops most before users are counted.
        seen = (
            f"SELECT {_columns(size, 'o.', named=True)} FROM ({once}) AS o JOIN per_query q ON q.query_id = o.query_id"
            f" GROUP BY {of_run} HAVING sum(q.users) >= {users}"
        )
        runs = work.table(
            f"SELECT {words} FROM (SELECT {_columns(size, 'o.', named=True)}, u.user_id AS user_id FROM ({once}) AS o"
            f" JOIN ({seen}) AS s ON {_same('s', 'o', size)} JOIN query_users u ON u.query_id = o.query_id"
            f" GROUP BY {of_run}, u.user_id) AS pairs GROUP BY {words} HAVING count(*) >= {users}",
            "frequent runs",
        )
        places = work.table(
            f"SELECT o.query_id AS query_id, o.position AS position, {_columns(size, 'o.', named=True)}"
            f" FROM {longer} o JOIN {runs} r ON {_same('r', 'o', size)}",
            "places of frequent runs",
        )
        work.drop(longer)


def _columns(size: int, prefix: str = "", *, named: bool = False) -> str:
    """SQL of the words of a run."""
    return ", ".join(f"{prefix}w{n} AS w{n}" if named else f"{prefix}w{n}" for n in range(1, size + 1))


def _same(a: str, b: str, size: int) -> str:
    return " AND ".join(f"{a}.w{n} = {b}.w{n}" for n in range(1, size + 1))


def _overlapping(places: Table, size: int) -> str:
    """SQL of runs of so many words: each two runs of one word less of which the second begins one word later."""
    return (
        f"SELECT x.query_id AS query_id, x.position AS position, {_columns(size - 1, 'x.', named=True)},"
        f" y.w{size - 1} AS w{size} FROM {places} x JOIN {places} y"
        " ON y.query_id = x.query_id AND y.position = x.position + 1"
    )


def _placed(places: Table | None, runs: Table, size: int) -> str:
    """SQL of where queries have some runs, given where they have those of one word less; None for words."""
    found = "SELECT query_id, position, word_id AS w1 FROM query_terms"
    found = found if places is None else _overlapping(places, size)
    return (
        f"SELECT o.query_id AS query_id, o.position AS position, {_columns(size, 'o.', named=True)}"
        f" FROM ({found}) AS o JOIN {runs} r ON {_same('r', 'o', size)}"
    )


def _here(work: Workspace, runs: pa.Table, size: int) -> Table:
    """Runs of another log by the ids that their words have in this one, as far as it has them."""
    texts = work.read(runs, "runs of the other log")
    ids = ", ".join(f"t{n}.word_id AS w{n}" for n in range(1, size + 1))
    joins = "".join(f" JOIN words t{n} ON t{n}.word = r.w{n}" for n in range(1, size + 1))
    return work.table(f"SELECT {ids} FROM {texts} r{joins}", "runs of both logs")


def _of_list(entries: Table | None, size: int) -> str:
    """SQL that adds the runs of so many words that are on a list."""
    if entries is None:
        return ""
    ids = ", ".join(f"t{n}.word_id AS w{n}" for n in range(1, size + 1))
    joins = "".join(
        f" JOIN {entries} e{n} ON e{n}.entry = e1.entry AND e{n}.position = {n - 1}" for n in range(2, size + 1)
    )
    joins += "".join(f" JOIN words t{n} ON t{n}.word = e{n}.word" for n in range(1, size + 1))
    return f" UNION SELECT {ids} FROM {entries} e1{joins} WHERE e1.position = 0 AND e1.words = {size}"


def _entries(work: Workspace, listed: Path) -> Table:
    """The words of each entry of a list, and how many it has."""
    fragments = read_fragments(listed)["fragment"].combine_chunks()
    per_entry, word = language().words(fragments)
    first = np.repeat(np.cumsum(per_entry) - per_entry, per_entry)
    columns = {
        "entry": np.repeat(np.arange(len(fragments)), per_entry),
        "position": np.arange(len(word)) - first,
        "words": np.repeat(per_entry, per_entry),
        "word": pc.cast(word, pa.string()),
    }
    return work.read(pa.table(columns), "words of the list")
