"""How long the fuzzers run: a few fixed seeds by default, as many as fit into FUZZ_SECONDS where it is set."""

import os
import time
from collections.abc import Iterator


def seeds(cases: int) -> Iterator[int]:
    """The seeds to try.

    Without FUZZ_SECONDS they are 0, 1, ..., so that every run of the tests does the same. With it, each test goes on
    for so many seconds, from a place of its own. FUZZ_SEED names the one seed of a failure.
    """
    if "FUZZ_SEED" in os.environ:
        yield int(os.environ["FUZZ_SEED"])
        return
    if "FUZZ_SECONDS" not in os.environ:
        yield from range(cases)
        return
    end = time.monotonic() + float(os.environ["FUZZ_SECONDS"])
    seed = time.time_ns() // 1000 % 10**12
    while time.monotonic() < end:
        yield seed
        seed += 1
