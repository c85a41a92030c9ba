"""All methods on one log: what each keeps, what each gives away, and which of them serves an aim best."""

from queryveil.comparison.cells import KNOWN, Job, grid
from queryveil.comparison.results import MOST_RISK, Cell, Comparison, Frontier, Recommendation, Row
from queryveil.comparison.run import REPORT, Board, compare

__all__ = [
    "KNOWN",
    "MOST_RISK",
    "REPORT",
    "Board",
    "Cell",
    "Comparison",
    "Frontier",
    "Job",
    "Recommendation",
    "Row",
    "compare",
    "grid",
]
