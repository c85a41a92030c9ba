"""What equality and affinity release, and what it costs.

Claudio Carpineto, Giovanni Romano, K-theta-affinity privacy: releasing infrequent query refinements safely,
Information Processing and Management 51 (2015).
"""

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queryveil.arrays import Bools, Floats, Ints, Longs
from queryveil.assess.measures.generalization import Reading, concept_costs
from queryveil.assess.measures.labelled import f_beta_of, labelled_queries
from queryveil.assess.neighbourhoods import degree_around
from queryveil.assess.reproduce.common import Paper, Run
from queryveil.assess.reproduce.figure import Figure, Row
from queryveil.assess.reproduce.published import (
    NONE,
    Published,
    Values,
    counts,
    differences,
    gains,
    held,
    more,
    numbers,
    shares,
)
from queryveil.errors import QueryveilError
from queryveil.knowledge import Links
from queryveil.log import LocalLog
from queryveil.methods import Affinity, Wngen
from queryveil.methods.affinity.concepts import LONGEST
from queryveil.methods.affinity.method import Candidates
from queryveil.methods.base import check_k

KS = (2, 3, 5, 10, 20, 50, 80, 100, 200)
"""With 3 and 80, for which section 5 has values."""
THETAS = (0.9, 0.8)
BETAS = (1.0, 0.1, 0.01)
"""Figure 6 has the first two; section 4.3 says what smaller ones change."""
SAMPLES, SAMPLE = 10, 5_000
"""Section 4.1: ten samples of 5,000 queries."""
MAX_VERTICES = 2_000
"""Section 3.4: the most queries of the graph around one."""
RELEASED, NCP, COUNT = "released queries", "NCP", "number"
NGRAMS = ("unigrams", "bigrams", "trigrams")
QUERIES, USERS = "distinct queries", "users"
BELOW = " > "
"""Between the concepts of a path in table 5."""
WNGEN: dict[str, Reading] = {"WNGEN": "terms", "WNGEN, a concept for one term": "items"}


class _Labels(NamedTuple):
    """Which queries are labelled, and which of them are sensitive."""

    labelled: Bools
    sensitive: Bools

    def f(self, kept: Bools, beta: float, samples: list[Longs]) -> dict[str, float]:
        """F-beta over all labelled queries, and its mean over the samples that have one.

        It is not a number where no labelled query is released, or none is harmless.
        """
        few = [self._f(kept[some], self.labelled[some], self.sensitive[some], beta) for some in samples]
        measured = [value for value in few if not np.isnan(value)]
        mean = float(np.mean(measured)) if measured else float("nan")
        return {"exact": self._f(kept, self.labelled, self.sensitive, beta), "samples": mean}

    @staticmethod
    def _f(kept: Bools, labelled: Bools, sensitive: Bools, beta: float) -> float:
        if not (kept & labelled).any() or not (labelled & ~sensitive).any():
            return float("nan")
        return f_beta_of(kept, labelled, sensitive, beta).value


def _figures(run: Run) -> list[Figure]:
    """Tables 2 and 5, figures 5a, 6 (if there are labels) and 7, and of one user figure 5b and table 4.

    Concepts, vectors and the graph are made once, whatever k and theta are. Figures are exact, over all queries of the
    log, and with them are the means over samples of distinct queries, as in the paper.
    """
    log = run.log
    ks = sorted(set(run.ks or (k for k in KS if k <= log.n_users)))
    thetas = sorted(set(run.thetas or THETAS))
    method = Affinity(k=max(ks), theta=thetas[0], min_term_users=2)  # as in the paper, section 3.2
    Affinity(k=min(ks), theta=thetas[-1])  # refused before the work begins
    check_k(method, log.n_users)
    user = None if run.user is None else _user(log, run.user)
    labels = None if run.labels is None else _Labels(*labelled_queries(log, run.labels))
    links = run.categorize("terms")
    draw = np.random.default_rng(run.seed)
    samples = [draw.choice(log.n_queries, min(SAMPLE, log.n_queries), replace=False) for _ in range(SAMPLES)]
    run.progress("concepts and vectors")
    candidates = Candidates(method, log)
    terms, events = log.tokens.sizes, log.events_per_query

    def mean_cost(cost: Floats) -> tuple[float, float]:
        """The NCP over all terms of the log, and its mean over samples, in which each query counts once."""
        few = [cost[some].sum() / max(int(terms[some].sum()), 1) for some in samples]
        return float((cost * events).sum() / max(int((terms * events).sum()), 1)), float(np.mean(few))

    released: list[Row] = []
    labelled: list[Row] = []
    cost: list[Row] = []
    mine: list[Row] = []
    for name, k, kept in _released(log, candidates, ks, thetas):
        run.progress(f"k {k}, {name}")
        at = {"method": name, "k": k}
        shares = [kept[some].mean() for some in samples]
        found = {"exact": kept.mean(), "samples": np.mean(shares), "deviation": np.std(shares, ddof=1)}
        released.append(at | {key: float(value) for key, value in found.items()})
        cost.append(at | dict(zip(("exact", "samples"), mean_cost(np.where(kept, 0.0, terms)), strict=True)))
        if labels is not None:
            labelled += [at | {"beta": beta} | labels.f(kept, beta, samples) for beta in BETAS]
        if user is not None:
            mine.append(at | {RELEASED: float(kept[user].mean())})
    lines = ["EQ", *map(_named, thetas[::-1])]  # as in the paper; what is released is found for lower thetas first
    for rows in (released, labelled, cost, mine):
        rows.sort(key=lambda row: lines.index(row["method"]))
    for k in ks:
        run.progress(f"k {k}, WNGEN")
        node = Wngen(k=k).concepts(log, links)
        for name, reading in WNGEN.items():
            exact, sampled = mean_cost(concept_costs(log, links, node, reading))
            cost.append({"method": name, "k": k, "exact": exact, "samples": sampled})
        if k == ks[0]:
            partition = _partition(log, links, node, k, run.depth)
    concepts = f"concepts of at least {method.concept_users(log):,} users"
    size = f"mean of {SAMPLES} samples of {len(samples[0]):,} distinct queries"

    def both(name: str, title: str, rows: list[Row], y: str, panel: str | None = None, *, share: bool) -> list[Figure]:
        keys = [key for key in ("method", "k", panel) if key is not None]
        made = []
        for of, suffix, how in (("exact", "", "all queries"), ("samples", "-samples", size)):
            values = [{key: row[key] for key in keys} | {y: row[of]} for row in rows]
            if of == "samples" and "deviation" in rows[0]:
                values = [{**value, "deviation": row["deviation"]} for value, row in zip(values, rows, strict=True)]
            made.append(Figure(name + suffix, f"{title}, {how}", values, "k", y, "method", panel, share))
        return made

    figures = [_ngrams(run, method.concept_users(log))]
    figures += both("figure-5a", f"Released queries ({concepts})", released, RELEASED, share=True)
    if labelled:
        title = "Harmless queries released, and only these (F-beta)"
        figures += both("figure-6", title, labelled, "F", "beta", share=False)
    figures += both("figure-7", "Normalized certainty penalty (NCP)", cost, NCP, share=True)
    figures.append(partition)
    if user is not None:
        run.progress("one user")
        title = f"Released of the {len(user):,} distinct queries of one user"
        figures.append(Figure("figure-5b", title, mine, "k", RELEASED, "method", private=True))
        figures += _degrees(log, candidates, user, thetas[::-1], labels)
    return figures


def _released(
    log: LocalLog, candidates: Candidates, ks: list[int], thetas: list[float]
) -> Iterator[tuple[str, int, Bools]]:
    """Which queries equality and affinity release; thetas ascending."""
    for k in ks:
        yield "EQ", k, log.users_per_query >= k
    for one in candidates.released(ks, thetas):
        yield _named(one.theta), one.k, one.queries


def _named(theta: float) -> str:
    """Affinity as the paper names it."""
    return f"AFF θ = {theta:g}"


def _ngrams(run: Run, least: int) -> Figure:
    """Table 2: how many n-grams there are, all, and those that are concepts."""
    log = run.log
    stop = pc.is_in(log.tokens.text, pa.array(sorted(log.language.stop_words), log.tokens.text.type))
    meant = ~stop.to_numpy(zero_copy_only=False)
    rows: list[Row] = []
    for n, name in zip(range(1, LONGEST + 1), NGRAMS, strict=True):
        run.progress(name)
        found = log.ngrams(n)
        occurrences = found["occurrences"].to_numpy()
        concept = found["users"].to_numpy() >= least
        concept &= np.any([meant[found[f"word_{i}"].to_numpy()] for i in range(1, n + 1)], axis=0)
        for of, some in (("all", np.ones(len(found), np.bool_)), (f"concepts, at least {least:,} users", concept)):
            rows.append({"n-grams": name, "of": f"{of}: distinct", COUNT: int(some.sum())})
            rows.append({"n-grams": name, "of": f"{of}: with repetitions", COUNT: int(occurrences[some].sum())})
    return Figure("table-2", "Runs of one to three words", rows, "n-grams", COUNT, "of", share=False)


def _partition(log: LocalLog, links: Links, node: Ints, k: int, depth: int) -> Figure:
    """Table 5: the queries of each concept of WNGEN down to a depth."""
    tree = links.tree
    shown = np.where(tree.depth[node] >= depth, tree.at_level(node, depth - 1), node)
    query, user = (log.query_users[name].to_numpy() for name in ("query_id", "user_id"))
    of_user = np.unique(shown[query].astype(np.int64) << 32 | user) >> 32
    queries, users = (np.bincount(of, minlength=len(tree)) for of in (shown, of_user))
    rows: list[Row] = []
    for at in np.unique(tree.ancestors(np.unique(shown))[1]).tolist():
        name = tree.path(at, between=BELOW)
        rows.append({"concept": name, "of": QUERIES, COUNT: int(queries[at])})
        rows.append({"concept": name, "of": USERS, COUNT: int(users[at])})
    title = f"WNGEN for k = {k} down to depth {depth}, at least {users[np.unique(shown)].min():,} users a concept"
    return Figure("table-5", title, rows, "of", COUNT, "concept", share=False)


def _user(log: LocalLog, name: str) -> Longs:
    """The distinct queries of a user."""
    at = pc.index(log.user_text, pa.scalar(name, log.user_text.type)).as_py()
    if at < 0:
        raise QueryveilError("The log has no user with this id; give one of its own.")
    query, user = (log.query_users[column].to_numpy() for column in ("query_id", "user_id"))
    return np.sort(query[user == at]).astype(np.int64)


def _degrees(
    log: LocalLog, candidates: Candidates, user: Longs, thetas: list[float], labels: _Labels | None
) -> list[Figure]:
    """Table 4: the degrees of the (sensitive) queries of a user, of those that any method releases for k = 2."""
    if labels is not None:
        user = user[labels.sensitive[user]]
    found = []
    for query in user[np.argsort(log.users_per_query[user], kind="stable")].tolist():
        around = [degree_around(log, candidates, query, theta, MAX_VERTICES) for theta in thetas]
        found.append((query, [int(log.users_per_query[query]), *around]))
    names = ["EQ", *map(_named, thetas)]
    rows = [
        {"query": log.query_text[query].as_py(), "method": name, "degree": degree}
        for query, degrees in found
        if max(degrees) > 1
        for name, degree in zip(names, degrees, strict=True)
    ]
    what = "queries" if labels is None else "sensitive queries"
    hidden = sum(max(degrees) < 2 for _, degrees in found)
    title = f"Degrees of {len(found) - hidden:,} {what} of one user; {hidden:,} more only for k = 1"
    return [Figure("table-4", title, rows, "method", "degree", "query", share=False, private=True)] if rows else []


EQ, AFF, LOWER = "EQ", "AFF θ = 0.9", "AFF θ = 0.8"


def _gain(values: Values, figure: str, k: object) -> float | None:
    """How much more affinity releases than equality."""
    one, other = (values(figure, k=k, method=name) for name in (AFF, EQ))
    return more(one, other)


def _grows(values: Values, figure: str) -> str:
    """How often the gain grows from one k to the next."""
    found = [gain for k in values.places(figure, "k") if (gain := _gain(values, figure, k)) is not None]
    return held(other > one for one, other in pairwise(found))


def _up_to(values: Values, figure: str, method: str) -> str:
    """The largest k that releases a tenth of the queries."""
    ks = [k for k in values.places(figure, "k") if (values(figure, k=k, method=method) or 0) >= 0.1]
    return f"k = {ks[-1]}" if ks else "for no k"


def _last(values: Values, figure: str) -> str:
    """The largest k with which equality releases a labelled query."""
    ks = [k for k in values.places(figure, "k") if values(figure, k=k, method=EQ) is not None]
    return f"k = {ks[-1]}" if ks else NONE


def _over_equality(values: Values, figure: str, beta: float) -> str:
    """How often affinity has more F than equality, for both thetas; of those k with which both release something."""
    lines = (values.lines(figure, "method", name, EQ, beta=beta) for name in (AFF, LOWER))
    return held(one > other for line in lines for one, other in line)


def _lower_theta(values: Values, figure: str, beta: float) -> float | None:
    """How much more F a lower theta has, the mean over k."""
    found = [one - other for one, other in values.lines(figure, "method", LOWER, AFF, beta=beta)]
    return float(np.mean(found)) if found else None


def _falls(values: Values, figure: str, *betas: float) -> str:
    """How often F falls from one k to the next."""
    lines = (values.all(figure, method=name, beta=beta) for name in (EQ, AFF, LOWER) for beta in betas)
    return held(one > other for line in lines for one, other in pairwise(line))


def _costs_less(values: Values, figure: str, method: str) -> str:
    """For how many k a method costs less NCP than equality."""
    return held(one > other for one, other in values.lines(figure, "method", EQ, method))


def _runs(values: Values, kind: str, which: str) -> str:
    """How many n-grams of one, two and three words there are of a kind."""
    places = [of for of in values.places("table-2", "of") if str(of).startswith(kind) and str(of).endswith(which)]
    return counts(*(values("table-2", **{"n-grams": n, "of": of}) for of in places for n in NGRAMS))


def _concepts(values: Values) -> dict[str, float]:
    """The distinct queries of the concepts of table 5."""
    found = ((str(at), values("table-5", concept=at, of=QUERIES)) for at in values.places("table-5", "concept"))
    return {name: number for name, number in found if number is not None}


def _largest(values: Values) -> str:
    """The two largest concepts of table 5 below the root, which is first."""
    below = list(_concepts(values).items())[1:]
    largest = sorted(below, key=lambda one: -one[1])[:2]
    return ", ".join(f"{name.split(BELOW)[-1]} {number:,.0f}" for name, number in largest) or NONE


def _at_root(values: Values) -> str:
    """The share of the distinct queries that are at the root of table 5."""
    numbers = list(_concepts(values).values())
    return shares(numbers[0] / sum(numbers)) if numbers else NONE


def _fewest(values: Values) -> str:
    """The fewest queries and users of a concept of table 5 that has any."""
    found = (values.all("table-5", of=of) for of in (QUERIES, USERS))
    return counts(*(min((number for number in numbers if number), default=None) for numbers in found))


def _released_more_than_once(values: Values) -> str:
    """How many queries of table 4 have a degree of 2 or more."""
    rows = (values.all("table-4", method=name) for name in (EQ, AFF, LOWER))
    return counts(*(sum(degree >= 2 for degree in degrees) if degrees else None for degrees in rows))


def _figure_5a(figure: str) -> tuple[Published, ...]:
    return (
        Published(
            figure,
            "how much more affinity at 0.9 releases than equality, k = 2 and k = 10",
            "about 100 %, about 1,000 %",
            "section 4.1",
            lambda v: gains(_gain(v, figure, 2), _gain(v, figure, 10)),
        ),
        Published(figure, "this gain grows with k", "monotonically", "section 4.1", lambda v: _grows(v, figure)),
        Published(
            figure,
            "the largest k tried that releases 10 % of the queries, equality",
            "k = 3",
            "section 5",
            lambda v: _up_to(v, figure, EQ),
            ({"k": 3, "method": EQ, RELEASED: 0.1},),
        ),
        Published(
            figure,
            "the same, affinity at 0.9",
            "k = 80",
            "section 5",
            lambda v: _up_to(v, figure, AFF),
            ({"k": 80, "method": AFF, RELEASED: 0.1},),
        ),
    )


def _figure_6(figure: str) -> tuple[Published, ...]:
    return (
        Published(
            figure,
            "the largest k with which equality releases a labelled query",
            "k = 172",
            "section 4.3",
            lambda v: _last(v, figure),
        ),
        Published(
            figure,
            "affinity is better than equality, theta 0.9 and 0.8, beta 1",
            "clearly, for every k",
            "section 4.3",
            lambda v: _over_equality(v, figure, 1.0),
        ),
        Published(
            figure,
            "the same, beta 0.1",
            "clearly, for every k",
            "section 4.3",
            lambda v: _over_equality(v, figure, 0.1),
        ),
        Published(
            figure,
            "F at theta 0.8 minus F at 0.9, mean over k, beta 1 and 0.1",
            "markedly better, slightly better",
            "section 4.3",
            lambda v: differences(_lower_theta(v, figure, 1.0), _lower_theta(v, figure, 0.1)),
        ),
        Published(
            figure,
            "the same for a smaller beta; ours: 0.01",
            "0.9 is better",
            "section 4.3",
            lambda v: differences(_lower_theta(v, figure, 0.01)),
        ),
        Published(
            figure,
            "F falls from one k to the next, beta 1 and 0.1",
            "yes, unless beta is very small",
            "section 4.3",
            lambda v: _falls(v, figure, 1.0, 0.1),
        ),
        Published(
            figure,
            "the same for a very small beta; ours: 0.01",
            "no",
            "section 4.3",
            lambda v: _falls(v, figure, 0.01),
        ),
    )


def _figure_7(figure: str) -> tuple[Published, ...]:
    return (
        Published(
            figure,
            "NCP of WNGEN, k = 2 and k = 5",
            "about 0.7 for k = 2 to 6",
            "section 4.4.2",
            lambda v: numbers(*(v(figure, k=k, method="WNGEN") for k in (2, 5))),
            tuple({"k": k, "method": "WNGEN", NCP: 0.7} for k in (2, 3, 4, 5, 6)),
        ),
        Published(
            figure,
            "NCP of WNGEN, the least and the most over k",
            "nearly stable",
            "section 4.4.2",
            lambda v: numbers(*(end(v.all(figure, method="WNGEN"), default=None) for end in (min, max))),
        ),
        Published(
            figure,
            "NCP of affinity at 0.9, k = 2 and k = 100",
            "better than WNGEN for low k, worse as k grows",
            "section 4.4.2",
            lambda v: numbers(*(v(figure, k=k, method=AFF) for k in (2, 100))),
        ),
        *(
            Published(
                figure,
                f"equality is worse than {name}",
                "for all k",
                "section 4.4.2",
                partial(_costs_less, figure=figure, method=line),
            )
            for name, line in (("affinity", AFF), ("WNGEN", "WNGEN"))
        ),
    )


CARPINETO2015 = Paper(
    "carpineto2015",
    min(KS),
    _figures,
    citation=(
        "Claudio Carpineto and Giovanni Romano, KΘ-affinity privacy: Releasing infrequent query refinements safely,"
        " Information Processing and Management 51, 2015"
    ),
    published=(
        *(
            Published(
                "table-2",
                f"{what} of 1, 2 and 3 words, {which}",
                value,
                "table 2",
                partial(_runs, kind=kind, which=which),
            )
            for what, kind, which, value in (
                ("n-grams", "all", "distinct", "3,849,555, 7,409,939, 8,530,452"),
                ("n-grams", "all", "with repetitions", "67,567,111, 38,668,750, 21,679,415"),
                ("concepts", "concepts", "distinct", "30,716, 24,298, 5,089, of at least 65 users"),
                ("concepts", "concepts", "with repetitions", "49,346,473, 11,761,821, 1,838,235"),
            )
        ),
        *_figure_5a("figure-5a"),
        *_figure_5a("figure-5a-samples"),
        Published(
            "figure-5a-samples",
            "standard deviation between samples, affinity at 0.9, k = 2",
            "5,000 queries give representative results",
            "section 4.1",
            lambda v: shares(v("figure-5a-samples", "deviation", method=AFF, k=2)),
        ),
        *_figure_6("figure-6"),
        *_figure_6("figure-6-samples"),
        *_figure_7("figure-7"),
        *_figure_7("figure-7-samples"),
        Published(
            "table-5",
            "the two largest concepts, and their queries",
            "object 1,969,348, psychological feature 1,019,832",
            "table 5",
            _largest,
        ),
        Published(
            "table-5",
            "queries that stay at the root",
            "36.3 % (3,682,195 of 10,154,742), without a term in WordNet",
            "section 4.4.1",
            _at_root,
        ),
        Published("table-5", "the fewest queries and users of a concept", "158,027 queries", "section 4.4.1", _fewest),
        Published(
            "figure-5b",
            "released queries of the user, k = 2: equality, affinity at 0.9 and 0.8",
            "growth as theta falls",
            "section 4.1",
            lambda v: shares(*(v("figure-5b", k=2, method=name) for name in (EQ, AFF, LOWER))),
        ),
        Published(
            "table-4",
            "queries (with labels: sensitive ones) of the user with a degree of 2 or more: equality, 0.9, 0.8",
            "10, 11, 12",
            "table 4",
            _released_more_than_once,
        ),
    ),
)
