"""What equality and affinity release, and what it costs.

Claudio Carpineto, Giovanni Romano, K-theta-affinity privacy: releasing infrequent query refinements safely,
Information Processing and Management 51 (2015).
"""

from queryveil.assess.measures import f_beta, ncp
from queryveil.assess.reproduce.common import Paper, Run
from queryveil.assess.reproduce.figure import Figure, Row
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


CARPINETO2015 = Paper("carpineto2015", min(KS), _figures)
