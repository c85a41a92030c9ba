"""Rules: a declarative filter with the rules that regulators and search engines use today.

Sources of the shipped recipes are named in them (`recipes/`): the European Search Dataset Licensing Program of Google
under the Digital Markets Act, article 6(11), and Commission decision C(2026) 5091 as secondary sources describe it.

A column is released only when a rule covers it: clicks by `min_row_users`, times by `time`, metadata by
`min_row_users` or `min_metadata_users`. Counts of users are taken on the original log.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import pyarrow as pa
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
from queryveil.engines import Table, Workspace, identifier
from queryveil.errors import QueryveilError, option
from queryveil.log import LocalLog, QueryLog
from queryveil.methods.base import Reason, check_k, enough_users
from queryveil.methods.linked import LinkedMethod
from queryveil.methods.queries import click_claims, clicks_of, link_claims
from queryveil.methods.recipe import load_recipe, shipped
from queryveil.methods.rule_metadata import merged_values, metadata_columns, missing_columns
from queryveil.methods.rule_texts import passing, text_rules
from queryveil.release import Release
from queryveil.release.making import of_events
from queryveil.release.manifest import names_a_file

Least = Annotated[int, Field(ge=2)]
Most = Annotated[int, Field(ge=1)]
_ROW_METADATA = ("device", "country")


class Rules(LinkedMethod):
    """Release what passes every rule that is set; without a rule nothing is released."""

    name: ClassVar[str] = "rules"
    plain: ClassVar[str] = "It holds the queries that pass a list of rules, such as how many people typed them."
    summary: ClassVar[str] = "release rows that pass thresholds, lists and other rules that you set"

    min_query_users: Least | None = Field(None, description="least distinct users of a released query")
    min_row_users: Least | None = Field(
        None,
        description="least distinct users of a released row, that is, a (query, url, device, country); clicks are"
        " released only with this rule",
    )
    min_term_users: Least | None = Field(None, description="least distinct users of each word of a released query")
    max_characters: Most | None = Field(None, description="longest released query, in characters")
    max_terms: Most | None = Field(None, description="longest released query, in words")
    no_digits: bool = Field(False, description="drop queries with a digit")
    no_at: bool = Field(False, description="drop queries with an @")
    allow_list: Path | None = Field(None, description="file of queries, one per line: release only these")
    block_list: Path | None = Field(
        None, description="file of words or phrases, one per line: drop queries with one of them"
    )
    time: Literal["drop", "day", "week"] = Field("drop", description="drop times, or round them down to a day or week")
    min_metadata_users: Least | None = Field(
        None, description="least users of a released combination of metadata values; rarer values are merged"
    )
    metadata: tuple[str, ...] = Field(
        ("country", "device", "language"),
        description="metadata columns that count together, most important first: the last is merged first",
    )

    @field_validator("allow_list", "block_list")
    @classmethod
    def _has_a_plain_name(cls, path: Path | None) -> Path | None:
        if path is not None and not names_a_file(path.name):
            raise ValueError("the manifest names the file, so its name cannot have a backslash or a control character")
        return path

    @model_validator(mode="after")
    def _has_a_rule(self) -> Self:
        filters = (self.min_query_users, self.min_row_users, self.min_term_users, self.max_characters, self.max_terms,
                   self.no_digits, self.no_at, self.allow_list, self.block_list)  # fmt: skip
        if not any(filters):
            recipe = option("recipe", "dma-30-5", python="load_recipe('dma-30-5')")
            raise ValueError(
                f"Rules needs at least one rule that drops queries, such as {option('min_query_users', 30)}, or a"
                f" recipe: {recipe}."
            )
        return self

    @classmethod
    def grid(cls, ks: Sequence[int], epsilons: Sequence[float]) -> list[tuple[str, dict[str, Any]]]:
        """The shipped recipes."""
        return [(recipe, load_recipe(recipe).parameters) for recipe in shipped()]

    def _anonymize(self, log: QueryLog, *, seed: int) -> Release:
        """Release what passes every rule."""
        metadata = [] if self.min_metadata_users is None else metadata_columns(log, self.metadata)
        limits = ("min_query_users", "min_row_users", "min_term_users", *(["min_metadata_users"] if metadata else []))
        for name in limits:
            check_k(self, log.n_users, name=name)
        if self.time != "drop" and not log.has_times:
            raise QueryveilError(f"{option('time', self.time)} needs times, and the log has none; leave it out.")
        row_metadata = self._row_metadata(log)
        carried = [*(["time"] if self.time != "drop" else []), *dict.fromkeys([*metadata, *row_metadata])]
        with log.workspace() as work:
            queries = self._choose(log, work)
            rows = work.table(self._rows(queries, row_metadata), "kept rows")
            merged = None
            if metadata and self.min_metadata_users is not None:
                merged = merged_values(log, work, rows, metadata, self.min_metadata_users)
            notes = [] if self.min_metadata_users is None else missing_columns(self.metadata, metadata)
            return of_events(
                log,
                self._events(rows, carried, metadata, merged),
                self._kept_clicks(queries, rows) if self._clicks(log) else None,
                linking=self.linking,
                carried=carried,
                **self.describe(self._claims(log, row_metadata, metadata), seed, notes),
            )

    def parameters(self) -> dict[str, Any]:
        """The parameters; lists by file name, because the manifest should not say where the publisher keeps them."""
        return super().parameters() | {name: path.name for name, path in self._lists.items()}

    def explain(self, log: LocalLog, query_id: int) -> list[Reason]:
        """Every rule about the query, and how many of its rows pass the rule about rows."""
        present = {name: path for name, path in self._lists.items() if path.exists()}
        reasons = []
        if self.min_query_users is not None:
            reasons.append(enough_users(log, query_id, self.min_query_users))
        if self.min_term_users is not None:
            users = int(log.rarest_word[query_id])
            rule = f"at least {self.min_term_users} users used each of its words"
            reasons.append(Reason(rule, users >= self.min_term_users, f"{users} used the rarest"))
        for about in text_rules(self._spelling, **present):
            measured = about.measure(log.query_text.slice(query_id, 1))
            reasons.append(Reason(about.name, bool(about.passes(measured)[0]), about.describe(measured[0])))
        for name, path in self._lists.items():
            if name not in present:
                missing = f"not checked, there is no file {path} here"
                reasons.append(Reason(f"the {name.replace('_', '-')}", True, missing))
        return reasons if self.min_row_users is None else [*reasons, self._explain_rows(log, query_id)]

    def _explain_rows(self, log: LocalLog, query_id: int) -> Reason:
        row_metadata = self._row_metadata(log)
        with log.workspace() as work:
            query = work.read(pa.table({"query_id": [query_id]}), "query")
            (kept,) = work.row(f"SELECT count(*) AS n FROM ({self._rows(query, row_metadata)}) AS kept")
            (total,) = work.row(
                "SELECT count(*) AS n FROM events e LEFT JOIN clicks c ON c.event_id = e.event_id"
                f" WHERE e.query_id = {query_id}"
            )
        names = ", ".join(("query", "url", *row_metadata))
        rule = f"rows whose ({names}) is shared by at least {self.min_row_users} users"
        return Reason(rule, kept > 0, f"{kept} of its {total} rows are")

    def _choose(self, log: QueryLog, work: Workspace) -> Table:
        """The query_id of the queries that pass every rule about queries."""
        log.ensure_tables("per_query")
        joins, conditions = "", [f"p.users >= {self.min_query_users or 0}"]
        if self.min_term_users is not None:
            log.ensure_tables("rarest")
            joins += " JOIN rarest r ON r.query_id = p.query_id"
            conditions.append(f"r.users >= {self.min_term_users}")
        rules = text_rules(self._spelling, **self._lists)
        with log.workspace() as steps:
            if rules:
                spelled = steps.map("SELECT query_id, query FROM queries", *passing(rules, log.id_type), "by text")
                joins += f" JOIN {spelled} s ON s.query_id = p.query_id"
            return work.table(
                f"SELECT p.query_id AS query_id FROM per_query p{joins} WHERE {' AND '.join(conditions)}",
                "kept queries",
            )

    @property
    def _spelling(self) -> QuerySpelling:
        return QuerySpelling(
            max_characters=self.max_characters,
            max_terms=self.max_terms,
            no_digits=self.no_digits,
            no_at=self.no_at,
        )

    @property
    def _lists(self) -> dict[str, Path]:
        """The files of the lists that are set."""
        return {name: path for name in ("allow_list", "block_list") if (path := getattr(self, name)) is not None}

    def _clicks(self, log: QueryLog) -> bool:
        return self.min_row_users is not None and log.has_clicks

    def _kept_clicks(self, queries: Table, rows: Table) -> str:
        assert self.min_row_users is not None  # noqa: S101
        clicks = (
            "(SELECT k.event_id AS event_id, e.user_id AS user_id, e.query_id AS query_id, k.rank AS rank,"
            f" k.url_id AS url_id FROM {rows} k JOIN events e ON e.event_id = k.event_id WHERE k.url_id IS NOT NULL)"
        )
        return clicks_of(queries, self.min_row_users, clicks)

    def _row_metadata(self, log: QueryLog) -> list[str]:
        return [name for name in _ROW_METADATA if name in log.stats.extras] if self.min_row_users is not None else []

    def _rows(self, queries: Table, row_metadata: Sequence[str]) -> str:
        """SQL of the rows of some queries that may be released: event_id, rank, url_id."""
        if self.min_row_users is None:
            return (
                "SELECT e.event_id AS event_id, CAST(NULL AS INTEGER) AS rank, CAST(NULL AS BIGINT) AS url_id"
                f" FROM events e JOIN {queries} r ON r.query_id = e.query_id"
            )
        ids = [identifier(f"{name} id") for name in row_metadata]
        meta = "".join(f", e.{name} AS {name}" for name in ids)
        rows = (
            "SELECT e.event_id AS event_id, e.user_id AS user_id, e.query_id AS query_id, c.rank AS rank,"
            f" c.url_id AS url_id, coalesce(c.url_id, -1) AS url_key{meta} FROM events e JOIN {queries} r"
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

    def _events(self, rows: Table, carried: Sequence[str], metadata: Sequence[str], merged: Table | None) -> str:
        """SQL of the released events with their carried columns; `merged` has the released values of metadata."""
        selected, joins = "", ""
        for given in carried:
            name, key, table, x = map(identifier, (given, f"{given} id", f"extra {given}", f"x {given}"))
            if given == "time":
                selected += f", CAST(date_trunc('{self.time}', e.time) AS TIMESTAMP) AS time"
            elif given in metadata:
                selected += f", m.{name} AS {name}"
            else:
                selected += f", {x}.value AS {name}"
                joins += f" LEFT JOIN {table} AS {x} ON {x}.id = e.{key}"
        if merged is not None:
            ids = [identifier(f"{name} id") for name in metadata]
            joins += f" JOIN {merged} m ON " + " AND ".join(f"m.{name} = e.{name}" for name in ids)
        return (
            f"SELECT e.event_id AS event_id, e.user_id AS user_id, e.query_id AS query_id{selected} FROM events e"
            f" JOIN (SELECT event_id FROM {rows} GROUP BY event_id) AS k ON k.event_id = e.event_id{joins}"
        )

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
        if self._spelling != QuerySpelling():
            claims.append(self._spelling)
        if self.time != "drop":
            claims.append(TimesRounded(unit=self.time))
        if metadata and self.min_metadata_users is not None:
            claims.append(CombinationUsers(users=self.min_metadata_users, columns=tuple(metadata)))
        return claims + link_claims(self.linking, whole=self.min_row_users is None)
