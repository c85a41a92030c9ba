import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import queryveil as qv
from queryveil.engines.spark_session import start
from tests.both import QUICK, as_options, needs_spark
from tests.cluster import Cluster
from tests.engines.test_engines import directory, some_rows  # noqa: F401  # a fixture
from tests.strategies import table, weekly


def rows_of(release: qv.Release) -> pa.Table:
    return pa.Table.from_batches(list(release.batches()), release.schema)


def tables_in(folder) -> int:
    return sum(len(list(database.iterdir())) for database in folder.glob("queryveil_*"))


WRITTEN = "import queryveil.engines.spark as spark; spark.SMALL_LOG = -1"
"""What makes Spark write down the tables even of a small log, so that they are there when a worker goes."""
SMALL = QUICK | {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.executor.memory": "600m",
    "spark.executor.cores": "1",
    "spark.executor.extraJavaOptions": QUICK["spark.driver.extraJavaOptions"].replace("-Xmn600m", ""),
}


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
        words += as_options(SMALL)
        run = subprocess.Popen(
            [sys.executable, "-c", f"{WRITTEN}\nfrom queryveil.cli import main; main()", *map(str, words)],
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


ALL_METHODS = {
    "equality": qv.Equality(k=3, link="session"),
    "rules": qv.Rules(min_row_users=2, min_term_users=2, time="day", min_metadata_users=2),
    "counts": qv.Counts(min_row_users=3),
    "affinity": qv.Affinity(k=4, theta=0.7),
    "strings": qv.Mdav(k=2, distance="strings", grouping="blocks"),
    "features": qv.Mdav(k=2, distance="features", grouping="blocks"),
    "poblete": qv.Poblete(k=1, sites=1),
    "wngen": qv.Wngen(k=3),
    "partition": qv.Partition(k=3),
    "clump": qv.Clump(k=3),
    "pipeline": qv.Pipeline([qv.Scrub(), qv.Equality(k=3), qv.Columns(min_click_users=3, time="day", link="user")]),
    # Noise and keys are fresh in every run: of these the promises are compared, not the rows.
    "zealous": qv.Zealous(epsilon=20, delta=0.01),
    "dp-set": qv.DpSet(epsilon=20, delta=0.01),
    "hash": qv.Hash(),
}
LOOKED_UP = {"odp": qv.Odp, "search": qv.Search, "semantic": qv.Mdav}
"""Methods that need a web directory."""
KILL_AT = 3
"""The table of each method during which a worker goes."""


@weekly
@needs_spark
def test_no_method_loses_its_job_with_a_worker(tmp_path, directory):  # noqa: F811
    """One after the other on one cluster: in the middle of each, a worker goes and another one comes."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([os.getcwd(), *sys.path])}
    run = subprocess.run(
        [sys.executable, "-c", f"{WRITTEN}\nfrom tests.engines.test_cluster import lose_workers\nlose_workers()",
         tmp_path, directory], capture_output=True, text=True, env=environment, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr[-3000:]
    methods = len(ALL_METHODS) + len(LOOKED_UP)
    assert run.stdout.split() == [*ALL_METHODS, *LOOKED_UP]
    assert (tmp_path / "log").read_text().count("Telling app of lost executor") >= methods


def lose_workers() -> None:
    """Run every method on one cluster, and lose a worker in each; prints those whose release is right."""
    folder, taxonomy = Path(sys.argv[1]), sys.argv[2]
    (folder / "work").mkdir()
    pq.write_table(table(some_rows(400, seed=4)), folder / "log.parquet")
    local = qv.read_log(folder / "log.parquet")
    methods = ALL_METHODS | {name: method(k=2, taxonomy=taxonomy) for name, method in LOOKED_UP.items()}
    cluster = Cluster(folder)
    try:
        engine = qv.Spark(start(cluster.master, SMALL), work_dir=str(folder / "work"))
        log = qv.read_log(folder / "log.parquet", engine=engine)
        for number, (name, method) in enumerate(methods.items()):
            begun: list[str] = []
            kill_at = 1 if method.repeats == "never" else KILL_AT  # private methods make few tables
            loss = threading.Timer(0.3, cluster.kill_worker, [number])

            def count(step: str, begun=begun, loss=loss, kill_at=kill_at) -> None:
                begun.append(step)
                if len(begun) == kill_at:
                    loss.start()

            engine.progress = count
            release = method.anonymize(log, seed=5)
            loss.join()
            if method.repeats == "never":
                assert qv.verify(release, local).holds, name
            else:
                assert rows_of(release).equals(rows_of(method.anonymize(local, seed=5))), name
            print(name, flush=True)
            cluster.add_worker()
        log.close()
    finally:
        cluster.close()
