"""Run the benchmarks: `python -m benchmarks.run [--users 65000,650000] [--times 2]`; prints Markdown."""

import argparse
import os
import platform

from benchmarks import foundations


def main() -> None:
    """Measure, and print what goes into README.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", default="65000", help="sizes of the synthetic log, in users")
    parser.add_argument("--times", type=int, default=2, help="runs of each contender; the best counts")
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, {platform.python_implementation()} {platform.python_version()}\n")
    print("\n".join(foundations.report([int(users) for users in options.users.split(",")], options.times)))


if __name__ == "__main__":
    main()
