"""The methods: one file each, opening with its citation."""

from queryveil.methods.affinity.method import Affinity
from queryveil.methods.base import Method, Parameter, Reason, parameters_of
from queryveil.methods.columns import Columns
from queryveil.methods.counts.method import Counts
from queryveil.methods.equality import Equality
from queryveil.methods.generalization.clump import Clump
from queryveil.methods.generalization.partition import Partition
from queryveil.methods.generalization.wngen import Wngen
from queryveil.methods.hash import Hash
from queryveil.methods.microaggregation.mdav import Mdav
from queryveil.methods.microaggregation.odp import Odp
from queryveil.methods.microaggregation.search import Search
from queryveil.methods.pipeline import Pipeline
from queryveil.methods.poblete import Poblete
from queryveil.methods.private.dp_set import DpSet
from queryveil.methods.private.zealous import Zealous
from queryveil.methods.rules import Rules
from queryveil.methods.scrub import Scrub

METHODS: dict[str, type[Method]] = {
    method.name: method
    for method in (
        Equality,
        Rules,
        Counts,
        Affinity,
        Odp,
        Search,
        Mdav,
        Clump,
        Partition,
        Wngen,
        Zealous,
        DpSet,
        Poblete,
        Hash,
        Pipeline,
    )
}
STEPS: dict[str, type[Method]] = {
    name: method
    for name, method in (METHODS | {Scrub.name: Scrub, Columns.name: Columns}).items()
    if method is not Pipeline
}
"""What a pipeline consists of."""

__all__ = [
    "METHODS",
    "STEPS",
    "Affinity",
    "Clump",
    "Columns",
    "Counts",
    "DpSet",
    "Equality",
    "Hash",
    "Mdav",
    "Method",
    "Odp",
    "Parameter",
    "Partition",
    "Pipeline",
    "Poblete",
    "Reason",
    "Rules",
    "Scrub",
    "Search",
    "Wngen",
    "Zealous",
    "parameters_of",
]
