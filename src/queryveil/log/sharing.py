"""Work that methods and measures have in common on one log, done once for those who ask for that."""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import TypeVar, cast

T = TypeVar("T")

_kept: dict[int, dict[Hashable, object]] = {}


@contextmanager
def sharing(log: object) -> Iterator[None]:
    """Keep what is made of a log, so that it is made once; let go of it at the end.

    Elsewhere nothing is kept: who makes one release has no use for it, and memory is dear.
    """
    if id(log) in _kept:
        yield
        return
    _kept[id(log)] = {}
    try:
        yield
    finally:
        del _kept[id(log)]


def shared(log: object, key: Hashable, make: Callable[[], T]) -> T:
    """What is made of a log: made now or, while the log is shared, before.

    Args:
        log: The log.
        key: What it is, with all that decides it.
        make: Makes it; nobody changes it afterwards.
    """
    kept = _kept.get(id(log))
    if kept is None:
        return make()
    if key not in kept:
        kept[key] = make()
    return cast(T, kept[key])
