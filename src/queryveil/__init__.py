"""queryveil: a query log in, a verified release out."""

__version__ = "0.1.0"
