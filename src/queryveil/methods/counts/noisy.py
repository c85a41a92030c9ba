"""Tables of noisy numbers of users: each user counts in at most d rows; noise and thresholds are those of ZEALOUS."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from queryveil.claims.private import NoisyStep
from queryveil.claims.private_counts import PrivateCounts
from queryveil.engines import Table, Workspace, identifier
from queryveil.log import QueryLog
from queryveil.methods.counts.tally import MISSING, OF_RESULTS, day_texts, first_day, metadata_of
from queryveil.methods.private.contributions import bound, counted, publish, random_keys
from queryveil.methods.private.noise import laplace_delta, laplace_threshold

if TYPE_CHECKING:
    from queryveil.methods.counts.method import Counts


class Budget(NamedTuple):
    """The noise, and the threshold for rows."""

    scale: float
    threshold: int


def budget(method: "Counts") -> Budget:
    """The noise and the threshold that give the epsilon and delta asked for."""
    d, epsilon = method.max_rows_per_user, method.epsilon or 0.0
    scale = d / epsilon
    return Budget(scale, laplace_threshold(d, scale, method.delta, method.min_row_users))


def private_claim(method: "Counts") -> PrivateCounts:
    """What a table with noise promises."""
    made = budget(method)
    step = NoisyStep(
        of="rows",
        noise="laplace",
        d=method.max_rows_per_user,
        scale=made.scale,
        pre_threshold=method.min_row_users,
        threshold=made.threshold,
    )
    return PrivateCounts(
        epsilon=method.epsilon or 0.0,
        delta=method.delta,
        steps=(step,),
        keep=method.keep,
        columns=method.by,
        period=method.period if "period" in method.by else None,
    )


def accounting(method: "Counts") -> str:
    """How the budget is spent, in a sentence."""
    made, d, least = budget(method), method.max_rows_per_user, method.min_row_users
    crossed = laplace_delta(d, made.scale, made.threshold, least)
    return (
        f"Accounting: one user changes at most {d} numbers by 1 each, and discrete Laplace noise of scale"
        f" {made.scale:g} makes that cost epsilon {d / made.scale:g}. Numbers below {least} get no noise; that one of a"
        f" user's {d} crosses this line and then reaches the threshold {made.threshold} by noise costs delta"
        f" {crossed:.3g}."
    )


def noisy_rows(method: "Counts", log: QueryLog, work: Workspace) -> str:
    """SQL of the released rows with their noisy numbers of users."""
    made, columns = budget(method), method.by
    things, keys = _things(method, log)
    with log.workspace() as steps:
        if method.keep == "random":
            things = random_keys(log, steps, things, keys)
        sums = counted(bound(things, keys, method.max_rows_per_user, method.keep), keys, method.min_row_users)
        public = publish(log, work, sums, keys, "laplace", made.scale, made.threshold, "public rows")
    selected, joins = ["CAST(0 AS BIGINT) AS total", "p.n AS users"], ""
    selected += [f"{'p.query_id' if 'query' in columns else 'CAST(0 AS BIGINT)'} AS query_order"]
    for key, kind in (("query_id", "BIGINT"), ("url_id", "BIGINT"), ("rank", "INTEGER")):
        given = "p.query_id" if key == "query_id" else f"CAST(nullif(p.{key}, {MISSING}) AS {kind})"
        selected.append(f"{given if key in keys else f'CAST(NULL AS {kind})'} AS {key}")
    for place, name in enumerate(metadata_of(columns)):
        joins += f" LEFT JOIN {identifier(f'extra {name}')} x{place} ON x{place}.id = p.meta_{place}"
        selected.append(f"x{place}.value AS {identifier(name)}")
    if "period" in columns:
        days: Table = day_texts(work, f"SELECT period FROM {public}")
        joins += f" JOIN {days} d ON d.period = p.period"
        selected.append("d.text AS period")
    return f"SELECT {', '.join(selected)} FROM {public} p{joins}"


def _things(method: "Counts", log: QueryLog) -> tuple[str, Sequence[str]]:
    """SQL of the rows that each user has a part in, how often, and when first; and their keys."""
    columns = method.by
    given = {"query_id": "e.query_id"} if "query" in columns else {}
    for name, key in zip(OF_RESULTS, ("url_id", "rank"), strict=True):
        given |= {key: f"coalesce(r.{key}, {MISSING})"} if name in columns else {}
    for place, name in enumerate(metadata_of(columns)):
        given[f"meta_{place}"] = f"e.{identifier(f'{name} id')}"
    given |= {"period": first_day(method.period)} if "period" in columns else {}
    named = ", ".join(f"{sql} AS {key}" for key, sql in given.items())
    by_result = any(name in columns for name in OF_RESULTS)
    joined = f" LEFT JOIN {log.results} r ON r.query_id = e.query_id AND r.event_id = e.event_id" if by_result else ""
    timed = " WHERE e.time IS NOT NULL" if "period" in columns else ""
    rows = f"SELECT e.user_id AS user_id, e.event_id AS event_id, {named} FROM events e{joined}{timed}"
    keys = ", ".join(given)
    return (
        f"SELECT user_id, {keys}, count(*) AS times, min(event_id) AS began FROM ({rows}) AS rows_"
        f" GROUP BY user_id, {keys}",
        list(given),
    )
