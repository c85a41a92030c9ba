"""The methods: one file each, opening with its citation."""

from queryveil.methods.affinity import Affinity
from queryveil.methods.base import Method, Parameter, Reason, parameters_of
from queryveil.methods.equality import Equality
from queryveil.methods.mdav import Mdav
from queryveil.methods.odp import Odp
from queryveil.methods.rules import Rules
from queryveil.methods.search import Search

METHODS: dict[str, type[Method]] = {method.name: method for method in (Equality, Rules, Affinity, Odp, Search, Mdav)}

__all__ = [
    "METHODS",
    "Affinity",
    "Equality",
    "Mdav",
    "Method",
    "Odp",
    "Parameter",
    "Reason",
    "Rules",
    "Search",
    "parameters_of",
]
