"""Differencing of totals: what do totals of a table say about the rows that are hidden below them?"""

import numpy as np

from queryveil.assess.attacks.finding import Finding, InapplicableError, share
from queryveil.claims import CellUsers
from queryveil.claims.base import Evidence
from queryveil.log import LocalLog, QueryLog, local
from queryveil.release import Release, check_log, loaded, scrub_again


def margins(release: Release, log: QueryLog, *, seed: int = 0) -> Finding:
    """The share of totals that give away hidden rows of too few users.

    The attacker subtracts the published rows from their total. The difference is the number of the rows that are
    hidden. It is given away if these have fewer users than a row must have, and the number is right. Rows are compared
    by events or, if an event may be in several rows, by views or clicks, which add up.

    Args:
        release: A table of counts with totals.
        log: Its log.
        seed: Random seed of the control.
    """
    here = local(log, "An attack")
    check_log(release, here)
    claim = next((claim for claim in release.manifest.claims if isinstance(claim, CellUsers)), None)
    if claim is None or not claim.totals:
        raise InapplicableError("needs a table of counts with totals")
    stated = release.manifest.scrub
    if stated is None or here.stats.scrub is not None:
        users, true, left = _differences(release, here, claim)
    else:
        scrubbed = local(scrub_again(release, here), "An attack")
        try:
            users, true, left = _differences(release, scrubbed, claim)
        finally:
            scrubbed.close()
    n = len(users)
    if not n:
        raise InapplicableError("no row is hidden below a total")
    few = users < claim.users
    commonest = np.bincount(true[few]).argmax() if few.any() else 0
    other = left[np.random.default_rng(seed).permutation(n)]
    found = few & (left == true)
    return Finding(
        attack="margins",
        setting="",
        number=f"totals that give away hidden rows of fewer than {claim.users} people",
        unit="share",
        estimate=share(int(found.sum()), n),
        baseline=float((few & (true == commonest)).sum() / n),
        baseline_text="the commonest number of such rows",
        control=share(int((few & (other == true)).sum()), n),
        control_text="the difference at another total, chosen at random",
        trials=n,
        beside=f"{int(few.sum()):,} totals over hidden rows of so few people",
        details={"totals": n, "few": int(few.sum()), "found": int(found.sum())},
    )


def _differences(release: Release, log: LocalLog, claim: CellUsers) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each published total above hidden rows: their users, their number in the log, and what the attacker finds."""
    number = "events"
    if {"url", "rank"} & set(claim.columns):
        number = "views" if "views" in release.schema.names else "clicks"
    with loaded(release, log) as released, log.workspace() as work:
        again = claim.recount(Evidence(log, work, tuple(release.schema.names), released))
        keys, by = again.how.keys(claim.columns), again.how.keys(claim.totals)
        names = ", ".join(by)
        same = " AND ".join(f"k.{key} IS NOT DISTINCT FROM p.{key}" for key in keys)
        of_total = " AND ".join(f"{{0}}.{key} IS NOT DISTINCT FROM t.{key}" for key in by)
        shown = f"SELECT {', '.join(keys)}, {number} FROM {again.released} WHERE total = 0 AND {number} IS NOT NULL"
        hidden = (
            f"SELECT {', '.join(f'p.{key} AS {key}' for key in by)}, count(DISTINCT p.user_id) AS users,"
            f" sum(p.{number}) AS n FROM {again.people(totals=False)} p LEFT JOIN ({shown}) AS k ON {same}"
            f" WHERE k.{number} IS NULL AND p.{number} > 0 GROUP BY {', '.join(f'p.{key}' for key in by)}"
        )
        found = work.fetch(
            "SELECT h.users AS users, CAST(h.n AS BIGINT) AS true_n,"
            f" CAST(t.{number} - coalesce(s.n, 0) AS BIGINT) AS left_n"
            f" FROM (SELECT {names}, {number} FROM {again.released} WHERE total = 1 AND {number} IS NOT NULL) AS t"
            f" JOIN ({hidden}) AS h ON {of_total.format('h')}"
            f" LEFT JOIN (SELECT {names}, sum({number}) AS n FROM ({shown}) AS shown GROUP BY {names}) AS s"
            f" ON {of_total.format('s')} ORDER BY users, true_n, left_n"
        )
    return found["users"].to_numpy(), found["true_n"].to_numpy(), found["left_n"].to_numpy()
