"""Sessions read off their definition, event by event."""

from datetime import timedelta

from queryveil.log import LocalLog


def sessions(log: LocalLog, gap: int, most: int) -> list[list[int]]:
    """The event ids of every session, session by session."""
    found: list[list[int]] = []
    rows = sorted(
        (row for row in log.events.to_pylist() if row["time"] is not None),
        key=lambda row: (row["user_id"], row["time"], row["event_id"]),
    )
    last = None
    for row in rows:
        goes_on = (
            last is not None
            and last["user_id"] == row["user_id"]
            and row["time"] - last["time"] <= timedelta(minutes=gap)
            and len(found[-1]) < most
        )
        if goes_on:
            found[-1].append(row["event_id"])
        else:
            found.append([row["event_id"]])
        last = row
    return found + [[row["event_id"]] for row in log.events.to_pylist() if row["time"] is None]
