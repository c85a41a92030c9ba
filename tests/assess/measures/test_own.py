"""How much of a record comes from its own users."""

from collections import Counter, defaultdict

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import queryveil as qv
from queryveil.assess.measures import own_queries
from tests.methods.microaggregation.test_common import read, taxonomy
from tests.methods.microaggregation.test_mdav import EVENT
from tests.strategies import examples

__all__ = ["taxonomy"]  # a fixture


@settings(max_examples=examples(13))
@given(st.lists(EVENT, min_size=6, max_size=40), st.booleans())
def test_it_counts_what_users_of_a_record_issued(taxonomy, events, semantic):
    log = read(events)
    if len({u for u, query, _ in events if set(query.split()) - {"unknown"}}) < 2:
        return
    distance = "semantic" if semantic else "strings"
    looked_up = {"taxonomy": taxonomy, "linker": "terms"} if semantic else {}
    release = qv.Mdav(k=2, distance=distance, **looked_up).anonymize(log)
    fresh = {row["original"]: row["released"] for batch in release.user_map() for row in batch.to_pylist()}
    records, users, typed = defaultdict(Counter), defaultdict(list), defaultdict(set)
    for row in pa.Table.from_batches(release.batches()).to_pylist():
        records[row["user"]][row["query"]] += 1
    for original, released in fresh.items():
        users[frozenset(records[released].items())].append(original)
    for u, query, _ in events:
        typed[f"u{u}"].add(query)
    expected = Counter()
    for record, mine in users.items():
        own = sum(n for query, n in record if any(query in typed[user] for user in mine))
        expected[len(mine), sum(n for _, n in record), own] += 1
    found = own_queries(release).to_pylist()
    assert Counter((row["users"], row["queries"], row["own"]) for row in found) == expected
    shares = [row["own"] / row["queries"] for row in found]
    assert shares == sorted(shares, reverse=True)
    if not semantic:
        assert set(shares) == {1.0}
