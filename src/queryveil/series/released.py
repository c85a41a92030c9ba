"""How many events of each user every release of a series has, by keyed digests: one small file per release."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queryveil.errors import QueryveilError
from queryveil.kernels.types import Bools
from queryveil.log.waiting import Waiting


def released_file(folder: Path, number: int) -> Path:
    """Where the counts of a release are."""
    return folder / f"released-{number}.arrow"


def count_users(waiting: Waiting, left: Bools, folder: Path, number: int) -> None:
    """Write how many events of each user left with a release."""
    events = np.bincount(waiting.events["user"][left], minlength=len(waiting.texts["user"]))
    there = np.flatnonzero(events)
    table = pa.table({"user": waiting.texts["user"].take(pa.array(there)), "events": events[there]})
    place = released_file(folder, number)
    with pa.OSFile(str(place), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    place.chmod(0o600)


def of_user(folder: Path, digest: str, releases: int) -> dict[int, int]:
    """How many events of a user each release has, by its number."""
    found = {}
    for number in range(1, releases + 1):
        place = released_file(folder, number)
        try:
            with pa.memory_map(str(place)) as file:
                table = pa.ipc.open_file(file).read_all()
            events = pc.sum(table.filter(pc.equal(table["user"], digest))["events"]).as_py()
        except (OSError, pa.ArrowException, KeyError):
            raise QueryveilError(f"{place} is damaged; restore the ledger from a backup.") from None
        if events:
            found[number] = events
    return found
