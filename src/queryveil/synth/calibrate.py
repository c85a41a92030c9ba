"""Measure a log against the published figures of the AOL log.

The figures are tables 1 and 2 of C. Carpineto and G. Romano, "K-theta-affinity privacy: Releasing infrequent query
refinements safely", Information Processing and Management 51 (2015), over 28,898,361 events. The number of
users is that of the readme that came with the log; the paper says about 650,000.
"""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from queryveil.files.scratch import Scratch

if TYPE_CHECKING:
    import duckdb

_MEMORY = "3GB"
_USERS, _EVENTS, _DISTINCT = 657_426, 28_898_361, 10_154_742
_LENGTHS_OF_DISTINCT = (26.64, 20.22, 20.56, 14.56, 17.99)
_LENGTHS_OF_EVENTS = (41.21, 24.53, 15.69, 8.88, 9.66)
_GRAMS = {  # distinct, all; the same of those that at least 0.01 % of the users issued
    "unigrams": (3_849_555, 67_567_111, 30_716, 49_346_473),
    "bigrams": (7_409_939, 38_668_750, 24_298, 11_761_821),
    "trigrams": (8_530_452, 21_679_415, 5_089, 1_838_235),
}
_FREQUENT = 0.0001  # of the users


class Figure(NamedTuple):
    """A published figure of the AOL log, and the same of another log."""

    figure: str
    published: float
    achieved: float


# Events are the distinct (user, query, time). From here on, 64-bit hashes stand for users, queries and words.
_ISSUED = """
    create temp table issued as
    select user_id, query_id, count(*) as n
    from (select distinct hash("user") as user_id, hash(query) as query_id, "time" from log)
    group by user_id, query_id
"""
_QUERIES = """
    create temp table queries as
    select query_id, count(*) as users, sum(n)::bigint as n from issued group by query_id
"""
# Words are the white-space parts, stripped of everything but letters, digits and &.
_WORDS = r"""
    create temp table words as
    select query_id, list_transform(word_list, lambda word: hash(word)) as words, len(word_list) as length
    from (
        select query_id,
               list_filter(
                   list_transform(
                       regexp_split_to_array(query, '\s+'),
                       lambda part: regexp_replace(part, '^[^\pL\pN&]+|[^\pL\pN&]+$', '', 'g')
                   ),
                   lambda part: part <> ''
               ) as word_list
        from (select hash(query) as query_id, any_value(query) as query from log group by hash(query))
    )
"""
_LENGTHS = """
    select least(length, 5) as length, count(*) as queries, sum(n) as events
    from queries join words using (query_id) where length > 0 group by 1 order by 1
"""
_COUNT_GRAMS = """
    with places as (
        select query_id, hash(words[place : place + {n} - 1]) as gram
        from (select query_id, words, unnest(range(1, length - {n} + 2)) as place from words where length >= {n})
    ), by_user as (
        select gram, user_id, sum(n) as n from places join issued using (query_id) group by gram, user_id
    ), grams as (
        select count(*) as users, sum(n) as n from by_user group by gram
    )
    select count(*), sum(n), count(*) filter (users >= {least}), sum(n) filter (users >= {least}) from grams
"""


def _open(connection: "duckdb.DuckDBPyConnection", path: Path, views: bool) -> None:
    """Make the file visible as the view `log` with user, query and time."""
    name = str(path).replace("'", "''")
    if path.name.endswith(".parquet"):
        source = f"""select "user", query, "time" from read_parquet('{name}')"""
    else:  # a lone quote in a query is data
        source = f"""
            select AnonID as "user", Query as query, QueryTime as "time"
            from read_csv('{name}', delim = '\t', quote = '', escape = '', header = true, auto_detect = false,
                columns = {{AnonID: 'varchar', Query: 'varchar', QueryTime: 'varchar', ItemRank: 'varchar',
                            {"ResultURL: 'varchar', Clicked: 'varchar'" if views else "ClickURL: 'varchar'"}}})
        """
    connection.execute(f"create temp view log as select * from ({source}) where query <> '-'")


def _numbers(connection: "duckdb.DuckDBPyConnection", sql: str) -> tuple[float, ...]:
    return tuple(float(value or 0) for value in connection.execute(sql).fetchall()[0])


def _measure(connection: "duckdb.DuckDBPyConnection") -> list[Figure]:
    for statement in (_ISSUED, _QUERIES, _WORDS):
        connection.execute(statement)
    distinct, alone, events = _numbers(connection, "select count(*), count(*) filter (users = 1), sum(n) from queries")
    (users,) = _numbers(connection, "select count(distinct user_id) from issued")
    if not events:
        return []
    figures = [
        Figure("events per user", _EVENTS / _USERS, events / users),
        Figure("distinct queries / events", _DISTINCT / _EVENTS, distinct / events),
        Figure("% of distinct queries issued by one user", 90.0, 100 * alone / distinct),
    ]
    shares = {length: counts for length, *counts in connection.execute(_LENGTHS).fetchall()}
    for column, (published, name, whole) in enumerate(
        ((_LENGTHS_OF_DISTINCT, "distinct queries", distinct), (_LENGTHS_OF_EVENTS, "events", events))
    ):
        for length, share in enumerate(published, 1):
            words = f"{length}{'+' if length == 5 else ''} word{'s' if length > 1 else ''}"
            achieved = 100 * float(shares.get(length, (0, 0))[column]) / whole
            figures.append(Figure(f"% of {name} with {words}", share, achieved))
    least = max(2, int(_FREQUENT * users))
    for n, (name, published_counts) in enumerate(_GRAMS.items(), 1):
        counts = _numbers(connection, _COUNT_GRAMS.format(n=n, least=least))
        figures += [
            Figure(f"distinct {name} / events", published_counts[0] / _EVENTS, counts[0] / events),
            Figure(f"{name} / events", published_counts[1] / _EVENTS, counts[1] / events),
            Figure(f"frequent {name}", published_counts[2], counts[2]),
            Figure(f"occurrences of frequent {name} / events", published_counts[3] / _EVENTS, counts[3] / events),
        ]
    return figures


def calibrate(path: str | Path, *, views: bool = False) -> list[Figure]:
    """Measure a log in AOL format or Parquet against the published figures, in bounded memory.

    With `views`, its rows are results, as `generate` writes them.

    Shares of lengths do not depend much on the size of a log. Ratios of distinct things to events and counts of
    frequent n-grams (at least 0.01 % of the users, and at least 2) do, so they compare only at about AOL's size.
    """
    import duckdb

    with Scratch() as spill, duckdb.connect() as connection:
        connection.execute("set memory_limit = $limit", {"limit": _MEMORY})
        connection.execute("set temp_directory = $spill", {"spill": str(spill)})
        connection.execute("set preserve_insertion_order = false")
        # It reads this file, and reaches nothing else.
        connection.execute("set allowed_paths = $paths", {"paths": [str(path)]})
        connection.execute("set enable_external_access = false")
        connection.execute("set lock_configuration = true")
        _open(connection, Path(path), views)
        return _measure(connection)
