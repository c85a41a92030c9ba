"""What each user contributes to a differentially private release: at most d things, each once.

Which things follows from the user's own log, so one more user does not change what others contribute.
"""

import secrets
from collections.abc import Sequence
from typing import Literal

import numpy as np
import pyarrow as pa

from queryveil.engines import Table, Workspace
from queryveil.log import QueryLog
from queryveil.log.draws import keyed
from queryveil.methods.private.noise import WHOLE, Noisy

Keep = Literal["frequent", "first", "random"]

PAIRS = "SELECT user_id, query_id, count(*) AS times, min(event_id) AS began FROM events GROUP BY user_id, query_id"
"""SQL of everything that users searched for, how often, and when first: events are numbered by user and time."""


def bound(things: str, keys: Sequence[str], d: int, keep: Keep) -> str:
    """SQL of user_id, the keys and n: at most d things of each user, and how many these are.

    Ties go to the thing that was first, then to the one with the smaller keys, which are ordered by digests of texts.

    Args:
        things: SQL of user_id, the keys, and times and began, or draw if random ones are kept.
        keys: The columns that identify a thing.
        d: Most things per user.
        keep: Which of them: those that the user repeated most, the first ones, or random ones.
    """
    order = {"first": "began", "frequent": "times DESC, began", "random": "draw"}[keep]
    named = ", ".join(f"t.{key} AS {key}" for key in keys)
    return (
        f"SELECT user_id, {', '.join(keys)}, least(n, {d}) AS n FROM (SELECT t.user_id AS user_id, {named},"
        f" row_number() OVER (PARTITION BY t.user_id ORDER BY {order}, {', '.join(keys)}) AS place,"
        f" count(*) OVER (PARTITION BY t.user_id) AS n FROM ({things}) AS t) AS placed WHERE place <= {d}"
    )


def random_keys(log: QueryLog, work: Workspace, things: str, keys: Sequence[str]) -> str:
    """SQL of user_id, the keys and draw: a random number for each thing of each user.

    The numbers must not depend on other users, as draws keyed by the log would, so each run draws its own.
    """
    key = secrets.token_bytes(16)
    schema = pa.schema([*((name, log.id_type) for name in ("user_id", *keys)), ("draw", pa.int64())])

    def draw(batch: pa.RecordBatch) -> pa.RecordBatch:
        mixed = keyed(key, batch["user_id"].to_numpy().astype(np.uint64))
        for column in keys:
            mixed = keyed(key, mixed ^ batch[column].to_numpy().astype(np.uint64))
        columns = [batch[column].cast(schema.field(column).type) for column in schema.names[:-1]]
        return pa.RecordBatch.from_arrays([*columns, pa.array(mixed.view(np.int64))], schema=schema)

    names = ", ".join(keys)
    drawn = work.map(f"SELECT user_id, {names} FROM ({things}) AS things", draw, schema, "random keys")
    return f"SELECT user_id, {names}, draw FROM {drawn}"


def counted(bounded: str, keys: Sequence[str], least: int) -> str:
    """SQL of the keys and n, their users, if there are enough."""
    names = ", ".join(keys)
    return f"SELECT {names}, count(*) AS n FROM ({bounded}) AS given GROUP BY {names} HAVING count(*) >= {least}"


def weighed(work: Workspace, bounded: str, keys: Sequence[str], d: int, least: int) -> str:
    """SQL of the keys and n, the sum of the weights, if each user spreads `WHOLE` over their things.

    A user with n things gives each the weight WHOLE / sqrt(n), rounded down, so their vector has length at most WHOLE.
    """
    n = np.arange(1, d + 1)
    weight = np.floor(WHOLE / np.sqrt(n)).astype(np.int64)
    weight -= weight * weight * n > WHOLE * WHOLE  # where floating point rounded up
    weights = work.read(pa.table({"n": n.astype(np.int64), "weight": weight}), "weights")
    names, total = ", ".join(f"g.{key}" for key in keys), "CAST(sum(w.weight) AS BIGINT)"
    named = ", ".join(f"g.{key} AS {key}" for key in keys)
    return (
        f"SELECT {named}, {total} AS n FROM ({bounded}) AS g JOIN {weights} w ON w.n = g.n GROUP BY {names}"
        f" HAVING sum(w.weight) >= {least}"
    )


def publish(
    log: QueryLog,
    work: Workspace,
    sums: str,
    keys: Sequence[str],
    kind: str,
    scale: float,
    threshold: int | None,
    name: str,
) -> Table:
    """The table of the keys whose noisy sums reach a threshold, and n, these sums."""
    noisy = Noisy(pa.schema([(key, log.id_type) for key in keys]), kind, scale, threshold)
    # The table is written once, so that all later steps see the same noise, even if Spark repeats a task.
    return work.map(sums, noisy, noisy.schema, name)
