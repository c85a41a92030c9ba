"""F-beta: does a release hold the harmless queries, and only these?

Claudio Carpineto, Giovanni Romano, KΘ-affinity privacy, Information Processing and Management 51 (2015), section 4.3,
formula 5. A method is seen as a search engine that must retrieve, that is release, the queries that are not sensitive.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queryveil.arrays import Bools
from queryveil.assess.measures.counts import released_counts
from queryveil.assess.measures.registry import Assessment, Value, measure
from queryveil.errors import QueryveilError, parameter
from queryveil.log import LocalLog, QueryLog, local
from queryveil.release import Release
from queryveil.text import normal_form

_NO = ("", "no", "false", "0")
"""Texts that say that a query is not sensitive; all others say that it is, or in what way."""


@dataclass(frozen=True)
class FBeta:
    """How well harmless and sensitive queries are distinguished.

    Attributes:
        value: The weighted harmonic mean of precision and recall; 0 if no harmless query is released.
        precision: The share of harmless ones among the labelled queries that are released; 0 if none is.
        recall: The share of the harmless ones that is released.
        original: The value of a release of all.
        queries: How many labelled queries are in the log.
        sensitive: How many of them are sensitive.
    """

    value: float
    precision: float
    recall: float
    original: float
    queries: int
    sensitive: int


def f_beta(release: Release, log: QueryLog, labels: pa.Table, beta: float = 1.0) -> FBeta:
    """The F-beta of releasing what is not sensitive.

    Args:
        release: A release of queries.
        log: Its log.
        labels: One row per labelled query: `query`, and `sensitive`, which is true or false, 1 or 0, yes or no, or text
            that says in what way and is null or empty if in none, as in the truth of a synthetic log. Queries that the
            log does not have are passed over; one with several labels is sensitive if any is.
        beta: How many times as much recall counts as precision; less than 1 to care for precision.

    Raises:
        QueryveilError: If the release has no queries, a label is not understood, or no harmless query of the log has
            one.
    """
    if not beta > 0:
        raise QueryveilError(f"{parameter('f_beta', 'beta')} must be more than 0. Got {beta} instead.")
    if "query" not in release.schema.names:
        raise QueryveilError("F-beta is for releases of queries.")
    here = local(log, "F-beta")
    labelled, sensitive = labelled_queries(here, labels)
    return f_beta_of(released_counts(release, here) > 0, labelled, sensitive, beta)


def labelled_queries(log: LocalLog, labels: pa.Table) -> tuple[Bools, Bools]:
    """Which queries of a log are labelled, as `f_beta` takes labels, and which of them are sensitive.

    Raises:
        QueryveilError: If a label is not understood, or no query of the log is labelled as harmless.
    """
    label = sensitive_of(labels)
    texts = normal_form(labels["query"].combine_chunks().cast(pa.string()))
    place = pc.index_in(texts.cast(log.query_text.type), value_set=log.query_text)
    known = place.is_valid().to_numpy(zero_copy_only=False)
    is_sensitive = label.to_numpy(zero_copy_only=False)
    query = place.fill_null(0).to_numpy()
    labelled, sensitive = np.zeros(log.n_queries, np.bool_), np.zeros(log.n_queries, np.bool_)
    labelled[query[known]] = True
    sensitive[query[known & is_sensitive]] = True
    if not (labelled & ~sensitive).any():
        raise QueryveilError("No query of the log is labelled as harmless.")
    return labelled, sensitive


def f_beta_of(released: Bools, labelled: Bools, sensitive: Bools, beta: float) -> FBeta:
    """The F-beta of releasing some queries; at least one is labelled as harmless.

    Args:
        released: Which queries are released.
        labelled: Which are labelled.
        sensitive: Which are labelled as sensitive.
        beta: As in `f_beta`.
    """
    harmless = labelled & ~sensitive
    shown, right = int((released & labelled).sum()), int((released & harmless).sum())
    n, good = int(labelled.sum()), int(harmless.sum())
    return FBeta(
        _f(right, shown, good, beta),
        right / shown if shown else 0.0,
        right / good,
        _f(good, n, good, beta),
        n,
        n - good,
    )


def sensitive_of(labels: pa.Table) -> pa.Array:
    """Which rows of labels, as `f_beta` takes them, are sensitive.

    Raises:
        QueryveilError: If a column is missing, or a label is not understood.
    """
    if not {"query", "sensitive"} <= set(labels.column_names):
        raise QueryveilError("Labels must have the columns 'query' and 'sensitive'.")
    return _sensitive(labels["sensitive"].combine_chunks())


def _sensitive(label: pa.Array) -> pa.Array:
    """Labels as true or false; one that is missing is false."""
    kind = label.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        number = pc.fill_null(label.cast(pa.float64(), safe=False), 0.0)
        odd = number.filter(pc.invert(pc.is_in(number, value_set=pa.array([0.0, 1.0]))))
        if len(odd):
            raise QueryveilError(f"Labels that are numbers must be 0 or 1. Got {odd[0].as_py():g} instead.")
        return pc.equal(number, 1.0)
    if pa.types.is_boolean(kind):
        return pc.fill_null(label, False)
    if pa.types.is_dictionary(kind):
        return _sensitive(label.dictionary_decode())
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind)):
        raise QueryveilError(f"Labels must be true or false, 0 or 1, or text. Got the type '{kind}' instead.")
    text = pc.utf8_lower(pc.utf8_trim_whitespace(pc.fill_null(label.cast(pa.string()), "")))
    return pc.invert(pc.is_in(text, value_set=pa.array(_NO)))


def _f(right: int, released: int, harmless: int, beta: float) -> float:
    """Formula 5, with P = right / released and R = right / harmless."""
    return (1 + beta**2) * right / (beta**2 * harmless + released)


@measure("f_beta", label="harmless queries released, and only these", group="labelled", unit="number")
def f_beta_of_labels(on: Assessment) -> Iterator[Value]:
    """F-beta of the labelled queries, where there are any."""
    for beta in (1.0, 0.1) if on.sensitive is not None else ():
        try:
            found = f_beta(on.release, on.log, on.sensitive, beta)
        except QueryveilError as error:
            yield Value(None, str(error), f"F of beta {beta:g}")
        else:
            yield Value(found.value, detail=f"F of beta {beta:g}", best=found.original)
