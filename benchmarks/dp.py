"""Differentially private methods: time against equality, what is released at equal promises, and PipelineDP."""

import json
from itertools import pairwise
from pathlib import Path
from statistics import mean

from benchmarks.harness import DATA, Cost, log_file, run, timed

EPSILON, DELTA, TAIL = 1.0, 1e-6, 100
BANDS = (2, 5, 10, 30, 100, 300, 1000)
"""The least users of each band of queries."""
BAND_EPSILONS, RUNS = (1, 4), 5
HERE = "benchmarks.dp"
SMALL = 20_000
METHODS = {
    "zealous": ("Zealous", {}),
    "dp-set": ("DpSet", {}),
    "dp-set, one round": ("DpSet", {"rounds": 1}),
    "dp-set, words first": ("DpSet", {"ngrams": 1}),
    "dp-set, pairs of words first": ("DpSet", {"ngrams": 2}),
}


def private(path: str, name: str, parameters: str) -> None:
    """A method on the ingested log, to a Parquet file; checks are not counted, as for equality."""
    import queryveil as qv
    from queryveil.formats import writers

    log = qv.read_log(path)
    method = getattr(qv, name)(**json.loads(parameters))
    method.anonymize(qv.read_log(Path(__file__).parent / "warm.tsv"))
    with timed():
        release = method.anonymize(log, seed=1)
        writers.write(DATA / "out-private.parquet", "parquet", release.schema, release.batches())
    print(release.manifest.counts.queries)


def released(path: str, depths: str) -> None:
    """For every method and d: how many distinct queries it releases, and how many of them few users issued."""
    import pyarrow as pa
    import pyarrow.compute as pc

    import queryveil as qv

    log = qv.read_log(path)
    found = {}
    for d in map(int, depths.split(",")):
        for label, (name, more) in METHODS.items():
            release = getattr(qv, name)(d=d, epsilon=EPSILON, delta=DELTA, **more).anonymize(log)
            texts = [query for batch in release.batches() for query in batch["query"].to_pylist()]
            at = pc.index_in(pa.array(texts, pa.large_string()), log.query_text).to_numpy()
            found[f"{label}|{d}"] = (len(texts), int((log.users_per_query[at] < TAIL).sum()))
    print(json.dumps(found))


def by_band(path: str, epsilon: str, depths: str, runs: str) -> None:
    """For every method and d: how many distinct queries of each band of users each run releases."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    import queryveil as qv

    log = qv.read_log(path)
    edges = [*BANDS, np.iinfo(np.int64).max]
    found = {"log": np.histogram(log.users_per_query, edges)[0].tolist()}
    for d in map(int, depths.split(",")):
        for label, (name, more) in METHODS.items():
            method = getattr(qv, name)(d=d, epsilon=float(epsilon), delta=DELTA, **more)
            told = []
            for _ in range(int(runs)):
                texts = [query for batch in method.anonymize(log).batches() for query in batch["query"].to_pylist()]
                at = pc.index_in(pa.array(texts, pa.large_string()), log.query_text).to_numpy()
                told.append(np.histogram(log.users_per_query[at], edges)[0].tolist())
            found[f"{label}|{d}"] = told
    print(json.dumps(found))


def pipeline_dp(path: str, d: str) -> None:
    """The same private set in PipelineDP: users and queries as integers, Laplace thresholding."""
    import pipeline_dp

    import queryveil as qv

    log = qv.read_log(path)
    pairs = list(zip(*(log.events[name].to_pylist() for name in ("user_id", "query_id")), strict=True))
    with timed():
        budget = pipeline_dp.NaiveBudgetAccountant(total_epsilon=EPSILON, total_delta=DELTA)
        engine = pipeline_dp.DPEngine(budget, pipeline_dp.LocalBackend())
        strategy = pipeline_dp.PartitionSelectionStrategy.LAPLACE_THRESHOLDING
        chosen = pipeline_dp.SelectPartitionsParams(int(d), partition_selection_strategy=strategy)
        extract = pipeline_dp.DataExtractors(privacy_id_extractor=lambda x: x[0], partition_extractor=lambda x: x[1])
        made = engine.select_partitions(pairs, chosen, extract)
        budget.compute_budgets()
        print(len(list(made)))


def report(users: list[int], times: int) -> list[str]:
    """The results as Markdown."""
    lines = [
        "| log | method | time | ratio to equality | peak memory | distinct queries |",
        "|---|---|---|---|---|---|",
    ]
    for size in users:
        path = log_file(size)
        plain = run("benchmarks.foundations:equality_queryveil", path, times=times)
        lines.append(f"| {size:,} users | equality | {plain.seconds:.1f} s | | {plain.peak_gib:.1f} GiB | |")
        for label, (name, more) in METHODS.items():
            cost = run(f"{HERE}:private", path, name, json.dumps(more), times=times)
            lines.append(f"| {size:,} users | {label} | {_cells(cost, plain)} | {int(cost.told):,} |")
    depths = (1, 2, 5, 20, 100)
    lines += ["", f"| log | method | {' | '.join(f'd = {d}' for d in depths)} |", f"|---|---|{'---|' * len(depths)}"]
    for size in users:
        found = json.loads(run(f"{HERE}:released", log_file(size), ",".join(map(str, depths))).told)
        for label in METHODS:
            cells = [f"{n:,} ({few:,})" for n, few in (found[f"{label}|{d}"] for d in depths)]
            lines.append(f"| {size:,} users | {label} | {' | '.join(cells)} |")
    for size, epsilon in ((size, epsilon) for size in users for epsilon in BAND_EPSILONS):
        told = run(f"{HERE}:by_band", log_file(size), epsilon, "2,20", RUNS).told
        lines += ["", f"{size:,} users, epsilon {epsilon}, mean (least to most) of {RUNS} runs:", "", *_bands(told)]
    lines += ["", "| log | d | what | time | distinct queries |", "|---|---|---|---|---|"]
    path = log_file(SMALL)
    for d in (1, 5):
        ours = run(
            f"{HERE}:private",
            path,
            "Zealous",
            json.dumps({"max_queries_per_user": d, "keep": "random", "min_users": 1}),
            times=times,
        )
        theirs = run(f"{HERE}:pipeline_dp", path, d, times=times)
        for label, cost in (("zealous, at random, without a first threshold", ours), ("PipelineDP", theirs)):
            lines.append(f"| {SMALL:,} users | {d} | {label} | {cost.seconds:.1f} s | {cost.told} |")
    return lines


def _bands(told: str) -> list[str]:
    """What each method releases of each band of users, as a Markdown table."""
    found = json.loads(told)
    names = [f"{low:,} to {high - 1:,}" for low, high in pairwise(BANDS)] + [f"{BANDS[-1]:,} and more"]
    lines = [f"| users of a query | | {' | '.join(names)} |", f"|---|---|{'---|' * len(names)}"]
    lines.append(f"| in the log | | {' | '.join(f'{n:,}' for n in found.pop('log'))} |")
    for key, runs in found.items():
        label, d = key.split("|")
        cells = [
            f"{mean(each):,.0f}" + (f" ({min(each):,} to {max(each):,})" if min(each) < max(each) else "")
            for each in zip(*runs, strict=True)
        ]
        lines.append(f"| {label} | d = {d} | {' | '.join(cells)} |")
    return lines


def _cells(cost: Cost, plain: Cost) -> str:
    return f"{cost.seconds:.1f} s | **{cost.seconds / plain.seconds:.2f}** | {cost.peak_gib:.1f} GiB"
