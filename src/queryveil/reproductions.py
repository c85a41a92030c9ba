"""The experiments of the papers, on a log of one's own: tables and charts."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from queryveil.errors import QueryveilError
from queryveil.knowledge import Clicks, Knowledge, Links, Resolver, link, open_knowledge
from queryveil.log import LocalLog, QueryLog, local
from queryveil.measures import information_loss, record_linkage, srp, user_clusters
from queryveil.methods import Mdav, Odp, Search
from queryveil.methods.interests import interests_of
from queryveil.methods.microaggregation import Microaggregation, Searches
from queryveil.release import Release

KS = (2, 3, 4, 5)
BATET_KS = (2, 3, 4, 5, 6, 7)
LEVELS = 5

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Figure:
    """One figure of a paper: its values, and how they are drawn.

    Attributes:
        name: Such as `figure-3`.
        title: What it shows.
        rows: The values, a row each.
        x: The column along the axis.
        y: The column that is drawn.
        colour: The column that tells lines apart.
        panel: The column that tells panels apart, if there is more than one.
        share: Whether the values are shares, to be shown in per cent.
    """

    name: str
    title: str
    rows: tuple[dict[str, Any], ...]
    x: str
    y: str
    colour: str | None = None
    panel: str | None = None
    share: bool = True

    def chart(self) -> Any:
        """The figure as an Altair chart."""
        import altair as alt

        if self.panel is None:
            return self._lines(self.rows).properties(title=self.title)
        parts = []
        for value in dict.fromkeys(row[self.panel] for row in self.rows):
            rows = tuple(row for row in self.rows if row[self.panel] == value)
            parts.append(self._lines(rows).properties(title=f"{self.panel} = {value}"))
        return alt.hconcat(*parts, title=self.title).resolve_scale(y="shared")

    def _lines(self, rows: tuple[dict[str, Any], ...]) -> Any:
        import altair as alt

        form = "%" if self.share else ",.2f"
        lines = alt.Chart({"values": list(rows)}, width=200, height=180).encode(
            x=alt.X(f"{self.x}:O", title=self.x, axis=alt.Axis(labelAngle=0)),
            y=alt.Y(f"{self.y}:Q", title=self.y, axis=alt.Axis(format=form), scale=alt.Scale(zero=True)),
            tooltip=[f"{name}:{'Q' if isinstance(value, float) else 'N'}" for name, value in rows[0].items()],
        )
        if self.colour is not None:
            order = list(dict.fromkeys(row[self.colour] for row in self.rows))
            lines = lines.encode(
                color=alt.Color(f"{self.colour}:N", title=None, sort=order),
                shape=alt.Shape(f"{self.colour}:N", sort=order, legend=None),
            )
        return lines.mark_line() + lines.mark_point(filled=True, size=50)


@dataclass(frozen=True)
class Run:
    """What an experiment is run on."""

    log: LocalLog
    base: Knowledge
    resolver: Resolver
    clusters: int | None
    seed: int
    tell: Tell


def reproduce(
    paper: str,
    log: QueryLog,
    knowledge: Knowledge | str = "wordnet",
    *,
    resolver: Resolver | None = None,
    clusters: int | None = 80,
    seed: int = 0,
    tell: Tell | None = None,
) -> list[Figure]:
    """Run the experiments of a paper on a log.

    Args:
        paper: `erola2011`, `erola2012` or `batet2013`.
        log: The log.
        knowledge: Where queries are looked up; the papers used the Open Directory.
        resolver: Finds the site of a query, for `erola2012`: by default the clicks of the log.
        clusters: How many clusters of users L compares, for `batet2013`, as in the paper; None lets the index of
            Calinski and Harabasz choose.
        seed: Decides all that is random.
        tell: Called with what is being done.
    """
    if paper not in PAPERS:
        raise QueryveilError(f"There is no paper '{paper}' to reproduce; there are {', '.join(PAPERS)}.")
    here = local(log, "reproduce")
    most = max(BATET_KS if paper == "batet2013" else KS)
    if here.n_users < most:
        raise QueryveilError(f"The paper makes groups of up to {most} users; the log has only {here.n_users}.")
    base = knowledge if isinstance(knowledge, Knowledge) else open_knowledge(knowledge)
    run = Run(here, base, resolver or Clicks(), clusters, seed, tell or (lambda what: None))
    return PAPERS[paper](run)


def _erola2011(run: Run) -> list[Figure]:
    """Figures 2 (levels that terms reach), 3 (SRP by level, k and categories) and 4 (time)."""
    log, base, seed, tell = run.log, run.base, run.seed, run.tell
    linked = {categories: link(log, base, "terms", categories=categories) for categories in (1, 5)}
    _needs_links(linked[1], base)
    Odp(k=max(KS)).release(log, linked[1], seed=seed)  # compiled and in memory before the clock starts
    covered = linked[1].coverage(log.events_per_query)
    reach = [
        {"level": row.level, "share": share, "of": of}
        for row in covered
        if row.level
        for of, share in (("terms", row.occurrences), ("distinct queries", row.queries), ("events", row.events))
    ]
    kept: list[dict[str, Any]] = []
    cost: list[dict[str, Any]] = []
    floors = {k: _by_lot(log, k, seed) for k in KS}
    for level in range(1, min(LEVELS, base.taxonomy.height) + 1):
        for k in KS:
            tell(f"level {level}, k {k}")
            for categories, links in linked.items():
                method = Odp(k=k, levels=level, categories=categories)
                name = "first category" if categories == 1 else f"first {categories} categories"
                begun = time.perf_counter()
                release = method.release(log, links, seed=seed)
                seconds = time.perf_counter() - begun
                row = srp(release, links, level)[-1]
                kept.append({"level": level, "k": k, "groups": name, "SRP": row.mean})
                cost.append({"level": level, "k": k, "groups": name, "seconds": seconds})
            row = srp(floors[k], linked[1], level)[-1]
            kept.append({"level": level, "k": k, "groups": "by lot", "SRP": row.mean})
    return [
        Figure("figure-2", "Share that reaches a level of the tree", tuple(reach), "level", "share", "of"),
        Figure("figure-3", "What is left of users' interests (SRP)", tuple(kept), "level", "SRP", "groups", "k"),
        Figure("figure-4", "Time to make groups and records", tuple(cost), "level", "seconds", "groups", "k", False),
    ]


def _erola2012(run: Run) -> list[Figure]:
    """Figures 2 (SRP of all users) and 3 (of the 100 best), for the search method and for that of 2011."""
    log, base, seed, tell = run.log, run.base, run.seed, run.tell
    tell("linking")
    links: dict[str, Links] = {
        "search (2012)": link(log, base, "domains", resolver=run.resolver),
        "terms (2011)": link(log, base, "terms"),
    }
    for found in links.values():
        _needs_links(found, base)
    floors = {k: _by_lot(log, k, seed) for k in KS}
    everyone: list[dict[str, Any]] = []
    best: list[dict[str, Any]] = []
    for level in range(1, min(LEVELS, base.taxonomy.height) + 1):
        for k in KS:
            tell(f"level {level}, k {k}")
            for name, found in links.items():
                kind: type[Microaggregation] = Search if name.startswith("search") else Odp
                release = kind(k=k, levels=level).release(log, found, seed=seed)
                row = srp(release, found, level)[-1]
                everyone.append({"level": level, "k": k, "method": name, "SRP": row.mean})
                best.append({"level": level, "k": k, "method": name, "SRP": row.best})
            row = srp(floors[k], links["search (2012)"], level)[-1]
            everyone.append({"level": level, "k": k, "method": "by lot", "SRP": row.mean})
            best.append({"level": level, "k": k, "method": "by lot", "SRP": row.best})
    return [
        Figure("figure-2", "What is left of users' interests (SRP)", tuple(everyone), "level", "SRP", "method", "k"),
        Figure("figure-3", "SRP of the 100 users who keep most", tuple(best), "level", "SRP", "method", "k"),
    ]


def _batet2013(run: Run) -> list[Figure]:
    """Figures 2 (L) and 3 (RL) for the methods that group users; L by the same categories for all."""
    log, base, seed, tell = run.log, run.base, run.seed, run.tell
    tell("linking")
    phrases, terms = link(log, base, "phrases"), link(log, base, "terms")
    for found in (phrases, terms):
        _needs_links(found, base)
    tell("clusters of the log")
    linked = int((np.diff(interests_of(Searches.of(log), phrases).start) > 0).sum())
    if linked < max(BATET_KS):
        raise QueryveilError(
            f"The paper makes groups of up to {max(BATET_KS)} users; only {linked} have a query with a category in"
            f" '{base.name}'."
        )
    # Of few users, as many clusters as in the paper would be of one user each.
    clusters = user_clusters(log, phrases, clusters=run.clusters and min(run.clusters, linked // 3), seed=seed)
    methods: dict[str, Callable[[int], Release]] = {
        "semantic MDAV": lambda k: Mdav(k=k, knowledge=base.name).release(log, phrases, seed=seed),
        "without semantics": lambda k: Mdav(k=k, distance="strings").release(log, None, seed=seed),
        "Navarro-Arribas 2012": lambda k: Mdav(k=k, distance="features").release(log, None, seed=seed),
        "Erola 2011": lambda k: Odp(k=k, knowledge=base.name).release(log, terms, seed=seed),
        "by lot": lambda k: _by_lot(log, k, seed),
    }
    lost: list[dict[str, Any]] = []
    found_again: list[dict[str, Any]] = []
    for k in BATET_KS:
        for name, make in methods.items():
            tell(f"k {k}, {name}")
            release = make(k)
            users = {"users": len(clusters.users), "clusters": clusters.count}
            lost.append({"k": k, "method": name, "L": information_loss(release, clusters) / 100} | users)
            released = {"users": release.manifest.counts.users}
            found_again.append({"k": k, "method": name, "RL": record_linkage(release) / 100} | released)
    title = f"Information loss (L), {len(clusters.users):,} users in {clusters.count:,} clusters"
    return [
        Figure("figure-2", title, tuple(lost), "k", "L", "method"),
        Figure("figure-3", "Released users found by record linkage (RL)", tuple(found_again), "k", "RL", "method"),
    ]


def _needs_links(links: Links, base: Knowledge) -> None:
    if not (links.taxonomy.depth[links.node] > 0).any():
        raise QueryveilError(f"No query of the log has a category in '{base.name}'; name another knowledge base.")


def _by_lot(log: LocalLog, k: int, seed: int) -> Release:
    """A release of groups that were drawn by lot: the floor."""
    order = np.random.default_rng(seed).permutation(log.n_users)
    group: NDArray[np.int32] = np.empty(log.n_users, np.int32)
    group[order] = np.minimum(np.arange(log.n_users) // k, log.n_users // k - 1)
    return Odp(k=k).release_groups(log, Searches.of(log), group, parts=0, seed=seed, notes=[])


PAPERS: dict[str, Callable[[Run], list[Figure]]] = {
    "erola2011": _erola2011,
    "erola2012": _erola2012,
    "batet2013": _batet2013,
}
