"""What the driver collects does not grow with the log: with little room for results, everything runs all the same."""

import json
import subprocess
import sys

from tests.both import QUICK, needs_spark
from tests.strategies import weekly

pytestmark = needs_spark
USERS = 20_000
ROOM = "400k"
"""Less than a table of all users or all queries with their texts, and more than what tasks say of themselves."""

SCRIPT = """
import json
import sys

import queryveil as qv
from queryveil.assess import attacks, sampling
from queryveil.claims import generalized
from queryveil.engines.spark_session import start
from queryveil.release import linkage

# What may be brought here of any log is more than there is room for.
sampling.USERS, linkage.CANDIDATES, generalized.PAIRS = 100, 500, 1_000
sys.modules[f"{attacks.__name__}.personal_data"].QUERIES = 1_000
path, folder, settings = sys.argv[1:]
session = start("local[2]", json.loads(settings))
log = qv.read_log(path, engine=qv.Spark(session))
qv.profile(log)
methods = {
    "equality": qv.Equality(k=3),
    "users": qv.Equality(k=3, link="user"),
    "rules": qv.Rules(min_row_users=3),
    "affinity": qv.Affinity(k=3, min_term_users=10),
    "partition": qv.Partition(k=3),
    "mdav": qv.Mdav(k=3),
}
for name, method in methods.items():
    made = method.anonymize(log, seed=1)
    made.save(f"{folder}/{name}")
    assert qv.verify(f"{folder}/{name}", log).holds
    if name in ("equality", "users"):
        qv.evaluate(made, log)
        qv.attack(made, log)
"""


@weekly
def test_nothing_that_is_collected_grows_with_the_log(tmp_path):
    log = tmp_path / "log.tsv"
    rows = "".join(
        f"user{i}\t{query}\t2006-03-01 10:{i % 60:02}:00\t\t\n"
        for i in range(USERS)
        for query in (f"common words {i % 1_000}", f"own words number{i}")
    )
    log.write_text(f"AnonID\tQuery\tQueryTime\tItemRank\tClickURL\n{rows}")
    settings = QUICK | {"spark.driver.maxResultSize": ROOM, "spark.sql.autoBroadcastJoinThreshold": "-1"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, log, tmp_path, json.dumps(settings)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
