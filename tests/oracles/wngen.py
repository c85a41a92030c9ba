"""WNGEN (Carpineto and Romano 2015, section 4.4), literally: a query is a set of nodes and a set of users."""

from tests.oracles.partition import Tree, children

Query = tuple[set[int], set[int]]


def users(queries: list[Query], members: set[int]) -> int:
    """How many distinct users these queries have."""
    return len(set().union(*(queries[q][1] for q in members)))


def clusters(tree: Tree, queries: list[Query], k: int) -> dict[int, set[int]]:
    """The queries of every node that has some."""
    root = next(node for node in tree if tree[node] is None)
    done: dict[int, set[int]] = {}
    waiting = [(root, set(range(len(queries))))]
    while waiting:
        node, stay = waiting.pop()
        reach: dict[int, set[int]] = {}
        for q in stay:
            for child in children(tree, node, queries[q][0]):
                reach.setdefault(child, set()).add(q)
        standing: dict[int, set[int]] = {}
        for child in sorted(reach, key=lambda child: (-users(queries, reach[child]), child)):
            takes = reach[child] & stay
            if users(queries, takes) >= k:
                standing[child] = takes
                stay = stay - takes
        while standing and stay and users(queries, stay) < k:
            stay = stay | standing.pop(min(standing, key=lambda child: (users(queries, standing[child]), child)))
        if stay:
            done[node] = stay
        waiting += standing.items()
    return done
