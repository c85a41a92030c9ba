"""Distortion of generalized items.

Amin Milani Fard, Ke Wang, An effective clustering approach to web query log anonymization, SECRYPT 2010.
"""

import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np

from queryveil.arrays import places
from queryveil.assess.measures import transaction_density
from queryveil.assess.reproduce.common import Paper, Run
from queryveil.assess.reproduce.figure import Figure, Row
from queryveil.assess.reproduce.published import NONE, Published, Values, gains, held, more, numbers, shares
from queryveil.errors import QueryveilError
from queryveil.methods import Clump, Partition
from queryveil.methods.generalization.common import Loss, Transactions, loss_of

KS = (5, 7, 10, 15)
SIZES = (1_000, 10_000, 53_058)
DENSE = (1_000, 10_000, 20_000, 30_000, 40_000, 53_058)
RS = (5, 10, 30, 50, 100)
ORDERS = {
    "decreasing, as in the paper": Clump(),
    "increasing": Clump(order="ascending"),
    "random": Clump(order="random"),
    "decreasing, the last where GGD grows least": Clump(leftover="growth"),
}
DISTORTION, LENGTH = "distortion per item", "items a user"


def _figures(run: Run) -> list[Figure]:
    """Table 3, and figures 3 to 7: distortion, length and level for parts of the log, the effect of r, and time.

    Section III also compares the orders of transactions, in words; here this is a table of its own.
    """
    whole = Transactions.of(run.log, run.categorize("terms"))
    users = len(whole.user)
    if users < max(KS):
        raise QueryveilError(f"The paper makes groups of up to {max(KS)} users; only {users} have a noun.")
    seen = places(whole.user, run.log.first_seen)
    seen = seen[seen >= 0]

    def first(size: int) -> Transactions:
        """Those of the first users of the log; in the order of all, which decides between equals."""
        return whole.take(np.sort(seen[:size]))

    lost: list[Row] = []
    cost: list[Row] = []
    list(_grouped(first(max(KS)), *_methods(5)))  # compiled before the clock starts
    parts = {size: first(size) for size in sorted({min(size, users) for size in SIZES} | {users})}
    for (size, some), k in product(parts.items(), KS):
        run.progress(f"{size:,} users, k {k}")
        for name, seconds, loss in _grouped(some, *_methods(k)):
            measured = {DISTORTION: loss.per_item, LENGTH: loss.length, "level": loss.level}
            lost.append({"users": size, "k": k, "method": name} | measured)
            if k == min(KS) and name != "Clump2":
                cost.append({"users": size, "method": name, "seconds": seconds})
    effect: list[Row] = []
    for r in RS:
        run.progress(f"r {r}")
        (_, seconds, loss), _ = _grouped(whole, Clump(k=5, r=r))
        effect.append({"r": r, DISTORTION: loss.per_item, "seconds": seconds})
    ordered: list[Row] = []
    for (name, method), k in product(ORDERS.items(), KS):
        run.progress(f"{name}, k {k}")
        (_, _, loss), _ = _grouped(whole, method.model_copy(update={"k": k}), seed=run.seed)
        ordered.append({"k": k, "order": name, DISTORTION: loss.per_item})
    dense = [
        {"users": size, "density": transaction_density(first(size))}
        for size in sorted({min(size, users) for size in DENSE} | {users})
    ]

    def against_k(name: str, title: str, y: str, *, share: bool = False) -> Figure:
        rows = [{column: row[column] for column in ("users", "k", "method", y)} for row in lost]
        return Figure(name, title, rows, "k", y, "method", "users", share)

    return [
        Figure("table-3", "Density of the transactions of the first users", dense, "users", "density", share=False),
        against_k("figure-3", "Distortion (GGD) per item", DISTORTION, share=True),
        against_k("figure-4", "Mean length of generalized transactions", LENGTH),
        against_k("figure-5", "Mean level of generalized items (the root is 1)", "level"),
        Figure("figure-6", "Effect of r on Clump1, k = 5", effect, "r", DISTORTION),
        Figure("figure-7", "Time to make groups and items, k = 5", cost, "users", "seconds", "method", share=False),
        Figure("orders", "Effect of the order of transactions on Clump1", ordered, "k", DISTORTION, "order"),
    ]


def _methods(k: int) -> tuple[Clump, Clump, Partition]:
    return Clump(k=k), Clump(k=k, clustering="nearest", tight=True), Partition(k=k)


def _grouped(some: Transactions, *methods: Clump | Partition, seed: int = 0) -> Iterator[tuple[str, float, Loss]]:
    """What each method takes and loses; of the paper's Clump, with duplicates and without."""
    for method in methods:
        begun = time.perf_counter()
        if isinstance(method, Partition):
            bags, name = method.bags(some), "Partition"
        else:
            order = method.ordered(some, np.argsort(np.random.default_rng(seed).permutation(len(some))))
            bags = method.bags(some, order, method.clusters(some, order), tight=method.tight)
            name = "Clump1" if method.clustering == "greedy" else "nearest, tight"
        yield name, time.perf_counter() - begun, loss_of(some, bags)
        if name == "Clump1":
            yield "Clump2", 0.0, loss_of(some, replace(bags, n=np.ones_like(bags.n)))


DENSITY = {1_000: 0.0028, 10_000: 0.0025, 20_000: 0.0020, 30_000: 0.0016, 40_000: 0.0014, 53_058: 0.0011}
"""Table III."""


def _less(values: Values, k: int, size: object) -> float | None:
    """How much less Clump1 loses than Partition, as a share; below 0 if it loses more."""
    found = (values("figure-3", users=size, k=k, method=name) for name in ("Clump1", "Partition"))
    gain = more(*found)
    return None if gain is None else -gain


def _of_all(values: Values, *ks: int) -> list[float]:
    """The same for the whole log and several k."""
    users = values.places("figure-3", "users")
    return [gain for k in ks if users and (gain := _less(values, k, users[-1])) is not None]


def _levels(values: Values) -> str:
    """How often Clump1 is nearest to the root, then Partition, then Clump2."""
    names = ("Clump1", "Partition", "Clump2")
    return held(a < b < c for a, b, c in values.lines("figure-5", "method", *names))


def _lengths(values: Values) -> str:
    """How often Clump1 has the longest transactions."""
    names = ("Clump1", "Partition", "Clump2")
    return held(a > max(b, c) for a, b, c in values.lines("figure-4", "method", *names))


def _best_order(values: Values) -> str:
    """For how many k the decreasing order loses least."""
    names = tuple(ORDERS)[:3]
    return held(a < min(b, c) for a, b, c in values.lines("orders", "order", *names))


def _both(values: Values) -> str:
    """How much more Clump2 loses than Clump1, for the whole log."""
    size = next(reversed(values.places("figure-3", "users")), None)
    at = {name: [values("figure-3", users=size, k=k, method=name) for k in KS] for name in ("Clump1", "Clump2")}
    return gains(*map(more, at["Clump2"], at["Clump1"]))


def _slower(values: Values) -> str:
    """How many times as long Clump1 takes as Partition, for the whole log."""
    size = next(reversed(values.places("figure-7", "users")), None)
    one, other = (values("figure-7", users=size, method=name) for name in ("Clump1", "Partition"))
    gain = more(one, other)
    return numbers(None if gain is None else gain + 1) + " times as long"


MILANIFARD2010 = Paper(
    "milanifard2010",
    max(KS),
    _figures,
    citation=(
        "Amin Milani Fard and Ke Wang, An effective clustering approach to web query log anonymization, SECRYPT 2010"
    ),
    published=(
        Published(
            "table-3",
            "density of the first 1,000, 10,000, 20,000, 30,000, 40,000 and all transactions",
            "0.28, 0.25, 0.20, 0.16, 0.14, 0.11 %",
            "table III",
            lambda v: ", ".join(f"{100 * density:.3f} %" for density in v.all("table-3")) or NONE,
            tuple({"users": users, "density": density} for users, density in DENSITY.items()),
        ),
        Published(
            "figure-3",
            "how much less Clump1 loses than Partition, the most over k and parts of the log",
            "as much as 30 %",
            "section V.2",
            lambda v: shares(
                max(
                    (g for size in v.places("figure-3", "users") for k in KS if (g := _less(v, k, size)) is not None),
                    default=None,
                )
            ),
        ),
        Published(
            "figure-3",
            "the same for k = 5, 7, 10, 15, whole log",
            "less as k increases",
            "section V.2",
            lambda v: shares(*_of_all(v, *KS)),
        ),
        Published(
            "figure-3",
            "how much more Clump2 loses than Clump1, k = 5, 7, 10, 15, whole log",
            "very small",
            "section V.2",
            _both,
        ),
        Published(
            "figure-4", "Clump1 has the longest transactions", "significantly larger length", "section V.2", _lengths
        ),
        Published(
            "figure-5",
            "levels of items, from near the root to far from it: Clump1, Partition, Clump2",
            "yes",
            "section V.2",
            _levels,
        ),
        Published(
            "figure-6",
            "distortion, r = 5, 10, 30, 50, 100",
            "a larger r does not always give a better result; r = 10 is good",
            "section V.2",
            lambda v: shares(*(v("figure-6", r=r) for r in RS)),
        ),
        Published(
            "figure-7", "Clump1 against Partition, whole log", "takes longer, linear in size", "section V.2", _slower
        ),
        Published(
            "orders",
            "decreasing length loses less than increasing and random",
            "yes",
            "section III, step 1",
            _best_order,
        ),
        Published(
            "orders",
            "distortion with decreasing, increasing and random order, k = 5",
            "decreasing is better",
            "section III, step 1",
            lambda v: shares(*(v("orders", order=name, k=5) for name in tuple(ORDERS)[:3])),
        ),
    ),
)
