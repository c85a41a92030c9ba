"""Dagster assets: the release of each day's log, and the same release verified.

    dagster dev -f dagster_assets.py

`nightly.py` is beside this file, and queryveil in the same environment.
"""

import os

import dagster as dg
import nightly

LOGS = os.environ.get("QUERY_LOGS", "/data/logs")
RELEASES = os.environ.get("QUERY_RELEASES", "/data/releases")
DAYS = dg.DailyPartitionsDefinition(start_date="2026-01-01")


def _paths(day: str) -> tuple[str, str]:
    return f"{LOGS}/{day}.tsv.gz", f"{RELEASES}/{day}"


@dg.asset(partitions_def=DAYS, output_required=False)
def release(context: dg.AssetExecutionContext):
    """The release of a day; nothing on a day on which nothing can be released."""
    log, folder = _paths(context.partition_key)
    manifest = nightly.publish(log, folder)
    if manifest is not None:
        counts = {
            name: dg.MetadataValue.int(number) for name, number in manifest["counts"].items() if number is not None
        }
        yield dg.MaterializeResult(metadata={"folder": dg.MetadataValue.path(folder), **counts})


@dg.asset(partitions_def=DAYS, deps=[release])
def verified_release(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
    """The same release, after every promise was checked against the log; it fails if one does not hold."""
    log, folder = _paths(context.partition_key)
    return dg.MaterializeResult(metadata={"checks": nightly.check(log, folder)})


defs = dg.Definitions(assets=[release, verified_release])
