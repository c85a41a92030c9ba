"""Claims about releases of generalized items: nodes of a tree of topics in the place of words."""

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from queryveil.arrays import Ragged, offsets, places, ranges
from queryveil.claims.base import Checked, Count, Evidence, WitnessedClaim
from queryveil.claims.certificates import Certificate
from queryveil.claims.generalized_tables import BagTables, ConceptTables
from queryveil.kernels.bags import Bags, Nouns, fewer_users, fitting, misfits
from queryveil.knowledge import Taxonomy, categorize, recall_taxonomy
from queryveil.knowledge.tables import nouns_of_users
from queryveil.log import LocalLog

Longs = NDArray[np.int64]

_LOW = 0xFFFFFFFF
PAIRS = 10_000_000
"""Most pairs of what fits each other among which an assignment of all is looked for, which bounds memory and time."""


class _Generalized(WitnessedClaim):
    """What the claims about items share: the tree that they are nodes of."""

    of_words: ClassVar[bool] = True
    users: Count
    taxonomy: str
    """The name of the taxonomy."""
    tree: str
    """The digest of its tree."""

    @property
    def _base(self) -> Taxonomy:
        return recall_taxonomy(self.taxonomy, self.tree)

    def _wrong_table(self, evidence: Evidence) -> str | None:
        """What is wrong with the table before anything is counted."""
        if not {"item", "node"} <= set(evidence.columns):
            return "the release has no columns 'item' and 'node'"
        if self._base.digest != self.tree:
            return f"the taxonomy '{self.taxonomy}' is another one than that of the release"
        names = self._base.tree.names
        rows = evidence.work.fetch(
            f"SELECT node, item, count(*) AS n FROM {evidence.released} GROUP BY node, item ORDER BY node, item"  # noqa: S608  # a table of ours
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
    exact: ClassVar[str] = (
        "Every released bag of items is that of at least {users} users, and its items generalize distinct nouns of each"
        " of them."
    )
    short: ClassVar[str] = "Every released bag of items is that of at least {users} users."

    def look(self, evidence: Evidence) -> Checked:
        """Compare the bags of all users, then look for users that they fit.

        Who is who is a secret, so the check asks whether there is a way to give every user of the log a released bag
        that generalizes their nouns. The table `members` of a certificate names one: the `user_id` of the log, and the
        `user` of the release. Without, one is looked for as far as the memory allows.
        """
        if "user" not in evidence.columns:
            return Checked("the release has no user ids")
        wrong = self._wrong_table(evidence)
        if wrong is not None:
            return Checked(wrong)
        if not isinstance(evidence.log, LocalLog):
            return self.look_by_tables(evidence)
        rows = evidence.work.fetch(
            f'SELECT "user", node, count(*) AS n FROM {evidence.released} GROUP BY "user", node ORDER BY "user", node'  # noqa: S608  # a table of ours
        )
        user, node, n = (rows[name].to_numpy().astype(np.int64) for name in ("user", "node", "n"))
        if not self.duplicates and n.max(initial=1) > 1:
            return Checked(f"the bag of user {user[n.argmax()]} has an item more than once")
        users, start = np.unique(user, return_index=True)
        bags = Bags(np.append(start, len(user)), node, n)
        one, of_user, holders = _distinct(bags)
        small = np.flatnonzero(holders[of_user] < self.users)
        if len(small):
            return Checked(f"the bag of user {users[small[0]]} is that of fewer than {self.users} users")
        nouns = _nouns(evidence.log, self._base)
        known = np.flatnonzero(np.diff(nouns.start))
        if len(known) != len(users):
            return Checked(f"it has {len(users)} users, the log has {len(known)} with a noun")
        end = self._base.tree.end.astype(np.int64)
        members = None if evidence.certificate is None else _members(evidence.certificate, known, users)
        if members is not None and len(misfits(np.arange(len(users)), members, bags, nouns, end)) == 0:
            return Checked(None, f"all {len(users):,} users have the bag that the certificate names for them")
        return _assigned(users, of_user, _taken(bags, one), holders, nouns, end)

    def look_by_tables(self, evidence: Evidence) -> Checked:
        """The same for a log that outgrows a machine; without a witness, bags of a large one are drawn at random."""
        base = self._base
        with evidence.log.workspace() as work:
            bags = BagTables(work, evidence.released, len(base.tree))
            repeats = None if self.duplicates else bags.repeats()
            if repeats is not None:
                return Checked(f"the bag of user {repeats} has an item more than once")
            small = bags.few(self.users)
            if small is not None:
                return Checked(f"the bag of user {small} is that of fewer than {self.users} users")
            found = nouns_of_users(evidence.log, work, base)
            known, size = work.row(f"SELECT count(DISTINCT user_id) AS users, count(*) AS n FROM {found}")  # noqa: S608  # a table of ours
            if known != bags.users:
                return Checked(f"it has {bags.users} users, the log has {known} with a noun")
            given = evidence.certificate
            members = None if given is None else given.on_cluster(evidence.log, work, "members")
            if members is not None and bags.fits_members(members, found, base.source):
                return Checked(None, f"all {bags.users:,} users have the bag that the certificate names for them")
            if size + bags.rows <= PAIRS:
                users, every, nouns = bags.here(found)
                one, of_user, holders = _distinct(every)
                return _assigned(users, of_user, _taken(every, one), holders, nouns, base.tree.end.astype(np.int64))
            drawn = bags.drawn(found, base.source)
        how = f"{len(drawn):,} distinct bags, drawn at random, were compared with all users of the log"
        few = next(((bag, n) for bag, n in drawn if n < bag.holders), None)
        if few is not None:
            return Checked(f"the bag of user {few[0].user} fits {few[1]} users of the log, not {few[0].holders}", how)
        return Checked(None, f"{how}; no way was looked for to give all users one")


def _distinct(bags: Bags) -> tuple[Longs, Longs, Longs]:
    """The first of all equal bags, which of these each bag is, and how many are equal to it."""
    # Bags of one mark and one length are put beside each other; whether they are equal is then looked at.
    size = np.diff(bags.start)
    draw = np.random.default_rng().integers(0, 1 << 63, (2, int(bags.node.max(initial=0)) + 1), np.int64)
    mark = np.add.reduceat(draw[0][bags.node] * bags.n + draw[1][bags.node], bags.start[:-1]) if len(size) else size
    order = np.lexsort((mark, size))
    same = np.zeros(len(size), np.bool_)
    same[1:] = (mark[order][1:] == mark[order][:-1]) & (size[order][1:] == size[order][:-1])
    pair = np.flatnonzero(same)
    if len(pair):
        long = size[order][pair]
        here, before = (ranges(bags.start[order[at]], long) for at in (pair, pair - 1))
        differ = (bags.node[here] != bags.node[before]) | (bags.n[here] != bags.n[before])
        same[pair] = Ragged(offsets(long)).sums(differ) == 0
    of = np.empty(len(size), np.int64)
    of[order] = np.cumsum(~same) - 1
    return order[~same], of, np.bincount(of)


def _taken(bags: Bags, some: Longs) -> Bags:
    """Some of the bags."""
    of_bag = Ragged(bags.start)
    at = of_bag.positions(some)
    return Bags(offsets(of_bag.sizes[some]), bags.node[at], bags.n[at])


def _members(certificate: Certificate, known: Longs, users: Longs) -> Longs | None:
    """For each released user the user of the log that a certificate names; None unless it names each once."""
    table = certificate.table("members", "user_id", "user")
    if table is None or len(table) != len(users):
        return None
    member, user = (table[name].to_numpy() for name in ("user_id", "user"))
    if not (np.array_equal(np.sort(member), known) and np.array_equal(np.sort(user), users)):
        return None
    found: Longs = member[np.argsort(user)]
    return found


def _assigned(users: Longs, of_user: Longs, bags: Bags, holders: Longs, nouns: Nouns, end: Longs) -> Checked:
    """Look for a way to give every user of the log a bag that fits them."""
    order = np.argsort(nouns.noun, kind="stable")
    owner = Ragged(nouns.start).owners[order]
    count, bag, user = fitting(bags, holders, nouns, owner, nouns.noun[order], end, PAIRS)
    how = f"each of the {len(holders):,} distinct bags was compared with the users of the log"
    few = np.flatnonzero((count < holders)[of_user])
    if len(few):
        wrong = f"the bag of user {users[few[0]]} fits {count[of_user[few[0]]]} users of the log"
        return Checked(f"{wrong}, not {holders[of_user[few[0]]]}", how)
    if len(bag) < count.sum():
        room = f"more than {PAIRS:,} pairs of a bag and a user fit, so no way was looked for to give all users one"
        return Checked(None, f"{how}; {room}; a certificate names one")
    known, row = np.unique(user, return_inverse=True)
    flow, met = _flow(np.ones(len(known), np.int64), holders, (bag, row))
    how += ", and a way was looked for to give all users one"
    if flow == len(users):
        return Checked(None, how)
    alone = int(users[np.flatnonzero((met < holders)[of_user])[0]])
    return Checked(f"the bag of user {alone} is left without a user of the log when all others have one", how)


class ConceptUsers(_Generalized):
    """k-anonymity of concepts: at least `users` users issued a query that a released concept stands for."""

    kind: Literal["concept-users"] = "concept-users"
    exact: ClassVar[str] = (
        "At least {users} users issued a query that a released concept can stand for, and there is a concept for every"
        " event."
    )
    short: ClassVar[str] = "Every released concept can stand for queries of at least {users} users."

    def look(self, evidence: Evidence) -> Checked:
        """Count the users of every concept, and look for a way to give every event a concept that fits its query.

        The table `concepts` of a certificate names one: how many `events` of a `query_id` became a `node`.
        """
        wrong = self._wrong_table(evidence)
        if wrong is not None:
            return Checked(wrong)
        counted = ', count(DISTINCT "user") AS users' if "user" in evidence.columns else ""
        rows = evidence.work.fetch(
            f"SELECT node, count(*) AS n{counted} FROM {evidence.released} GROUP BY node ORDER BY node"  # noqa: S608  # parts of this module
        )
        node, n = rows["node"].to_numpy(), rows["n"].to_numpy()
        names = self._base.tree.names
        if counted and len(node) and rows["users"].to_numpy().min() < self.users:
            few = int(rows["users"].to_numpy().argmin())
            return Checked(f"the concept '{names[int(node[few])]}' has {rows['users'][few]} users")
        here = evidence.log
        if n.sum() != here.stats.events:
            return Checked(f"it has {n.sum()} rows, the log has {here.stats.events} events")
        if not isinstance(here, LocalLog):
            return self.look_by_tables(evidence, node, n)
        fits = self._fits(here, node)
        found = self._few(here, node, fits)
        if found is not None:
            return Checked(f"the concept '{names[found]}' fits queries of fewer than {self.users} users")
        certificate = evidence.certificate
        if certificate is not None and _is_assigned(certificate, here.events_per_query, node, n, fits):
            return Checked(None, f"all {n.sum():,} events have a concept that fits, as the certificate names it")
        kinds = _alike(here.events_per_query, fits, len(node))
        if len(kinds[1][0]) <= PAIRS:
            return _given(kinds, n)
        events = np.bincount(fits[0], weights=here.events_per_query[fits[1]], minlength=len(node))
        return self._below(node, n, events)

    def look_by_tables(self, evidence: Evidence, node: Longs, n: Longs) -> Checked:
        """The same for a log that outgrows a machine.

        Args:
            evidence: What the check sees.
            node: The released concepts, ascending.
            n: The rows of each.
        """
        with evidence.log.workspace() as work:
            tables = ConceptTables(evidence.log, work, self._base, node)
            found = tables.few(self.users)
            if found is not None:
                name = self._base.tree.names[found]
                return Checked(f"the concept '{name}' fits queries of fewer than {self.users} users")
            given = evidence.certificate
            concepts = None if given is None else given.on_cluster(evidence.log, work, "concepts")
            if concepts is not None and tables.is_assigned(concepts, n):
                return Checked(None, f"all {n.sum():,} events have a concept that fits, as the certificate names it")
            kinds = tables.kinds(PAIRS)
            return self._below(node, n, tables.events()) if kinds is None else _given(kinds, n)

    def _fits(self, log: LocalLog, node: Longs) -> tuple[Longs, Longs]:
        """The queries that each released concept can stand for, by the place of the concept: the root for any."""
        tree = self._base.tree
        start, of = categorize(log, self._base, "terms").nodes()
        query = Ragged(start).owners
        found = [np.arange(log.n_queries)] if len(node) and node[0] == 0 else []
        for level in range(1, tree.height + 1):
            above = tree.at_level(of, level)
            place = places(node, above)
            some = (above > 0) & (place >= 0)
            found.append(np.unique(place[some] << 32 | query[some]))
        pairs = np.concatenate(found)
        pairs.sort()
        return pairs >> 32, pairs & _LOW

    def _few(self, log: LocalLog, node: Longs, fits: tuple[Longs, Longs]) -> int | None:
        """A concept that too few users could have asked for."""
        query, user = (log.query_users[name].to_numpy() for name in ("query_id", "user_id"))
        order = np.argsort(query, kind="stable")
        first = np.searchsorted(query[order], np.arange(log.n_queries + 1))
        cut = np.searchsorted(fits[0], np.arange(len(node) + 1))
        found = fewer_users(cut, fits[1], first, user[order], log.n_users, self.users)
        return None if found < 0 else int(node[found])

    def _below(self, node: Longs, n: Longs, events: NDArray[Any]) -> Checked:
        """Look for a concept at or below which stands more than the log has queries for.

        Args:
            node: The released concepts, ascending.
            n: The rows of each.
            events: How many events of the log each can stand for.
        """
        tree = self._base.tree
        how = (
            f"more than {PAIRS:,} pairs of a concept and a query fit, so events at or below each concept were counted,"
            " and no way was looked for to give all events one; a certificate names one"
        )
        below = offsets(n)
        last = np.searchsorted(node, tree.end[node])
        for place, at in enumerate(node.tolist()):
            released = int(below[last[place]] - below[place])
            if released > events[place]:
                name = tree.names[at]
                wrong = f"'{name}' stands for {released} events at or below it, the log has {int(events[place])}"
                return Checked(wrong, how)
        return Checked(None, how)


def _given(kinds: tuple[Longs, tuple[Longs, Longs]], n: Longs) -> Checked:
    """Look for a way to give all events a concept that fits."""
    left = int(kinds[0].sum()) - _flow(kinds[0], n, kinds[1])[0]
    wrong = f"{left} events are left without a concept that fits them" if left else None
    return Checked(wrong, "a way was looked for to give all events a concept that fits")


def _is_assigned(certificate: Certificate, events: Longs, node: Longs, n: Longs, fits: tuple[Longs, Longs]) -> bool:
    """Whether a certificate gives every event a concept that fits its query, and no concept too often or seldom."""
    table = certificate.table("concepts", "query_id", "node", "events")
    if table is None or len(table) == 0:
        return False
    query, concept, number = (table[name].to_numpy() for name in ("query_id", "node", "events"))
    place = places(node, concept)
    if not ((query >= 0) & (query < len(events)) & (place >= 0)).all():
        return False
    if not ((number > 0) & (number <= events[query])).all():
        return False
    return bool(
        (places(fits[0] << 32 | fits[1], place << 32 | query) >= 0).all()
        and (np.bincount(query, number, len(events)) == events).all()
        and (np.bincount(place, number, len(node)) == n).all()
    )


def _alike(events: Longs, fits: tuple[Longs, Longs], concepts: int) -> tuple[Longs, tuple[Longs, Longs]]:
    """Queries that the same concepts fit as one, with the events of all of them."""
    order = np.argsort(fits[1], kind="stable")  # by query, then concept
    concept, query = fits[0][order], fits[1][order]
    start = np.searchsorted(query, np.arange(len(events) + 1))
    some = np.flatnonzero(np.diff(start))
    sets = Bags(np.append(start[:-1][some], len(concept)), concept, np.ones(len(concept), np.int64))
    one, of, _ = _distinct(sets)
    kept = _taken(sets, one)
    total = np.bincount(of, events[some], len(one)).astype(np.int64)
    alone = events.sum() - total.sum()  # of queries that nothing fits
    return np.append(total, alone), (kept.node, Ragged(kept.start).owners)


def _flow(supply: Longs, demand: Longs, fits: tuple[Longs, Longs]) -> tuple[int, Longs]:
    """How much of a supply can be given to what demands it, and how much of each demand is met.

    Args:
        supply: How much there is of each thing.
        demand: How much of anything each taker wants.
        fits: Which taker can have which thing.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_flow

    things, takers = len(supply), len(demand)
    source, sink = things + takers, things + takers + 1
    row = np.concatenate([np.full(things, source), fits[1], things + np.arange(takers)])
    column = np.concatenate([np.arange(things), things + fits[0], np.full(takers, sink)])
    most = np.concatenate([supply, supply[fits[1]], demand]).astype(np.int32)
    graph = csr_array((most, (row, column)), shape=(sink + 1, sink + 1))
    found = maximum_flow(graph, source, sink)
    met = found.flow[things : things + takers, [sink]].toarray().ravel()
    return int(found.flow_value), met


def _nouns(here: LocalLog, base: Taxonomy) -> Nouns:
    """The distinct nouns of every user."""
    start, node = categorize(here, base, "terms").nodes()
    query, owner = (here.query_users[name].to_numpy() for name in ("query_id", "user_id"))
    of_query = Ragged(start)
    mine = node[of_query.positions(query)].astype(np.int64)
    user = np.repeat(owner.astype(np.int64), of_query.sizes[query])
    packed = user[mine > 0] << 32 | mine[mine > 0]
    packed.sort()
    packed = packed[np.diff(packed, prepend=-1) > 0]
    return Nouns(np.searchsorted(packed, np.arange(here.n_users + 1) << 32), packed & _LOW)
