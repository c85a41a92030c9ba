"""What groups of users at random keep of profiles, and the correction for it, literally."""

import random
from collections import Counter, defaultdict

from tests.oracles.microaggregation import srp


def above(kept: float, floor: float) -> float:
    """0 for what groups at random keep, 1 for everything."""
    return (kept - floor) / (1 - floor)


def bands(sizes: list[int], most: int, least: int) -> list[int]:
    """Users in order of their activity, cut into as many equal parts as leave enough users in each."""
    parts = max(1, min(most, len(sizes) // least))
    found = [0] * len(sizes)
    for rank, user in enumerate(sorted(range(len(sizes)), key=lambda user: (sizes[user], user))):
        found[user] = rank * parts // len(sizes)
    return found


def permuted(profiles: list[Counter[str]], records: list[Counter[str] | None], band: list[int]) -> float:
    """The expected SRP if everybody with a record is as likely to have that of anybody with one in their band."""
    total, users = 0.0, 0
    for user, profile in enumerate(profiles):
        if not profile:
            continue
        users += 1
        if records[user] is not None:
            there = [record for v, record in enumerate(records) if record is not None and band[v] == band[user]]
            total += sum(srp(profile, record) for record in there) / len(there)
    return total / users


def quotas(sizes: list[int]) -> list[int]:
    """How many queries each user of a group gives: in all their mean number, each as near as can be to their share."""
    n, total = len(sizes), sum(sizes)
    left = (2 * total + n) // (2 * n)
    found = [1] * n if left >= n else [0] * n
    while sum(found) < left:
        may = [u for u in range(n) if found[u] < (sizes[u] if left >= n else 1)]
        found[max(may, key=lambda u: (sizes[u] - n * found[u], -u))] += 1
    return found


def pooled(bags: list[Counter[str]], group: list[int | None], draw: random.Random) -> list[Counter[str]]:
    """The record of every user, if each member of a group gives a share of their events at random."""
    members = defaultdict(list)
    for user, mine in enumerate(group):
        if mine is not None:
            members[mine].append(user)
    found: list[Counter[str]] = [Counter() for _ in bags]
    for users in members.values():
        record: Counter[str] = Counter()
        for user, quota in zip(users, quotas([bags[user].total() for user in users]), strict=True):
            record.update(draw.sample(sorted(bags[user].elements()), quota))
        for user in users:
            found[user] = record
    return found


def regrouped(group: list[int | None], band: list[int], draw: random.Random) -> list[int | None]:
    """Groups of the same sizes: everybody takes the place of somebody of their band."""
    found = list(group)
    for wanted in set(band):
        there = [user for user, mine in enumerate(group) if mine is not None and band[user] == wanted]
        for user, other in zip(there, draw.sample(there, len(there)), strict=True):
            found[user] = group[other]
    return found
