"""A log on a cluster."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

import pyarrow as pa

from queryveil.engines import Batches, Table, Workspace, identifier
from queryveil.engines.hadoop import HadoopFolder
from queryveil.engines.spark import Spark
from queryveil.engines.spark_errors import working
from queryveil.engines.spark_parts import SparkRows
from queryveil.errors import NothingToReleaseError, QueryveilError
from queryveil.files.folders import Folder, is_address, local_folder
from queryveil.log import NOTHING_LEFT, NOTHING_SELECTED, LocalLog, LogStats, Part, QueryLog, Scrub
from queryveil.log.ingest.spark_tables import Known, find_clashes, make_words, stats_of, word_ids
from queryveil.log.log import TEXTS


class SparkLog(QueryLog):
    """A log on a cluster: the tables, and no arrays."""

    engine: Spark
    id_type = pa.int64()

    def texts(self, rows: Table, schema: pa.Schema, queries: Table | None = None) -> Batches:
        """Rows with their texts, joined where they are."""
        known = self.engine.columns(rows.name)
        columns, joins = {name: f"r.{identifier(name)}" for name in known}, ""
        if "query" in schema.names:
            columns["query"] = "q.query"
            joins += f" LEFT JOIN {queries or 'queries'} q ON q.query_id = r.query_id"
        if "url" in schema.names:
            columns["url"] = "u.url"
            joins += " LEFT JOIN urls u ON u.url_id = r.url_id"
        selected = ", ".join(f"{sql} AS {identifier(name)}" for name, sql in columns.items())
        return self.engine.rows(rows.name, f"SELECT {selected} FROM {rows} r{joins}", schema.names)  # noqa: S608  # names are escaped

    def known_texts(self, work: Workspace, given: str, name: Literal["query", "url"]) -> Table:
        """Those of some texts that the log has, found by the ids that follow from their digests.

        So the texts of the log are not sent around. Only texts that are not found so are looked for among all: those
        that share their id with another, and those of another log.
        """
        texts, key = TEXTS[name], f"{name}_id"
        schema = pa.schema([(key, pa.int64()), (name, pa.string())])
        asked = work.map(given, partial(_with_ids, name=name, schema=schema), schema, f"ids of given {texts}")
        columns = f"t.{key} AS {key}, t.{name} AS {name}"
        found = work.table(
            f"SELECT {columns} FROM {texts} t JOIN {asked} a ON a.{key} = t.{key} AND a.{name} = t.{name}",  # noqa: S608  # parts are this package's own
            f"known {texts}",
        )
        same = f"f.{key} = a.{key} AND f.{name} = a.{name}"
        rest = f"SELECT a.{name} AS {name} FROM {asked} a LEFT JOIN {found} f ON {same} WHERE f.{key} IS NULL"  # noqa: S608  # parts are this package's own
        if work.row(f"SELECT count(*) AS n FROM ({rest}) AS rest") == (0,):  # noqa: S608  # parts are this package's own
            return found
        return work.table(
            f"SELECT {key}, {name} FROM {found} UNION ALL SELECT {columns} FROM {texts} t JOIN ({rest}) AS r"  # noqa: S608  # parts are this package's own
            f" ON r.{name} = t.{name}",
            f"known {texts}",
        )

    def items(self, work: Workspace, rows: Table, schema: pa.Schema, names: pa.Array) -> Batches:
        """Rows with the names of their nodes, joined where they are."""
        found = work.fetch(f"SELECT CAST(query_id AS BIGINT) AS node FROM {rows} GROUP BY query_id")["node"]  # noqa: S608  # a table of ours
        named = work.read(pa.table({"node": found, "item": names.take(found.combine_chunks())}), "names of items")
        columns = {name: f"r.{identifier(name)}" for name in self.engine.columns(rows.name)}
        columns |= {"item": "n.item", "node": "n.node"}
        selected = ", ".join(f"{sql} AS {identifier(name)}" for name, sql in columns.items())
        query = f"SELECT {selected} FROM {rows} r JOIN {named} n ON n.node = r.query_id"  # noqa: S608  # names are escaped
        return self.engine.rows(rows.name, query, schema.names)

    def write(self, folder: Folder, table: str, format: str, schema: pa.Schema, batches: Batches) -> None:
        """Write a released table to files in a folder of their own, in order of their names."""
        if format != "parquet":
            raise QueryveilError(f"On Spark a release is written as parquet, not as {format}.")
        if not isinstance(batches, SparkRows):
            raise QueryveilError("Spark writes only what it made; save this release without it.")
        with working():
            options = {"compression": "zstd", "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}
            batches.frame().write.options(**options).parquet(folder.uri(table))
        number = 0
        for name in folder.files():
            if name.startswith(f"{table}/part-"):
                folder.rename(name, f"{table}/part-{number:05}.parquet")
                number += 1
            elif name.startswith(f"{table}/"):
                folder.delete(name)

    def folder(self, path: str | Path) -> Folder:
        """A folder on this machine, or one that the cluster can reach."""
        return HadoopFolder(self.engine, str(path)) if is_address(path) else local_folder(path)

    def rewritten(self, texts: str, urls: str, scrub: Scrub) -> "SparkLog":
        """This log with other queries and fewer clicks; the tables are written into a database of their own."""
        old, new = self.engine, self.engine.beside()
        new.expect(self.stats.rows)
        known: dict[tuple[int, int], int] = {}
        known_texts = f"SELECT query_id, text, same FROM ({texts}) AS texts WHERE text IS NOT NULL"  # noqa: S608  # parts are this package's own
        with self.workspace() as work:
            while True:
                rewritten = work.map(known_texts, partial(_renumbered, known=known), _REWRITTEN, "rewritten queries")
                distinct = f"SELECT new_id AS query_id, text AS query FROM {rewritten} GROUP BY new_id, text"  # noqa: S608  # a table of ours
                new.keep(old.sql(distinct), "queries")
                clashes = find_clashes(new, "queries", "query_id", "query", 2**64 - 1)
                if not clashes:
                    break
                known.update(clashes)
            renumbered = self._renumber(work, rewritten)
            names = "".join(f", {identifier(f'{name} id')}" for name in self.stats.extras)
            by_query = f"SELECT /*+ REPARTITION({new.parts}, query_id) */"
            tables = {
                "events": f"{by_query} n - 1 AS event_id, user_id, query_id, time{names} FROM {renumbered}",
                **{
                    name: f"{by_query} r.n - 1 AS event_id, c.user_id AS user_id, r.query_id AS query_id,"
                    f" c.rank AS rank, c.url_id AS url_id{clicked} FROM {name} c"
                    f" JOIN {renumbered} r ON r.old_id = c.event_id"
                    f" LEFT JOIN ({urls}) AS gone ON gone.url_id = c.url_id WHERE r.same AND gone.url_id IS NULL"
                    for name, clicked in self.result_tables
                },
                "users": 'SELECT u.user_id AS user_id, u."user" AS "user", u.digest AS digest FROM users u JOIN'  # noqa: S608  # a table of ours
                f" (SELECT user_id FROM {renumbered} GROUP BY user_id) AS r ON r.user_id = u.user_id",
                "urls": f"SELECT u.url_id AS url_id, u.url AS url FROM urls u LEFT JOIN ({urls}) AS gone"  # noqa: S608  # parts are this package's own
                " ON gone.url_id = u.url_id WHERE gone.url_id IS NULL",
                **{
                    f"extra {name}": f"SELECT id, value FROM {identifier(f'extra {name}')}"  # noqa: S608  # names are escaped
                    for name in self.stats.extras
                },
            }
            for name, query in tables.items():
                new.keep(old.sql(query), name)
        make_words(new, {}, 2**64 - 1, self.language)
        stats = stats_of(new, self.stats, self.has_views)
        if stats.events == 0:
            new.close()
            raise QueryveilError(NOTHING_LEFT)
        made = SparkLog(new, replace(stats, rows=n_rows(new, stats), scrub=scrub), self.language)
        made.part = Part(self, None, None)
        return made

    def only(self, queries: Table, purpose: str) -> "SparkLog":
        """The events of some queries, with the ids of the whole, in a database of their own."""
        old, new = self.engine, self.engine.beside()
        new.expect(self.stats.rows)
        filtered = {
            "events": "SELECT e.* FROM events e JOIN {kept} k ON k.query_id = e.query_id",
            **{
                name: f"SELECT c.* FROM {name} c JOIN {{kept}} k ON k.query_id = c.query_id"  # noqa: S608  # tables of ours
                for name, _ in self.result_tables
            },
            "queries": "SELECT q.* FROM queries q JOIN {kept} k ON k.query_id = q.query_id",
            "query_terms": "SELECT t.* FROM query_terms t JOIN {kept} k ON k.query_id = t.query_id",
            "users": "SELECT u.* FROM users u JOIN (SELECT e.user_id AS user_id FROM events e JOIN {kept} k"
            " ON k.query_id = e.query_id GROUP BY e.user_id) AS left_ ON left_.user_id = u.user_id",
        }
        same = ("urls", "words", *(f"extra {name}" for name in self.stats.extras))
        for name, query in filtered.items():
            new.keep(old.sql(query.format(kept=queries)), name)
        for name in same:
            new.keep(old.sql(f"SELECT * FROM {identifier(name)}"), name)  # noqa: S608  # names are escaped
        stats = stats_of(new, self.stats, self.has_views)
        if stats.events == 0:
            new.close()
            raise NothingToReleaseError(NOTHING_SELECTED)
        part = SparkLog(new, replace(stats, rows=n_rows(new, stats)), self.language)
        part.part = Part(self, purpose, None)
        return part

    def brought(self, users: Table) -> LocalLog:
        """The events of some users, few enough for this machine, as a log here.

        Args:
            users: The user_id of each.
        """
        from queryveil.log.ingest import read_log

        more = "".join(f", c.{name} AS {name}" for name in ("rank", *(["clicked"] if self.has_views else [])))
        joins = ""
        for place, name in enumerate(self.stats.extras):
            more += f", x{place}.value AS {identifier(name)}"
            joins += f" LEFT JOIN {identifier(f'extra {name}')} x{place} ON x{place}.id = e.{identifier(f'{name} id')}"
        rows = self.engine.fetch(
            f'SELECT u."user" AS "user", q.query AS query, e.time AS time, a.url AS url{more} FROM events e'  # noqa: S608  # names are escaped
            f" JOIN {users} s ON s.user_id = e.user_id JOIN users u ON u.user_id = e.user_id"
            f" JOIN queries q ON q.query_id = e.query_id LEFT JOIN {self.results} c ON c.event_id = e.event_id"
            f" LEFT JOIN urls a ON a.url_id = c.url_id{joins}"
        )
        return read_log(rows, language=self.language.ids)

    def in_whole(self, table: Table, work: Workspace) -> Table:
        """A table of user_id and "user"; ids are the same in both, and only the session is another."""
        columns = ("user_id", "user")
        schema = pa.schema([(name, pa.int64()) for name in columns])
        return work.load(schema, SparkRows(self.engine, f"SELECT * FROM {table}", columns, (), 1), "pseudonyms")  # noqa: S608  # a table of ours

    def _renumber(self, work: Workspace, rewritten: Table) -> Table:
        """Events with their changed queries, renumbered in the order of user, time and query."""
        from queryveil.kernels.times import MISSING

        extras = (identifier(f"{name} id") for name in self.stats.extras)
        names = "".join(f", e.{name} AS {name}" for name in extras)
        moment = (
            f"CASE WHEN e.time IS NULL THEN CAST('{MISSING}' AS BIGINT) ELSE unix_micros(CAST(e.time AS TIMESTAMP)) END"
        )
        return work.number(
            "SELECT e.event_id AS old_id, e.user_id AS user_id, r.new_id AS query_id, e.time AS time,"  # noqa: S608  # names are escaped
            f" {moment} AS moment, r.same AS same{names} FROM events e JOIN {rewritten} r ON r.query_id = e.query_id",
            ("user_id", "moment", "query_id", "old_id"),
            "n",
            even=True,
        )


def n_rows(engine: Spark, stats: LogStats) -> int:
    """How many rows a log has when it is written: one per result, and one per event without any."""
    table, results = ("views", stats.views) if stats.views else ("clicks", stats.clicks)
    (with_results,) = engine.row(f"SELECT count(DISTINCT event_id) AS n FROM {table}")  # noqa: S608  # one of two words
    return int(stats.events + results - with_results)


def _with_ids(batch: pa.RecordBatch, *, name: str, schema: pa.Schema) -> pa.RecordBatch:
    text = batch[name].cast(pa.string())
    return pa.RecordBatch.from_arrays([pa.array(word_ids(text, {}, 2**64 - 1)), text], schema=schema)


_REWRITTEN = pa.schema([("query_id", pa.int64()), ("new_id", pa.int64()), ("text", pa.string()), ("same", pa.bool_())])


def _renumbered(batch: pa.RecordBatch, *, known: Known) -> pa.RecordBatch:
    found = word_ids(batch["text"], known, 2**64 - 1)
    return pa.RecordBatch.from_arrays(
        [batch["query_id"], pa.array(found), batch["text"], batch["same"]], schema=_REWRITTEN
    )
