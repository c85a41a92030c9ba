"""Claims about releases of generalized items: nodes of a tree of topics in the place of words."""

import hashlib
import secrets
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from queryveil.claims.base import Claim, Columns, Count
from queryveil.knowledge import Knowledge, Taxonomy, link, recall_knowledge
from queryveil.knowledge.index import ranges
from queryveil.log import LocalLog, QueryLog, local

Longs = NDArray[np.int64]

_LOW = 0xFFFFFFFF
QUERIES = 20_000
"""Most distinct queries for which an assignment of all events to concepts is looked for."""
_FEW = 256  # of users who might fit, so many are looked at first
SAMPLE = 2_000
"""Most users for whom a whole assignment to bags is looked for, and most bags that are looked at beyond."""


def tree_digest(base: Knowledge) -> str:
    """A digest of a tree, by which the verifier knows that it looks at the same one."""
    tree = base.taxonomy
    names = "\n".join(tree.names.to_pylist())
    return hashlib.sha256(tree.depth.tobytes() + names.encode()).hexdigest()


class _Generalized(Claim):
    """What the claims about items share: the tree that they are nodes of."""

    users: Count
    knowledge: str
    """The name of the knowledge base."""
    tree: str
    """The digest of its tree."""

    @property
    def _base(self) -> Knowledge:
        return recall_knowledge(self.knowledge)

    def _wrong_table(self, log: QueryLog, columns: Columns) -> str | None:
        """What is wrong with the table before anything is counted."""
        if not {"item", "node"} <= set(columns):
            return "the release has no columns 'item' and 'node'"
        if tree_digest(self._base) != self.tree:
            return f"the knowledge base '{self.knowledge}' is another one than that of the release"
        names = self._base.taxonomy.names
        rows = log.engine.table(
            "SELECT node, item, count(*) AS n FROM released GROUP BY node, item ORDER BY node, item"
        )
        for row in rows.to_pylist():
            node = row["node"]
            if node is None or not 0 <= node < len(names) or names[node].as_py() != row["item"]:
                return f"the item '{row['item']}' is not the name of node {node}"
        return None


class BagUsers(_Generalized):
    """k-anonymity of bags: each is that of at least `users` users, and generalizes distinct nouns of all of them."""

    kind: Literal["bag-users"] = "bag-users"
    duplicates: bool = True
    """Whether an item may be more than once in a bag."""

    @property
    def statement(self) -> str:
        """The promise in one sentence."""
        return (
            f"Every released bag of items is that of at least {self.users} users, and its items generalize distinct"
            f" nouns of each of them (beyond {SAMPLE:,} users checked on {SAMPLE:,} bags drawn by lot)."
        )

    def check(self, log: QueryLog, columns: Columns) -> str | None:
        """Compare the bags of all users, then look for users whom they fit.

        Who is who is a secret, so the check asks whether there is a way to give every user of the log a released bag
        that generalizes his nouns. Beyond `SAMPLE` users it asks less: whether each of some bags fits as many users
        as it was released with.
        """
        if "user" not in columns:
            return "the release does not tell users apart"
        wrong = self._wrong_table(log, columns)
        if wrong is not None:
            return wrong
        rows = log.engine.table(
            'SELECT "user", node, count(*) AS n FROM released GROUP BY "user", node ORDER BY "user", node'
        )
        user, node, n = (rows[name].to_numpy() for name in ("user", "node", "n"))
        if not self.duplicates and n.max(initial=1) > 1:
            return f"the bag of user {user[n.argmax()]} has an item more than once"
        users, start = np.unique(user, return_index=True)
        start = np.append(start, len(user))
        bag: dict[bytes, list[int]] = {}
        for i in range(len(users)):
            part = slice(start[i], start[i + 1])
            bag.setdefault(node[part].tobytes() + n[part].tobytes(), []).append(i)
        small = next((holders[0] for holders in bag.values() if len(holders) < self.users), None)
        if small is not None:
            return f"the bag of user {users[small]} is that of fewer than {self.users} users"
        nouns = _nouns(log, self._base)
        known = len(np.unique(nouns >> 32))
        if known != len(users):
            return f"it has {len(users)} users, the log has {known} with a noun"
        return self._misfit(users, list(bag.values()), (start, node, n), nouns)

    def _misfit(
        self, users: Longs, bags: list[list[int]], released: tuple[Longs, Longs, Longs], nouns: Longs
    ) -> str | None:
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import maximum_bipartite_matching

        start, node, n = released
        whole = len(users) <= SAMPLE
        if not whole:
            # Another sample each time, so that nothing can be hidden where no check looks.
            lot = np.random.default_rng(int.from_bytes(secrets.token_bytes(16)))
            some = lot.choice(len(bags), min(SAMPLE, len(bags)), replace=False)
            bags = [bags[i] for i in np.sort(some)]
        tree, order = self._base.taxonomy, np.argsort(nouns & _LOW, kind="stable")
        owner, noun, everyone = (nouns >> 32)[order], (nouns & _LOW)[order], np.unique(nouns >> 32)
        edges: list[tuple[Longs, Longs]] = []
        for holders in bags:
            part = slice(start[holders[0]], start[holders[0] + 1])
            fits = _fitting(tree, node[part], n[part], nouns, owner, noun, everyone, None if whole else len(holders))
            if len(fits) < len(holders):
                return f"the bag of user {users[holders[0]]} fits {len(fits)} users of the log, not {len(holders)}"
            if whole:
                edges.append((np.repeat(fits, len(holders)), np.tile(np.array(holders), len(fits))))
        if whole and edges:
            fitting, column = (np.concatenate(part) for part in zip(*edges, strict=True))
            known, row = np.unique(fitting, return_inverse=True)
            graph = csr_array((np.ones(len(row), np.int8), (row, column)), shape=(len(known), len(users)))
            given = maximum_bipartite_matching(graph, perm_type="row")
            lone = np.flatnonzero(given < 0)
            if len(lone):
                return f"the bag of user {users[lone[0]]} is left without a user of the log when all others have one"
        return None


def _fitting(
    tree: Taxonomy, node: Longs, n: Longs, nouns: Longs, owner: Longs, noun: Longs, everyone: Longs, enough: int | None
) -> Longs:
    """The users with distinct nouns for all items of a bag.

    The nouns below two nodes are apart, or those of one are among those of the other. So there are distinct nouns for
    all items if below every node there are at least as many nouns as items.

    Args:
        tree: The tree.
        node: The items of the bag.
        n: How often it has each.
        nouns: All users and their nouns, as one number each, ascending.
        owner: The users in the order of nouns.
        noun: The nouns in this order.
        everyone: All users.
        enough: How many users will do; None for all.
    """
    above = np.unique(np.concatenate([tree.line(int(i)) for i in node])).astype(np.int64)
    end = tree.end[above].astype(np.int64)
    wanted = [int(n[(node >= low) & (node < high)].sum()) for low, high in zip(above, end, strict=True)]
    low, high = np.searchsorted(noun, above), np.searchsorted(noun, end)
    rarest = int(np.argmin(high - low))
    candidates = everyone
    if high[rarest] - low[rarest] < len(everyone):
        candidates = np.unique(owner[low[rarest] : high[rarest]])
    found: list[Longs] = []
    for fits in np.split(candidates, _FEW * 8 ** np.arange(8)):
        for i in np.argsort(high - low, kind="stable"):
            have = np.searchsorted(nouns, fits << 32 | end[i]) - np.searchsorted(nouns, fits << 32 | above[i])
            fits = fits[have >= wanted[i]]
        found.append(fits)
        if enough is not None and sum(map(len, found)) >= enough:
            break
    return np.concatenate(found)


class ConceptUsers(_Generalized):
    """k-anonymity of concepts: at least `users` users issued a query that a released concept stands for."""

    kind: Literal["concept-users"] = "concept-users"

    @property
    def statement(self) -> str:
        """The promise in one sentence."""
        return (
            f"At least {self.users} users issued a query that a released concept can stand for, and there is a concept"
            f" for every event (beyond {QUERIES:,} distinct queries checked node by node)."
        )

    def check(self, log: QueryLog, columns: Columns) -> str | None:
        """Count the users of every concept, and look for a way to give every event a concept that fits its query."""
        wrong = self._wrong_table(log, columns)
        if wrong is not None:
            return wrong
        here = local(log, "the check of concepts")
        counted = ', count(DISTINCT "user") AS users' if "user" in columns else ""
        rows = here.engine.table(f"SELECT node, count(*) AS n{counted} FROM released GROUP BY node ORDER BY node")  # noqa: S608  # parts of this module
        node, n = rows["node"].to_numpy(), rows["n"].to_numpy()
        names = self._base.taxonomy.names
        if counted and len(node) and rows["users"].to_numpy().min() < self.users:
            few = int(rows["users"].to_numpy().argmin())
            return f"the concept '{names[int(node[few])]}' has {rows['users'][few]} users"
        if n.sum() != here.facts.events:
            return f"it has {n.sum()} rows, the log has {here.facts.events} events"
        fits = self._fits(here, node)
        found = self._few(here, node, fits)
        if found is not None:
            return f"the concept '{names[found]}' fits queries of fewer than {self.users} users"
        if here.n_queries <= QUERIES:
            return _unassigned(here.events_per_query, n, fits)
        return self._crowded(here, node, n, fits)

    def _fits(self, log: LocalLog, node: Longs) -> tuple[Longs, Longs]:
        """The queries that each released concept can stand for, by the place of the concept: the root for any."""
        tree = self._base.taxonomy
        start, of = link(log, self._base, "terms").nodes()
        query = np.repeat(np.arange(len(start) - 1), np.diff(start))
        found = [np.arange(log.n_queries)] if len(node) and node[0] == 0 else []
        for level in range(1, tree.height + 1):
            above = tree.at_level(of, level)
            place = np.searchsorted(node, above).clip(0, max(len(node) - 1, 0))
            some = (above > 0) & (node[place] == above)
            found.append(np.unique(place[some].astype(np.int64) << 32 | query[some]))
        pairs = np.concatenate(found)
        pairs.sort()
        return pairs >> 32, pairs & _LOW

    def _few(self, log: LocalLog, node: Longs, fits: tuple[Longs, Longs]) -> int | None:
        """A concept that too few users could have asked for."""
        log.need("searchers")
        issued = log.engine.table("SELECT query_id, user_id FROM searchers ORDER BY query_id")
        first = np.searchsorted(issued["query_id"].to_numpy(), np.arange(log.n_queries + 1))
        user = issued["user_id"].to_numpy()
        cut = np.searchsorted(fits[0], np.arange(len(node) + 1))
        for place, at in enumerate(node.tolist()):
            mine = fits[1][cut[place] : cut[place + 1]]
            if len(np.unique(user[ranges(first[mine], np.diff(first)[mine])])) < self.users:
                return int(at)
        return None

    def _crowded(self, log: LocalLog, node: Longs, n: Longs, fits: tuple[Longs, Longs]) -> str | None:
        """A concept at or below which stands more than the log has queries for."""
        tree = self._base.taxonomy
        events = np.bincount(fits[0], weights=log.events_per_query[fits[1]], minlength=len(node))
        below = np.concatenate([[0], np.cumsum(n)])
        last = np.searchsorted(node, tree.end[node])
        for place, at in enumerate(node.tolist()):
            released = int(below[last[place]] - below[place])
            if released > events[place]:
                name = tree.names[at]
                return f"'{name}' stands for {released} events at or below it, the log has {int(events[place])}"
        return None


def _unassigned(events: Longs, n: Longs, fits: tuple[Longs, Longs]) -> str | None:
    """Whether all events can have one of the released concepts that fit their query, each as often as it is there.

    Args:
        events: How many events each query has.
        n: How often each concept is released.
        fits: Which concept fits which query.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_flow

    queries, concepts = len(events), len(n)
    source, sink = queries + concepts, queries + concepts + 1
    row = np.concatenate([np.full(queries, source), fits[1], queries + np.arange(concepts)])
    column = np.concatenate([np.arange(queries), queries + fits[0], np.full(concepts, sink)])
    most = np.concatenate([events, events[fits[1]], n]).astype(np.int32)
    graph = csr_array((most, (row, column)), shape=(sink + 1, sink + 1))
    flow = int(maximum_flow(graph, source, sink).flow_value)
    return None if flow == events.sum() else f"{events.sum() - flow} events are left without a concept that fits them"


def _nouns(log: QueryLog, base: Knowledge) -> Longs:
    """The distinct nouns of all users, ascending: user_id << 32 | node."""
    here = local(log, "the check of bags")
    here.need("searchers")
    start, node = link(here, base, "terms").nodes()
    found = here.engine.table("SELECT user_id, query_id FROM searchers")
    query = found["query_id"].to_numpy()
    size = np.diff(start)[query]
    mine = node[ranges(start[query], size)].astype(np.int64)
    user = np.repeat(found["user_id"].to_numpy().astype(np.int64), size)
    return np.unique(user[mine > 0] << 32 | mine[mine > 0])
