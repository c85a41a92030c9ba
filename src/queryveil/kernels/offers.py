"""What sets that share a heavy subset offer each other: users, where the graph of affine sets is cut into parts."""

from typing import NamedTuple

import numpy as np

from queryveil.kernels._jit import inlined, kernel
from queryveil.kernels.heavy import affine
from queryveil.kernels.types import Bools, Longs


class Members(NamedTuple):
    """Sets in groups: group g has the members start[g] to start[g + 1], the lightest first."""

    start: Longs
    weight: Longs
    """The weight of the subset that a group shares."""
    total: Longs
    """The weight of each member."""
    own: Longs
    """How many users of a member itself count."""
    fresh: Longs
    """How many of its users are new accounts."""
    user_start: Longs
    user: Longs
    """The users of member m are user[user_start[m]:user_start[m + 1]]; k of a kind are enough."""
    new: Bools
    """Whether each of them is a new account."""


class Offers(NamedTuple):
    """What the others of its group offer each member."""

    enough: Bools
    """Whether they have enough users; then these are not listed."""
    start: Longs
    user: Longs
    new: Bools


@inlined
def _is_among(users: Longs, who: int, begin: int, end: int) -> bool:
    found = False
    for at in range(begin, end):
        if users[at] == who:
            found = True
            break
    return found


@kernel
def offered_users(members: Members, k: int, most_new: int, theta2: float) -> Offers:
    """For each member that lacks users, those of the members of its group that are affine to it, without its own.

    In the order of weight, a member is affine to the members up to some place. So k users of a group are enough, those
    who come first: if the members up to there have more, all k are among theirs, and else theirs are all among the k.

    Args:
        members: The members of all groups.
        k: How many users a member needs.
        most_new: How many new accounts count, at most k.
        theta2: The square of theta.
    """
    start, total, own, fresh = members.start, members.total, members.own, members.fresh
    user_start, user, new = members.user_start, members.user, members.new
    n = len(total)
    enough = np.zeros(n, np.bool_)
    begin = np.zeros(n + 1, np.int64)
    room, size = 1024, 0
    out_user, out_new = np.empty(room, np.int64), np.empty(room, np.bool_)
    first_user, first_total = np.empty(k + most_new, np.int64), np.empty(k + most_new, np.int64)
    first_new = np.empty(k + most_new, np.bool_)
    for g in range(len(start) - 1):
        count = news = 0
        for m in range(start[g], start[g + 1]):
            if count - news == k:
                break
            for at in range(user_start[m], user_start[m + 1]):
                if (news == most_new) if new[at] else (count - news == k):
                    continue
                if _is_among(first_user, user[at], 0, count):
                    continue
                first_user[count], first_total[count], first_new[count] = user[at], total[m], new[at]
                count += 1
                news += new[at]
        for m in range(start[g], start[g + 1]):
            if own[m] < k:
                if size + count > room:
                    room = 2 * room + count
                    longer_user, longer_new = np.empty(room, np.int64), np.empty(room, np.bool_)
                    for at in range(size):
                        longer_user[at], longer_new[at] = out_user[at], out_new[at]
                    out_user, out_new = longer_user, longer_new
                end, more = size, 0
                for x in range(count):
                    if not affine(members.weight[g], total[m], first_total[x], theta2):
                        break
                    if _is_among(user, first_user[x], user_start[m], user_start[m + 1]):
                        continue
                    out_user[end], out_new[end] = first_user[x], first_new[x]
                    end += 1
                    more += first_new[x]
                counted = own[m] + (end - size - more) + min(more, max(0, most_new - fresh[m]))
                if counted >= k:
                    enough[m] = True
                else:
                    size = end
            begin[m + 1] = size
    return Offers(enough, begin, out_user[:size].copy(), out_new[:size].copy())
