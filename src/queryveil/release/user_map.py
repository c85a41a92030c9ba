"""The user map: which pseudonym stands for whom in a release that links users or sessions.

It is secret, and never part of the release.
"""

import itertools
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.csv as pacsv

from queryveil.errors import QueryveilError, option
from queryveil.formats import writers
from queryveil.log import QueryLog
from queryveil.release.checks import check_log

if TYPE_CHECKING:
    from queryveil.release.release import Release


def user_map(release: "Release") -> Iterator[pa.RecordBatch]:
    """The `original` name of each user and the `released` id, batch after batch."""
    if release.folder is None and release.pseudonyms is None:
        raise QueryveilError(
            "This release has no user ids or session ids, so there is no user map; leave it out, or link events."
        )
    if release.log is None or release.pseudonyms is None:
        raise QueryveilError("Only a release that was just made knows its user map.")
    with release.log.workspace() as work:
        named = work.number(
            'SELECT u.user_id AS user_id, u."user" AS original, f."user" AS released FROM users u'  # noqa: S608  # a table of ours
            f" JOIN {release.pseudonyms} f ON f.user_id = u.user_id",
            ("user_id",),
            "n",
            then=("released",),
        )
        for batch in work.ordered(named)():
            yield batch.select(["original", "released"])


def save_user_map(release: "Release", path: str | Path) -> None:
    """Write the user map as CSV that only its owner can read."""
    batches = user_map(release)
    first = next(batches, None)
    schema = pa.schema([("original", pa.string()), ("released", pa.int64())])
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file, pacsv.CSVWriter(file, schema) as writer:
            for batch in itertools.chain([] if first is None else [first], batches):
                writer.write_batch(writers.escaped(batch.cast(schema)))
    except OSError as error:
        raise QueryveilError(f"The user map cannot be written to {path}: {error.strerror}.") from error


def with_user_map(release: "Release", log: QueryLog, path: str | Path) -> "Release":
    """A loaded release with its user map.

    A map of another release of the same log with the same number of users is not noticed.

    Args:
        release: The release.
        log: The log that it was made from.
        path: The CSV file that `Release.save_user_map` wrote when it was made.

    Raises:
        QueryveilError: If the release has no users, is of another log, or the file does not fit the two.
    """
    if not {"user", "session"} & set(release.schema.names):
        raise QueryveilError("The release has no user ids or session ids, so there is no user map for it.")
    check_log(release, log)
    wrote = option("user_map", python="Release.save_user_map")
    misfit = QueryveilError(
        f"The user map {path} does not fit the release and the log; give the file that"
        f" {wrote} wrote together with this release."
    )
    try:
        given = pacsv.read_csv(
            path,
            parse_options=pacsv.ParseOptions(newlines_in_values=True),
            convert_options=pacsv.ConvertOptions(column_types={"original": pa.string(), "released": pa.int64()}),
        )
    except OSError as error:
        why = "it is not a file" if error.errno is None else os.strerror(error.errno)  # not the words of Arrow
        raise QueryveilError(f"The user map {path} cannot be read: {why}.") from None
    except pa.ArrowException:  # its message would quote the map
        raise misfit from None
    if given.column_names != ["original", "released"]:
        raise misfit
    given = writers.unescaped(given)
    work = log.workspace()
    file = work.read(given)
    pseudonyms = work.table(
        f'SELECT u.user_id AS user_id, m.released AS "user" FROM {file} m JOIN users u ON u."user" = m.original',  # noqa: S608  # a table of ours
        "pseudonyms",
    )
    work.drop(file)
    counted = work.row(
        'SELECT count(*) AS n, count(DISTINCT user_id) AS users, count(DISTINCT "user") AS ids,'  # noqa: S608  # a table of ours
        f' coalesce(min("user"), 1) AS first_id, coalesce(max("user"), 0) AS last_id FROM {pseudonyms}'
    )
    counts, rows = release.manifest.counts, len(given)
    # A user has one pseudonym, which several share in a record; a session belongs to one user, who may have several.
    if counts.sessions is None:
        expected = (rows, rows, counts.users, 1, counts.users)
    else:
        expected = (counts.sessions, counted[1], counts.sessions, 1, counts.sessions)
    if counted != expected or counted[0] != rows:
        work.close()
        raise misfit
    return replace(release, log=log, pseudonyms=pseudonyms, workspace=work)


def as_of(release: "Release", log: QueryLog) -> "Release":
    """A release that was just made of a log which was scrubbed, with who is who by the users of the log before that.

    Args:
        release: The release; one of another log is left as it is.
        log: The log that was scrubbed.
    """
    made = release.log
    if made is None or release.pseudonyms is None or made.part is None or made.part.of is not log:
        return release
    work = log.workspace()
    work.keeps = (made, release.workspace)
    return replace(release, log=log, pseudonyms=made.in_whole(release.pseudonyms, work), workspace=work)
