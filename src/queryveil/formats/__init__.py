"""The formats of query logs: one module each, with the name of its format."""

# The command line names the formats in its help, so nothing slow is imported here.
FORMATS = ("aol", "excite", "sogou", "ubi", "parquet", "json", "jsonl", "tsv", "csv")
"""In the order in which they are tried: the most specific first."""
