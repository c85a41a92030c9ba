"""Which users every release of a series has, by keyed digests: one small file per release."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queryveil.errors import QueryveilError
from queryveil.kernels.types import Bools
from queryveil.log.waiting import Waiting

RELEASED = "released-"
"""How the names of these files begin."""


def released_file(folder: Path, number: int) -> Path:
    """Where the counts of a release are."""
    return folder / f"{RELEASED}{number}.arrow"


def count_users(waiting: Waiting, left: Bools, folder: Path, number: int, pseudonyms: pa.Table | None) -> None:
    """Write how many events of each user left with a release, and their pseudonyms if these are kept.

    Args:
        waiting: The events that waited.
        left: Which of them left.
        folder: The folder of the ledger.
        number: The number of the release.
        pseudonyms: The `user` (pseudonym) of each `user_id`, to carry them over; None if they are not kept.
    """
    events = np.bincount(waiting.events["user"][left], minlength=len(waiting.texts["user"]))
    there = np.flatnonzero(events)
    columns = {"user": waiting.texts["user"].take(pa.array(there)), "events": events[there]}
    if pseudonyms is not None:
        of_user = np.zeros(len(events), np.int64)
        of_user[pseudonyms["user_id"].to_numpy()] = pseudonyms["user"].to_numpy()
        columns["pseudonym"] = of_user[there]
    table = pa.table(columns)
    place = released_file(folder, number)
    with pa.OSFile(str(place), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    with place.open("rb") as written:
        os.fsync(written.fileno())
    place.chmod(0o600)


def linked_pseudonyms(folder: Path, releases: int, rng: np.random.Generator) -> pa.Table:
    """The pseudonyms of all releases: `release`, `user` as it stands there, and `person`, a random number.

    Args:
        folder: The folder of the ledger.
        releases: How many releases there are.
        rng: Draws the numbers of persons.
    """
    tables = [_read(folder, number) for number in range(1, releases + 1)]
    digests = pc.unique(pa.chunked_array([table["user"].combine_chunks() for table in tables], pa.large_string()))
    person = rng.permutation(len(digests)) + 1
    tables = [table.filter(pc.greater(table["pseudonym"], 0)) for table in tables]  # else no event was released
    parts = [
        pa.table(
            {
                "release": np.full(len(table), number),
                "user": table["pseudonym"],
                "person": person[pc.index_in(table["user"], value_set=digests).to_numpy()],
            }
        )
        for number, table in enumerate(tables, 1)
    ]
    return pa.concat_tables(parts).sort_by([("release", "ascending"), ("user", "ascending")])


def of_user(folder: Path, digest: str, releases: int) -> dict[int, int]:
    """How many events of a user each release has, by its number."""
    found = {}
    for number in range(1, releases + 1):
        table = _read(folder, number)
        events = pc.sum(table.filter(pc.equal(table["user"], digest))["events"]).as_py()
        if events:
            found[number] = events
    return found


def _read(folder: Path, number: int) -> pa.Table:
    place = released_file(folder, number)
    try:
        with pa.memory_map(str(place)) as file:
            return pa.ipc.open_file(file).read_all()
    except (OSError, pa.ArrowException):
        raise QueryveilError(f"{place} is damaged; restore the ledger from a backup.") from None
