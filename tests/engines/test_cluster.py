import os
import subprocess
import sys
import time

import pyarrow as pa

import queryveil as qv
from tests.both import QUICK, as_options, needs_spark
from tests.cluster import Cluster
from tests.engines.test_engines import some_rows
from tests.strategies import weekly


def rows_of(release: qv.Release) -> pa.Table:
    return pa.Table.from_batches(list(release.batches()), release.schema)


def tables_in(folder) -> int:
    return sum(len(list(database.iterdir())) for database in folder.glob("queryveil_*"))


@weekly
@needs_spark
def test_a_lost_worker_does_not_lose_the_job(tmp_path):
    log = tmp_path / "log.tsv"
    rows = [row for row in some_rows(1000, seed=4) if row.query and row.time]
    lines = [f"{row.user}\t{row.query}\t{row.time}\t{row.rank or ''}\t{row.url or ''}\n" for row in rows]
    log.write_text("AnonID\tQuery\tQueryTime\tItemRank\tClickURL\n" + "".join(lines))
    work = tmp_path / "work"
    work.mkdir()
    cluster = Cluster(tmp_path)
    try:
        words = ["anonymize", log, "--method", "affinity", "-k", "3", "--theta", "0.8", "--seed", "5", "-o",
                 tmp_path / "release", "--engine", "spark", "--master", cluster.master, "--work-dir", work]  # fmt: skip
        java = QUICK["spark.driver.extraJavaOptions"].replace("-Xmn600m", "")
        here = {"driver.host": "127.0.0.1", "driver.bindAddress": "127.0.0.1", "ui.enabled": "false"}
        small = {"executor.memory": "600m", "executor.cores": "1", "executor.extraJavaOptions": java}
        words += as_options(QUICK | {f"spark.{name}": value for name, value in (here | small).items()})
        run = subprocess.Popen(
            [sys.executable, "-c", "from queryveil.cli import main; main()", *map(str, words)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ, cwd=tmp_path,
        )  # fmt: skip
        # In the middle of the work: the log is read, and the graph is under way.
        while run.poll() is None and tables_in(work) < 18:
            time.sleep(0.1)
        cluster.kill_worker(0)
        out, _ = run.communicate(timeout=600)
    finally:
        cluster.close()
    assert run.returncode == 0, out
    assert "Telling app of lost executor" in (tmp_path / "log").read_text()
    local = qv.Affinity(k=3, theta=0.8).anonymize(qv.read_log(log), seed=5)
    assert rows_of(qv.Release.load(tmp_path / "release")).equals(rows_of(local))
    assert qv.verify(tmp_path / "release", qv.read_log(log)).holds
    assert list(work.iterdir()) == []
