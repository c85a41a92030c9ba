"""One log for all tests that only look: 3,000 users, about 150,000 rows."""

from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest

from queryveil.synth import Summary, generate


@dataclass(frozen=True)
class Made:
    log: Path
    truth: Path
    summary: Summary

    def sql(self, text: str) -> list[tuple]:
        """Ask about `log` (rows) and `truth` (distinct queries)."""
        with duckdb.connect() as connection:
            connection.execute(
                f"""
                create view log as select AnonID as user, Query as query, QueryTime::timestamp as time,
                    ItemRank::int as rank, ClickURL as url
                from read_csv('{self.log}', delim = '\t', quote = '', header = true, all_varchar = true);
                create view truth as select * from read_parquet('{self.truth}/queries.parquet')
                """
            )
            return connection.execute(text).fetchall()


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("synth")
    log, truth = folder / "log.tsv", folder / "truth"
    return Made(log, truth, generate(log, users=3000, seed=7, truth=truth))
