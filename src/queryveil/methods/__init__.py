"""The methods: one file each, opening with its citation."""

from queryveil.methods.affinity import Affinity
from queryveil.methods.base import Method, Parameter, Reason, parameters_of
from queryveil.methods.clump import Clump
from queryveil.methods.dp_set import DpSet
from queryveil.methods.equality import Equality
from queryveil.methods.hash import Hash
from queryveil.methods.mdav import Mdav
from queryveil.methods.odp import Odp
from queryveil.methods.partition import Partition
from queryveil.methods.poblete import Poblete
from queryveil.methods.rules import Rules
from queryveil.methods.search import Search
from queryveil.methods.wngen import Wngen
from queryveil.methods.zealous import Zealous

METHODS: dict[str, type[Method]] = {
    method.name: method
    for method in (Equality, Rules, Affinity, Odp, Search, Mdav, Clump, Partition, Wngen, Zealous, DpSet, Poblete, Hash)
}

__all__ = [
    "METHODS",
    "Affinity",
    "Clump",
    "DpSet",
    "Equality",
    "Hash",
    "Mdav",
    "Method",
    "Odp",
    "Parameter",
    "Partition",
    "Poblete",
    "Reason",
    "Rules",
    "Search",
    "Wngen",
    "Zealous",
    "parameters_of",
]
