"""The experiments of the papers, on a log of one's own: tables and charts."""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from queryveil.assess.measures import (
    UserClusters,
    f_beta,
    information_loss,
    ncp,
    record_linkage,
    srp,
    transaction_density,
    user_clusters,
)
from queryveil.claims import PartOfLog
from queryveil.errors import Progress, QueryveilError, did_you_mean, missing, old_names, require
from queryveil.knowledge import Clicks, Links, Resolver, Taxonomy, categorize, open_taxonomy
from queryveil.log import LocalLog, QueryLog, local
from queryveil.methods import Affinity, Clump, Equality, Mdav, Method, Odp, Partition, Poblete, Search, Wngen, Zealous
from queryveil.methods.generalization.common import Loss, Transactions, loss_of
from queryveil.methods.microaggregation.common import Microaggregation, Searches
from queryveil.methods.microaggregation.interests import interests_of
from queryveil.methods.poblete import has_addresses
from queryveil.release import Release
from queryveil.release.making import of_events

KS = (2, 3, 4, 5)
BATET_KS = (2, 3, 4, 5, 6, 7)
BATET_SITES = (2, 5, 10, 20, 30, 40)
BATET_DS = (1, 2, 5, 10, 15, 20)
KOROLOVA = math.log(10), 1e-5
"""The epsilon and delta of these figures; Batet et al. 2013 do not say which they took."""
FARD_KS = (5, 7, 10, 15)
FARD_SIZES = (1_000, 10_000, 53_058)
FARD_RS = (5, 10, 30, 50, 100)
CARPINETO_KS = (2, 5, 10, 20, 50, 100, 200)
CARPINETO_BETAS = (1.0, 0.1)
LEVELS = 5


@dataclass(frozen=True)
class Figure:
    """One figure of a paper: its values, and how they are drawn.

    Attributes:
        name: Such as `figure-3`.
        title: What it shows.
        rows: The values, a row each; None where nothing could be measured.
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
    base: Taxonomy
    resolver: Resolver
    clusters: int | None
    labels: pa.Table | None
    seed: int
    progress: Progress


@old_names(knowledge="taxonomy", tell="progress")
def reproduce(
    paper: str,
    log: QueryLog,
    taxonomy: Taxonomy | str = "wordnet",
    *,
    resolver: Resolver | None = None,
    clusters: int | None = 80,
    labels: pa.Table | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> list[Figure]:
    """Run the experiments of a paper on a log.

    Args:
        paper: `erola2011`, `erola2012`, `batet2013`, `milanifard2010` or `carpineto2015`.
        log: The log.
        taxonomy: Where queries are looked up; the papers used the Open Directory.
        resolver: Finds the site of a query, for `erola2012`: by default the clicks of the log.
        clusters: How many clusters of users L compares, for `batet2013`, as in the paper; None lets the index of
            Calinski and Harabasz choose.
        labels: Queries that are sensitive or not, as `f_beta` takes them, for figure 6 of `carpineto2015`.
        seed: Decides all that is random.
        progress: Called with what is being done.
    """
    if paper not in PAPERS:
        raise QueryveilError(f"There is no paper '{paper}' to reproduce; {did_you_mean(paper, PAPERS)}.")
    if paper == "batet2013":
        require("The paper batet2013", "publicsuffixlist")
    here = local(log, "reproduce")
    most = {"batet2013": max(BATET_KS), "milanifard2010": max(FARD_KS), "carpineto2015": 2}.get(paper, max(KS))
    if here.n_users < most:
        raise QueryveilError(f"The paper makes groups of up to {most} users; the log has only {here.n_users}.")
    base = taxonomy if isinstance(taxonomy, Taxonomy) else open_taxonomy(taxonomy)
    run = Run(here, base, resolver or Clicks(), clusters, labels, seed, progress or (lambda what: None))
    return [_measured(figure) for figure in PAPERS[paper](run)]


def _measured(figure: Figure) -> Figure:
    """A figure with None in the place of what is not a number."""
    rows = ({k: None if isinstance(v, float) and math.isnan(v) else v for k, v in row.items()} for row in figure.rows)
    return replace(figure, rows=tuple(rows))


def _erola2011(run: Run) -> list[Figure]:
    """Figures 2 (levels that terms reach), 3 (SRP by level, k and categories) and 4 (time)."""
    log, base, seed, progress = run.log, run.base, run.seed, run.progress
    linked = {categories: categorize(log, base, "terms", categories=categories) for categories in (1, 5)}
    _needs_links(linked[1], base)
    if len(linked[5].node) == len(linked[1].node):
        # No term has a second category, as in WordNet: the lines would differ by the lots of records alone.
        del linked[5]
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
    for level in range(1, min(LEVELS, base.tree.height) + 1):
        for k in KS:
            progress(f"level {level}, k {k}")
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
    log, base, seed, progress = run.log, run.base, run.seed, run.progress
    progress("linking")
    links: dict[str, Links] = {
        "search (2012)": categorize(log, base, "domains", resolver=run.resolver),
        "terms (2011)": categorize(log, base, "terms"),
    }
    for found in links.values():
        _needs_links(found, base)
    floors = {k: _by_lot(log, k, seed) for k in KS}
    everyone: list[dict[str, Any]] = []
    best: list[dict[str, Any]] = []
    for level in range(1, min(LEVELS, base.tree.height) + 1):
        for k in KS:
            progress(f"level {level}, k {k}")
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
    log, base, seed, progress = run.log, run.base, run.seed, run.progress
    progress("linking")
    phrases, terms = categorize(log, base, "phrases"), categorize(log, base, "terms")
    for found in (phrases, terms):
        _needs_links(found, base)
    progress("clusters of the log")
    linked = int((interests_of(Searches.of(log), phrases).sizes > 0).sum())
    if linked < max(BATET_KS):
        raise QueryveilError(
            f"The paper makes groups of up to {max(BATET_KS)} users; only {linked} have a query with a category in"
            f" '{base.name}'."
        )
    # Of few users, as many clusters as in the paper would be of one user each.
    clusters = user_clusters(log, phrases, clusters=run.clusters and min(run.clusters, linked // 3), seed=seed)
    methods: dict[str, Callable[[int], Release]] = {
        "semantic MDAV": lambda k: Mdav(k=k, taxonomy=base.name).release(log, phrases, seed=seed),
        "without semantics": lambda k: Mdav(k=k, distance="strings").release(log, None, seed=seed),
        "Navarro-Arribas 2012": lambda k: Mdav(k=k, distance="features").release(log, None, seed=seed),
        "Erola 2011": lambda k: Odp(k=k, taxonomy=base.name).release(log, terms, seed=seed),
        "by lot": lambda k: _by_lot(log, k, seed),
    }
    lost: list[dict[str, Any]] = []
    found_again: list[dict[str, Any]] = []
    for k in BATET_KS:
        for name, make in methods.items():
            progress(f"k {k}, {name}")
            release = make(k)
            users = {"users": len(clusters.users), "clusters": clusters.count}
            lost.append({"k": k, "method": name, "L": information_loss(release, clusters) / 100} | users)
            released = {"users": release.manifest.counts.users}
            found_again.append({"k": k, "method": name, "RL": record_linkage(release) / 100} | released)
    title = f"Information loss (L), {len(clusters.users):,} users in {clusters.count:,} clusters"
    return [
        Figure("figure-2", title, tuple(lost), "k", "L", "method"),
        Figure("figure-3", "Released users found by record linkage (RL)", tuple(found_again), "k", "RL", "method"),
        *_removal_by_sites(run, clusters),
        *_removal_by_noise(run, clusters),
    ]


def _removal_by_sites(run: Run, clusters: UserClusters) -> list[Figure]:
    """Figures 2 and 3 for Poblete et al. 2008, against Kp; none of a log without clicked addresses."""
    if not has_addresses(run.log):
        return []
    rows = []
    for sites in BATET_SITES:
        run.progress(f"Kp {sites}, Poblete 2008")
        release = Poblete(sites=sites, link="user").anonymize(run.log, seed=run.seed)
        loss, found_again = information_loss(release, clusters) / 100, record_linkage(release) / 100
        rows.append({"Kp": sites, "L": loss, "RL": found_again, "users": release.manifest.counts.users})
    return [
        Figure("figure-2-poblete", "Information loss (L), removal by the query graph", tuple(rows), "Kp", "L"),
        Figure("figure-3-poblete", "Record linkage (RL), removal by the query graph", tuple(rows), "Kp", "RL"),
    ]


def _removal_by_noise(run: Run, clusters: UserClusters) -> list[Figure]:
    """Figures 2 and 3 for Korolova et al. 2009, against d; none where OpenDP is not installed.

    What that method releases has no users, so that neither figure applies to it. The paper looks at users' logs from
    which all queries are removed that are not released. It cannot have cut them to d queries as well: with d = 1 it
    keeps 6 % of 56,000 queries, which is more than one for each of its 1,000 users. Such logs are not differentially
    private, so they are made for these figures alone. A user who lost all his queries is not linked, as in the paper.
    """
    lacking = missing("opendp.prelude")
    if lacking is not None:
        run.progress(f"Korolova 2009 is left out: it {lacking}")
        return []
    rows = []
    for d in BATET_DS:
        run.progress(f"d {d}, Korolova 2009")
        release = _cut_to_released(run.log, d, run.seed)
        users = release.manifest.counts.users or 0
        rows.append(
            {
                "d": d,
                "L": information_loss(release, clusters) / 100,
                "RL": record_linkage(release) / 100 * users / run.log.n_users,
                "users": users,
                "kept": release.manifest.counts.events / run.log.stats.events,
            }
        )
    cut = "users' logs cut to privately released queries, not private themselves"
    return [
        Figure("figure-2-korolova", f"Information loss (L), {cut}", tuple(rows), "d", "L"),
        Figure("figure-3-korolova", f"Record linkage (RL) of all users, {cut}", tuple(rows), "d", "RL"),
        Figure("kept-korolova", f"Events that are kept, {cut}", tuple(rows), "d", "kept"),
    ]


def _cut_to_released(log: LocalLog, d: int, seed: int) -> Release:
    """The log without the queries that Korolova's method does not release; the noise is not seeded."""
    epsilon, delta = KOROLOVA
    public = Zealous(max_queries_per_user=d, keep="first", epsilon=epsilon, delta=delta, min_users=1).anonymize(log)
    texts = pa.chunked_array([batch["query"] for batch in public.batches()], pa.string())
    with log.workspace() as work:
        known = work.read(pa.table({"query": texts}))
        return of_events(
            log,
            "SELECT e.event_id AS event_id, e.user_id AS user_id, e.query_id AS query_id FROM events e JOIN queries q"  # noqa: S608  # a table of ours
            f" ON q.query_id = e.query_id JOIN {known} p ON p.query = q.query",
            None,
            method="korolova2009",
            parameters={"d": d, "epsilon": epsilon, "delta": delta},
            claims=(PartOfLog(),),
            limits=("It is made for figures of a paper, and protects nobody.",),
            seed=seed,
        )


def _milanifard2010(run: Run) -> list[Figure]:
    """Figures 3 to 7: distortion, length and level against k for parts of the log, the effect of r, and time."""
    log, base, progress = run.log, run.base, run.progress
    progress("linking")
    links = categorize(log, base, "terms")
    _needs_links(links, base)
    whole = Transactions.of(log, links)
    users = len(whole.user)
    if users < max(FARD_KS):
        raise QueryveilError(f"The paper makes groups of up to {max(FARD_KS)} users; only {users} have a noun.")
    lost, long, level, cost, dense = [], [], [], [], []
    # Compiled before the clock starts.
    list(_grouped(whole.first(max(FARD_KS)), *_three(5)))
    for size in sorted({min(size, users) for size in FARD_SIZES} | {users}):
        some = whole.first(size)
        dense.append({"users": size, "density": transaction_density(some)})
        for k in FARD_KS:
            progress(f"{size:,} users, k {k}")
            for name, seconds, loss in _grouped(some, *_three(k)):
                row = {"users": size, "k": k, "method": name}
                lost.append(row | {"distortion per item": loss.per_item})
                long.append(row | {"items a user": loss.length})
                level.append(row | {"level": loss.level})
                if k == min(FARD_KS) and name != "Clump2":
                    cost.append({"users": size, "method": name, "seconds": seconds})
    effect = []
    for r in FARD_RS:
        progress(f"r {r}")
        (_, seconds, loss), _ = _grouped(whole, Clump(k=5, r=r))
        effect.append({"r": r, "distortion per item": loss.per_item, "seconds": seconds})
    ratio = "distortion per item"
    return [
        Figure("table-3", "Density of the transactions", tuple(dense), "users", "density"),
        Figure("figure-3", "Distortion (GGD) per item", tuple(lost), "k", ratio, "method", "users"),
        Figure(
            "figure-4",
            "Mean length of generalized transactions",
            tuple(long),
            "k",
            "items a user",
            "method",
            "users",
            False,
        ),
        Figure(
            "figure-5",
            "Mean level of generalized items (the root is 1)",
            tuple(level),
            "k",
            "level",
            "method",
            "users",
            False,
        ),
        Figure("figure-6", "Effect of r on Clump1, k = 5", tuple(effect), "r", ratio),
        Figure(
            "figure-7", "Time to make groups and items, k = 5", tuple(cost), "users", "seconds", "method", None, False
        ),
    ]


def _three(k: int) -> tuple[Clump, Clump, Partition]:
    return Clump(k=k), Clump(k=k, clustering="nearest", tight=True), Partition(k=k)


def _grouped(some: Transactions, *methods: Clump | Partition) -> Iterator[tuple[str, float, Loss]]:
    """What each method takes and loses; of the paper's Clump, with duplicates and without."""
    for method in methods:
        begun = time.perf_counter()
        if isinstance(method, Partition):
            bags, name = method.bags(some), "Partition"
        else:
            order = method.ordered(some, 0)
            bags = method.bags(some, order, method.clusters(some, order), tight=method.tight)
            name = "Clump1" if method.clustering == "greedy" else "nearest, tight"
        yield name, time.perf_counter() - begun, loss_of(some, bags)
        if name == "Clump1":
            yield "Clump2", 0.0, loss_of(some, replace(bags, n=np.ones_like(bags.n)))


def _carpineto2015(run: Run) -> list[Figure]:
    """Figure 5a, released queries; figure 6, F-beta, where there are labels; figure 7, NCP; all against k."""
    log, base, seed, progress = run.log, run.base, run.seed, run.progress
    progress("linking")
    links = categorize(log, base, "terms")
    _needs_links(links, base)
    shares: list[dict[str, Any]] = []
    labelled: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    for k in (k for k in CARPINETO_KS if k <= log.n_users):
        methods: dict[str, Method] = {
            "EQ": Equality(k=k),
            "AFF θ = 0.9": Affinity(k=k, theta=0.9, min_term_users=2),  # as in the paper, section 3.2
            "AFF θ = 0.8": Affinity(k=k, theta=0.8, min_term_users=2),
        }
        for name, method in methods.items():
            progress(f"k {k}, {name}")
            release = method.anonymize(log, seed=seed)
            at = {"k": k, "method": name}
            shares.append(at | {"released queries": release.manifest.counts.queries / log.n_queries})
            rows.append(at | {"NCP": ncp(release, log, links)})
            for beta in CARPINETO_BETAS if run.labels is not None and release.manifest.counts.queries else ():
                labelled.append(at | {"beta": beta, "F": f_beta(release, log, run.labels, beta).value})
        progress(f"k {k}, WNGEN")
        release = Wngen(k=k, taxonomy=base.name).release(log, base, links, seed=seed)
        rows.append({"k": k, "method": "WNGEN", "NCP": ncp(release, log, links)})
    figures = [Figure("figure-5a", "Released queries", tuple(shares), "k", "released queries", "method")]
    if labelled:
        title = "Harmless queries released, and only these (F-beta)"
        figures.append(Figure("figure-6", title, tuple(labelled), "k", "F", "method", "beta", share=False))
    figures.append(Figure("figure-7", "Normalized certainty penalty (NCP)", tuple(rows), "k", "NCP", "method"))
    return figures


def _needs_links(links: Links, base: Taxonomy) -> None:
    if not (links.tree.depth[links.node] > 0).any():
        raise QueryveilError(f"No query of the log has a category in '{base.name}'; name another taxonomy.")


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
    "milanifard2010": _milanifard2010,
    "carpineto2015": _carpineto2015,
}
