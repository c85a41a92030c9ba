"""The seam: where the table steps of logs, methods and measures run."""

from queryveil.engines.base import Batches, Engine, InFiles
from queryveil.engines.duckdb import DuckDB

__all__ = ["Batches", "DuckDB", "Engine", "InFiles"]
