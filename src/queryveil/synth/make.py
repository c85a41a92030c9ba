"""Make a log: cut the users into chunks, make them on all cores, write them in order, rename at the end."""

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, nullcontext
from pathlib import Path

from queryveil.errors import QueryveilError
from queryveil.files.scratch import Scratch, move_new, share
from queryveil.synth.chunk import Chunk, make_chunk
from queryveil.synth.directory import save_directory
from queryveil.synth.sinks import open_sink
from queryveil.synth.summary import Summary
from queryveil.synth.truth import Truth
from queryveil.synth.world import atlas

USERS_A_CHUNK = 4096  # about 180,000 events and 100 MB of arrays

Progress = Callable[[int, int], None]


def _chunks(
    users: int, seed: int, languages: tuple[str, ...], *, parquet: bool, labels: bool, views: bool
) -> Iterator[Chunk]:
    """Yield the chunks in order; a few are made ahead on other threads, never more than memory allows."""
    workers = min(os.cpu_count() or 1, 8)
    waiting: deque[Future[Chunk]] = deque()
    with ThreadPoolExecutor(workers) as pool:
        try:
            for first in range(0, users, USERS_A_CHUNK):
                size = min(USERS_A_CHUNK, users - first)
                kinds = {"parquet": parquet, "labels": labels, "views": views}
                waiting.append(pool.submit(make_chunk, seed, first, size, languages, **kinds))
                if len(waiting) > workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _write(
    log: Path,
    ending: str,
    truth: Path | None,
    users: int,
    seed: int,
    languages: tuple[str, ...],
    progress: Progress | None,
    *,
    views: bool,
) -> Summary:
    """Write the log to one place and the truth to another, both of them temporary."""
    done = Summary(users=0, events=0, rows=0, clicks=0)
    known = Truth(truth, atlas(languages)) if truth else None
    with closing(open_sink(log, ending, views=views)) as sink, closing(known) if known else nullcontext():
        for chunk in _chunks(
            users, seed, languages, parquet=ending == ".parquet", labels=known is not None, views=views
        ):
            sink.write(chunk)
            if known:
                known.add(chunk.labels)
            done = done.plus(chunk.users, chunk.events, chunk.rows, chunk.clicks)
            if progress:
                progress(done.users, users)
    if known and truth:
        known.save()
        save_directory(atlas(languages), truth)
    return done


def _publish(folder: Path, target: Path) -> None:
    """Move finished truth files to their place: in one step when it is new, else file by file."""
    if target.exists():
        for file in folder.iterdir():
            os.replace(file, target / file.name)
    else:
        share(folder)
        move_new(folder, target)


def make(
    path: Path,
    ending: str,
    truth: Path | None,
    users: int,
    seed: int,
    languages: tuple[str, ...],
    progress: Progress | None,
    *,
    overwrite: bool,
    views: bool,
) -> Summary:
    """Make a log and its truth; they are written completely or not at all."""
    try:
        with Scratch(path.parent) as beside, Scratch(truth.parent) if truth else nullcontext() as around:
            part, folder = beside / "log", around / "truth" if around else None
            if folder:
                folder.mkdir(0o700)
            done = _write(part, ending, folder, users, seed, languages, progress, views=views)
            if folder and truth:
                _publish(folder, truth)
            if overwrite:
                part.replace(path)
            else:
                move_new(part, path)
    except OSError as error:
        raise QueryveilError(f"The log could not be written to {path}: {error.strerror or error}.") from error
    return done
