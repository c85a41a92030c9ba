"""How every kernel is compiled: without the interpreter lock, and cached on disk."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile `function` so that threads run it side by side and later runs find it on disk."""
    return cast(F, numba.njit(nogil=True, cache=True)(function))


def inlined(function: F) -> F:
    """Compile a helper that is called once per byte or row inside a kernel."""
    return cast(F, numba.njit(nogil=True, cache=True, inline="always")(function))
