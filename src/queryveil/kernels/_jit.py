"""How every kernel is compiled: without the interpreter lock, and cached on disk.

Numba looks only at the file of a function to decide whether its cached code is stale, not at the files of the functions
it calls. So the cache has a folder of its own for each state of the sources, and folders of earlier states are removed.
"""

import hashlib
import os
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import types

F = TypeVar("F", bound=Callable[..., Any])

_PACKAGE = Path(__file__).parents[1]


def kernel(function: F) -> F:
    """Compile `function` so that threads run it side by side and later runs find it on disk."""
    return _compiled(function)


def helper(function: F) -> F:
    """Compile `function` for other kernels alone: a way in from Python would take as long to compile as the loop."""
    return _compiled(function, no_cpython_wrapper=True)


def inlined(function: F) -> F:
    """Compile a helper that is called once per byte or row inside a kernel."""
    return _compiled(function, inline="always")


def _compiled(function: F, **options: str | bool) -> F:
    config: Any = numba.config
    njit: Any = numba.njit
    before = config.CACHE_DIR
    config.CACHE_DIR = _cache_folder()
    try:
        # A way in from C, which nobody takes, is left out: it would have to be compiled too.
        dispatcher = njit(nogil=True, cache=True, error_model="numpy", no_cfunc_wrapper=True, **options)(function)
    finally:
        config.CACHE_DIR = before
    resolve = dispatcher.get_call_template
    unliteral: Callable[[Any], Any] = types.unliteral

    def without_literals(args: Any, kws: Any) -> Any:
        # Numba would compile a kernel anew for every constant that another kernel passes to it.
        return resolve(tuple(map(unliteral, args)), {name: unliteral(kind) for name, kind in kws.items()})

    dispatcher.get_call_template = without_literals
    return cast(F, dispatcher)


@cache
def _cache_folder() -> str:
    sources = sorted(file for folder in ("kernels", "synth") for file in (_PACKAGE / folder).glob("*.py"))
    state = hashlib.sha256(b"".join(file.read_bytes() for file in sources)).hexdigest()[:16]
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "queryveil"
    for place in (_PACKAGE / "__pycache__", home):
        try:
            place.mkdir(parents=True, exist_ok=True)
            folder = place / f"kernels-{state}"
            if not folder.exists():
                for earlier in place.glob("kernels-*"):
                    shutil.rmtree(earlier, ignore_errors=True)
                folder.mkdir(exist_ok=True)
            if os.access(folder, os.W_OK):
                return str(folder)
        except OSError:
            continue
    return ""  # nowhere to write: Numba's own choice
