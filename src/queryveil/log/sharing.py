"""Work that methods and measures have in common on one log, done once while the log is shared."""

import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from queryveil.log.log import QueryLog

T = TypeVar("T")


class Shared:
    """What was made from one log while it is shared; the log owns it.

    Args:
        of: That of another log which this one was made from; while the other is shared, this one is too.
    """

    def __init__(self, of: "Shared | None" = None) -> None:
        self.lock = threading.RLock()
        self.sharers = 0
        self.made: dict[Hashable, object] = {}
        self._of = of

    @property
    def active(self) -> bool:
        """Whether what is made is kept."""
        return self.sharers > 0 or (self._of is not None and self._of.active)


@contextmanager
def sharing(log: "QueryLog") -> Iterator[None]:
    """Keep what is made from a log, so that it is made only once; drop it when the last user of it ends.

    Otherwise nothing is kept: for a single release it would only cost memory.
    """
    kept = log.kept
    with kept.lock:
        kept.sharers += 1
    try:
        yield
    finally:
        with kept.lock:
            kept.sharers -= 1
            if not kept.active:
                kept.made.clear()


def shared(log: "QueryLog", key: Hashable, make: Callable[[], T]) -> T:
    """Something that is made from a log: made now or, while the log is shared, earlier.

    Args:
        log: The log.
        key: What it is, with everything that it depends on.
        make: Makes it; it must not be changed afterwards.
    """
    kept = log.kept
    with kept.lock:
        if kept.active:
            if key not in kept.made:
                kept.made[key] = make()
            return cast(T, kept.made[key])
    return make()
