"""All methods on one log: what each keeps and gives away, which meets a policy, and which serves an aim best."""

from queryveil.assess.comparison.configurations import KNOWN, Job, grid, looking_in
from queryveil.assess.comparison.recommendations import Recommendation, recommend
from queryveil.assess.comparison.results import Comparison, Configuration, Frontier, Row
from queryveil.assess.comparison.run import REPORT, Board, compare

__all__ = [
    "KNOWN",
    "REPORT",
    "Board",
    "Comparison",
    "Configuration",
    "Frontier",
    "Job",
    "Recommendation",
    "Row",
    "compare",
    "grid",
    "looking_in",
    "recommend",
]
