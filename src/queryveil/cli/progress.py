"""What a verb says on standard error: how far it is, notes and warnings, for people or as JSON Lines for programs.

Nothing here holds a query or a user: steps are named by the code, and sentences are those of errors and warnings.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from queryveil.cli.printing import printable
from queryveil.errors import Done, Step

EVERY = 30.0
"""Seconds between two lines about one piece of work, where no line can be redrawn."""
_SURE = 0.02
"""The share of the work that must be done before the rest of the time is estimated."""

State = int | str
"""How far work is: how many are done, or the name of the current step."""


@dataclass
class Style:
    """How to speak: `quiet` leaves out progress and notes, `verbose` names every step, `events` writes JSON Lines."""

    quiet: bool = False
    verbose: bool = False
    events: bool = False


style = Style()
_shown: "list[_Work]" = []
"""The work at hand, the newest last."""
_lock = threading.Lock()


def show_step(name: str) -> None:
    """Show a step of the newest work, if there is any."""
    if _shown:
        _shown[-1].update(name)


def note(sentence: str) -> None:
    """Say something that the user may want to know."""
    if not style.quiet:
        _say("note", f"queryveil: {sentence}", sentence)


def warn(sentence: str) -> None:
    """Say something that the user should know."""
    _say("warning", f"Warning: {sentence}", sentence)


def fail(sentence: str, code: str) -> None:
    """Say why the verb ends."""
    _say("error", f"queryveil: {sentence}", sentence, code=code)


def _say(event: Literal["note", "warning", "error"], line: str, sentence: str, **more: str) -> None:
    # A sentence can contain names of files, which may hold anything.
    if style.events:
        _emit(event, message=sentence, **more)
    else:
        _print(printable(line))


def _emit(event: str, **values: Any) -> None:
    from queryveil.text.show import json_line

    at = datetime.now(UTC).isoformat(timespec="milliseconds")
    given = {name: value for name, value in values.items() if value not in ("", None)}
    _print(json_line({"time": at, "event": event} | given))


def _print(line: str) -> None:
    with _lock:
        print(line, file=sys.stderr, flush=True)


@contextmanager
def progress(what: str, unit: str = "rows") -> Iterator[Callable[[State], None]]:
    """Say how far some work is: a line that is redrawn on a terminal, a line now and then elsewhere.

    Args:
        what: What is being done.
        unit: What is counted.

    Yields:
        A function that takes how far the work is.
    """
    work = _Work(what, unit)
    _shown.append(work)
    try:
        with work.drawn() if sys.stderr.isatty() and not (style.quiet or style.events) else work.lines():
            yield work.update
        work.done()
    finally:
        _shown.remove(work)


class _Work:
    """Some work, and how far it is."""

    def __init__(self, what: str, unit: str) -> None:
        self.what, self.unit = what, unit
        self.began = time.monotonic()
        self.state: State = ""
        self.counted: int | None = None
        self.draw: Callable[[], None] = lambda: None

    def update(self, state: State) -> None:
        """Take how far the work is."""
        self.state = state
        if isinstance(state, int):
            self.counted = int(state)
        elif style.verbose:
            self._line("step")
        self.draw()

    @contextmanager
    def drawn(self) -> Iterator[None]:
        """A line on the terminal, while the work lasts."""
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[done]}"))
        with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(self.what, total=None, done="")

            def draw() -> None:
                share = self.share
                total, completed = (None, 0.0) if share is None else (1.0, share)
                bar.update(task, total=total, completed=completed, done=", ".join(self.parts))

            self.draw = draw
            yield

    @contextmanager
    def lines(self) -> Iterator[None]:
        """A line now and then, while the work lasts."""
        ended = threading.Event()

        def tell() -> None:
            while not ended.wait(EVERY):
                self._line("progress")

        if not style.quiet:
            threading.Thread(target=tell, daemon=True).start()
        try:
            yield
        finally:
            ended.set()

    def done(self) -> None:
        """Say how long the work took, to those who want to know that."""
        if style.quiet or not (style.verbose or style.events):
            return
        seconds = round(time.monotonic() - self.began, 3)
        if style.events:
            _emit("done", step=self.what, **self._rows(), seconds=seconds)
        else:
            counted = "" if self.counted is None else f"{self.counted:,} {self.unit}, "
            _print(f"{self.what}: done, {counted}{seconds:.1f} s")

    def _line(self, event: str) -> None:
        if style.quiet:
            return
        seconds = time.monotonic() - self.began
        state = self.state
        if style.events:
            share = self.share
            _emit(
                event,
                step=self.what,
                detail=str(state) if isinstance(state, str) else None,
                **self._rows(),
                percent=None if share is None else round(100 * share, 1),
                seconds=round(seconds, 3),
            )
        else:
            _print(f"{self.what}: {', '.join([*map(printable, self.parts), f'{seconds:.0f} s'])}")

    def _rows(self) -> dict[str, int]:
        return {} if self.counted is None else {self.unit: self.counted}

    @property
    def share(self) -> float | None:
        """The share of the work that is done, if it is known."""
        if isinstance(self.state, Step):
            return self.state.done / self.state.whole
        return self.state.share if isinstance(self.state, Done) else None

    @property
    def parts(self) -> list[str]:
        """How far the work is, in words."""
        from queryveil.text.show import percent

        state = self.state
        if isinstance(state, Step):
            return [str(state), f"step {state.done + 1:,} of {state.whole:,} ({percent(state.done / state.whole)})"]
        if isinstance(state, str):
            return [state] if state else []
        found = [f"{state:,} {self.unit}"]
        share = self.share
        if share is not None:
            found.append(percent(share))
            left = (time.monotonic() - self.began) * (1 - share) / share if share > _SURE else 0
            found += [f"about {_time(left)} left"] if left >= 1 else []
        return found


def _time(seconds: float) -> str:
    """A time to wait, roughly."""
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
