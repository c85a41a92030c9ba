"""AFF: k-theta-affinity.

Carpineto and Romano, K-theta-affinity privacy: releasing infrequent query refinements safely, Information Processing
and Management 51, 2015. Two queries are *affine* if the cosine of their vectors is at least theta. The result is exact
on the whole log: the graph of affine queries is never stored, but traversed through the heavy subsets that affine
queries share (`kernels/heavy.py`).
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import ClassVar, Literal, NamedTuple, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field, field_validator, model_validator

from queryveil.claims import AffineSessions, AffineUsers, Claim
from queryveil.claims.similarity import SIMILARITIES, Similarity, comparable, tables_digest
from queryveil.engines import Table, Workspace
from queryveil.errors import QueryveilError, option
from queryveil.kernels.close import Device
from queryveil.kernels.types import Bools
from queryveil.log import LocalLog, QueryLog, local
from queryveil.log.sessions import check_linking
from queryveil.log.sharing import shared
from queryveil.methods.affinity.concepts import Concepts, default_concept_min_users, mine_concepts, query_vectors
from queryveil.methods.affinity.graph import AffinityGraph, Layer, Vertices, new_accounts, vertices_of
from queryveil.methods.affinity.graph_tables import AffinityParams, find_affine
from queryveil.methods.affinity.layers import apart, click_layer, meaning_layer
from queryveil.methods.affinity.sessions import protected_sessions
from queryveil.methods.base import Reason, check_k
from queryveil.methods.queries import QueryMethod, Selection, claimed_sessions, flags_of, link_claims

MOST_SHOWN = 10
"""How many similar queries or concepts `explain` names."""


_SESSIONS, _OTHERS = "The unit session", "Similarity by meaning or clicks"
"""What needs one machine, as a sentence about it begins."""


class Affinity(QueryMethod):
    """Release a query if k users issued it or a released query that is similar to it (Carpineto and Romano 2015).

    Queries are compared by their concepts, which are runs of one to three words that many users type, and by their
    other words, which have little weight. So a rare refinement of a popular query is protected by the popular one and
    by other refinements. A query without a concept is released if k users issued it. Clicks are released if k users
    made them; times and extra columns are dropped.

    With other similarities, queries that mean the same or lead to the same addresses protect each other too. This is
    not in the paper, which names it as future work.
    """

    name: ClassVar[str] = "affinity"
    plain: ClassVar[str] = (
        "It holds queries that at least {k} people typed in the same or similar words. A query that only one person "
        "typed may be among them."
    )
    slow: ClassVar[bool] = True
    summary: ClassVar[str] = "release queries that k users issued in the same or similar words"
    derived: ClassVar[frozenset[str]] = frozenset({"concept_min_users", "min_term_users"})

    k: int = Field(
        5, ge=2, description="least distinct users of a released query and of the released queries similar to it"
    )
    theta: float = Field(0.9, gt=0, le=1, description="least cosine of the vectors of two similar queries")
    vectors: Literal["words", "concepts"] = Field(
        "words",
        description="how queries are compared: by `words`, that is, their concepts and all other words except stop "
        "words, rare words with a low weight; or by `concepts` only, which is weaker, because queries that differ in "
        "rare words then count as equal",
    )
    concept_min_users: int | None = Field(
        None,
        ge=2,
        description="least distinct users of a concept, independent of k; by default 0.01 % of all users, at least 5",
    )
    min_term_users: int | None = Field(
        None,
        ge=1,
        description="least distinct users of each word of a released query with a concept; by default k (2 in the "
        "paper)",
    )
    min_query_users: int = Field(
        1, ge=1, description="least users who issued a released query itself; protects against people who saw it typed"
    )
    max_new_users: int | None = Field(
        None,
        ge=0,
        description="most new accounts that count as users of a query, that is, accounts with one or two distinct "
        "queries in all; protects against a Sybil attack (clicks count all users)",
    )

    unit: Literal["query", "session"] = Field(
        "query",
        description="what k users must stand behind: each `query`; or each `session` of several queries as well, which"
        " is released as one only if released sessions of k users are similar to it, and query by query if not",
    )
    similarity: tuple[Similarity, ...] = Field(
        ("words",),
        min_length=1,
        description="what makes two queries similar, any of them: their `words`; their `meaning`; or `clicks` on the "
        "same addresses. A query with a rare word, a number, a name of a person or a small place is compared by "
        "words alone",
    )
    theta_meaning: float = Field(
        0.85, ge=0.5, le=1, description="least cosine of the meanings of two similar queries (English)"
    )
    theta_clicks: float = Field(
        0.8,
        ge=0.5,
        le=1,
        description="least cosine of the addresses clicked for two similar queries, of those that k users clicked",
    )
    device: Device = Field(
        "cpu",
        description="what compares meanings; on `cuda` all queries are compared, on `cpu` all up to 300,000 of them, "
        "and beyond that those near each other",
    )

    @model_validator(mode="after")
    def _theta_separates_queries(self) -> Self:
        if self.theta * self.theta < 1e-9:
            raise ValueError(f"{option('theta')} is {self.theta}, so low that all queries count as similar; raise it.")
        return self

    @model_validator(mode="after")
    def _sessions_are_linked(self) -> Self:
        if self.unit == "session" and self.link != "session":
            raise ValueError(
                f"{option('unit', 'session')} protects released sessions, and without {option('link', 'session')} there"
                " are none; add it."
            )
        return self

    @field_validator("similarity")
    @classmethod
    def _in_one_order(cls, named: tuple[Similarity, ...]) -> tuple[Similarity, ...]:
        return tuple(name for name in SIMILARITIES if name in named)

    @property
    def one_machine(self) -> str | None:
        """Sessions, meanings and clicks are compared on one machine."""
        return _SESSIONS if self.unit == "session" else None if self.similarity == ("words",) else _OTHERS

    @property
    def term_users(self) -> int:
        """The least users of each word of a released query with a concept."""
        return self.k if self.min_term_users is None else self.min_term_users

    def shared_word_users(self, log: QueryLog) -> int:
        """The least users of each word of a query that is compared by more than its words."""
        return max(self.concept_users(log), self.term_users)

    def concept_users(self, log: QueryLog) -> int:
        """The least users of a concept of the log."""
        return default_concept_min_users(log) if self.concept_min_users is None else self.concept_min_users

    def mine(self, log: QueryLog, term_users: int) -> Concepts:
        """What the vectors of a log are made of.

        A query with a word of fewer than `term_users` users is in no graph, so such words are not searched for.
        """
        least = self.concept_users(log)
        words = term_users if self.vectors == "words" else None
        return shared(log, ("concepts", least, words), lambda: mine_concepts(log, least, word_min_users=words))

    @property
    def click_users(self) -> int:
        """Least users of a released click: k."""
        return self.k

    def claims(self, log: QueryLog) -> list[Claim]:
        """Users stand behind each query and those similar to it."""
        return [
            AffineUsers(
                users=self.k,
                theta=self.theta,
                vectors=self.vectors,
                concept_min_users=self.concept_users(log),
                min_term_users=self.term_users,
                min_query_users=self.min_query_users,
                max_new_users=self.max_new_users,
                similarity=self.similarity,
                theta_meaning=self.theta_meaning if "meaning" in self.similarity else None,
                theta_clicks=self.theta_clicks if "clicks" in self.similarity else None,
                tables=None if self.similarity == ("words",) else tables_digest(),
            )
        ]

    def link_claims(self, log: QueryLog) -> list[Claim]:
        """What pseudonyms promise; if sessions are units, users stand behind each of several queries."""
        if self.unit == "query":
            return super().link_claims(log)
        sessions = claimed_sessions(self.linking)
        assert sessions is not None  # noqa: S101  # events are linked by them
        similar = AffineSessions(
            users=self.k,
            theta=self.theta,
            vectors=self.vectors,
            concept_min_users=self.concept_users(log),
            max_new_users=self.max_new_users,
            sessions=sessions,
        )
        return [*link_claims(self.linking, whole=False), similar]

    def sessions(self, log: QueryLog, work: Workspace, chosen: Table) -> tuple[Table | None, Sequence[str]]:
        """The sessions that are similar to those of k users; of all others each query by itself."""
        if self.unit == "query":
            return None, ()
        check_linking(log, self.linking)
        found = local(log, _SESSIONS)
        concepts = self.mine(log, self.term_users)
        made, several, whole = protected_sessions(
            found, work, chosen, concepts, self.linking, self.k, self.theta, self.max_new_users
        )
        note = f"{whole:,} of {several:,} sessions of several queries are released as one, the others query by query."
        return made, (note,)

    def select(self, log: QueryLog, work: Workspace, within: Table | None = None) -> Selection:
        """Choose every query of anonymity degree at least k."""
        check_k(self, log.n_users)
        self.check_similarity(log)
        log.ensure_tables("per_query")
        concept_users = self.concept_users(log)
        kept, n_concepts, certified = self._choose(log, work, within)
        (alone,) = work.row(
            f"SELECT count(*) AS n FROM {kept} a JOIN per_query p ON p.query_id = a.query_id WHERE p.users < {self.k}"
        )
        notes = [f"{n_concepts:,} concepts of at least {concept_users:,} users."]
        if n_concepts == 0:
            notes.append("There is no concept, so every query falls back to equality.")
        notes.append(f"{alone:,} chosen queries were themselves issued by fewer than {self.k} users.")
        return Selection(kept, notes, certified)

    def check_similarity(self, log: QueryLog) -> None:
        """Refuse a log that cannot be compared in the ways that are asked for."""
        if self.similarity == ("words",):
            return
        if "meaning" in self.similarity and "en" not in log.language.ids:
            raise QueryveilError(
                f"Meanings are known in English only, and the log is in {log.language.label}; leave 'meaning' out of"
                f" {option('similarity')}."
            )
        if "clicks" in self.similarity and not log.has_clicks:
            raise QueryveilError(f"The log has no clicks; leave 'clicks' out of {option('similarity')}.")

    def _choose(self, log: QueryLog, work: Workspace, within: Table | None) -> tuple[Table, int, dict[str, pa.Table]]:
        """The queries to release, how many key concepts the log has, and the tables of the certificate."""
        if isinstance(log, LocalLog):
            rules = self.vectors, self.concept_users(log), self.term_users, self.min_query_users, self.max_new_users
            ways = self.similarity, self.theta_meaning, self.theta_clicks, self.device
            decides = *rules, *ways, self.k if "clicks" in self.similarity else None
            if within is None:
                candidates = shared(log, ("candidates", *decides), lambda: Candidates(self, log))
            else:
                candidates = Candidates(self, log, within=flags_of(log, within))
            ((_, _, kept, vouched),) = candidates.released([self.k], [self.theta])
            queries = work.read(pa.table({"query_id": np.flatnonzero(kept).astype(np.int32)}), "affine queries")
            return queries, int(candidates.concepts.key.sum()), {"witnesses": candidates.witnesses(kept, *vouched)}
        concepts = self.mine(log, self.term_users)
        params = AffinityParams(self.k, self.theta, self.term_users, self.min_query_users, self.max_new_users)
        return find_affine(log, work, concepts, params, within), int(concepts.key.sum()), {}

    def degrees(self, log: QueryLog, *, max_degree: int = 30) -> NDArray[np.int64]:
        """The anonymity degree of every query: the largest k for which it is released, at most `max_degree`.

        All other parameters are those of this method, including `min_term_users`, which is this method's own k by
        default. The degree is 0 for a query that is released for no k, because one of its words is too rare or too few
        users issued it.
        """
        if max_degree < 1:
            raise QueryveilError(f"The 'max_degree' must be an integer of at least 1. Got {max_degree!r} instead.")
        degree = np.zeros(log.n_queries, np.int64)
        for _, k, kept, _ in Candidates(self, local(log, "degrees")).released(range(1, max_degree + 1), [self.theta]):
            degree[kept] = k
            if not kept.any():
                break
        return degree

    def explain(self, log: LocalLog, query_id: int, within: Bools | None = None) -> list[Reason]:
        """What each rule found for the query, and its similar queries that are released."""
        candidates = Candidates(self, log, within=within)
        users = int(log.users_per_query[query_id])
        reasons = [Reason("degree under equality", None, f"{users}, the users who issued it")]
        if candidates.held[query_id]:
            rarest = int(log.rarest_word[query_id])
            rule = f"at least {self.term_users} users used each of its words"
            reasons.append(Reason(rule, rarest >= self.term_users, f"{rarest} used the rarest"))
        if self.min_query_users > 1:
            rule = f"at least {self.min_query_users} users issued it"
            reasons.append(Reason(rule, users >= self.min_query_users, f"{users} did"))
        if not candidates.held[query_id]:
            counted = int(candidates.issued[query_id])
            rule = f"no concept, so at least {self.k} users issued the query"
            found = f"{users} did" + ("" if counted == users else f", {counted} of them count")
            return [*reasons, Reason(rule, counted >= self.k, found)]
        reasons += candidates.concepts_of(query_id)
        if candidates.chosen[query_id]:
            reasons += candidates.behind(query_id)
        return reasons


class Released(NamedTuple):
    """What is released for one theta and k."""

    theta: float
    k: int
    queries: NDArray[np.bool_]
    vouched: tuple[NDArray[np.int32], NDArray[np.int32]]
    """As in `AffinityGraph.vouched`."""


NOBODY = np.empty(0, np.int32), np.empty((0, 0), np.int32)


class Candidates:
    """The queries of a log that affinity may release, before any k or theta: concepts, vectors, users that count.

    Args:
        method: The method.
        log: The log.
        ks: The values of k to support; by default any, with the `min_term_users` of the method. If they are given and
            the method has no `min_term_users`, it is each k itself.
        within: Which queries may be released; by default all.

    Attributes:
        concepts: What vectors are made of.
        held: How many concepts each query holds; 0 if none of them is a key concept.
        most_new: How many new accounts count as users of a query, None for all.
        chosen: Which queries are in the graph: they hold a concept, and pass all rules about single queries.
    """

    def __init__(self, method: Affinity, log: LocalLog, ks: Sequence[int] = (), *, within: Bools | None = None) -> None:
        method.check_similarity(log)
        self._method, self._log, self._ks, self._allowed = method, log, ks, within
        self._term_users = {k: k for k in ks} if method.min_term_users is None else {}
        fewest = min(self._term_users.values(), default=method.term_users)
        self.concepts = method.mine(log, fewest)
        self._start, self._concept = query_vectors(log, self.concepts)
        self.held = np.diff(self._start)
        self.most_new = None if method.max_new_users is None else min(method.max_new_users, log.n_users)
        self._enough = log.users_per_query >= method.min_query_users
        if within is not None:
            self._enough &= within
        self.chosen = (self.held > 0) & self._enough
        if self.chosen.any():
            self.chosen &= log.rarest_word >= fewest

    @cached_property
    def vertices(self) -> Vertices:
        """The vertices of the graph; queries that are in the graphs of different k are different vertices."""
        level = None
        if len(self._term_users) > 1:
            level = np.searchsorted(sorted(self._term_users.values()), self._log.rarest_word, side="right")
        if not self.by_words_alone:
            # Queries of the same words may differ in meaning and clicks; without words, none is similar by them.
            level = apart(level, self._comparable if "words" in self._method.similarity else self.chosen)
        return vertices_of(self._log, self.concepts, self._start, self._concept, self.chosen, level)

    @property
    def by_words_alone(self) -> bool:
        """Whether queries are compared by their words alone."""
        return self._method.similarity == ("words",)

    def _within(self, k: int, term_users: int | None) -> NDArray[np.bool_]:
        """The vertices in the graph of one k: if `min_term_users` is k, those without a rarer word."""
        least = self._term_users.get(k) if term_users is None else term_users
        if least is None:
            return np.ones(len(self.vertices), np.bool_)
        inside = np.zeros(len(self.vertices), np.bool_)
        inside[self.vertices.of[self.chosen & (self._log.rarest_word >= least)]] = True
        return inside

    @cached_property
    def issued(self) -> NDArray[np.int64]:
        """For each query the users who issued it and count."""
        if self.most_new is None:
            return self._log.users_per_query
        pairs = self._log.query_users
        new = new_accounts(self._log)[pairs["user_id"].to_numpy()]
        count = np.bincount(pairs["query_id"].to_numpy()[new], minlength=self._log.n_queries)
        return self._log.users_per_query - count + np.minimum(count, self.most_new)

    @cached_property
    def _comparable(self) -> NDArray[np.bool_]:
        """Which queries are compared by more than their words."""
        return self.chosen & comparable(self._log, self._method.shared_word_users(self._log))

    @cached_property
    def _meanings(self) -> Layer:
        method, some = self._method, np.flatnonzero(self._comparable)
        return meaning_layer(self._log, self.vertices, some, method.theta_meaning, method.device)

    def _alone(self, k: int, term_users: int | None) -> "Candidates":
        """The candidates of one k."""
        least = self._method.min_term_users if term_users is None else term_users
        method = self._method.model_copy(update={"k": k, "min_term_users": least})
        return Candidates(method, self._log, within=self._allowed)

    def graph(self, theta: float) -> AffinityGraph | None:
        """The graph for any theta from this one up to 1; None if no query is a vertex."""
        if not self.chosen.any():
            return None
        method, more = self._method, []
        if "clicks" in method.similarity:
            some = np.flatnonzero(self._comparable)
            more.append(click_layer(self._log, self.vertices, some, method.theta_clicks, method.k))
        if "meaning" in method.similarity:
            more.append(self._meanings)
        words = "words" in method.similarity
        return AffinityGraph(self.vertices, theta, self._log.engine.threads, words=words, more=more)

    def released(
        self,
        ks: Iterable[int],
        thetas: Iterable[float],
        *,
        term_users: int | None = None,
        graph: AffinityGraph | None = None,
    ) -> Iterator[Released]:
        """Which queries are released for each theta and k, both ascending, with one graph for all.

        Args:
            ks: Values of k.
            thetas: Values of theta.
            term_users: The `min_term_users` of all of them, one of the values that are supported; by default that of
                the method, or each k.
            graph: What `graph` made for the lowest theta; by default it is made here.
        """
        ks, thetas = list(ks), list(thetas)
        if self._ks and not self.by_words_alone:
            # Which words and addresses count depends on k, so each has a graph of its own.
            of_each = [list(self._alone(k, term_users).released([k], thetas)) for k in ks]
            yield from (found[place] for place in range(len(thetas)) for found in of_each)
            return
        graph = self.graph(thetas[0]) if graph is None else graph
        # What a lower theta does not release, a higher one does not either.
        below = {k: self._within(k, term_users) for k in ks} if graph is not None else {}
        for theta in thetas:
            cores = None
            if graph is not None:
                cores = graph.cores(ks, theta=theta, most_new=self.most_new, within=below.__getitem__)
            for k in ks:
                kept = (self.held == 0) & self._enough & (self.issued >= k)
                if cores is not None:
                    below[k] = next(cores)
                    kept[self.chosen] = below[k][self.vertices.of[self.chosen]]
                yield Released(theta, k, kept, NOBODY if graph is None else graph.vouched)

    def witnesses(self, kept: NDArray[np.bool_], needy: NDArray[np.int32], found: NDArray[np.int32]) -> pa.Table:
        """For released queries with too few users, similar released queries with enough users: pairs of ids.

        One query represents all with the same vector.

        Args:
            kept: Which queries are released.
            needy: Vertices with too few users of their own.
            found: For each the neighbours that vouch for it, -1 behind the last.
        """
        if len(needy) == 0:
            return pa.table({"query_id": pa.array([], pa.int64()), "witness": pa.array([], pa.int64())})
        query = np.full(len(self.vertices), -1, np.int64)
        some = np.flatnonzero(kept & self.chosen)
        query[self.vertices.of[some]] = some
        row, place = np.nonzero((found >= 0) & (query[needy] >= 0)[:, None])
        return pa.table({"query_id": query[needy[row]], "witness": query[found[row, place]]})

    def concepts_of(self, query_id: int) -> list[Reason]:
        """The concepts of a query, and its rarer words, with their weights, the largest first."""
        mine = self._concept[self._start[query_id] : self._start[query_id + 1]][::-1]
        key = self.concepts.key[mine]
        reasons = [Reason("concepts it holds", None, self._named(mine[key]))]
        return reasons if key.all() else [*reasons, Reason("other words it holds", None, self._named(mine[~key]))]

    def _named(self, some: NDArray[np.int32]) -> str:
        named = [f"'{self.concepts.text(c)}' ({self.concepts.weight[c]:.2f})" for c in some[:MOST_SHOWN]]
        return ", ".join(named) + (f" and {len(some) - MOST_SHOWN} more" if len(some) > MOST_SHOWN else "")

    def behind(self, query_id: int) -> list[Reason]:
        """The degree of a query under affinity, and the released queries that are similar to it."""
        method, log = self._method, self._log
        graph = self.graph(method.theta)
        assert graph is not None  # noqa: S101  # the query is a vertex
        most = max(2 * method.k, 30)
        vertex = int(self.vertices.of[query_id])
        degree = 0
        for k, core in enumerate(graph.cores(range(1, most + 1), most_new=self.most_new), 1):
            if k == method.k:
                released = core
            degree = k if core[vertex] else degree
            if k >= method.k and not core[vertex]:
                break
        rule = f"at least {method.k} users issued it or a released query similar to it"
        found = f"its degree under affinity is {degree}" + (" or more" if degree == most else "")
        reasons = [Reason(rule, degree >= method.k, found)]
        by = graph.neighbours_by(vertex)
        near = graph.neighbours(vertex)
        near = near[released[near]]
        same = np.flatnonzero(self.vertices.of == vertex)
        others = np.flatnonzero(np.isin(self.vertices.of, near))
        if released[vertex]:
            others = np.concatenate([same[same != query_id], others])
        if len(others) == 0:
            return [*reasons, Reason("similar queries that are released", None, "none")]
        pairs = log.query_users
        behind = np.isin(pairs["query_id"].to_numpy(), others)
        users = len(set(pairs["user_id"].to_numpy()[behind].tolist()))
        shown = others[np.argsort(-log.users_per_query[others], kind="stable")][:MOST_SHOWN]

        def alike(query: int) -> str:
            # By words, which is the rule, nothing is said.
            other = int(self.vertices.of[query])
            ways = [name for name, some in by.items() if other in some]
            named = "" if "words" in ways or other == vertex else f", by {' and '.join(ways)}"
            return f"'{log.query_text[query].as_py()}' ({log.users_per_query[query]:,}{named})"

        names = ", ".join(map(alike, map(int, shown)))
        more = f" and {len(others) - MOST_SHOWN:,} more" if len(others) > MOST_SHOWN else ""
        found = f"{len(others):,}, issued by {users:,} users: {names}{more}"
        return [*reasons, Reason("similar queries that are released", None, found)]
