"""Run the benchmarks and print Markdown: `python -m benchmarks.run foundations --users 65000,650000 --times 2`."""

import argparse
import os
import platform

from benchmarks import (
    affinity,
    checks,
    clump,
    comparison,
    counts,
    dp,
    evaluation,
    foundations,
    generalization,
    knowledge,
    languages,
    mdav,
    microaggregation,
    pipelines,
    planning,
    removal,
    scrub,
    series,
    similarity,
    sliders,
    spark,
    spark_series,
    spark_time,
    views,
)

REPORTS = {
    "checks": checks.report,
    "clump": clump.report,
    "comparison": comparison.report,
    "counts": counts.report,
    "counts-growth": counts.growth,
    "dp": dp.report,
    "evaluation": evaluation.report,
    "generalization": generalization.report,
    "microaggregation": microaggregation.report,
    "foundations": foundations.report,
    "affinity": affinity.report,
    "scrub": scrub.report,
    "series": series.report,
    "similarity": similarity.report,
    "sliders": sliders.report,
    "spark": spark.report,
    "spark-series": spark_series.report,
    "spark-time": spark_time.report,
    "knowledge": knowledge.report,
    "languages": languages.report,
    "mdav": mdav.report,
    "pipelines": pipelines.report,
    "planning": planning.report,
    "removal": removal.report,
    "views": views.report,
}


def main() -> None:
    """Measure, and print what goes into README.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", default=list(REPORTS), help=f"which: {', '.join(REPORTS)}")
    parser.add_argument("--users", default="65000", help="sizes of the synthetic log, in users")
    parser.add_argument("--times", type=int, default=2, help="runs of each contender; the best counts")
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, {platform.python_implementation()} {platform.python_version()}\n")
    for what in options.what:
        for line in REPORTS[what]([int(users) for users in options.users.split(",")], options.times):
            print(line, flush=True)


if __name__ == "__main__":
    main()
