"""Long work in the background: one job after the other on the shared log, with progress, and cancelled on request."""

import os
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from queryveil.engines.duckdb import cancelled_by
from queryveil.errors import QueryveilError, StoppedError

Update = Callable[[int | str], None]
"""Called with the step that begins, or with the number of rows that are done."""
State = Literal["waiting", "running", "done", "failed", "cancelled"]
_KEPT = 20
_PATIENCE = 10.0
"""Seconds."""


def bug(error: Exception) -> str:
    """What to say about an error that is none of the user."""
    return f"This is a bug in queryveil ({type(error).__name__}); QUERYVEIL_DEBUG=1 shows where."


@dataclass
class Job:
    """A piece of long work.

    Attributes:
        id: Its number.
        kind: What it does, by name; of each kind at most one is under way.
        label: What it does, in words.
        state: How far it is.
        step: What it is doing.
        error: Why it failed, in a sentence.
        begun: When it began to run.
        ended: When it ended.
    """

    id: int
    kind: str
    label: str
    state: State = "waiting"
    step: str = ""
    error: str = ""
    begun: float | None = None
    ended: float | None = None
    watch: Callable[[], str] | None = field(default=None, repr=False)
    """Says what it is doing, if it does not say so itself."""
    _cancel: threading.Event = field(default_factory=threading.Event, repr=False)

    @property
    def active(self) -> bool:
        """Whether it waits or runs."""
        return self.state in ("waiting", "running")

    @property
    def now(self) -> str:
        """What it is doing."""
        return self.step if self.watch is None or self.state != "running" else self.watch()

    @property
    def cancelling(self) -> bool:
        """Whether it was asked to end."""
        return self._cancel.is_set() and self.active

    @property
    def seconds(self) -> int:
        """How long it has run."""
        return 0 if self.begun is None else int((self.ended or time.monotonic()) - self.begun)


class Jobs:
    """The jobs of an app. One thread does them, so that two never need memory at the same time."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Job, Callable[[Update], None]]] = deque()
        self._changed = threading.Condition()
        self._all: deque[Job] = deque(maxlen=_KEPT)
        self._number = 0
        self._closed = False
        self.version = 0
        """Grows with every change, for those who watch."""
        self._thread = threading.Thread(target=self._work, daemon=True, name="jobs")
        self._thread.start()

    @property
    def all(self) -> list[Job]:
        """The newest jobs, the last one first."""
        with self._changed:
            return [*reversed(self._all)]

    def start(self, kind: str, label: str, work: Callable[[Update], None]) -> Job:
        """Begin a job, unless one of its kind is under way, which is returned then.

        Args:
            kind: What it does, by name.
            label: What it does, in words.
            work: Does it.
        """
        with self._changed:
            under_way = next((job for job in self._all if job.kind == kind and job.active), None)
            if under_way is not None:
                return under_way
            self._number += 1
            job = Job(self._number, kind, label)
            self._all.append(job)
            self._waiting.append((job, work))
            self._change()
            return job

    def active(self, *kinds: str) -> bool:
        """Whether a job of one of these kinds is under way; of any kind if none is named."""
        with self._changed:
            return any(job.active and (not kinds or job.kind in kinds) for job in self._all)

    def last(self, kind: str) -> Job | None:
        """The newest job of a kind."""
        return next((job for job in self.all if job.kind == kind), None)

    def cancel(self, number: int) -> None:
        """Ask a job to end, which it does at its next step."""
        with self._changed:
            for job in self._all:
                if job.id == number and job.active:
                    job._cancel.set()
                    if job.state == "waiting":
                        job.state = "cancelled"
                    self._change()

    def watch(self, kind: str, watch: Callable[[], str]) -> None:
        """Let somebody say what the job of a kind is doing, each time that is asked for."""
        for job in self.all:
            if job.kind == kind and job.active:
                job.watch = watch

    def close(self) -> None:
        """Cancel everything, and wait a while for the job at work: files that it would leave are then removed."""
        with self._changed:
            self._closed = True
            for job in self._all:
                job._cancel.set()
            self._change()
        self._thread.join(_PATIENCE)

    def wait(self, seconds: float = 60.0) -> None:
        """Wait until no job is under way."""
        with self._changed:
            self._changed.wait_for(lambda: not any(job.active for job in self._all), seconds)

    def ended(self, job: Job, seconds: float) -> bool:
        """Wait for a job, but not longer than some seconds; whether it has ended."""
        with self._changed:
            return self._changed.wait_for(lambda: not job.active, seconds)

    def _change(self) -> None:
        self.version += 1
        self._changed.notify_all()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._waiting) or self._closed)
                if self._closed:
                    return
                job, work = self._waiting.popleft()
                if job.state == "cancelled":
                    continue
                job.state, job.begun = "running", time.monotonic()
                self._change()
            self._run(job, work)

    def _run(self, job: Job, work: Callable[[Update], None]) -> None:
        def update(step: int | str) -> None:
            if job._cancel.is_set():
                raise StoppedError
            with self._changed:
                job.step = step if isinstance(step, str) else f"{step:,} rows"
                self._change()

        state: State = "failed"
        try:
            with cancelled_by(job._cancel):
                work(update)
            state = "done"
        except StoppedError:
            state = "cancelled"
        except QueryveilError as error:
            job.error = str(error)
        except MemoryError:
            job.error = "There is not enough memory for this."
        except Exception as error:
            # The message may quote the log, so it is shown on request alone, in the terminal.
            job.error = bug(error)
            if os.environ.get("QUERYVEIL_DEBUG"):
                traceback.print_exc()
        finally:
            with self._changed:
                job.state, job.ended, job.step = state, time.monotonic(), ""
                self._change()
