"""Queries that people labelled as sensitive or by topic, for the verbs that compare with them."""

from typing import TYPE_CHECKING, Annotated

import typer

from queryveil.errors import QueryveilError

if TYPE_CHECKING:
    import pyarrow as pa

Sensitive = Annotated[
    str | None,
    typer.Option(
        "--sensitive",
        metavar="FILE",
        help="Labelled queries, Parquet or CSV: columns query and sensitive (0, no, false or empty if not).",
    ),
]

Truth = Annotated[
    str | None,
    typer.Option(
        "--truth",
        metavar="FILE",
        help="The true topics of queries, Parquet or CSV: columns query and topic, a path in the taxonomy.",
    ),
]


def read_topics(path: str) -> "pa.Table":
    """Queries with their topics."""
    table = read_labels(path)
    missing = next((name for name in ("query", "topic") if name not in table.column_names), None)
    if missing is not None:
        raise QueryveilError(f"The topics in {path} have no column '{missing}'; give the columns query and topic.")
    return table


def read_labels(path: str) -> "pa.Table":
    """Queries with labels."""
    import pyarrow as pa
    import pyarrow.csv as pacsv
    import pyarrow.parquet as pq

    texts = pacsv.ConvertOptions(column_types={"query": pa.string()})
    try:
        return pq.read_table(path) if path.endswith(".parquet") else pacsv.read_csv(path, convert_options=texts)
    except (OSError, pa.ArrowException):
        raise QueryveilError(f"The labels in {path} cannot be read; give Parquet, or CSV with a header.") from None
