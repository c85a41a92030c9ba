"""What Spark starts Python workers from: a process that has loaded what every worker needs.

Workers are forked from it. Otherwise each loads NumPy, Arrow, Numba and the kernels again: five seconds of a core, for
every core of an executor.
"""

import queryveil.kernels.digest
import queryveil.log.ingest.spark  # noqa: F401  # so that it is there when a worker is forked

if __name__ == "__main__":
    from pyspark.daemon import manager

    manager()
