"""The methods: one file each, opening with its citation."""

from queryveil.methods.affinity import Affinity
from queryveil.methods.base import Method, Parameter, Reason, parameters_of
from queryveil.methods.equality import Equality
from queryveil.methods.rules import Rules

METHODS: dict[str, type[Method]] = {method.name: method for method in (Equality, Rules, Affinity)}

__all__ = ["METHODS", "Affinity", "Equality", "Method", "Parameter", "Reason", "Rules", "parameters_of"]
