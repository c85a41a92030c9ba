"""Reports: one HTML file for a release, a comparison or the experiments of a paper, which opens without a network."""

from queryveil.reports.comparisons import compare, comparison_page
from queryveil.reports.page import check_packages
from queryveil.reports.papers import paper_page
from queryveil.reports.releases import Report, check_place, release_page, report

__all__ = [
    "Report",
    "check_packages",
    "check_place",
    "compare",
    "comparison_page",
    "paper_page",
    "release_page",
    "report",
]
