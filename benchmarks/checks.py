"""What checking a release costs beside making it, with and without its certificate, by processor time."""

import json
import math
import shutil
import time
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.harness import DATA, log_file, run

HERE = "benchmarks.checks"
K = 5
JOBS = (("equality", "0"), ("affinity", "0.9"), ("affinity", "0.8"))


def _method(name: str, theta: str) -> Any:
    import queryveil as qv

    return qv.Equality(k=K) if name == "equality" else qv.Affinity(k=K, theta=float(theta))


def made_and_checked(path: str, name: str, theta: str) -> None:
    """Make a release and write its table, then check every claim of it, then the whole folder."""
    import resource

    import queryveil as qv
    from queryveil.release import Release, check_claims

    # On a small log first, so that no kernel is compiled or loaded within the time.
    small = qv.read_log(log_file(200))
    tried = _method(name, theta).anonymize(small)
    check_claims(tried, small, tried.certificate)
    check_claims(tried, small)
    small.close()
    log = qv.read_log(path)
    spent: dict[str, float] = {}

    def part(what: str, work: Callable[[], Any]) -> Any:
        start = time.process_time()
        found = work()
        spent[what] = time.process_time() - start
        return found

    folder = log.folder(DATA / "checked")
    shutil.rmtree(DATA / "checked", ignore_errors=True)
    (DATA / "checked").mkdir()

    def make() -> Release:
        release: Release = _method(name, theta).anonymize(log, seed=1)
        log.write(folder, "log.parquet", "parquet", release.schema, release.batches)
        return release

    release = part("making", make)
    peaks = [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20]
    verdicts = part("claims, with its certificate", lambda: check_claims(release, log, release.certificate))
    verdicts += part("claims, without", lambda: check_claims(release, log))
    peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
    shutil.rmtree(DATA / "checked")
    release.save(DATA / "checked")
    whole = part("verify", lambda: qv.verify(DATA / "checked", log, certificate=release.certificate, rebuild=False))
    shutil.rmtree(DATA / "checked")
    if not (whole.holds and all(verdict.holds for verdict in verdicts)):
        raise RuntimeError("a release does not hold what it promises")
    print(json.dumps({"rows": log.stats.rows, "spent": spent, "peaks": peaks}))


def report(users: list[int], times: int) -> Iterator[str]:
    """The results as Markdown."""
    yield from ["### Checking beside making", ""]
    parts = ("making", "claims, with its certificate", "claims, without", "verify")
    yield f"| log | method | {' | '.join(parts)} | claims / making | peak memory: making, checking |"
    yield "|---|---|---|---|---|---|---|---|"
    found = {}
    for name, theta in JOBS:
        for size in users:
            told = [json.loads(run(f"{HERE}:made_and_checked", log_file(size), name, theta).told) for _ in range(times)]
            spent = {part: min(one["spent"][part] for one in told) for part in parts}
            found[name, theta, size] = spent
            method = name if name == "equality" else f"{name}, theta {theta}"
            seconds = " | ".join(f"{spent[part]:.1f} s" for part in parts)
            ratios = ", ".join(f"{spent[part] / spent['making']:.2f}" for part in parts[1:3])
            memory = ", ".join(f"{peak:.1f}" for peak in told[0]["peaks"])
            yield f"| {told[0]['rows'] / 1e6:.1f} M rows | {method} | {seconds} | {ratios} | {memory} GiB |"
    small, large = users[0], users[-1]
    if small == large:
        return
    for name, theta in JOBS:
        growth = [
            math.log(found[name, theta, large][part] / found[name, theta, small][part]) / math.log(large / small)
            for part in parts
        ]
        named = ", ".join(f"{part} {exponent:.2f}" for part, exponent in zip(parts, growth, strict=True))
        yield from ["", f"Growth exponents of {name}{f' at theta {theta}' if name == 'affinity' else ''}: {named}."]
