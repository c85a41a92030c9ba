"""The experiments of papers, on any log: their figures as tables and charts, one file per paper."""

import math
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from queryveil.assess.reproduce.batet2013 import BATET2013
from queryveil.assess.reproduce.carpineto2015 import CARPINETO2015
from queryveil.assess.reproduce.common import Paper, Run
from queryveil.assess.reproduce.erola2011 import EROLA2011
from queryveil.assess.reproduce.erola2012 import EROLA2012
from queryveil.assess.reproduce.figure import Figure
from queryveil.assess.reproduce.milanifard2010 import MILANIFARD2010
from queryveil.assess.reproduce.published import Beside, Published, beside
from queryveil.errors import Progress, QueryveilError, did_you_mean, old_names, require
from queryveil.knowledge import Clicks, Resolver, Taxonomy, open_taxonomy
from queryveil.log import QueryLog, local

__all__ = ["PAPERS", "Beside", "Figure", "Paper", "Published", "beside", "reproduce"]

PAPERS = {paper.name: paper for paper in (EROLA2011, EROLA2012, BATET2013, MILANIFARD2010, CARPINETO2015)}


@old_names(knowledge="taxonomy", tell="progress")
def reproduce(
    paper: str,
    log: QueryLog,
    taxonomy: Taxonomy | str = "wordnet",
    *,
    resolver: Resolver | None = None,
    clusters: int | None = 80,
    labels: pa.Table | None = None,
    topics: pa.Table | None = None,
    ks: Sequence[int] | None = None,
    thetas: Sequence[float] | None = None,
    user: str | None = None,
    depth: int = 3,
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
        topics: The true topics of queries, columns query and topic, for the accuracy of categories in `batet2013`.
        ks: Values of k, for `carpineto2015`; by default 2, 3, 5, 10, 20, 50, 80, 100 and 200, up to the
            users of the log.
        thetas: Values of theta, for `carpineto2015`; by default 0.9 and 0.8.
        user: The id of a user of the log, for figure 5b and table 4 of `carpineto2015`, which have it if it is given.
        depth: The depth of table 5 of `carpineto2015`; the root is 1.
        seed: Random seed.
        progress: Called with what is being done.
    """
    if paper not in PAPERS:
        raise QueryveilError(f"There is no paper '{paper}' to reproduce; {did_you_mean(paper, PAPERS)}.")
    one = PAPERS[paper]
    require(f"The paper {paper}", *one.needs)
    here = local(log, "reproduce")
    if here.n_users < one.users:
        raise QueryveilError(f"The paper makes groups of up to {one.users} users; the log has only {here.n_users}.")
    base = taxonomy if isinstance(taxonomy, Taxonomy) else open_taxonomy(taxonomy)
    tell = progress or (lambda what: None)
    run = Run(here, base, resolver or Clicks(), clusters, labels, seed, tell, ks, thetas, user, depth, topics)
    return [_measured(figure) for figure in one.figures(run)]


def _measured(figure: Figure) -> Figure:
    """A figure with None in the place of what is not a number."""
    rows = ({k: None if isinstance(v, float) and math.isnan(v) else v for k, v in row.items()} for row in figure.rows)
    return replace(figure, rows=tuple(rows))
