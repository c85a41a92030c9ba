"""Work that methods and measures have in common on one log, done once for those who ask for that."""

import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from queryveil.log.log import QueryLog

T = TypeVar("T")


class Shared:
    """What was made of one log while somebody shares it; the log owns it."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.sharers = 0
        self.made: dict[Hashable, object] = {}


@contextmanager
def sharing(log: "QueryLog") -> Iterator[None]:
    """Keep what is made of a log, so that it is made once; let go of it when the last one who shares it ends.

    Elsewhere nothing is kept: one release alone has no use for it, and memory is dear.
    """
    kept = log.kept
    with kept.lock:
        kept.sharers += 1
    try:
        yield
    finally:
        with kept.lock:
            kept.sharers -= 1
            if not kept.sharers:
                kept.made.clear()


def shared(log: "QueryLog", key: Hashable, make: Callable[[], T]) -> T:
    """What is made of a log: made now or, while the log is shared, before.

    Args:
        log: The log.
        key: What it is, with all that decides it.
        make: Makes it; nobody changes it afterwards.
    """
    kept = log.kept
    with kept.lock:
        if kept.sharers:
            if key not in kept.made:
                kept.made[key] = make()
            return cast(T, kept.made[key])
    return make()
