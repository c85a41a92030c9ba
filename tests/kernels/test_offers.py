"""What members of groups offer each other, against a literal count of the users of all others."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from queryveil.arrays import offsets
from queryveil.kernels.offers import Members, offered_users
from tests.strategies import examples

NEW = {6, 7, 8, 9}
GROUPS = st.lists(
    st.tuples(
        st.integers(1, 20),
        st.lists(st.tuples(st.integers(20, 40), st.sets(st.integers(0, 9), min_size=1, max_size=6)), min_size=1),
    ),
    min_size=1,
    max_size=4,
)


def counted(users: set[int], limit: int) -> int:
    """How many users count, of whom at most so many are new accounts."""
    return len(users - NEW) + min(len(users & NEW), limit)


@settings(max_examples=examples(200))
@given(GROUPS, st.integers(2, 5), st.integers(0, 5), st.sampled_from([0.1, 0.4, 0.8]))
def test_offers_are_the_users_of_all_similar_members_of_a_group(groups, k, limit, theta):
    limit = min(limit, k)
    members = [sorted(group, key=lambda member: member[0]) for _, group in groups]
    flat = [member for group in members for member in group]
    found = offered_users(
        Members(
            offsets(np.array([len(group) for group in members])),
            np.array([weight for weight, _ in groups]),
            np.array([total for total, _ in flat]),
            np.array([counted(users, limit) for _, users in flat]),
            np.array([len(users & NEW) for _, users in flat]),
            offsets(np.array([len(users) for _, users in flat])),
            np.array([who for _, users in flat for who in sorted(users)]),
            np.array([who in NEW for _, users in flat for who in sorted(users)]),
        ),
        k,
        limit,
        theta * theta,
    )
    place = 0
    for (weight, _), group in zip(groups, members, strict=True):
        for total, own in group:
            near = [users for other, users in group if weight**2 >= theta * theta * (float(total) * float(other))]
            behind = own.union(*near)
            listed = found.user[found.start[place] : found.start[place + 1]].tolist()
            if counted(own, limit) < k:
                assert found.enough[place] == (counted(behind, limit) >= k)
                assert set(listed) <= behind - own
                assert len(set(listed)) == len(listed)
                if not found.enough[place]:
                    assert set(listed) - NEW == behind - own - NEW
                    assert counted(own | set(listed), limit) == counted(behind, limit)
                else:
                    assert not listed
            assert found.new[found.start[place] : found.start[place + 1]].tolist() == [who in NEW for who in listed]
            place += 1
