"""Information loss and record linkage of methods that group users.

Montserrat Batet, Arnau Erola, David Sánchez, Jordi Castellà-Roca, Utility preserving query log anonymization via
semantic microaggregation, Information Sciences 242 (2013).
"""

import math
from collections.abc import Callable
from itertools import pairwise, product

import pyarrow as pa

from queryveil.assess.measures import UserClusters, information_loss, record_linkage, user_clusters
from queryveil.assess.reproduce.common import AT_RANDOM, Paper, Run
from queryveil.assess.reproduce.figure import Figure, Row
from queryveil.assess.reproduce.published import Published, Values, held, numbers, shares
from queryveil.claims import PartOfLog
from queryveil.errors import QueryveilError, missing
from queryveil.knowledge import Links, asks_clicks, categorize_texts, topics_of
from queryveil.log import LocalLog
from queryveil.methods import Mdav, Odp, Poblete, Zealous
from queryveil.methods.microaggregation.common import Searches
from queryveil.methods.microaggregation.interests import interests_of
from queryveil.methods.poblete import has_addresses
from queryveil.release import Release
from queryveil.release.making import of_events

KS = (2, 3, 4, 5, 6, 7)
SITES = (2, 5, 10, 20, 30, 40)
DS = (1, 2, 5, 10, 15, 20)
EPSILON, DELTA = math.log(10), 1e-5
"""For the method of Korolova et al. 2009; the paper does not say which were taken."""


def _figures(run: Run) -> list[Figure]:
    """Figures 2 (L) and 3 (RL) for the methods that group users; L by the same categories for all."""
    log, base, seed = run.log, run.taxonomy.name, run.seed
    phrases, terms = run.categorize("phrases"), run.categorize("terms")
    run.progress("clusters of the log")
    linked = int((interests_of(Searches.of(log), phrases).sizes > 0).sum())
    if linked < max(KS):
        raise QueryveilError(
            f"The paper makes groups of up to {max(KS)} users; only {linked} have a query with a category in '{base}'."
        )
    # Of few users, as many clusters as in the paper would be of one user each.
    clusters = user_clusters(log, phrases, clusters=run.clusters and min(run.clusters, linked // 3), seed=seed)
    methods: dict[str, Callable[[int], Release]] = {
        "semantic MDAV": lambda k: Mdav(k=k, taxonomy=base).release(log, phrases, seed=seed),
        "without semantics": lambda k: Mdav(k=k, distance="strings").release(log, None, seed=seed),
        "Navarro-Arribas 2012": lambda k: Mdav(k=k, distance="features").release(log, None, seed=seed),
        "Erola 2011": lambda k: Odp(k=k, taxonomy=base).release(log, terms, seed=seed),
        AT_RANDOM: run.random_groups,
    }
    lost: list[Row] = []
    linkage: list[Row] = []
    for k, (name, make) in product(KS, methods.items()):
        run.progress(f"k {k}, {name}")
        release = make(k)
        users = {"users": len(clusters.users), "clusters": clusters.count}
        lost.append({"k": k, "method": name, "L": information_loss(release, clusters) / 100} | users)
        released = {"users": release.manifest.counts.users}
        linkage.append({"k": k, "method": name, "RL": record_linkage(release) / 100} | released)
    title = f"Information loss (L), {len(clusters.users):,} users in {clusters.count:,} clusters"
    return [
        Figure("figure-2", title, lost, "k", "L", "method"),
        Figure("figure-3", "Released users found by record linkage (RL)", linkage, "k", "RL", "method"),
        *_removal_by_sites(run, clusters),
        *_removal_by_noise(run, clusters),
        *_categorized(run, phrases),
    ]


def _categorized(run: Run, phrases: Links) -> list[Figure]:
    """How many have a category and, if the true topics are known, how many a right one, by what is looked up.

    The paper looks up text alone. The sites of a web directory and the clicks of the log are ours, so they are shown
    apart; where the taxonomy has no sites, there is but text.
    """
    log, base = run.log, run.taxonomy
    found = {"text": run.categorize("text")}
    if base.hosts is not None:
        found["text and sites"] = categorize_texts(log.query_text, base, "phrases", log.language)
    if asks_clicks(log, base, "phrases"):
        found["text, sites and clicks"] = phrases
    log.ensure_tables("query_users")
    issued = log.engine.fetch("SELECT user_id, query_id FROM query_users")
    covered = [
        {"looked up": what, "level": row.level, "share": share, "of": of}
        for what, links in found.items()
        for row in links.coverage(log.events_per_query, issued)
        for of, share in (
            ("noun phrases", row.occurrences),
            ("distinct queries", row.queries),
            ("events", row.events),
            ("users", row.users),
        )
    ]
    title = "Share with a category, by the level that it reaches"
    figures = [Figure("coverage", title, covered, "level", "share", "of", "looked up")]
    if run.topics is not None:
        topics = topics_of(log.query_text, run.topics)
        right = [
            {"looked up": what, "level": row.level, "share": share, "of": of}
            for what, links in found.items()
            for row in links.accuracy(topics)
            for of, share in (("queries with a category", row.of_categorized), ("all queries", row.of_all))
        ]
        title = "Distinct queries whose first category is their topic"
        figures.append(Figure("accuracy", title, right, "level", "share", "of", "looked up"))
    return figures


def _removal_by_sites(run: Run, clusters: UserClusters) -> list[Figure]:
    """Figures 2 and 3 for Poblete et al. 2008, against Kp; none of a log without clicked addresses."""
    if not has_addresses(run.log):
        return []
    rows: list[Row] = []
    for sites in SITES:
        run.progress(f"Kp {sites}, Poblete 2008")
        release = Poblete(sites=sites, link="user").anonymize(run.log, seed=run.seed)
        loss, linkage = information_loss(release, clusters) / 100, record_linkage(release) / 100
        rows.append({"Kp": sites, "L": loss, "RL": linkage, "users": release.manifest.counts.users})
    return [
        Figure("figure-2-poblete", "Information loss (L), removal by the query graph", rows, "Kp", "L"),
        Figure("figure-3-poblete", "Record linkage (RL), removal by the query graph", rows, "Kp", "RL"),
    ]


def _removal_by_noise(run: Run, clusters: UserClusters) -> list[Figure]:
    """Figures 2 and 3 for Korolova et al. 2009, against d; none where OpenDP is not installed.

    What that method releases has no users, so neither figure applies to it. The paper looks at users' logs from which
    all queries are removed that are not released. It cannot have cut them to d queries as well: with d = 1 it keeps 6 %
    of 56,000 queries, which is more than one for each of its 1,000 users. Such logs are not differentially private, so
    they are made for these figures alone. A user who lost all their queries is not linked, as in the paper.
    """
    lacking = missing("opendp.prelude")
    if lacking is not None:
        run.progress(f"Korolova 2009 is left out: it {lacking}")
        return []
    rows: list[Row] = []
    for d in DS:
        run.progress(f"d {d}, Korolova 2009")
        release = cut_to_released(run.log, d, run.seed)
        users = release.manifest.counts.users or 0
        rows.append(
            {
                "d": d,
                "L": information_loss(release, clusters) / 100,
                "RL": record_linkage(release) / 100 * users / run.log.n_users,
                "users": users,
                "lost": 1 - users / run.log.n_users,
                "kept": release.manifest.counts.events / run.log.stats.events,
            }
        )
    cut = "users' logs cut to privately released queries, not private themselves"
    return [
        Figure("figure-2-korolova", f"Information loss (L), {cut}", rows, "d", "L"),
        Figure("figure-3-korolova", f"Record linkage (RL) of all users, {cut}", rows, "d", "RL"),
        Figure("kept-korolova", f"Events that are kept, {cut}", rows, "d", "kept"),
    ]


def cut_to_released(log: LocalLog, d: int, seed: int) -> Release:
    """The log without the queries that Korolova's method does not release; the noise is not seeded."""
    public = Zealous(max_queries_per_user=d, keep="first", epsilon=EPSILON, delta=DELTA, min_users=1).anonymize(log)
    texts = pa.chunked_array([batch["query"] for batch in public.batches()], pa.string())
    with log.workspace() as work:
        known = work.read(pa.table({"query": texts}))
        return of_events(
            log,
            "SELECT e.event_id AS event_id, e.user_id AS user_id, e.query_id AS query_id FROM events e JOIN queries q"  # noqa: S608  # a table of ours
            f" ON q.query_id = e.query_id JOIN {known} p ON p.query = q.query",
            None,
            method="korolova2009",
            parameters={"d": d, "epsilon": EPSILON, "delta": DELTA},
            claims=(PartOfLog(),),
            limits=("It is made for figures of a paper, and protects nobody.",),
            seed=seed,
        )


def _lost_least(values: Values, first: str, *others: str) -> str:
    """For how many k a method loses less than each of the others."""
    return held(mine < min(rest) for mine, *rest in values.lines("figure-2", "method", first, *others))


def _lost_by_removal(values: Values, figure: str) -> str:
    """For how many values of its parameter a method that removes queries loses more than all that group users."""
    names = ("semantic MDAV", "Erola 2011", "Navarro-Arribas 2012", "without semantics")
    grouped = [loss for name in names for loss in values.all("figure-2", method=name)]
    return held(loss > max(grouped) for loss in values.all(figure) if grouped)


def _linked_least(values: Values) -> str:
    """For how many d Korolova's method is linked less than all others, with any k, and any Kp that leaves users."""
    by_sites = zip(values.all("figure-3-poblete"), values.all("figure-3-poblete", "users"), strict=True)
    others = [*values.all("figure-3"), *(linked for linked, users in by_sites if users)]
    return held(linked < min(others) for linked in values.all("figure-3-korolova") if others)


def _over_poblete(values: Values) -> str:
    """For how many d Korolova's method loses more than Poblete's, with any Kp."""
    other = values.all("figure-2-poblete")
    return held(loss > max(other) for loss in values.all("figure-2-korolova") if other)


def _low(values: Values) -> str:
    """For how many k semantic MDAV is linked no more than each other method that groups users."""
    names = ("semantic MDAV", "Erola 2011", "Navarro-Arribas 2012", "without semantics")
    return held(mine <= min(rest) for mine, *rest in values.lines("figure-3", "method", *names))


def _linked_most(values: Values) -> str:
    """For how many k the control is linked most, of the methods that group users by likeness."""
    names = ("without semantics", "semantic MDAV", "Navarro-Arribas 2012", "Erola 2011")
    return held(mine > max(rest) for mine, *rest in values.lines("figure-3", "method", *names))


def _falls(values: Values) -> str:
    """How often RL falls from one k to the next."""
    lines = [values.all("figure-3", method=name) for name in values.places("figure-3", "method")]
    return held(one > other for line in lines for one, other in pairwise(line))


BATET2013 = Paper(
    "batet2013",
    max(KS),
    _figures,
    needs=("publicsuffixlist",),
    citation=(
        "Montserrat Batet, Arnau Erola, David Sánchez and Jordi Castellà-Roca, Utility preserving query log"
        " anonymization via semantic microaggregation, Information Sciences 242, 2013"
    ),
    published=(
        Published(
            "figure-2",
            "semantic MDAV loses least of the methods that group users",
            "for all k",
            "section 5.3",
            lambda v: _lost_least(v, "semantic MDAV", "Erola 2011", "Navarro-Arribas 2012", "without semantics"),
        ),
        Published(
            "figure-2",
            "Navarro-Arribas 2012 loses less than the control without semantics",
            "yes",
            "section 5.3",
            lambda v: _lost_least(v, "Navarro-Arribas 2012", "without semantics"),
        ),
        Published(
            "figure-2",
            "Erola 2011 loses less than the control without semantics",
            "yes",
            "section 5.3",
            lambda v: _lost_least(v, "Erola 2011", "without semantics"),
        ),
        Published(
            "figure-3",
            "the control without semantics is linked most of the methods that group users",
            "yes",
            "section 5.3",
            _linked_most,
        ),
        Published("figure-3", "RL falls with k", "almost linearly", "section 5.3", _falls),
        Published(
            "figure-3",
            "semantic MDAV is linked no more than the other methods that group users",
            "as low as these",
            "section 5.3",
            _low,
        ),
        Published(
            "figure-2-poblete",
            "Poblete 2008 loses more than the methods that group users, with any k",
            "in general",
            "section 5.3",
            lambda v: _lost_by_removal(v, "figure-2-poblete"),
        ),
        Published(
            "figure-2-korolova",
            "Korolova 2009 loses more than the methods that group users, with any k",
            "very noticeably",
            "section 5.3",
            lambda v: _lost_by_removal(v, "figure-2-korolova"),
        ),
        Published(
            "figure-2-korolova",
            "Korolova 2009 loses more than Poblete 2008, with any Kp",
            "very noticeably",
            "section 5.3",
            _over_poblete,
        ),
        Published(
            "figure-2-korolova",
            "users who lose all queries, d = 1 and d = 5",
            "46 %, 65 % of 1,000",
            "section 5.3",
            lambda v: shares(*(v("figure-2-korolova", "lost", d=d) for d in (1, 5))),
        ),
        Published(
            "figure-2-poblete",
            "users with a query left, Kp = 30",
            "90 % of 1,000",
            "section 5.3",
            lambda v: numbers(v("figure-2-poblete", "users", Kp=30)).removesuffix(".00"),
        ),
        Published(
            "figure-3-poblete",
            "RL, Kp = 10, 20, 30, 40",
            "around 63 % for Kp > 5",
            "section 5.3",
            lambda v: shares(*(v("figure-3-poblete", Kp=kp) for kp in (10, 20, 30, 40))),
            tuple({"Kp": kp, "RL": 0.63} for kp in (10, 20, 30, 40)),
        ),
        Published(
            "figure-3-korolova",
            "RL, d = 1 and d = 20",
            "25 %, almost 0 %",
            "section 5.3",
            lambda v: shares(*(v("figure-3-korolova", d=d) for d in (1, 20))),
            ({"d": 1, "RL": 0.25}, {"d": 20, "RL": 0.0}),
        ),
        Published(
            "figure-3-korolova",
            "Korolova 2009 is linked less than all others, with any k and Kp",
            "the lowest",
            "section 5.3",
            _linked_least,
        ),
        Published(
            "kept-korolova",
            "events that are kept, d = 1 and d = 20",
            "6 %, 2.5 %",
            "section 5.3",
            lambda v: shares(*(v("kept-korolova", d=d) for d in (1, 20))),
            ({"d": 1, "kept": 0.06}, {"d": 20, "kept": 0.025}),
        ),
        Published(
            "coverage",
            "distinct queries with a category",
            "high, no number",
            "section 4.1.3",
            lambda v: shares(v("coverage", level=0, of="distinct queries")),
        ),
    ),
)
