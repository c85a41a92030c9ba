"""A comparison as it could come out, made up: numbers that fit together, and nothing measured."""

from dataclasses import replace

import numpy as np

from queryveil.assess.comparison import Comparison, Configuration, Row
from queryveil.assess.policy import Evidence, Number
from queryveil.release.bands import Band
from queryveil.release.manifest import Counts

SIZES = [(1, 1, 24_899), (2, 4, 812), (5, 9, 112), (10, 29, 51), (30, 99, 22), (100, None, 5)]
BANDS = tuple(Band(least=least, most=most, queries=n, events=2 * n) for least, most, n in SIZES)
METHODS = ["equality", "affinity", "odp", "search", "mdav", "clump", "partition", "wngen", "poblete"]
ATTACKS = [
    *(("singling out", "background_knowledge", f"{m} random") for m in (1, 3, 5)),
    ("singling out", "unique_queries", ""),
    ("singling out", "unique_pairs", ""),
    ("singling out", "reidentification_risk", ""),
    ("linkability", "history_linkage", "random half"),
    ("linkability", "record_linkage", ""),
    ("linkability", "user_linkage", ""),
    ("inference", "differencing", ""),
]


def evidence(config, risk, *, typed=True):
    """What a policy asks for: a release that would meet the default if its risk is small and its k at least 5."""
    numbers = (
        Number("history_linkage", "random half", risk, risk),
        Number("sybil", "", float(config.k or 30)),
        Number("personal_data", "", 0.0),
    )
    return Evidence(
        kind="events" if typed else "items",
        shared=False,
        k=config.k,
        epsilon=config.parameters.get("epsilon"),
        few=0,
        covered=True,
        refuted=0,
        numbers=numbers,
    )


def made_up(text=""):
    """Several methods with several settings; `text` is put wherever a text can stand."""
    rng = np.random.default_rng(0)
    configs, rows = [], []
    for method in METHODS:
        for k in (2, 5, 10, 20):
            for link in ("", "session", "user") if method in ("equality", "affinity", "poblete") else ("",):
                parameters = {"k": k} | ({"link": link} if link else {})
                name = f"{method}, k = {k}{f', link {link}' if link else ''}{text}"
                linked = bool(link) or method not in ("equality", "affinity", "poblete", "wngen")
                configs.append(Configuration(name, method, k, parameters, holds=True, linked=linked))
    configs.append(
        Configuration(f"zealous, ε = 10{text}", "zealous", None, {"epsilon": 10.0, "delta": 1e-6}, holds=True)
    )
    configs.append(
        Configuration("zealous, ε = 1", "zealous", None, {"epsilon": 1.0, "delta": 1e-6}, "empty", f"Nothing.{text}")
    )
    configs.append(
        Configuration("search, k = 50", "search", 50, {"k": 50}, "failed", f"The log has only 40 users.{text}")
    )
    for i, config in enumerate(configs):
        if config.status != "done":
            continue
        k = config.k or 30
        level = float(rng.uniform(0.5, 1.0)) / k
        apart = not config.linked
        weight = {"none": 0.1, "session": 0.5, "user": 4.0}[
            config.parameters.get("link", "none" if apart else "session")
        ]
        risk = min(1.0, weight * level)
        typed = config.method not in ("clump", "partition", "wngen")
        configs[i] = replace(config, known=evidence(config, risk, typed=typed))
        if typed:
            rows.append(Row(config.name, "utility", "retention", "queries_kept", "", level, best=1.0))
            kept = None if apart else level
            rows.append(Row(config.name, "utility", "profiles", "profile_retention", "", kept, best=1.0))
        for band in BANDS if typed else ():
            kept = 1.0 if band.least >= k else level * (band.least / k) ** 0.5
            rows.append(Row(config.name, "utility", "retention", "queries_kept_by_users", band.label, kept, best=1.0))
        for group, measure, setting in ATTACKS if typed else ATTACKS[6:7]:
            if apart and measure == "record_linkage":
                rows.append(Row(config.name, "risk", group, measure, setting, None, why="no user ids released"))
                continue
            value = risk if measure == "history_linkage" else float(min(1.0, rng.uniform(0.2, 1.8) * risk))
            low, high = max(0.0, value - 0.03), min(1.0, value + 0.03)
            rest = {"baseline": 0.002, "control": 0.01, "succeeds": low > 0.02}
            rows.append(Row(config.name, "risk", group, measure, setting, value, low, high, **rest))
        rows.append(
            Row(
                config.name,
                "risk",
                "inference",
                "sybil",
                "",
                float(k),
                baseline=float(k),
                unit="accounts",
                succeeds=False,
            )
        )
        rows.append(Row(config.name, "risk", "inference", "disambiguation", "", None, why=f"it does not apply{text}"))
    counts = Counts(rows=60_000, events=51_450, users=1_000, queries=25_901, clicks=35_438)
    return Comparison(
        fingerprint="f" * 64,
        seed=3,
        tests=2_000,
        counts=counts,
        bands=BANDS,
        configurations=tuple(configs),
        rows=tuple(rows),
    )
