"""Table engines, which run the table steps of logs, methods and measures."""

from queryveil.engines.base import Batches, Engine, InFiles, identifier
from queryveil.engines.duckdb import DuckDB, locked
from queryveil.engines.workspace import Table, Workspace

__all__ = ["Batches", "DuckDB", "Engine", "InFiles", "Table", "Workspace", "identifier", "locked"]
