"""What each user gives to a differentially private release: at most d things, each once.

Which ones follows from the user's own log alone, so that one user more changes nothing of what others give.
"""

import secrets
from collections.abc import Sequence
from typing import Literal

import numpy as np
import pyarrow as pa

from queryveil.log import QueryLog
from queryveil.log.draws import keyed
from queryveil.methods.private.noise import WHOLE, Noisy

Keep = Literal["frequent", "first", "random"]

PAIRS = "SELECT user_id, query_id, count(*) AS times, min(event_id) AS began FROM events GROUP BY user_id, query_id"
"""SQL of everything that users searched for, how often, and when first: events are numbered by user and time."""


def bound(things: str, keys: Sequence[str], d: int, keep: Keep) -> str:
    """SQL of user_id, the keys and n: at most d things of each user, and how many these are.

    Ties go to the thing that was first, then to the one whose keys, which are ordered by digests of texts, are smaller.

    Args:
        things: SQL of user_id, the keys, and times and began, or draw where there is a lot.
        keys: The columns that make a thing.
        d: At most so many a user.
        keep: Which of them: those that the user repeated most, the first ones, or some at random.
    """
    order = {"first": "began", "frequent": "times DESC, began", "random": "draw"}[keep]
    named = ", ".join(f"t.{key} AS {key}" for key in keys)
    return (
        f"SELECT user_id, {', '.join(keys)}, least(n, {d}) AS n FROM (SELECT t.user_id AS user_id, {named},"
        f" row_number() OVER (PARTITION BY t.user_id ORDER BY {order}, {', '.join(keys)}) AS place,"
        f" count(*) OVER (PARTITION BY t.user_id) AS n FROM ({things}) AS t) AS placed WHERE place <= {d}"
    )


def lots(log: QueryLog, things: str, keys: Sequence[str], name: str) -> str:
    """Draw a lot for each thing of each user; SQL of user_id, the keys and draw.

    The lots must not depend on other users, as draws would that are keyed by the log: they are drawn anew in each run.
    """
    key = secrets.token_bytes(16)
    schema = pa.schema([("user_id", log.id_type), *((name, log.id_type) for name in keys), ("draw", pa.int64())])

    def draw(batch: pa.RecordBatch) -> pa.RecordBatch:
        mixed = keyed(key, batch["user_id"].to_numpy().astype(np.uint64))
        for column in keys:
            mixed = keyed(key, mixed ^ batch[column].to_numpy().astype(np.uint64))
        columns = [batch[column].cast(schema.field(column).type) for column in schema.names[:-1]]
        return pa.RecordBatch.from_arrays([*columns, pa.array(mixed.view(np.int64))], schema=schema)

    log.engine.map(f"SELECT user_id, {', '.join(keys)} FROM ({things}) AS things", draw, schema, name)
    return f'SELECT user_id, {", ".join(keys)}, draw FROM "{name}"'


def counted(bounded: str, keys: Sequence[str], least: int) -> str:
    """SQL of the keys and n, their users, where there are enough."""
    names = ", ".join(keys)
    return f"SELECT {names}, count(*) AS n FROM ({bounded}) AS given GROUP BY {names} HAVING count(*) >= {least}"


def weighed(log: QueryLog, bounded: str, keys: Sequence[str], d: int, least: int) -> str:
    """SQL of the keys and n, the sum of what users give who spread `WHOLE` over their things.

    A user of n things gives each WHOLE / sqrt(n), rounded down, so that the length of what he gives is at most WHOLE.
    """
    n = np.arange(1, d + 1)
    weight = np.floor(WHOLE / np.sqrt(n)).astype(np.int64)
    weight -= weight * weight * n > WHOLE * WHOLE  # where floating point rounded up
    log.engine.read("weights", pa.table({"n": n.astype(np.int64), "weight": weight}))
    names, total = ", ".join(f"g.{key}" for key in keys), "CAST(sum(w.weight) AS BIGINT)"
    named = ", ".join(f"g.{key} AS {key}" for key in keys)
    return (
        f"SELECT {named}, {total} AS n FROM ({bounded}) AS g JOIN weights w ON w.n = g.n GROUP BY {names}"
        f" HAVING sum(w.weight) >= {least}"
    )


def publish(
    log: QueryLog, sums: str, keys: Sequence[str], kind: str, scale: float, threshold: int | None, name: str
) -> None:
    """Keep the keys whose noisy sums reach a threshold, with these sums."""
    noisy = Noisy(pa.schema([(key, log.id_type) for key in keys]), kind, scale, threshold)
    # The table is written once, so that everything behind it sees one draw of the noise, even if Spark does it again.
    log.engine.map(sums, noisy, noisy.schema, name)
