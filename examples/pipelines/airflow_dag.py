"""An Airflow DAG: each day, make a release of yesterday's log and verify it.

Put this file and `nightly.py` into the folder of DAGs, and queryveil into the environment of the workers. A release
that is refuted fails the task; a day on which nothing can be released skips the rest.
"""

from datetime import datetime

import nightly
from airflow.sdk import dag, task
from airflow.sdk.exceptions import AirflowSkipException

LOGS, RELEASES = "/data/logs", "/data/releases"


@dag(schedule="@daily", start_date=datetime(2026, 1, 1), catchup=False)
def query_log_releases(logs: str = LOGS, releases: str = RELEASES) -> None:
    """Anonymize and verify the log of a day."""

    @task
    def anonymize(logs: str, releases: str, ds: str) -> str:
        release = f"{releases}/{ds}"
        if nightly.publish(f"{logs}/{ds}.tsv.gz", release) is None:
            raise AirflowSkipException("Nothing can be released.")
        return release

    @task
    def verify(logs: str, release: str, ds: str) -> int:
        return nightly.check(f"{logs}/{ds}.tsv.gz", release)

    verify(logs, anonymize(logs, releases))


query_log_releases()
