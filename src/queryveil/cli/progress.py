"""The progress line of a verb, on the terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

_updates: list[Callable[[str], None]] = []
"""Show a step in the newest progress line."""


def show_step(name: str) -> None:
    """Show a step in the newest progress line, if there is one."""
    if _updates:
        _updates[-1](name)


@contextmanager
def progress(what: str, unit: str = "rows") -> Iterator[Callable[[int | str], None]]:
    """A progress line on the terminal; nothing if stderr is not a terminal.

    Args:
        what: What is being done.
        unit: What is counted.

    Yields:
        A function that shows how many are done, or the name of the current step.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[done]}"))
    with Progress(
        *columns, TimeElapsedColumn(), console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(what, total=None, done="")

        def update(done: int | str) -> None:
            bar.update(task, done=done if isinstance(done, str) else f"{done:,} {unit}")

        _updates.append(update)
        try:
            yield update
        finally:
            _updates.pop()
