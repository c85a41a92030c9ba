"""How far work is, shown in a notebook: what a `progress` argument can be given there."""

import sys
from html import escape
from importlib import import_module
from threading import Lock
from typing import Any

from queryveil.text.show import isolated

_lock = Lock()
_displays: dict[int, Any] = {}
"""By the number of the cell that runs, what is shown below it."""


def show_progress(*step: object) -> None:
    """Show how far work is below the cell of a notebook; elsewhere nothing.

    Give it to any `progress` argument, such as `read_log("log.tsv.gz", progress=show_progress)`. Each step replaces the
    one before, and the last is gone when the cell is done. It needs no widgets.

    Args:
        *step: What the work says: a number of rows, how many of how many, or what is being done.
    """
    # Where IPython was not imported, no notebook runs this; and IPython on a terminal has no kernel.
    module: Any = sys.modules.get("IPython")
    shell: Any = module.get_ipython() if module is not None else None
    if getattr(shell, "kernel", None) is None:
        return
    shown: Any = import_module("IPython.display")
    line = shown.HTML(f"<small>{escape(_sentence(step))}</small>")
    with _lock:  # a comparison speaks from several threads
        if shell.execution_count in _displays:
            _displays[shell.execution_count].update(line)
            return
        _displays[shell.execution_count] = shown.display(line, display_id=True)

    def clear(*_: object) -> None:
        shell.events.unregister("post_run_cell", clear)
        with _lock:
            last = _displays.popitem()[1]
        last.update(shown.HTML(""))

    shell.events.register("post_run_cell", clear)


def _sentence(step: tuple[object, ...]) -> str:
    match step:
        case (int(done), int(whole)):
            return f"{done:,} of {whole:,}"
        case (int(rows),):
            return f"{rows:,} rows"
    return isolated(" ".join(map(str, step)))
