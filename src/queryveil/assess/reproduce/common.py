"""What the experiments of all papers share: what they run on, and groups of users at random as their baseline."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from queryveil.arrays import Ints
from queryveil.assess.reproduce.figure import Figure
from queryveil.assess.reproduce.published import Published
from queryveil.errors import Progress, QueryveilError
from queryveil.knowledge import Links, Resolver, Taxonomy, categorize
from queryveil.log import LocalLog
from queryveil.methods import Odp
from queryveil.methods.microaggregation.common import Searches
from queryveil.release import Release

AT_RANDOM = "at random"
"""The line of a figure that is the baseline."""
LEVELS = 5


@dataclass(frozen=True)
class Run:
    """What an experiment is run on; see `reproduce`."""

    log: LocalLog
    taxonomy: Taxonomy
    resolver: Resolver
    clusters: int | None
    labels: pa.Table | None
    seed: int
    progress: Progress
    ks: Sequence[int] | None = None
    thetas: Sequence[float] | None = None
    user: str | None = None
    depth: int = 3
    topics: pa.Table | None = None

    @property
    def levels(self) -> range:
        """The levels of the taxonomy that figures show."""
        return range(1, min(LEVELS, self.taxonomy.tree.height) + 1)

    def categorize(self, linker: str, **options: Any) -> Links:
        """The categories of the queries of the log; at least one has a category."""
        self.progress("categorizing")
        links = categorize(self.log, self.taxonomy, linker, **options)
        if not (links.tree.depth[links.node] > 0).any():
            raise QueryveilError(
                f"No query of the log has a category in '{self.taxonomy.name}'; name another taxonomy."
            )
        return links

    def random_groups(self, k: int) -> Release:
        """A release of groups of users at random."""
        n = self.log.n_users
        order = np.random.default_rng(self.seed).permutation(n)
        group: Ints = np.empty(n, np.int32)
        group[order] = np.minimum(np.arange(n) // k, n // k - 1)
        searches = Searches.of(self.log)
        return Odp(k=k).release_groups(self.log, searches, group, parts=0, seed=self.seed, notes=[])


@dataclass(frozen=True)
class Paper:
    """A paper whose experiments can be run.

    Attributes:
        name: What it is called on the command line.
        users: How many users its largest groups have; a log needs as many.
        figures: Runs the experiments.
        needs: Optional packages that they use.
        citation: Who wrote it, its title, and where it appeared.
        published: What its text says of its figures.
    """

    name: str
    users: int
    figures: Callable[[Run], list[Figure]]
    needs: tuple[str, ...] = ()
    citation: str = ""
    published: tuple[Published, ...] = ()
