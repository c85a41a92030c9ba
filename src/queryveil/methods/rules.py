"""Rules: a declarative filter with the rules that regulators and search engines use today.

Sources of the shipped recipes are named in them (`recipes/`): the European Search Dataset Licensing Program of Google
under the Digital Markets Act, article 6(11), and Commission decision C(2026) 5091 as secondary sources describe it.

A column is released only when a rule covers it: clicks by `min_row_users`, times by `time`, metadata by
`min_row_users` or `min_metadata_users`. Counts of users are taken on the original log; those of fragments on another
one, if the caller names it.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, field_validator, model_validator

from queryveil.claims import (
    AllowedQueries,
    BlockedWords,
    Claim,
    DecidedQueries,
    FragmentUsers,
    QuerySpelling,
    QueryUsers,
    TermUsers,
)
from queryveil.claims.fragment_list import read_fragments
from queryveil.claims.fragments import MOST_WORDS, fragments_in, users_of
from queryveil.engines import Table, Workspace
from queryveil.errors import option
from queryveil.kernels.types import Bools
from queryveil.log import LocalLog, QueryLog
from queryveil.methods.base import Reason, check_k, enough_users, plain_name
from queryveil.methods.columns import Beside, Least, Rounding, explain_rows
from queryveil.methods.jitter import JitteredMethod
from queryveil.methods.queries import Selection, Speaker, joined
from queryveil.methods.recipe import load_recipe, shipped
from queryveil.methods.rule_fragments import made_of_fragments
from queryveil.methods.rule_texts import passing, text_rules
from queryveil.release import Release

Most = Annotated[int, Field(ge=1)]


_LISTED: dict[str, Callable[..., Claim]] = {
    "allow_list": AllowedQueries,
    "block_list": BlockedWords,
    "decisions": DecidedQueries,
}
"""The lists of texts, and what is promised about each."""


class Rules(JitteredMethod):
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
    min_fragment_users: Least | None = Field(
        None,
        description="least distinct users of each fragment of a released query: each word, run of words and, if they"
        " count, noun phrase",
    )
    fragment_words: int = Field(2, ge=1, le=MOST_WORDS, description="longest run of words that is a fragment")
    noun_phrases: bool = Field(False, description="count every noun phrase, such as john doe, as a fragment too")
    fragment_list: Path | None = Field(
        None, description="file of fragments that stay allowed, each with a date, as 'queryveil fragments' writes it"
    )
    max_characters: Most | None = Field(None, description="longest released query, in characters")
    max_terms: Most | None = Field(None, description="longest released query, in words")
    no_digits: bool = Field(False, description="drop queries with a digit")
    no_at: bool = Field(False, description="drop queries with an @")
    allow_list: Path | None = Field(None, description="file of queries, one per line: release only these")
    block_list: Path | None = Field(
        None, description="file of words or phrases, one per line: drop queries with one of them"
    )
    decisions: Path | None = Field(
        None,
        description="file of decisions, as a reviewer makes them: what is blocked is dropped, and what is allowed"
        " passes rules about length, digits and @",
    )
    time: Rounding = Field("drop", description="drop times, or round them down to a day or week")
    min_metadata_users: Least | None = Field(
        None, description="least users of a released combination of metadata values; rarer values are merged"
    )
    metadata: tuple[str, ...] = Field(
        ("country", "device", "language"),
        description="metadata columns that count together, most important first: the last is merged first",
    )

    @field_validator("allow_list", "block_list", "fragment_list", "decisions")
    @classmethod
    def _has_a_plain_name(cls, path: Path | None) -> Path | None:
        return plain_name(path)

    @model_validator(mode="after")
    def _has_a_rule(self) -> Self:
        least = (self.min_query_users, self.min_row_users, self.min_term_users, self.min_fragment_users)
        texts = (self.max_characters, self.max_terms, self.no_digits, self.no_at, *self._texts)
        if not any((*least, *texts)):
            recipe = option("recipe", "dma-30-5", python="load_recipe('dma-30-5')")
            raise ValueError(
                f"Rules needs at least one rule that drops queries, such as {option('min_query_users', 30)}, or a"
                f" recipe: {recipe}."
            )
        if self.fragment_list is not None and self.min_fragment_users is None:
            raise ValueError(f"A list of fragments needs {option('min_fragment_users', 50)} as well.")
        return self

    @model_validator(mode="after")
    def _jitter_has_a_rule(self) -> Self:
        if self.jitter is not None and self.min_query_users is None:
            raise ValueError(
                f"{option('jitter')} raises the least users of a query; set {option('min_query_users')} too."
            )
        return self

    @property
    def least_users(self) -> int | None:
        """Least users of a released query, if there is such a rule."""
        return self.min_query_users

    @classmethod
    def grid(cls, ks: Sequence[int], epsilons: Sequence[float]) -> list[tuple[str, dict[str, Any]]]:
        """The shipped recipes, and for each k that every word, or every pair of words, has k users."""
        recipes = {name: load_recipe(name) for name in shipped()}
        found = [(name, recipe.parameters) for name, recipe in recipes.items() if recipe.method == cls.name]
        for k in ks:
            for size, what in ((1, "words"), (2, "pairs")):
                rule = {"min_fragment_users": k, "fragment_words": size, "link": "none"}
                found.append((f"{what}, k = {k}", rule))
        return found

    @property
    def beside(self) -> Beside:
        """What it releases beside queries."""
        least, each = self.min_row_users, self.min_metadata_users
        return Beside(row_users=least, click_users=least, time=self.time, metadata_users=each, metadata=self.metadata)

    def claims(self, log: QueryLog) -> list[Claim]:
        """What the rules about queries promise."""
        claims: list[Claim] = []
        if self.min_query_users is not None:
            claims.append(QueryUsers(users=self.min_query_users))
        if self.min_term_users is not None:
            claims.append(TermUsers(users=self.min_term_users))
        if self.min_fragment_users is not None:
            claims.append(
                FragmentUsers(
                    users=self.min_fragment_users,
                    words=self.fragment_words,
                    noun_phrases=self.noun_phrases,
                    counted_on=log.counted is not log,
                    listed=None if self.fragment_list is None else self.fragment_list.name,
                )
            )
        if self._spelling != QuerySpelling():
            lifted = None if self.decisions is None else self.decisions.name
            claims.append(self._spelling.model_copy(update={"lifted": lifted}))
        return claims + [_LISTED[use](listed=path.name) for use, path in self._texts.items()]

    def publish(self, log: QueryLog, work: Workspace, chosen: Selection, speaker: Speaker, *, seed: int) -> Release:
        """Release what passes the rules about rows, times and metadata."""
        speaker = replace(speaker, claims=(*speaker.claims, *self.claims(log)))
        return self.beside.release(self, log, work, chosen, speaker, seed=seed)

    def parameters(self) -> dict[str, Any]:
        """The parameters; lists by file name, because the manifest should not say where the publisher keeps them."""
        given = super().parameters() | {name: path.name for name, path in self.lists.items()}
        # Releases without decisions are as they were before there were any.
        return given if self.decisions is not None else {k: v for k, v in given.items() if k != "decisions"}

    def explain(self, log: LocalLog, query_id: int, within: Bools | None = None) -> list[Reason]:
        """Every rule about the query, and how many of its rows pass the rule about rows."""
        present = {name: path for name, path in self._texts.items() if path.exists()}
        reasons = []
        if self.min_query_users is not None:
            reasons += [enough_users(log, query_id, self.min_query_users), *self.jitter_reasons()]
        if self.min_term_users is not None:
            users = int(log.rarest_word[query_id])
            rule = f"at least {self.min_term_users} users used each of its words"
            reasons.append(Reason(rule, users >= self.min_term_users, f"{users} used the rarest"))
        if self.min_fragment_users is not None:
            reasons.append(self._explain_fragments(log, query_id))
        for about in text_rules(self._spelling, log.language, **present):
            reasons.append(Reason(about.name, *about.found(log.query_text.slice(query_id, 1))))
        for name, path in self._texts.items():
            if name not in present:
                missing = f"not checked, there is no file {path} here"
                reasons.append(Reason(f"the {name.replace('_', '-')}", True, missing))
        return reasons if self.min_row_users is None else [*reasons, explain_rows(self.beside, log, query_id)]

    def select(self, log: QueryLog, work: Workspace, within: Table | None = None) -> Selection:
        """Choose the queries that pass every rule about queries."""
        for name in ("min_query_users", "min_term_users"):
            check_k(self, log.n_users, name=name)
        check_k(self, log.counted.n_users, name="min_fragment_users")
        log.ensure_tables("per_query")
        joins, conditions = joined(within, "p.query_id"), [f"p.users >= {self.min_query_users or 0}"]
        if self.min_term_users is not None:
            log.ensure_tables("rarest")
            joins += " JOIN rarest r ON r.query_id = p.query_id"
            conditions.append(f"r.users >= {self.min_term_users}")
        rules = text_rules(self._spelling, log.language, **self._texts)
        with log.workspace() as steps:
            if self.min_fragment_users is not None:
                fragments = made_of_fragments(
                    log,
                    steps,
                    users=self.min_fragment_users,
                    words=self.fragment_words,
                    noun_phrases=self.noun_phrases,
                    listed=self.fragment_list,
                )
                joins += f" JOIN {fragments} f ON f.query_id = p.query_id"
            if rules:
                spelled = steps.map("SELECT query_id, query FROM queries", *passing(rules, log.id_type), "by text")
                joins += f" JOIN {spelled} s ON s.query_id = p.query_id"
            kept = work.table(
                f"SELECT p.query_id AS query_id FROM per_query p{joins} WHERE {' AND '.join(conditions)}",
                "kept queries",
            )
        return Selection(kept)

    @property
    def _spelling(self) -> QuerySpelling:
        return QuerySpelling(
            max_characters=self.max_characters,
            max_terms=self.max_terms,
            no_digits=self.no_digits,
            no_at=self.no_at,
        )

    def _explain_fragments(self, log: LocalLog, query_id: int) -> Reason:
        """The rarest fragment of a query."""
        rule = f"at least {self.min_fragment_users} users used each of its fragments"
        fragments = fragments_in(log.query_text.slice(query_id, 1), self.fragment_words, self.noun_phrases)
        if not len(fragments):
            return Reason(rule, False, "it has no word")
        users = {(row["low"], row["high"]): row["users"] for row in users_of(log.counted, fragments).to_pylist()}
        stays: set[str] = set()
        if self.fragment_list is not None and self.fragment_list.exists():
            stays = set(read_fragments(self.fragment_list)["fragment"].to_pylist())
        rows = [row for row in fragments.to_pylist() if row["text"] not in stays]
        counted = [(users.get((row["low"], row["high"]), 0), row["text"]) for row in rows]
        rarest, text = min(counted, default=(None, ""))
        if rarest is None:
            return Reason(rule, True, "all of them are on the list")
        missing = self.fragment_list is not None and not self.fragment_list.exists()
        beside = f"; there is no file {self.fragment_list} here, which may allow it" if missing else ""
        return Reason(rule, rarest >= (self.min_fragment_users or 0), f"{rarest} used '{text}', the rarest{beside}")

    @property
    def _texts(self) -> dict[str, Path]:
        """The files of the lists of texts that are set."""
        return {name: path for name in _LISTED if (path := getattr(self, name)) is not None}

    @property
    def lists(self) -> dict[str, Path]:
        """The files of all lists that are set."""
        stays = {} if self.fragment_list is None else {"fragment_list": self.fragment_list}
        return self._texts | stays
