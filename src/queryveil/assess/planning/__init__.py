"""The parameters that meet a policy: what releases keep, which of them meet it, and a recipe of the best."""

from queryveil.assess.planning.planned import Plan, Tried, plan
from queryveil.assess.planning.space import AIMS, Aim, Family, Space, method_of, space

__all__ = ["AIMS", "Aim", "Family", "Plan", "Space", "Tried", "method_of", "plan", "space"]
