"""The ground truth about every query, for measuring: topic, kind, and whether it is sensitive."""

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from queryveil.synth.tables import LABEL_SCHEMA
from queryveil.synth.world import KINDS, SENSITIVE, Atlas

_MEMORY = "2GB"

# One row per distinct query. Users may mean different things by the same words: a sensitive meaning wins, then
# the most frequent one.
_QUERIES = """
    copy (
        select chosen.query as query, topics.name as topic, sensitive.name as sensitive, kinds.name as kind{language}
        from (
            select query,
                   arg_max(label, ((label & 255) > 0)::bigint * (1::bigint << 50) + n * (1 << 24) - label) as label
            from (select query, label, count(*) as n from read_parquet($labels) group by query, label)
            group by query
        ) chosen
        join languages on languages.code = chosen.label >> 16
        join topics on topics.code = chosen.label >> 16
        join kinds on kinds.code = (chosen.label >> 8) & 255
        join sensitive on sensitive.code = chosen.label & 255
        order by query
    ) to '{target}' (format parquet, compression zstd)
"""


class Truth:
    """Collects the labels of queries and writes `queries.parquet` into a folder."""

    def __init__(self, folder: Path, atlas: Atlas) -> None:
        self._folder = folder
        self._atlas = atlas
        self._labels = folder / "labels.parquet"
        self._writer = pq.ParquetWriter(self._labels, LABEL_SCHEMA, compression="zstd")

    def add(self, labels: pa.Table) -> None:
        """Append the labels of a chunk."""
        self._writer.write_table(labels)

    def close(self) -> None:
        """Stop collecting."""
        self._writer.close()

    def save(self) -> None:
        """Write one row per distinct query, in bounded memory."""
        self.close()
        spill = self._folder / "spill"
        target = str(self._folder / "queries.parquet").replace("'", "''")
        with duckdb.connect() as connection:
            connection.execute("set memory_limit = $limit", {"limit": _MEMORY})
            connection.execute("set temp_directory = $spill", {"spill": str(spill)})
            connection.execute("set allowed_directories = $folders", {"folders": [str(self._folder)]})
            connection.execute("set enable_external_access = false")
            connection.execute("set lock_configuration = true")
            # The truth of an English log has no languages, as before there were others.
            language = "" if self._atlas.languages == ("en",) else ", languages.name as language"
            spoken = np.repeat(self._atlas.languages, self._atlas.leaves).tolist()
            for name, values in (
                ("topics", self._atlas.topics), ("languages", spoken), ("kinds", KINDS), ("sensitive", SENSITIVE)
            ):  # fmt: skip
                codes = pa.table(
                    {"code": pa.array(range(len(values)), pa.int32()), "name": pa.array(list(values), pa.string())}
                )
                connection.register(name, codes)
            connection.execute(_QUERIES.format(target=target, language=language), {"labels": str(self._labels)})
        self._labels.unlink()
        if spill.exists():
            spill.rmdir()
