"""Differencing of totals: what do totals of a table say about the people in hidden rows, or only in some rows?"""

from collections.abc import Callable

import numpy as np

from queryveil.assess.attacks.finding import Finding, InapplicableError, share
from queryveil.claims import CellUsers
from queryveil.claims.base import Evidence
from queryveil.claims.recount import Recount
from queryveil.kernels.types import Longs
from queryveil.log import QueryLog, local
from queryveil.release import Release, check_log, loaded, scrub_again

Differences = tuple[Longs, Longs, Longs]
"""Of each difference: the users behind it, the number in the log, and what the attacker computes."""


def margins(release: Release, log: QueryLog, *, seed: int = 0) -> Finding:
    """The share of totals whose events give away hidden rows of too few users.

    The attacker subtracts the events of published rows from those of their total. The difference is the number of the
    hidden rows. It is given away if these have fewer users than a row must have, and the number is right.

    Args:
        release: A table of counts with totals.
        log: Its log.
        seed: Random seed of the control.
    """
    what = "totals that give away hidden rows of fewer than {} people by their events"
    return _finding(release, log, seed, "events", what, _hidden, "no row is hidden below a total")


def margins_of_users(release: Release, log: QueryLog, *, seed: int = 0) -> Finding:
    """The share of rows that, subtracted from their total, say how many people are only in other rows, if too few are.

    Args:
        release: A table of counts with totals.
        log: Its log.
        seed: Random seed of the control.
    """
    if "users_band" in release.schema.names:
        raise InapplicableError("bands of users cannot be subtracted")
    what = "rows that tell, with their total, of fewer than {} people who are only in other rows"
    return _finding(release, log, seed, "users", what, _elsewhere, "no row has fewer users than its total")


def _finding(
    release: Release,
    log: QueryLog,
    seed: int,
    setting: str,
    what: str,
    differences: Callable[[CellUsers, Recount], str],
    nothing: str,
) -> Finding:
    here = local(log, "An attack")
    check_log(release, here)
    claim = next((claim for claim in release.manifest.claims if isinstance(claim, CellUsers)), None)
    if claim is None or not claim.totals:
        raise InapplicableError("needs a table of counts with totals")
    stated = release.manifest.scrub
    scrubbed = None if stated is None or here.stats.scrub is not None else scrub_again(release, here)
    counted = here if scrubbed is None else local(scrubbed, "An attack")
    try:
        with loaded(release, counted) as released, counted.workspace() as work:
            again = claim.recount(Evidence(counted, work, tuple(release.schema.names), released))
            found = work.fetch(differences(claim, again))
    finally:
        if scrubbed is not None:
            scrubbed.close()
    users, true, left = (found[name].to_numpy() for name in ("users", "true_n", "left_n"))
    n = len(users)
    if not n:
        raise InapplicableError(nothing)
    few = users < claim.users
    commonest = np.bincount(true[few]).argmax() if few.any() else 0
    other = left[np.random.default_rng(seed).permutation(n)]
    right = few & (left == true)
    return Finding(
        attack="margins",
        setting=setting,
        number=what.format(claim.users),
        unit="share",
        estimate=share(int(right.sum()), n),
        baseline=float((few & (true == commonest)).sum() / n),
        baseline_text="the commonest number of so few people",
        control=share(int((few & (other == true)).sum()), n),
        control_text="another difference, chosen at random",
        trials=n,
        beside=f"{int(few.sum()):,} differences are of so few people",
        details={"differences": n, "few": int(few.sum()), "found": int(right.sum())},
    )


def _hidden(claim: CellUsers, again: Recount) -> str:
    """SQL of the events of each published total minus those of its rows, if some of its rows are hidden."""
    keys, by = again.how.keys(claim.columns), again.how.keys(claim.totals)
    names = ", ".join(by)
    same = " AND ".join(f"k.{key} IS NOT DISTINCT FROM p.{key}" for key in keys)
    of_total = " AND ".join(f"{{0}}.{key} IS NOT DISTINCT FROM t.{key}" for key in by)
    shown = f"SELECT {', '.join(keys)}, events FROM {again.released} WHERE total = 0"
    hidden = (
        f"SELECT {', '.join(f'p.{key} AS {key}' for key in by)}, count(DISTINCT p.user_id) AS users,"
        f" sum(p.events) AS n FROM {again.people(totals=False)} p LEFT JOIN ({shown}) AS k ON {same}"
        f" WHERE k.events IS NULL GROUP BY {', '.join(f'p.{key}' for key in by)}"
    )
    return (
        "SELECT h.users AS users, CAST(h.n AS BIGINT) AS true_n,"
        " CAST(t.events - coalesce(s.n, 0) AS BIGINT) AS left_n"
        f" FROM (SELECT {names}, events FROM {again.released} WHERE total = 1) AS t"
        f" JOIN ({hidden}) AS h ON {of_total.format('h')}"
        f" LEFT JOIN (SELECT {names}, sum(events) AS n FROM ({shown}) AS shown GROUP BY {names}) AS s"
        f" ON {of_total.format('s')} ORDER BY users, true_n, left_n"
    )


def _elsewhere(claim: CellUsers, again: Recount) -> str:
    """SQL of the users of each published total minus those of each of its rows, if the row has fewer."""
    keys, by = again.how.keys(claim.columns), again.how.keys(claim.totals)
    of_row, of_total = (
        " AND ".join(f"{{0}}.{key} IS NOT DISTINCT FROM r.{key}" for key in some) for some in (keys, by)
    )
    true = "t.users - o.users"
    return (
        f"SELECT {true} AS users, {true} AS true_n, CAST(k.users - r.users AS BIGINT) AS left_n"
        f" FROM (SELECT * FROM {again.released} WHERE total = 0) AS r"
        f" JOIN (SELECT * FROM {again.released} WHERE total = 1 AND users IS NOT NULL) AS k ON {of_total.format('k')}"
        f" JOIN {again.rows(totals=False)} o ON {of_row.format('o')}"
        f" JOIN {again.rows(totals=True)} t ON {of_total.format('t')} WHERE {true} > 0 ORDER BY users, left_n"
    )
