"""What equality and affinity release, and what it costs.

Claudio Carpineto, Giovanni Romano, K-theta-affinity privacy: releasing infrequent query refinements safely,
Information Processing and Management 51 (2015).
"""

from itertools import pairwise

from queryveil.assess.measures import f_beta, ncp
from queryveil.assess.reproduce.common import Paper, Run
from queryveil.assess.reproduce.figure import Figure, Row
from queryveil.assess.reproduce.published import NONE, Published, Values, gains, held, more, numbers
from queryveil.methods import Affinity, Equality, Method, Wngen

KS = (2, 5, 10, 20, 50, 100, 200)
BETAS = (1.0, 0.1)


def _figures(run: Run) -> list[Figure]:
    """Figure 5a, released queries; figure 6, F-beta, where there are labels; figure 7, NCP; all against k."""
    log, seed = run.log, run.seed
    links = run.categorize("terms")
    released: list[Row] = []
    labelled: list[Row] = []
    cost: list[Row] = []
    for k in (k for k in KS if k <= log.n_users):
        methods: dict[str, Method] = {
            "EQ": Equality(k=k),
            "AFF θ = 0.9": Affinity(k=k, theta=0.9, min_term_users=2),  # as in the paper, section 3.2
            "AFF θ = 0.8": Affinity(k=k, theta=0.8, min_term_users=2),
        }
        for name, method in methods.items():
            run.progress(f"k {k}, {name}")
            release = method.anonymize(log, seed=seed)
            queries = release.manifest.counts.queries
            at = {"k": k, "method": name}
            released.append(at | {"released queries": queries / log.n_queries})
            cost.append(at | {"NCP": ncp(release, log, links)})
            for beta in BETAS if run.labels is not None and queries else ():
                labelled.append(at | {"beta": beta, "F": f_beta(release, log, run.labels, beta).value})
        run.progress(f"k {k}, WNGEN")
        release = Wngen(k=k, taxonomy=run.taxonomy.name).release(log, run.taxonomy, links, seed=seed)
        cost.append({"k": k, "method": "WNGEN", "NCP": ncp(release, log, links)})
    figures = [Figure("figure-5a", "Released queries", released, "k", "released queries", "method")]
    if labelled:
        title = "Harmless queries released, and only these (F-beta)"
        figures.append(Figure("figure-6", title, labelled, "k", "F", "method", "beta", share=False))
    figures.append(Figure("figure-7", "Normalized certainty penalty (NCP)", cost, "k", "NCP", "method"))
    return figures


EQ, AFF = "EQ", "AFF θ = 0.9"


def _gain(values: Values, k: object) -> float | None:
    """How much more affinity releases than equality."""
    one, other = (values("figure-5a", k=k, method=name) for name in (AFF, EQ))
    return more(one, other)


def _grows(values: Values) -> str:
    """How often the gain grows from one k to the next."""
    found = [gain for k in values.places("figure-5a", "k") if (gain := _gain(values, k)) is not None]
    return held(other > one for one, other in pairwise(found))


def _up_to(values: Values, method: str) -> str:
    """The largest k that releases a tenth of the queries."""
    ks = [k for k in values.places("figure-5a", "k") if (values("figure-5a", k=k, method=method) or 0) >= 0.1]
    return f"k = {ks[-1]}" if ks else "for no k"


def _last(values: Values) -> str:
    """The largest k with which equality releases a labelled query."""
    ks = [k for k in values.places("figure-6", "k") if values("figure-6", k=k, method=EQ)]
    return f"k = {ks[-1]}" if ks else NONE


CARPINETO2015 = Paper(
    "carpineto2015",
    min(KS),
    _figures,
    citation=(
        "Claudio Carpineto and Giovanni Romano, KΘ-affinity privacy: Releasing infrequent query refinements safely,"
        " Information Processing and Management 51, 2015"
    ),
    published=(
        Published(
            "figure-5a",
            "how much more affinity at 0.9 releases than equality, k = 2 and k = 10",
            "about 100 %, about 1,000 %",
            "section 4.1",
            lambda v: gains(_gain(v, 2), _gain(v, 10)),
        ),
        Published("figure-5a", "this gain grows with k", "monotonically", "section 4.1", _grows),
        Published(
            "figure-5a",
            "the largest k tried that releases 10 % of the queries, equality",
            "k = 3",
            "section 5",
            lambda v: _up_to(v, EQ),
            ({"k": 3, "released queries": 0.1},),
        ),
        Published(
            "figure-5a",
            "the same, affinity at 0.9",
            "k = 80",
            "section 5",
            lambda v: _up_to(v, AFF),
            ({"k": 80, "released queries": 0.1},),
        ),
        Published(
            "figure-6", "the largest k with which equality releases a labelled query", "k = 172", "section 4.3", _last
        ),
        Published(
            "figure-7",
            "NCP of WNGEN, k = 2 and k = 5",
            "about 0.7 for k = 2 to 6",
            "section 4.4.2",
            lambda v: numbers(*(v("figure-7", k=k, method="WNGEN") for k in (2, 5))),
            tuple({"k": k, "NCP": 0.7} for k in (2, 3, 4, 5, 6)),
        ),
        Published(
            "figure-7",
            "NCP of affinity at 0.9, k = 2 and k = 100",
            "better than WNGEN for low k, worse as k grows",
            "section 4.4.2",
            lambda v: numbers(*(v("figure-7", k=k, method=AFF) for k in (2, 100))),
        ),
        Published(
            "figure-7",
            "equality is worse than affinity",
            "for all k",
            "section 4.4.2",
            lambda v: held(one > other for one, other in v.lines("figure-7", "method", EQ, AFF)),
        ),
    ),
)
