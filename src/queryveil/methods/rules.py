"""Rules: a declarative filter with the rules that regulators and engines use today.

Sources of the shipped recipes are named in them (`recipes/`): the European Search Dataset Licensing Program of Google
under the Digital Markets Act, article 6(11), and Commission decision C(2026) 5091 as secondary sources describe it.

A column leaves the house only when a rule covers it: clicks by `min_row_users`, times by `time`, metadata by
`min_row_users` or `min_metadata_users`. Counts of users are taken on the original log.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import Field, field_validator, model_validator

from queryveil.claims import (
    Claim,
    CombinationUsers,
    PartOfLog,
    QuerySpelling,
    QueryUsers,
    RowUsers,
    TermUsers,
    TimesRounded,
)
from queryveil.claims.limits import LIMITS
from queryveil.engines import identifier
from queryveil.errors import QueryveilError
from queryveil.log import LocalLog, QueryLog
from queryveil.methods.base import Reason
from queryveil.methods.linked import LinkedMethod
from queryveil.methods.queries import check_k, click_claims, clicks_of, link_claims
from queryveil.release import Release
from queryveil.release.manifest import names_a_file
from queryveil.text import normal_form, words

Least = Annotated[int, Field(ge=2)]
Most = Annotated[int, Field(ge=1)]
MERGED = -2
"""The id of a metadata value that was given up; -1 is that of a missing one."""

MOST_COMBINATIONS = 1_000_000
"""Metadata with more combinations of values is refused: users are counted anew for all of them at each step."""

_ROW_METADATA = ("device", "country")
_RESERVED = ("user", "event", "query", "time", "rank", "url", "user_id", "event_id", "query_id", "url_id", "draw")
"""What metadata cannot be called, because a release, or the table it is made of, has a column of that name."""


class _TextRule(NamedTuple):
    """A rule about the text of a query."""

    name: str
    measure: Callable[[pa.Array], NDArray[Any]]
    """What is measured of each query."""
    passes: Callable[[NDArray[Any]], NDArray[np.bool_]]
    told: Callable[[Any], str]
    """What was found for a query, in words."""


def _count(n: int) -> str:
    return f"it has {n}"


def _forbidden(name: str, look: Callable[[pa.Array], pa.Array]) -> _TextRule:
    return _TextRule(
        name,
        lambda q: look(q).to_numpy(zero_copy_only=False),
        lambda found: ~found,
        lambda found: "it has one" if found else "it has none",
    )


class Rules(LinkedMethod):
    """Release what passes every rule that is set; without a rule nothing is released."""

    name: ClassVar[str] = "rules"
    limits: ClassVar[tuple[str, ...]] = LIMITS["rules"]

    min_query_users: Least | None = Field(None, description="least distinct users behind a released query")
    min_row_users: Least | None = Field(
        None,
        description="least distinct users behind a released row, that is a (query, url, device, country); clicks are"
        " released only with this rule",
    )
    min_term_users: Least | None = Field(None, description="least distinct users behind each word of a released query")
    max_characters: Most | None = Field(None, description="longest released query, in characters")
    max_terms: Most | None = Field(None, description="longest released query, in words")
    no_digits: bool = Field(False, description="drop queries that hold a digit")
    no_at: bool = Field(False, description="drop queries that hold an @")
    allow_list: Path | None = Field(None, description="file of queries, one a line: release no other")
    block_list: Path | None = Field(
        None, description="file of words or phrases, one a line: drop queries that hold one of them"
    )
    time: Literal["drop", "day", "week"] = Field("drop", description="drop times, or round them down to a day or week")
    min_metadata_users: Least | None = Field(
        None, description="merge metadata values until every released combination of them has so many users"
    )
    metadata: tuple[str, ...] = Field(
        ("country", "device", "language"),
        description="the metadata columns of min_metadata_users, most important first: the last is merged first",
    )

    @field_validator("allow_list", "block_list")
    @classmethod
    def _has_a_plain_name(cls, path: Path | None) -> Path | None:
        if path is not None and not names_a_file(path.name):
            raise ValueError("the manifest names the file, so its name may hold no backslash and no control character")
        return path

    @model_validator(mode="after")
    def _has_a_rule(self) -> Self:
        filters = (self.min_query_users, self.min_row_users, self.min_term_users, self.max_characters, self.max_terms,
                   self.no_digits, self.no_at, self.allow_list, self.block_list)  # fmt: skip
        if not any(filters):
            raise ValueError(
                "Rules needs at least one rule that drops queries, such as --min-query-users 30, or a recipe: "
                "--recipe thirty-five."
            )
        return self

    def _anonymize(self, log: QueryLog, *, seed: int) -> Release:
        """Release what passes every rule."""
        metadata = self._metadata(log)
        limits = ("min_query_users", "min_row_users", "min_term_users", *(["min_metadata_users"] if metadata else []))
        for name in limits:
            if getattr(self, name) is not None:
                check_k(self, name, getattr(self, name), log)
        if self.time != "drop" and not log.has_times:
            raise QueryveilError(f"The rule 'time = {self.time}' needs times, and the log has none; leave it out.")
        engine = log.engine
        self._choose(log)
        row_metadata = self._row_metadata(log)
        engine.materialize(self._rows(row_metadata), "kept_rows")
        if metadata:
            engine.read("merged", self._merged(log, metadata))
        carried = [*(["time"] if self.time != "drop" else []), *dict.fromkeys([*metadata, *row_metadata])]
        release = Release.of_events(
            log,
            self._events(carried, metadata),
            self._kept_clicks() if self._clicks(log) else None,
            method=self.name,
            parameters=self.parameters(),
            claims=self._claims(log, row_metadata, metadata),
            limits=self.limits,
            seed=seed,
            linking=self.linking,
            carried=carried,
            notes=self._unseen(metadata),
        )
        engine.drop("released_queries", "kept_rows", *(["merged"] if metadata else []))
        return release

    def parameters(self) -> dict[str, Any]:
        """The parameters; lists by file name, because a release need not tell where the publisher keeps them."""
        names = {name: path.name for name in ("allow_list", "block_list") if (path := getattr(self, name)) is not None}
        return super().parameters() | names

    def explain(self, log: LocalLog, query_id: int) -> list[Reason]:
        """Every rule about the query, and how many of its rows pass the rule about rows."""
        here = {name: path for name in ("allow_list", "block_list") if (path := getattr(self, name)) and path.exists()}
        looked_at = self.model_copy(update={"allow_list": None, "block_list": None} | here)
        reasons = []
        if self.min_query_users is not None:
            users = int(log.users_per_query[query_id])
            rule = f"at least {self.min_query_users} users issued the query"
            reasons.append(Reason(rule, users >= self.min_query_users, f"{users} did"))
        if self.min_term_users is not None:
            users = int(log.rarest_word[query_id])
            rule = f"at least {self.min_term_users} users used each of its words"
            reasons.append(Reason(rule, users >= self.min_term_users, f"{users} used the rarest"))
        for about in looked_at._text_rules():
            measured = about.measure(log.query_text.slice(query_id, 1))
            reasons.append(Reason(about.name, bool(about.passes(measured)[0]), about.told(measured[0])))
        for name in ("allow_list", "block_list"):
            if getattr(self, name) is not None and name not in here:
                missing = f"not looked at, there is no file {getattr(self, name)} here"
                reasons.append(Reason(f"the {name.replace('_', '-')}", True, missing))
        if self.min_row_users is not None:
            row_metadata = self._row_metadata(log)
            log.engine.read("released_queries", pa.table({"query_id": [query_id]}))
            kept = log.engine.row(f"SELECT count(*) AS n FROM ({self._rows(row_metadata)})")[0]
            total = log.engine.row(
                "SELECT count(*) AS n FROM events e LEFT JOIN clicks c ON c.event_id = e.event_id"
                f" WHERE e.query_id = {query_id}"
            )[0]
            log.engine.drop("released_queries")
            names = ", ".join(("query", "url", *row_metadata))
            rule = f"rows whose ({names}) is shared by at least {self.min_row_users} users"
            reasons.append(Reason(rule, kept > 0, f"{kept} of its {total} rows are"))
        return reasons

    def _choose(self, log: QueryLog) -> None:
        """Make `released_queries` of the queries that pass every rule about queries."""
        log.need("per_query")
        joins, wanted = "", [f"p.users >= {self.min_query_users or 0}"]
        if self.min_term_users is not None:
            log.need("rarest")
            joins += " JOIN rarest r ON r.query_id = p.query_id"
            wanted.append(f"r.users >= {self.min_term_users}")
        rules = self._text_rules()
        if rules:
            ids = pa.schema([("query_id", log.id_type)])

            def passing(batch: pa.RecordBatch) -> pa.RecordBatch:
                texts = batch["query"].cast(pa.large_string())
                passed = [rule.passes(rule.measure(texts)) for rule in rules]
                return batch.select(["query_id"]).filter(pa.array(np.logical_and.reduce(passed))).cast(ids)

            log.engine.map("SELECT query_id, query FROM queries", passing, ids, "spelled")
            joins += " JOIN spelled s ON s.query_id = p.query_id"
        log.engine.materialize(
            f"SELECT p.query_id AS query_id FROM per_query p{joins} WHERE {' AND '.join(wanted)}", "released_queries"
        )
        if rules:
            log.engine.drop("spelled")

    def _text_rules(self) -> list[_TextRule]:
        """The rules about the text of a query alone."""
        rules = []
        if self.max_characters is not None:
            most = self.max_characters
            name = f"at most {most} characters"
            rules.append(_TextRule(name, lambda q: pc.utf8_length(q).to_numpy(), lambda n: n <= most, _count))
        if self.max_terms is not None:
            terms = self.max_terms
            name = f"at most {terms} words"
            rules.append(_TextRule(name, lambda q: words(q).per_query, lambda n: n <= terms, _count))
        if self.no_digits:
            rules.append(_forbidden("no digit", partial(pc.match_substring_regex, pattern=r"\p{Nd}")))
        if self.no_at:
            rules.append(_forbidden("no @", partial(pc.match_substring, pattern="@")))
        if self.allow_list is not None:
            allowed = _lines(self.allow_list)
            rules.append(
                _TextRule(
                    "on the allow-list",
                    lambda q: pc.is_in(q, allowed).to_numpy(zero_copy_only=False),
                    lambda on_it: on_it,
                    lambda on_it: "it is" if on_it else "it is not",
                )
            )
        if self.block_list is not None:
            blocked = _lines(self.block_list)
            rules.append(
                _TextRule(
                    "nothing on the block-list",
                    lambda q: _holding(q, blocked),
                    lambda holds: ~holds,
                    lambda holds: "it is blocked" if holds else "it is free",
                )
            )
        return rules

    def _clicks(self, log: QueryLog) -> bool:
        return self.min_row_users is not None and log.has_clicks

    def _kept_clicks(self) -> str:
        assert self.min_row_users is not None  # noqa: S101
        clicks = (
            "(SELECT k.event_id AS event_id, e.user_id AS user_id, e.query_id AS query_id, k.rank AS rank,"
            " k.url_id AS url_id FROM kept_rows k JOIN events e ON e.event_id = k.event_id WHERE k.url_id IS NOT NULL)"
        )
        return clicks_of(self.min_row_users, clicks)

    def _row_metadata(self, log: QueryLog) -> list[str]:
        return [name for name in _ROW_METADATA if name in log.facts.extras] if self.min_row_users is not None else []

    def _metadata(self, log: QueryLog) -> list[str]:
        if self.min_metadata_users is None:
            return []
        found = [name for name in self.metadata if name in log.facts.extras]
        taken = next((name for name in found if name.casefold() in _RESERVED), None)
        if taken is not None:
            raise QueryveilError(
                f"A metadata column cannot be called '{taken}', which a release has already; rename it."
            )
        return found

    def _unseen(self, metadata: Sequence[str]) -> list[str]:
        """What the rule about metadata had nothing to look at in the log, in a sentence."""
        missing = [name for name in self.metadata if name not in metadata]
        if self.min_metadata_users is None or not missing:
            return []
        what = "had nothing to look at" if not metadata else f"looked at {', '.join(metadata)} alone"
        columns = f"no column {missing[0]}" if len(missing) == 1 else f"none of the columns {', '.join(missing)}"
        return [f"The rule min_metadata_users {what}: the log has {columns}."]

    def _rows(self, row_metadata: Sequence[str]) -> str:
        """SQL of the rows that may be released: event_id, rank, url_id."""
        if self.min_row_users is None:
            return (
                "SELECT e.event_id AS event_id, CAST(NULL AS INTEGER) AS rank, CAST(NULL AS BIGINT) AS url_id"
                " FROM events e JOIN released_queries r ON r.query_id = e.query_id"
            )
        ids = [identifier(f"{name} id") for name in row_metadata]
        meta = "".join(f", e.{name} AS {name}" for name in ids)
        rows = (
            "SELECT e.event_id AS event_id, e.user_id AS user_id, e.query_id AS query_id, c.rank AS rank,"
            f" c.url_id AS url_id, coalesce(c.url_id, -1) AS url_key{meta} FROM events e JOIN released_queries r"
            " ON r.query_id = e.query_id LEFT JOIN clicks c ON c.event_id = e.event_id"
        )
        keys = ["query_id", "url_key", *ids]
        names = ", ".join(keys)
        shared = (
            f"SELECT {names} FROM (SELECT {names}, user_id FROM ({rows}) AS r GROUP BY {names}, user_id) AS pairs"
            f" GROUP BY {names} HAVING count(*) >= {self.min_row_users}"
        )
        same = " AND ".join(f"shared.{key} = rows_.{key}" for key in keys)
        return (
            "SELECT rows_.event_id AS event_id, rows_.rank AS rank, rows_.url_id AS url_id"
            f" FROM ({rows}) AS rows_ JOIN ({shared}) AS shared ON {same}"
        )

    def _events(self, carried: Sequence[str], metadata: Sequence[str]) -> str:
        """SQL of the released events with their carried columns."""
        wanted, joins = "", ""
        for given in carried:
            name, key, table, x = map(identifier, (given, f"{given} id", f"extra {given}", f"x {given}"))
            if given == "time":
                wanted += f", CAST(date_trunc('{self.time}', e.time) AS TIMESTAMP) AS time"
            elif given in metadata:
                wanted += f", m.{name} AS {name}"
            else:
                wanted += f", {x}.value AS {name}"
                joins += f" LEFT JOIN {table} AS {x} ON {x}.id = e.{key}"
        if metadata:
            ids = [identifier(f"{name} id") for name in metadata]
            joins += " JOIN merged m ON " + " AND ".join(f"m.{name} = e.{name}" for name in ids)
        return (
            f"SELECT e.event_id AS event_id, e.user_id AS user_id, e.query_id AS query_id{wanted} FROM events e"
            f" JOIN (SELECT event_id FROM kept_rows GROUP BY event_id) AS k ON k.event_id = e.event_id{joins}"
        )

    def _merged(self, log: QueryLog, metadata: Sequence[str]) -> pa.Table:
        """For every combination of metadata ids, the values under which it is released."""
        assert self.min_metadata_users is not None  # noqa: S101
        engine = log.engine
        ids = [f"{name} id" for name in metadata]
        names = ", ".join(f"e.{name} AS {name}" for name in map(identifier, ids))
        keys = ", ".join(f"e.{identifier(name)}" for name in ids)
        engine.materialize(
            f"SELECT e.user_id AS user_id, {names} FROM events e JOIN kept_rows k ON k.event_id = e.event_id"
            f" GROUP BY e.user_id, {keys}",
            "pairs",
        )
        (n,) = engine.row(f"SELECT count(*) AS n FROM (SELECT {names} FROM pairs e GROUP BY {keys}) AS different")
        if n > MOST_COMBINATIONS:
            raise QueryveilError(
                f"The columns {', '.join(metadata)} have {n:,} combinations of values, which tells single users apart; "
                "name columns with fewer values with --metadata."
            )
        found = engine.table(f"SELECT {names} FROM pairs e GROUP BY {keys}")
        values = [_values(log, name) for name in metadata]
        combination = np.stack(
            [known.rank(found[name].to_numpy()) for known, name in zip(values, ids, strict=True)], axis=1
        )
        same = " AND ".join(f"m.{name} = p.{name}" for name in map(identifier, ids))

        def users(group: NDArray[np.int64]) -> NDArray[np.int64]:
            engine.read("groups", found.append_column("g", pa.array(group)))
            counted = engine.table(
                "SELECT g, count(*) AS n FROM (SELECT m.g AS g, p.user_id AS user_id FROM pairs p"
                f" JOIN groups m ON {same} GROUP BY m.g, p.user_id) AS members GROUP BY g ORDER BY g"
            )
            engine.drop("groups")
            return np.asarray(counted["n"].to_numpy())

        merged = merge_until(combination, users, self.min_metadata_users)
        engine.drop("pairs")
        for known, name, released in zip(values, metadata, merged.T, strict=True):
            value = known.text.take(pa.array(released, mask=released < 0))
            value = pc.if_else(pa.array(released == MERGED), CombinationUsers.MERGED, value).cast(pa.string())
            found = found.append_column(name, value)
        return found

    def _claims(self, log: QueryLog, row_metadata: Sequence[str], metadata: Sequence[str]) -> list[Claim]:
        claims: list[Claim] = [PartOfLog()]
        if self.min_query_users is not None:
            claims.append(QueryUsers(users=self.min_query_users))
        if self.min_row_users is not None:
            columns = (*(["url"] if self._clicks(log) else []), *row_metadata)
            claims.append(RowUsers(users=self.min_row_users, columns=columns))
            claims += click_claims(self.min_row_users, log)[1:]
        if self.min_term_users is not None:
            claims.append(TermUsers(users=self.min_term_users))
        spelling = QuerySpelling(
            max_characters=self.max_characters,
            max_terms=self.max_terms,
            no_digits=self.no_digits,
            no_at=self.no_at,
        )
        if spelling != QuerySpelling():
            claims.append(spelling)
        if self.time != "drop":
            claims.append(TimesRounded(unit=self.time))
        if metadata and self.min_metadata_users is not None:
            claims.append(CombinationUsers(users=self.min_metadata_users, columns=tuple(metadata)))
        return claims + link_claims(self.linking, whole=self.min_row_users is None)


def merge_until(
    combination: NDArray[np.int64], users: Callable[[NDArray[np.int64]], NDArray[np.int64]], least: int
) -> NDArray[np.int64]:
    """Give up metadata values until every combination that is left has at least `least` users.

    Combinations with too few users give up their last column, what is still too small the one before, and so on. If
    those that gave up everything are too few together, the smallest other combinations join them.

    Args:
        combination: The different combinations: the numbers of their values.
        users: Tells the distinct users of groups of combinations, from the group 0, 1, ... of each.
        least: Users that a combination must have.

    Returns:
        The combinations, with MERGED in place of what was given up.
    """
    merged = combination.copy()

    def counted() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        group = np.unique(merged, axis=0, return_inverse=True)[1]
        return users(group), group

    for column in range(combination.shape[1] - 1, -1, -1):
        found, group = counted()
        merged[found[group] < least, column] = MERGED
    while True:
        found, group = counted()
        small = found < least
        if not small.any():
            return merged
        if len(found) == 1:
            raise QueryveilError(
                f"Only {found[0]} users are left in the release, fewer than the {least} of 'min_metadata_users'; "
                "loosen the other rules or lower it."
            )
        # Only those that gave up everything can be too few now; the smallest of the others joins them.
        smallest = np.argmin(np.where(small, np.iinfo(np.int64).max, found))
        merged[group == smallest] = MERGED


class _Values(NamedTuple):
    """The values of a metadata column, in the order of their ids."""

    id: NDArray[Any]
    text: pa.Array

    def rank(self, ids: NDArray[Any]) -> NDArray[np.int64]:
        """The place of each id, -1 for the one of a missing value."""
        return np.where(ids == -1, -1, np.searchsorted(self.id, ids))


def _values(log: QueryLog, name: str) -> _Values:
    """The values that occur in `pairs`."""
    key = identifier(f"{name} id")
    found = log.engine.table(
        f"SELECT x.id AS id, x.value AS value FROM {identifier(f'extra {name}')} x JOIN (SELECT {key} FROM pairs"
        f" GROUP BY {key}) AS used ON used.{key} = x.id ORDER BY x.id"
    )
    return _Values(found["id"].to_numpy(), found["value"].combine_chunks())


def _lines(path: Path) -> pa.Array:
    """The entries of a list file, in normal form."""
    if path.exists() and not path.is_file():  # a pipe or a device may never end
        raise QueryveilError(f"The list {path} is no plain file; give the file itself.")
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise QueryveilError(f"The list {path} cannot be read ({error.strerror}).") from None
    except UnicodeDecodeError:
        raise QueryveilError(f"The list {path} is not UTF-8; convert it first.") from None
    entries = normal_form(pa.array(text.splitlines(), pa.large_string()))
    return entries.filter(pc.not_equal(entries, ""))


def _holding(queries: pa.Array, phrases: pa.Array) -> NDArray[np.bool_]:
    """Which queries hold one of the phrases as a run of whole words."""
    per_query, held_words = words(queries)
    per_phrase, parts = words(phrases)
    # Words as numbers: the place of each among the words of the phrases.
    known = pc.unique(parts)
    word = pc.index_in(held_words, known).fill_null(-1).to_numpy()
    ids = pc.index_in(parts, known).to_numpy()
    query = np.repeat(np.arange(len(queries)), per_query)
    held = np.zeros(len(queries), np.bool_)
    for mark in phrases.filter(pa.array(per_phrase == 0)).to_pylist():
        # Nothing but punctuation: no word to compare, so it is looked for as it stands.
        held |= pc.match_substring(queries, mark).to_numpy(zero_copy_only=False)
    starts = np.concatenate([[0], np.cumsum(per_phrase)]).tolist()
    phrase_ids = [ids[a:b] for a, b in pairwise(starts) if b > a]
    openings = np.unique([phrase[0] for phrase in phrase_ids])
    # Only places where a phrase could open are looked at, sorted by that word.
    places = np.flatnonzero(np.isin(word, openings))
    places = places[np.argsort(word[places], kind="stable")]
    opening = word[places]
    for phrase in phrase_ids:
        at = places[np.searchsorted(opening, phrase[0]) : np.searchsorted(opening, phrase[0], "right")]
        at = at[at + len(phrase) <= len(word)]
        for offset, wanted in enumerate(phrase):
            at = at[(word[at + offset] == wanted) & (query[at + offset] == query[at])]
        held[query[at]] = True
    return held
