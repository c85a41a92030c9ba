"""History linkage: someone who has half of what people searched for looks for the rest of it in a release.

`queryveil.release.linkage` says how records are scored, and what counts as learned. Here it is tried on every kind of
release: records of users, sessions, records that a group shares, generalized items in the place of queries, and rows
that nothing links. Of the latter, each distinct text is a record by itself.
"""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from queryveil.arrays import Bools, Ints, Longs, Ragged, offsets
from queryveil.assess.attacks.again import cannot, method_again, rows_of
from queryveil.assess.attacks.finding import Estimate, Finding, InapplicableError, NoUserMapError, surest_loss
from queryveil.assess.attacks.view import NO_QUERY, View, events_of, view
from queryveil.claims import BagUsers, ConceptUsers
from queryveil.errors import QueryveilError, option
from queryveil.knowledge import Taxonomy, categorize_texts, known_as, open_taxonomy, recall_taxonomy
from queryveil.log import LocalLog, QueryLog, local
from queryveil.log.draws import keyed
from queryveil.log.ingest import read_log
from queryveil.release import Release, scrub_again
from queryveil.release.linkage import CANDIDATES, EVENTS, HEAVY, THEIR_EVENTS, USERS
from queryveil.release.scoring import (
    NOBODY,
    Bags,
    Compared,
    Learned,
    Truth,
    half,
    histories,
    interval,
    learn,
    linked_groups,
    unknown_texts,
)
from queryveil.text.show import percent

OF_ITEMS = 5_000
"""Most candidates where items are released, because every noun stands for all that is above it."""
AGAIN = 5_000
"""Most users on whose newer half a method is run again."""
_FEW = 10
_PERMUTED = 10
"""How often records are permuted among people for the control."""
_PURPOSE = "background knowledge"


@dataclass(frozen=True, eq=False)
class _Released:
    """What a release has of people, in the ids of the log.

    Attributes:
        records: The queries or nodes of each record.
        truth: Who is behind which record.
        group: A number for every user of the log: people who share a record have the same.
        each: Whether nothing links rows, so that every distinct query or node is a record by itself.
        base: The taxonomy whose nodes are released; None for queries.
    """

    records: Bags
    truth: Truth
    group: Longs
    each: bool
    base: Taxonomy | None


@dataclass(frozen=True, eq=False)
class _World:
    """Some people, what the attacker compares, and what there is to learn of those whose records are looked at."""

    people: Longs
    looked_for: Bools
    known: Bags
    issued: Bags
    records: Bags
    truth: Truth
    compared: Compared


def history_linkage(
    release: Release, log: QueryLog, *, seed: int = 0, users: int = USERS, taxonomy: str | None = None
) -> Finding:
    """How much of what they did not know an attacker learns who has a random half of the events of each person.

    The number is the share of released query texts (or items) of people that are unknown to the attacker and stand in a
    record that they link to the right person.

    Args:
        release: A release; if it links events, one that knows who is who.
        log: Its log.
        seed: Random seed.
        users: Most people whose records are looked at; of more, a random sample. They are looked for among up to 50,000
            people; in a log of more, that makes it an upper estimate.
        taxonomy: Where the taxonomy of a release of items lies, of which it knows only the name.
    """
    seen = view(release, log)
    given = _released(release, seen, seen.log, taxonomy)
    people, looked_for = _people(seen.log, given, seed, users)
    event, user = events_of(seen.log, people)
    chosen = half(user, keyed(seen.log.secret(seed, _PURPOSE), event.astype(np.uint64)))
    world = _world(seen.log, given, (people, looked_for), event, user, chosen)
    return _finding(world, given, seen, "random half", seed)


def older_history(
    release: Release,
    log: QueryLog,
    *,
    seed: int = 0,
    users: int = USERS,
    again: int = AGAIN,
    taxonomy: str | None = None,
) -> Finding:
    """The same of an attacker who has the older half of each history, against a release of the newer half.

    The method of the release runs again, with its parameters and seed, on the newer half of the timed events of each
    user, so there is no event that the attacker knows and the release has.

    Args:
        release: A release.
        log: Its log, which has times.
        seed: Random seed.
        users: Most people whose records are looked at.
        again: Most users that the method runs on again. On fewer users than the log has, a threshold of k users lets
            less through.
        taxonomy: Where the taxonomy lies that the release was made with, of which it knows only the name.
    """
    here = view(release, log).log
    if not here.has_times:
        raise InapplicableError("the log has no times, so there is no older half")
    if release.manifest.kind == "tokens":
        raise InapplicableError(NO_QUERY)
    method = method_again(release, taxonomy)
    event, user, older = _by_age(here, _drawn(here, seed)[:again])
    newer = _scrubbed(read_log(rows_of(here, event[~older]), language=here.language.ids), release, here)
    try:
        made = method.anonymize(newer, seed=seed)
        seen = View.of(made, newer)
        given = _moved(_released(made, seen, newer, taxonomy), newer, here, event[~older])
        people, looked_for = _people(here, given, seed, users)
        mine = np.isin(user, people)
        place = np.searchsorted(people, user[mine])
        world = _world(here, given, (people, looked_for), event[mine], place, older[mine])
        return _finding(world, given, seen, "older half", seed)
    except InapplicableError:
        raise
    except QueryveilError as error:
        raise cannot(error) from None
    finally:
        newer.close()


def _scrubbed(newer: LocalLog, release: Release, here: LocalLog) -> LocalLog:
    """The log that a method is run on again, scrubbed as the one that it ran on was."""
    scrub = release.manifest.scrub
    if scrub is None or here.stats.scrub is not None:
        return newer
    try:
        return local(scrub_again(release, newer), "An attack")
    except QueryveilError as error:
        raise cannot(error) from None
    finally:
        newer.close()


def _released(release: Release, seen: View, log: LocalLog, taxonomy: str | None) -> _Released:
    """What there is to link."""
    base = None if seen.texts else _taxonomy(release, taxonomy)
    if seen.texts and not len(seen.queries):
        raise InapplicableError(NO_QUERY)
    group = np.arange(log.n_users, dtype=np.int64)
    if not seen.records:
        item = seen.queries if seen.texts else seen.nodes
        bags = Bags(np.arange(len(item) + 1), item, np.ones(len(item), np.int64))
        return _Released(bags, _issuers(seen, item, base), group, True, base)
    if seen.truth is None:
        raise NoUserMapError
    if seen.owner is not None:
        there = seen.owner >= 0
        group[there] = log.n_users + seen.kind[seen.owner[there]]
    return _Released(seen.bags, seen.truth, group, False, base)


def _taxonomy(release: Release, taxonomy: str | None) -> Taxonomy:
    """The taxonomy whose nodes are released."""
    name = str(release.manifest.last.parameters.get("taxonomy"))
    try:
        if taxonomy is not None:
            open_taxonomy(taxonomy)
            known_as(name, taxonomy)
        trees = [claim.tree for claim in release.manifest.claims if isinstance(claim, BagUsers | ConceptUsers)]
        base = recall_taxonomy(name, *trees[:1])
    except QueryveilError as error:
        raise InapplicableError(str(error)) from None
    if any(tree != base.digest for tree in trees):
        raise InapplicableError(
            f"the taxonomy is not the '{name}' that the release was made with; name that with {option('taxonomy')}"
        )
    return base


def _issuers(seen: View, item: NDArray[np.integer], base: Taxonomy | None) -> Truth:
    """Who issued each of some queries, or a query that each of some nodes stands for."""
    if base is None:
        issuer = seen.issued.record[seen.issued.positions(item)].astype(np.int64)
        return Truth(np.repeat(np.arange(len(item)), seen.issued.sizes[item]), issuer)
    searches = seen.searches
    issued = Bags.of(searches.owners, searches.query, searches.times, seen.log.n_users)
    nodes = _generalized(seen.log, issued, base)
    there = np.isin(nodes.item, item)
    record, user = np.searchsorted(item, nodes.item[there]), nodes.owners[there]
    order = np.lexsort((user, record))
    return Truth(record[order], user[order])


def _drawn(log: LocalLog, seed: int) -> Longs:
    """All users of a log in random order."""
    digest = log.engine.fetch("SELECT digest FROM users ORDER BY user_id")["digest"].to_numpy()
    found: Longs = np.argsort(keyed(log.secret(seed, _PURPOSE), digest), kind="stable").astype(np.int64)
    return found


def _people(log: LocalLog, given: _Released, seed: int, users: int) -> tuple[Longs, Bools]:
    """Some released people, ascending, and whether their records are looked at.

    They are whole groups, because those who share a record hide each other.
    """
    released = np.zeros(log.n_users, np.bool_)
    released[given.truth.user] = True
    each = np.diff(np.searchsorted(log.events["user_id"].to_numpy(), np.arange(log.n_users + 1)))
    released &= each <= HEAVY
    order = _drawn(log, seed)
    order = order[released[order]]
    if len(order) < 2:
        raise InapplicableError("fewer than two people have anything in the release")
    # The groups in the order of their first member.
    label, first, place = np.unique(given.group[order], return_index=True, return_inverse=True)
    events = each[order]
    turn = np.argsort(first)
    size = np.bincount(place)[turn]
    many = np.bincount(place, weights=events)[turn]
    candidates = CANDIDATES if given.base is None else OF_ITEMS
    fits = (np.cumsum(size) <= max(candidates, users)) & (np.cumsum(many) <= THEIR_EVENTS)
    looked_for = (np.cumsum(size) <= users) & (np.cumsum(many) <= EVENTS)
    for some in (fits, looked_for):
        some[: 2 if len(label) > 1 else 1] = True
    people = np.sort(order[np.isin(place, turn[fits])])
    return people, np.isin(people, order[np.isin(place, turn[looked_for])])


def _by_age(log: LocalLog, people: Longs) -> tuple[Longs, Longs, Bools]:
    """The timed events of some people who have two, the users, and whether each is in the older half."""
    event, place = events_of(log, np.sort(people))
    time = log.events["time"].combine_chunks().take(pa.array(event))
    timed = time.is_valid().to_numpy(zero_copy_only=False)
    event, place, age = event[timed], place[timed], time.filter(pa.array(timed)).cast(pa.int64()).to_numpy()
    several = np.bincount(place, minlength=len(people))[place] > 1
    event, place, age = event[several], place[several], age[several]
    if not len(event):
        raise InapplicableError("nobody has two events with a time")
    return event, np.sort(people)[place], half(place, age)


def _moved(given: _Released, log: LocalLog, here: LocalLog, event: Longs) -> _Released:
    """What a release of `log` has in the ids of the larger log `here`, some events of which `log` was made of."""
    query = np.unique(here.events["query_id"].to_numpy()[event])
    user = np.unique(here.events["user_id"].to_numpy()[event])
    users = user[pc.index_in(log.user_text, value_set=here.user_text.take(pa.array(user))).to_numpy()].astype(np.int64)
    group = np.arange(here.n_users, dtype=np.int64)
    group[users] = here.n_users + given.group
    records = given.records
    if given.base is None:
        texts = here.query_text.take(pa.array(query))
        place = pc.fill_null(pc.index_in(log.query_text, value_set=texts), -1).to_numpy()
        there = place[records.item] >= 0  # a masked query is no query of the log
        records = Bags(records.start, query[place][records.item], records.n).only(there)
    return _Released(records, Truth(given.truth.record, users[given.truth.user]), group, given.each, given.base)


def _world(
    log: LocalLog,
    given: _Released,
    some: tuple[Longs, Bools],
    event: Longs,
    user: Longs,
    chosen: Bools,
) -> _World:
    """Some people and their records in small numbers; `user` is the place of each event's person."""
    people, looked_for = some
    query = log.events["query_id"].to_numpy()[event].astype(np.int64)
    known, issued = histories(user, query, chosen, len(people))
    there = np.isin(given.truth.user, people[looked_for])
    used, record = np.unique(given.truth.record[there], return_inverse=True)
    truth = Truth(record, np.searchsorted(people, given.truth.user[there]))
    records = given.records.take(used)
    if given.base is not None:
        known, issued = (_generalized(log, bags, given.base) for bags in (known, issued))
        records = records.only(records.item > 0)  # the root says nothing
        items = known, records, len(given.base.tree.parent)
    else:
        ids = np.unique(np.concatenate([issued.item, records.item]))
        known, issued, records = (bags.numbered(ids) for bags in (known, issued, records))
        words, n_words = _words(log, ids)
        items = known.with_words(words, len(ids)), records.with_words(words, len(ids)), len(ids) + n_words
    passed = _holders(known, records) if given.each else NOBODY
    return _World(people, looked_for, known, issued, records, truth, Compared(*items, passed))


def _words(log: LocalLog, queries: NDArray[np.integer]) -> tuple[tuple[Longs, Ints], int]:
    ids, word = np.unique(log.tokens.word[log.tokens.positions(queries)], return_inverse=True)
    return (offsets(log.tokens.sizes[queries]), word.astype(np.int32)), len(ids)


def _generalized(log: LocalLog, bags: Bags, base: Taxonomy) -> Bags:
    """The nodes of queries and all that is above them, but for the root."""
    ids = np.unique(bags.item)
    start, node = categorize_texts(log.query_text.take(pa.array(ids)), base, "terms", log.language).nodes()
    place, of_query = np.searchsorted(ids, bags.item), Ragged(start)
    size = of_query.sizes[place]
    below, owner, n = node[of_query.positions(place)], np.repeat(bags.owners, size), np.repeat(bags.n, size)
    levels = [base.tree.at_level(below, level) for level in range(1, base.tree.height + 1)]
    item = np.concatenate([np.empty(0, np.int32), *levels])
    there = item > 0
    owner, n = np.tile(owner, len(levels))[there], np.tile(n, len(levels))[there]
    return Bags.of(owner, item[there], n, len(bags))


def _holders(known: Bags, records: Bags) -> Truth:
    """Whom the attacker knows to have issued the one text of a record: they ask who else did."""
    there = np.isin(known.item, records.item)
    order = np.argsort(records.item)
    owner = records.owners[order][np.searchsorted(records.item[order], known.item[there])]
    sort = np.argsort(owner, kind="stable")
    return Truth(owner[sort], known.owners[there][sort])


def _finding(world: _World, given: _Released, seen: View, setting: str, seed: int) -> Finding:
    unknown = unknown_texts(world.known, world.issued, world.records, world.truth)
    if not len(unknown[0]):
        raise InapplicableError("nothing is released of anybody that the attacker does not know already")
    found = learn(world.compared, world.truth, unknown)
    control, why = _control(world, given.each, seed)
    n, log_users = len(world.people), seen.log.n_users
    baseline = 1 / n
    what = "queries" if given.base is None else "items"
    details: dict[str, float | int | str] = {
        "linked_records": float(found.credit.mean()),
        "users": int(world.looked_for.sum()),
        "candidates": n,
        "records": len(world.records),
        "texts": int(found.texts.sum()),
    }
    beside = [] if given.each else [f"{percent(found.credit.mean())} of records linked to the right person"]
    group = given.group[world.people]
    if 2 * len(np.unique(group)) <= n:  # shared on purpose, and not now and then by chance
        details["linked_groups"] = linked_groups(world.compared, world.truth, unknown, group)
        beside.append(f"{percent(float(details['linked_groups']))} to the right group")
    if details["users"] != log_users:
        beside.append(f"tried on {details['users']:,} of {log_users:,} people, looked for among {n:,}")
    return Finding(
        attack="history_linkage",
        setting=setting if given.base is None else f"items, {setting}",
        number=f"released {what} unknown to the attacker that they attribute to the right person",
        unit="share",
        estimate=_estimate(found, seed),
        baseline=baseline,
        baseline_text="one of these candidates at random",
        control=control,
        control_text=why,
        trials=int((found.texts > 0).sum()),
        beside=", ".join(beside),
        details=details,
        loss=surest_loss(found.right, found.sure, max(baseline, control.value if control else 0.0)),
    )


def _estimate(found: Learned, seed: int) -> Estimate:
    low, high = interval(found.hits, found.texts, seed)
    return Estimate(found.share, min(low, found.share), max(high, found.share))


def _control(world: _World, each: bool, seed: int) -> tuple[Estimate | None, str]:
    """The same attack where what it looks for is not there."""
    rng = np.random.default_rng(seed)
    if each:
        other = _others(len(world.people), rng)
        known = world.known.take(other)
        items, passed = world.compared.known.take(other), _holders(known, world.records)
        compared = Compared(items, world.compared.records, world.compared.items, passed)
        unknown = unknown_texts(known, world.issued, world.records, world.truth)
        found = learn(compared, world.truth, unknown)
        return _estimate(found, seed), "the same with the known halves permuted among the people"
    found = _permuted(world, rng)
    if (found.texts > 0).sum() < _FEW:
        return None, "none: hardly anybody else issued what stands in a record"
    return _estimate(found, seed), "the same with records permuted among the people: texts that others issued too"


def _permuted(world: _World, rng: np.random.Generator) -> Learned:
    """What is learned of people from the records of others, over several permutations."""
    n, pairs = len(world.people), len(world.truth.record)
    order = np.argsort(np.tile(world.truth.record, _PERMUTED), kind="stable")
    turn = np.repeat(np.arange(_PERMUTED), pairs)[order]
    user = np.concatenate([_others(n, rng)[world.truth.user] for _ in range(_PERMUTED)])[order]
    truth = Truth(np.tile(world.truth.record, _PERMUTED)[order], user)
    pair, key = unknown_texts(world.known, world.issued, world.records, truth)
    # Every permutation has people of its own, so that no text counts for two of them.
    found = learn(world.compared, truth, (pair, key + (turn[pair] * n << 32)), n * _PERMUTED)
    hits, texts = (values.reshape(_PERMUTED, n).sum(axis=0) for values in (found.hits, found.texts))
    return replace(found, hits=hits, texts=texts)


def _others(n: int, rng: np.random.Generator) -> Longs:
    """Somebody else for everybody."""
    order = rng.permutation(n)
    other = np.empty(n, np.int64)
    other[order] = np.roll(order, 1)
    return other
