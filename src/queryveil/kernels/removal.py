"""Queries that share an address must not stay together: degrees of the graph, and removal by degree.

An edge joins two queries with an address in common. A popular address joins thousands, so edges are never written down:
queries with the same addresses are one vertex, a class with members, and neighbours are found through the lists of
addresses.
"""

from typing import NamedTuple

import numpy as np

from queryveil.kernels._jit import helper, inlined, kernel
from queryveil.kernels.types import Bools, Bytes, Ints, Longs, ULongs

_BLANK = np.uint8(32)
_ONE = np.uint64(1)
_LOW = np.uint64(63)
_TOP = np.uint64(58)
_NOBODY = np.int64(-1)
# What is touched together lies together: the loops wait for memory.
_DEGREE, _SEEN = 0, 1
# Multiplied by a power of two, the six highest bits of this number say which one it is.
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_WHICH = np.zeros(64, np.int64)
_WHICH[[(int(_DE_BRUIJN) << bit & (1 << 64) - 1) >> 58 for bit in range(64)]] = np.arange(64)


class Classes(NamedTuple):
    """Queries in classes of the same addresses."""

    start: Longs
    """The addresses of class c are url[start[c]:start[c + 1]]."""
    url: Ints
    post_start: Longs
    """The classes that hold address u are post[post_start[u]:post_start[u + 1]]."""
    post: Ints
    member_start: Longs
    """The queries of class c are member[member_start[c]:member_start[c + 1]], ascending."""
    member: Ints


@kernel
def degrees(classes: Classes) -> Longs:
    """How many other queries share an address with each query of a class."""
    count = len(classes.start) - 1
    degree = np.zeros(count, np.int64)
    seen = np.full(count, _NOBODY, np.int64)
    for c in range(count):
        for i in range(classes.start[c], classes.start[c + 1]):
            u = classes.url[i]
            for p in range(classes.post_start[u], classes.post_start[u + 1]):
                other = classes.post[p]
                if seen[other] != c:
                    seen[other] = c
                    degree[c] += classes.member_start[other + 1] - classes.member_start[other]
        degree[c] -= 1  # a query is no neighbour of itself
    return degree


@inlined
def _lowest(word: np.uint64) -> np.int64:
    return np.int64(_WHICH[((word & (~word + _ONE)) * _DE_BRUIJN) >> _TOP])


@inlined
def _mark(number: np.int64, words: ULongs, blocks: ULongs) -> None:
    words[number >> 6] |= _ONE << (np.uint64(number) & _LOW)
    blocks[number >> 12] |= _ONE << (np.uint64(number >> 6) & _LOW)


@helper
def _take_first(words: ULongs, blocks: ULongs, block: np.int64) -> tuple[np.int64, np.int64]:
    """Take the lowest marked number out, and say in which block it was; -1 if there is none."""
    while block < len(blocks) and blocks[block] == 0:
        block += 1
    if block == len(blocks):
        return _NOBODY, block
    word = block * 64 + _lowest(blocks[block])
    number = word * 64 + _lowest(words[word])
    words[word] &= words[word] - _ONE
    if words[word] == 0:
        blocks[block] &= blocks[block] - _ONE
    return number, block


@helper
def _leave(c: np.int64, classes: Classes, living: Ints, post_end: Longs, state: Ints, stamp: np.int64) -> None:
    """Lower the degree of all that share an address with a query of class c, and of the rest of its class."""
    for i in range(classes.start[c], classes.start[c + 1]):
        u = classes.url[i]
        end = classes.post_start[u]
        for p in range(classes.post_start[u], post_end[u]):
            other = classes.post[p]
            if living[other] == 0:
                continue
            classes.post[end] = other  # removed ones are not met again
            end += 1
            if state[other, _SEEN] != stamp:
                state[other, _SEEN] = stamp
                state[other, _DEGREE] -= 1
        post_end[u] = end


@kernel
def remove_by_degree(classes: Classes, degree: Longs) -> Bools:
    """Remove the query of the highest degree, of equals the earlier one, until no two share an address.

    Degrees only fall, so no query joins those with the highest degree. They are taken in order. A query whose degree
    has fallen in the meantime waits in the list of its new degree.

    Args:
        classes: The queries and their addresses. The lists of addresses are used up.
        degree: What `degrees` returns for them.

    Returns:
        Whether each query stays.
    """
    count = len(classes.start) - 1
    queries = len(classes.member)
    kept = np.ones(queries, np.bool_)
    if count == 0:
        return kept
    class_of = np.empty(queries, np.int64)
    for c in range(count):
        for m in range(classes.member_start[c], classes.member_start[c + 1]):
            class_of[classes.member[m]] = c
    living = np.diff(classes.member_start).astype(np.int32)
    post_end = classes.post_start[1:].copy()
    state = np.full((count, 2), -1, np.int32)
    state[:, _DEGREE] = degree
    stamp = np.int64(0)
    words = np.zeros((queries >> 6) + 1, np.uint64)
    blocks = np.zeros((queries >> 12) + 1, np.uint64)
    head = np.full(degree.max() + 1, _NOBODY, np.int64)
    following = np.empty(count, np.int64)
    for c in range(count):
        following[c] = head[degree[c]]
        head[degree[c]] = c
    for level in range(len(head) - 1, 0, -1):
        c = head[level]
        while c >= 0:
            after = following[c]
            now = state[c, _DEGREE]
            if now == level:
                _mark(np.int64(classes.member[classes.member_start[c + 1] - living[c]]), words, blocks)
            else:
                following[c] = head[now]
                head[now] = c
            c = after
        query, block = _take_first(words, blocks, np.int64(0))
        while query >= 0:
            c = class_of[query]
            if state[c, _DEGREE] == level:
                kept[query] = False
                _leave(c, classes, living, post_end, state, stamp)
                stamp += 1
                living[c] -= 1
            if living[c] > 0:
                now = state[c, _DEGREE]
                following[c] = head[now]
                head[now] = c
            query, block = _take_first(words, blocks, block)
    return kept


@helper
def _spells(text: Bytes, at: int, end: int, name: Bytes, first: int, last: int) -> bool:
    """Whether the text from `at` on, without blanks, begins with a name and ends a word with it."""
    while at < end and first < last:
        if text[at] != _BLANK:
            if text[at] != name[first]:
                return False
            first += 1
        at += 1
    return first == last and (at == end or text[at] == _BLANK)


@kernel
def spelled(
    text: Bytes, starts: Longs, ends: Longs, name: Bytes, name_starts: Longs, name_ends: Longs, query: Longs, url: Longs
) -> Bools:
    """Whether a word of a query, or words one after the other, written as one, are the name of an address.

    Args:
        text: The bytes of all queries, words one blank apart.
        starts: Where each query starts.
        ends: Where it ends.
        name: The bytes of all names.
        name_starts: Where that of each address starts.
        name_ends: Where it ends; an empty name is none.
        query: Pairs to look at: the query.
        url: And the address.
    """
    found = np.zeros(len(query), np.bool_)
    for p in range(len(query)):
        first, last = name_starts[url[p]], name_ends[url[p]]
        begin, end = starts[query[p]], ends[query[p]]
        if first == last:
            continue
        for at in range(begin, end):
            if (at == begin or text[at - 1] == _BLANK) and _spells(text, at, end, name, first, last):
                found[p] = True
                break
    return found
