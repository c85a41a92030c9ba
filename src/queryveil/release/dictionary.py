"""The data dictionary of a release: what each column means, and what was done to it.

It follows from the manifest alone, so the verifier writes it once more and compares. `schema.json` is a Table Schema
(Frictionless Data), with one more entry per field: `treatment`.
"""

import json
from typing import NamedTuple

import pyarrow as pa

from queryveil.claims import Claim, CombinationUsers, RecordUsers, TimesRounded
from queryveil.formats import writers
from queryveil.release.manifest import Manifest

_TYPES = {
    pa.int64(): "integer",
    pa.int32(): "integer",
    pa.string(): "string",
    pa.timestamp("us"): "datetime",
    pa.bool_(): "boolean",
    pa.float64(): "number",
}

_COUNTED = ("users", "events", "views", "clicks", "mean_rank")
"""The numbers of a table of counts."""

_ABOUT = {
    "affine-sessions": ("session",),
    "affine-users": ("query",),
    "allowed-queries": ("query",),
    "blocked-words": ("query",),
    "decided-queries": ("query",),
    "bag-users": ("item", "node"),
    "cell-users": (*_COUNTED, "query"),
    "clicked-users": ("clicked",),
    "counted-rows": _COUNTED,
    "hidden-rows": _COUNTED,
    "private-counts": _COUNTED,
    "rounded-counts": _COUNTED,
    "view-users": ("url", "rank"),
    "clicked-sites": ("query",),
    "concept-users": ("item", "node"),
    "differential-privacy": ("query", "url", "count"),
    "disjoint-clicks": ("query",),
    "fragment-users": ("query",),
    "hashed-words": ("query",),
    "linked-events": ("user", "session"),
    "query-spelling": ("query",),
    "query-users": ("query",),
    "record-queries": ("user",),
    "record-users": ("user",),
    "term-users": ("query",),
    "times-rounded": ("time",),
}
"""The columns that each kind of claim is about, beside those that it names itself."""


class Column(NamedTuple):
    """A column of a released table."""

    name: str
    type: str
    meaning: str
    treatment: tuple[str, ...]
    """What was done to it, a sentence each."""


def columns_of(manifest: Manifest) -> list[Column]:
    """The columns of a release, in order."""
    return [
        Column(name, _TYPES[writers.type_of(name)], _meaning(name, manifest), _treatment(name, manifest))
        for name in manifest.columns
    ]


def data_dictionary(manifest: Manifest) -> bytes:
    """The data dictionary as it is written in a release."""
    fields = [
        {"name": column.name, "type": column.type, "description": column.meaning, "treatment": column.treatment}
        for column in columns_of(manifest)
    ]
    return as_json({**described(manifest), "fields": fields, "missingValues": [""]})


def described(manifest: Manifest) -> dict[str, dict[str, str]]:
    """What the publisher says about the release, as an entry of a data dictionary; none if nothing is said."""
    return {} if manifest.about is None else {"about": manifest.about.model_dump(exclude_none=True)}


def as_json(value: object) -> bytes:
    """JSON as files of a release have it."""
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def _meaning(name: str, manifest: Manifest) -> str:
    shared = next((claim for claim in manifest.claims if isinstance(claim, RecordUsers)), None)
    if name == "user" and shared is not None:
        return "The record: one that users share." if shared.compact else "The user, who has the record of a group."
    if name == "query" and manifest.kind == "tokens":
        return "A query, with a token instead of each word."
    if manifest.kind == "counts" and name in _OF_ROWS:
        return _OF_ROWS[name]
    if "clicked" in manifest.columns and name in _SHOWN:
        return _SHOWN[name]
    if name == "url" and manifest.private:
        return "An address clicked for the query; missing in the row of the query itself."
    return _MEANINGS.get(name, "Metadata of the event, as the log has it.")


_OF_ROWS = {
    "users": "How many distinct users the row counts, or a band of it; missing in a total if it would tell of few.",
    "events": "How many events the row counts.",
    "views": "How many results shown the row counts; missing if few users were shown any.",
    "clicks": "How many results clicked the row counts; missing if that would tell of few users.",
    "mean_rank": "The mean rank of the results that the row counts, to a hundredth; missing if few users have any.",
    "period": "The first day of the day, week or month in which the events of the row were.",
    "total": "1 for a total over all values of the columns that are empty or * in it; 0 for any other row.",
}
"""Columns of a table of counts."""

_SHOWN = {
    "event": "The event: one search. An event has one row per result shown, or one row without any.",
    "rank": "The rank at which the address was shown; missing if few share the rank.",
    "url": "The address that was shown; missing if there was none, or few share it.",
    "clicked": "Whether the address was clicked; missing if that would say it of few users.",
}
"""Columns of a release with results shown."""

_MEANINGS = {
    "user": "The user. Rows with the same number are of one user.",
    "session": "The session. Rows with the same number are of one session of one user.",
    "event": "The event: one search. An event has one row per click, or one row without a click.",
    "query": "What was typed, in normal form: lower case, one blank between words.",
    "users": "How many users share the record.",
    "time": "When the query was issued.",
    "rank": "The rank of the address that was clicked; missing if there was no click, or few share the rank.",
    "url": "The address that was clicked; missing if there was no click, or few share it.",
    "item": "A term of a taxonomy, instead of words of a query.",
    "node": "The number of the term in the taxonomy.",
    "count": "How many users the query, or the click, was counted for, with noise.",
}


def _treatment(name: str, manifest: Manifest) -> tuple[str, ...]:
    """What was done to a column: how ids are made, what was scrubbed, and what is promised about it."""
    done = [_DONE[name]] if name in _DONE else []
    if name in ("query", "url") and manifest.scrub is not None:
        done.append(_scrubbed(manifest.scrub.how, name))
    about = [claim for claim in manifest.claims if name in _columns_about(claim)]
    done += ["Left out: the column is empty."] if name == "time" and not _rounded(manifest) else []
    done += [_MERGED] if any(isinstance(claim, CombinationUsers) for claim in about) else []
    return (*done, *(claim.statement for claim in about))


_DONE = {
    "user": "Original ids are left out; numbers are given at random.",
    "session": "Original ids are left out; numbers are given at random.",
    "event": "Numbered anew, in an order that says nothing about time.",
}


_MERGED = f"Values of combinations that too few users have are replaced by {CombinationUsers.MERGED}."


def _scrubbed(how: str, name: str) -> str:
    if name == "url":
        return "Clicks on addresses with personal data are left out."
    found = "Queries with personal data are left out" if how == "remove" else "Personal data is replaced by masks"
    return f"{found}, as far as scrubbing finds it."


def _columns_about(claim: Claim) -> tuple[str, ...]:
    named: tuple[str, ...] = getattr(claim, "columns", ())
    return (*_ABOUT.get(claim.kind, ()), *named)


def _rounded(manifest: Manifest) -> bool:
    """Whether times are released; AOL's format has a column for them in any case."""
    return any(isinstance(claim, TimesRounded) for claim in manifest.claims)
