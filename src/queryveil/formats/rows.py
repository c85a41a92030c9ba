"""What every format returns: rows as text, with their place in the file and the bad rows found on the way."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from queryveil.errors import QueryveilError, did_you_mean, option
from queryveil.text.show import printable

MOST_COLUMNS = 100
"""A file with more columns is not a log: its columns are users or queries, or it is a transposed table."""

LONGEST_NAME = 200
"""The most characters of a column's name that a manifest keeps."""

MOST_RESULTS = 1_000
"""A longer list of results is not what a search showed."""

CANONICAL = ("user", "query", "time", "rank", "url", "clicked")

# Who searched, by any of these words, alone or with an ending such as `_id`; `device_id` is a user, `device` is not.
_PEOPLE = (
    "user", "visitor", "customer", "member", "account", "person", "shopper", "subscriber", "patron", "employee",
    "participant", "anonymoususer", "nutzer", "kunde", "besucher", "utilisateur", "usuario",
)  # fmt: skip
_ENDINGS = ("id", "uuid", "guid", "hash", "key", "number", "no", "token", "code", "pseudoid")
_THINGS = (
    "anon",
    "anonymous",
    "client",
    "device",
    "browser",
    "distinct",
    "cookie",
    "profile",
    "fullvisitor",
    "gaclient",
)
_SESSIONS = ("session", "searchsession", "visit", "gasession", "sitzung")

_SESSION_NAMES = (*(f"{what}{ending}" for ending in (*_ENDINGS, "") for what in _SESSIONS), "sid")

_ALIASES = {
    "user": (
        *(f"{who}{ending}" for ending in ("", *_ENDINGS) for who in _PEOPLE),
        *(f"{what}{ending}" for ending in _ENDINGS for what in _THINGS),
        *("uid", "cookie", "username", "login", "email", "emailaddress", "muid"),
        *_SESSION_NAMES,
    ),
    "query": (
        "query", "querytext", "userquery", "rawquery", "originalquery", "typedquery", "searchquery", "q", "searchterm",
        "searchterms", "searchphrase", "searchtext", "searchstring", "searchkeyword", "searchkeywords", "searchinput",
        "searchword", "searchwords", "searchexpression", "querystr", "queryterm", "queryterms", "queryphrase",
        "keywordquery", "sitesearchterm", "sitesearchquery", "internalsearchterm", "internalsearchkeyword",
        "onsitesearchterm", "keyword", "keywords", "phrase", "term", "terms", "search", "suchbegriff", "suchanfrage",
        "suchwort", "suchtext", "requete", "motcle", "consulta", "busqueda", "ricerca", "zoekterm", "zoekopdracht",
    ),
    "time": (
        "time", "querytime", "timestamp", "@timestamp", "ts", "datetime", "eventtime", "eventtimestamp", "searchtime",
        "searchtimestamp", "searchedat", "querytimestamp", "querydatetime", "searchdatetime", "eventdatetime",
        "createdat", "createdon", "created", "occurredat", "loggedat", "logtime", "logtimestamp", "requesttime",
        "requesttimestamp", "requestedat", "servertime", "clienttime", "hittime", "hittimestamp", "visittime",
        "receivedat", "sentat", "timeutc", "utctime", "timestamputc", "datetimeutc", "timestampms", "timestampmillis",
        "timems", "epoch", "epochms", "unixtime", "unixtimestamp", "zeitstempel", "zeitpunkt", "zeit", "horodatage",
        "fecha", "fechahora", "tijdstip", "date", "eventdate", "searchdate", "querydate", "logdate", "dt", "day",
        "datum",
    ),
    "rank": (
        "rank", "itemrank", "position", "clickrank", "clickedrank", "clickposition", "clickedposition", "resultrank",
        "resultposition", "itemposition", "productposition", "hitposition", "clickpos", "pos", "ordinal",
    ),
    "url": (
        "url", "clickurl", "clickedurl", "resulturl", "link", "clickedlink", "resultlink", "clickedpage",
        "clickedresult", "clickedresulturl", "clickeddocument", "clickeddoc", "clickeddocid", "clickeddocumentid",
        "clickeditem", "clickeditemid", "clickedproduct", "clickedproductid", "clickedsku", "clickedid", "targeturl",
        "destinationurl", "resultid", "objectid", "docid", "documentid",
    ),
    "clicked": ("clicked", "isclicked", "wasclicked", "isclick"),
}  # fmt: skip
"""Usual names of the columns, compared without case, spaces, dashes and underscores; of several, the first wins."""


@dataclass
class BadRows:
    """Bad rows by kind: how many, and where the first one is."""

    count: dict[str, int] = field(default_factory=dict)
    first: dict[str, str] = field(default_factory=dict)

    def add(self, kind: str, count: int, where: str) -> None:
        """Add `count` rows of a kind, the first of them at `where` (file:line)."""
        if count:
            self.count[kind] = self.count.get(kind, 0) + count
            self.first.setdefault(kind, where)

    def merge(self, other: "BadRows") -> None:
        """Add what was found in another part of the log."""
        for kind, count in other.count.items():
            self.add(kind, count, other.first[kind])

    @property
    def total(self) -> int:
        """How many rows were bad."""
        return sum(self.count.values())


@dataclass
class Rows:
    """Rows of one part of one file: one string array per column, the line of each row, and the bad rows."""

    file: str
    line: NDArray[np.int64]
    columns: dict[str, pa.Array]
    bad: BadRows = field(default_factory=BadRows)

    def at(self, row: int) -> str:
        """Where a row is, as file:line."""
        return f"{self.file}:{self.line[row]}"


@dataclass(frozen=True)
class ReadOptions:
    """What a caller may say about the files."""

    columns: Mapping[str, str] = field(default_factory=dict)
    """Canonical (or extra) name -> name in the file."""
    encoding: str | None = None
    time_format: str | None = None
    found: Mapping[str, str] = field(default_factory=dict)
    """User and query, where the beginning of the log shows them by usual names: all of the log must agree."""


Task = Callable[[], Rows]
"""The part of reading that takes processor time; tasks run on threads, results are taken in order."""


def is_column_name(name: str) -> bool:
    """Whether this can be the name of a column: it is not empty, is printable, and has no quote."""
    return name != "" and name.isprintable() and '"' not in name


def plain_name(name: str) -> str:
    """A name without what does not matter in it: case, spaces, dashes and underscores."""
    return "".join(c for c in name.lower() if c not in " -_")


def names_a_session(column: str) -> bool:
    """Whether this is a usual name of a session or a visit, of which a person has many."""
    plain = plain_name(column)
    return plain.startswith(("session", "searchsession")) or plain in _SESSION_NAMES


def known_columns(names: Sequence[str]) -> dict[str, str]:
    """The canonical columns that are recognized by their usual names."""
    plain = {plain_name(name): name for name in reversed(names)}
    found = {}
    for canonical, aliases in _ALIASES.items():
        column = next((plain[alias] for alias in aliases if alias in plain), None)
        if column is not None:
            found[canonical] = column
    return found


def _listed(names: Sequence[str], options: ReadOptions) -> str:
    """The columns for an error message, without their names: these may be users or queries, if there is no header."""
    free = [name for name in names if name not in options.columns.values()]
    found = [name for name in known_columns(free) if name not in options.columns]
    if found:
        return f"of its {len(names)} columns, these were found by name: {', '.join(found)}"
    return f"it has {len(names)} columns, none with a usual name"


def check_width(names: Collection[object], where: str) -> None:
    """Refuse more columns than a log can have, before memory is allocated for each."""
    if len(names) > MOST_COLUMNS:
        raise QueryveilError(
            f"{where} has more than {MOST_COLUMNS} columns or keys; write a log with one row per query, and only the"
            " columns that are needed."
        )


def choose_columns(names: Sequence[str], options: ReadOptions, where: str) -> dict[str, str]:
    """Which column of a file is which: what the caller says first, then the usual names.

    Args:
        names: The columns of the file, in order.
        options: What the caller says about them.
        where: The file, for messages.

    Returns:
        Canonical name -> column, followed by the extra columns under their own names.
    """
    check_width(names, where)
    has = _listed(names, options)
    chosen: dict[str, str] = {}
    for name, column in options.columns.items():
        if column not in names:
            # Only usual names are suggested: any other may be a user or a query, if there is no header.
            hint = did_you_mean(column, known_columns(names).values(), has)
            raise QueryveilError(f"There is no column '{printable(column)}' in {where}; {hint}.")
        chosen[name] = column
    taken = set(chosen.values())
    usual = known_columns([name for name in names if name not in taken])
    for canonical, column in options.found.items():
        if canonical not in chosen and usual.get(canonical) != column:
            raise QueryveilError(
                f"By the names of columns the {canonical} is in column '{printable(column)}' at the beginning of the"
                f" log, but not in {where}; name a column that all of the log has with"
                f" {option('columns', {canonical: 'NAME'})}, or read the files separately."
            )
    for canonical, column in usual.items():
        chosen.setdefault(canonical, column)
    for needed in ("user", "query"):
        if needed not in chosen:
            raise QueryveilError(
                f"No column of {where} looks like the {needed}; name it with {option('columns', {needed: 'NAME'})};"
                f" {has}."
            )
    extras = [name for name in names if name not in chosen.values()]
    if not all(map(is_column_name, extras)):
        raise QueryveilError(f"A column of {where} has a name with a quote or no letters; rename it, or leave it out.")
    if not all(map(is_column_name, options.columns)):
        raise QueryveilError(
            f"{option('columns')} gives a column a name with a quote or no letters; choose another name."
        )
    folded = [name.casefold() for name in names]
    if len(set(folded)) < len(folded):
        raise QueryveilError(f"Two columns of {where} have the same name except for case; rename one of them.")
    clash = next((name for name in extras if name in chosen), None)
    if clash is not None:
        raise QueryveilError(
            f"{where} has a column '{printable(clash)}', but {option('columns')} gives this name to another column;"
            " rename one of them."
        )
    if len({name.casefold() for name in (*chosen, *extras)}) < len(chosen) + len(extras):
        raise QueryveilError(
            f"{option('columns')} gives two columns of {where} the same name except for case; rename one of them."
        )
    return chosen | {name: name for name in extras}
