"""Some users of a log on a cluster, drawn at random and brought here with what a release has of them."""

from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa

from queryveil.assess.measures.counts import pseudonym, shares_records
from queryveil.engines import identifier
from queryveil.errors import QueryveilError
from queryveil.log import LocalLog
from queryveil.log.draws import drawn
from queryveil.log.spark import SparkLog
from queryveil.release import Release, check_log, loaded

USERS = 5_000
"""Most users that are brought here, so that neither memory nor time grows with the log."""


class Sample(NamedTuple):
    """Some users: what a release has of them, their log, and how many of how many they are."""

    release: Release
    log: LocalLog
    share: str


def bring(release: Release, log: SparkLog, seed: int, users: int = USERS) -> Sample:
    """Draw users at random, and bring their events and records here.

    Args:
        release: A release that knows who is who in it.
        log: Its log.
        seed: Random seed; the same users are drawn whatever the cluster.
        users: Most users to draw.

    Raises:
        QueryveilError: If the release does not say who is behind which rows, or several users share a record.
    """
    check_log(release, log)
    column = pseudonym(release)
    if column is None or release.pseudonyms is None or release.log is not log or shares_records(release):
        raise QueryveilError(
            "A log on Spark is looked at by a sample of its users; that needs a release with user or session ids that"
            " was just made, or loaded with its user map, and whose records are of one user each."
        )
    with log.workspace() as work:
        key = log.secret(seed, "sample of users")
        draws = work.map(
            "SELECT user_id, digest FROM users", *drawn(pa.schema([("user_id", log.id_type)]), "digest", key), "draws"
        )
        some = work.table(f"SELECT user_id FROM {draws} ORDER BY draw, user_id LIMIT {users}", "sampled users")
        here = log.brought(some)
        named = ", ".join(f"r.{identifier(name)} AS {identifier(name)}" for name in release.schema.names)
        with loaded(release, log) as released:
            rows = work.fetch(
                f'SELECT {named} FROM {released} r JOIN {release.pseudonyms} f ON f."user" = r."{column}"'
                f" JOIN {some} s ON s.user_id = f.user_id"
            )
        who = work.fetch(
            f'SELECT u."user" AS original, f."user" AS released FROM {release.pseudonyms} f'
            f" JOIN {some} s ON s.user_id = f.user_id JOIN users u ON u.user_id = f.user_id"
        )
    kept = here.workspace()
    pseudonyms = kept.table(
        f'SELECT u.user_id AS user_id, w.released AS "user" FROM {kept.read(who)} w JOIN users u'
        ' ON u."user" = w.original',
        "pseudonyms",
    )
    table = rows.cast(release.schema)
    part = replace(
        release, batches=table.to_batches, log=here, folder=None, pseudonyms=pseudonyms, measured=None, workspace=kept
    )
    return Sample(part, here, f"{here.n_users:,} of {log.n_users:,} users, drawn at random")
