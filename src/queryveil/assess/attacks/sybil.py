"""Sybil attack: how many planted accounts does it take to have a chosen query released?

Claudio Carpineto, Giovanni Romano, KΘ-affinity privacy, Information Processing and Management 51 (2015), section 5.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from queryveil.arrays import sampled
from queryveil.assess.attacks.again import cannot, method_again, rows_of
from queryveil.assess.attacks.finding import Estimate, Finding, InapplicableError
from queryveil.assess.attacks.view import NO_QUERY, View, view
from queryveil.claims import AffineUsers, QueryUsers, RecordUsers
from queryveil.errors import QueryveilError
from queryveil.log import LocalLog, QueryLog
from queryveil.log.ingest import read_log
from queryveil.methods import Method
from queryveil.release import Release, loaded
from queryveil.text import normal_form

ACCOUNTS = 1_024
USERS = 5_000
_POPULAR = 200


def sybil(
    release: Release,
    log: QueryLog,
    *,
    seed: int = 0,
    accounts: int = ACCOUNTS,
    users: int = USERS,
    taxonomy: str | None = None,
) -> Finding:
    """The fewest accounts that make the anonymizer release a secret of the attacker's choice.

    The secret is a popular released query of several words with a further released word, which nobody issued. Every
    account issues it once. The method of the release runs on the log with 1, 2, 4, ... such accounts until the secret
    is released, and then on the numbers between, as if more accounts never did less. In the control, the same number of
    accounts issue another such query, and the secret must stay out. If the most accounts do not do, the attack has
    given up, which is no success even if the release promises more users than were tried.

    Args:
        release: A release of queries.
        log: Its log.
        seed: Random seed, also of the method.
        accounts: Most accounts to try.
        users: Most users of the log that it is tried on; of more, a random sample.
        taxonomy: Where the taxonomy lies that the release was made with, of which it knows only the name.
    """
    seen = view(release, log)
    if not seen.texts:
        raise InapplicableError("needs a release of queries")
    if not len(seen.queries):
        raise InapplicableError(NO_QUERY)
    method = method_again(release, taxonomy)
    secret, other = _secrets(release, seen)
    try:
        k = _promised(release)
        table = _table(seen.log, max(users, 10 * (k or 1)), seed)

        def succeeds(j: int, planted: str = secret) -> bool:
            return _released(method, seed, _with(table, planted, j), secret, seen.log.language.ids)

        j = _fewest(succeeds, accounts)
        anyway = j is not None and succeeds(j, other)
    except QueryveilError as error:
        raise cannot(error) from None
    return Finding(
        attack="sybil",
        setting="",
        number="accounts that bring a chosen query into the release"
        if j is not None
        else "accounts that do not bring a chosen query into the release, the most that was tried",
        unit="accounts",
        estimate=Estimate(accounts, accounts, accounts) if j is None else Estimate(j, j, j),
        baseline=0 if anyway else k or 2,
        baseline_text="it is released in any case"
        if anyway
        else "users that the release promises behind what it shows; 2 if it promises none",
        control=None,
        control_text="with as many accounts that issue another query, the chosen one is "
        + ("released as well" if anyway else "not released"),
        trials=1,
        details={"users": len(table["user"].unique())},
        gave_up=j is None,
    )


def _promised(release: Release) -> int | None:
    kinds = QueryUsers, AffineUsers, RecordUsers
    return next((claim.users for claim in release.manifest.claims if isinstance(claim, kinds)), None)


def _secrets(release: Release, seen: View) -> tuple[str, str]:
    """Two queries that nobody issued, made of released words; of equals, what comes first in the alphabet."""
    with loaded(release, seen.log) as released:
        rows = seen.log.engine.fetch(
            f"SELECT query, count(*) AS n FROM {released} GROUP BY query ORDER BY n DESC, query LIMIT {_POPULAR}"
        )
    popular = rows["query"].to_pylist()
    language = seen.log.language
    split = language.words(rows["query"].combine_chunks())
    every = [word for word in dict.fromkeys(split.text.to_pylist()) if word not in language.stop_words]
    longest = sorted(range(len(popular)), key=lambda i: -int(split.per_query[i]))
    found = []
    for i in longest:
        for word in every:
            text = f"{popular[i]} {word}"
            if word not in popular[i].split() and seen.log.find(text) is None:
                found.append(text)
            if len(found) == 2:
                return found[0], found[1]
    raise InapplicableError("the release has too few words to make a query of that nobody issued")


def _table(log: LocalLog, users: int, seed: int) -> pa.Table:
    """The rows of a log, or of some of its users."""
    some = sampled(np.arange(log.n_users), users, np.random.default_rng(seed))
    return rows_of(log, np.flatnonzero(np.isin(log.events["user_id"].to_numpy(), some)))


def _with(table: pa.Table, secret: str, j: int) -> pa.Table:
    """The rows, and those of j accounts that issue the secret."""
    planted = {
        "user": pa.array([f"planted account {i}" for i in range(j)]),
        "query": pa.array([secret] * j),
    }
    if "time" in table.column_names and j:
        planted["time"] = pa.array([table["time"][0].as_py()] * j)
    columns = [
        planted[field.name].cast(field.type) if field.name in planted else pa.nulls(j, field.type)
        for field in table.schema
    ]
    return pa.concat_tables([table, pa.table(columns, schema=table.schema)])


def _released(method: Method, seed: int, table: pa.Table, secret: str, languages: Sequence[str]) -> bool:
    log = read_log(table, language=languages)
    try:
        release = method.anonymize(log, seed=seed)
        with loaded(release, log) as released, log.workspace() as work:
            planted = work.read(pa.table({"query": normal_form(pa.array([secret]))}))
            (rows,) = work.row(f"SELECT count(*) AS n FROM {released} r JOIN {planted} p ON p.query = r.query")
        return bool(rows)
    finally:
        log.close()


def _fewest(succeeds: Callable[[int], bool], most: int) -> int | None:
    """The least number for which something succeeds, if it succeeds for all larger ones too; None beyond `most`."""
    low, high = 0, 1
    while not succeeds(high):
        if high >= most:
            return None
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if succeeds(middle) else (middle, high)
    return high
