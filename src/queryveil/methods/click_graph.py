"""The graph of queries for which users clicked the same address, and the names of the sites they lead to."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from queryveil.arrays import Ragged, offsets
from queryveil.kernels.removal import Classes, spelled
from queryveil.knowledge.hosts import domains_of, hosts_of
from queryveil.text.arrays import byte_spans

Longs = NDArray[np.int64]
Flags = NDArray[np.bool_]

_OTHER = r"[^\p{L}\p{M}\p{N}]+"


def site_names(urls: pa.Array) -> tuple[list[pa.Array], pa.Array]:
    """Three names of the site of each address, without punctuation, and the site.

    The names are its host, its registrable domain, and the freely chosen part of that: `news.example.co.uk`,
    `example.co.uk` and `example`. The site is the domain or, if there is none, the host or the address itself.
    """
    hosts = pc.dictionary_encode(hosts_of(urls))
    domains = domains_of(hosts.dictionary).take(hosts.indices)
    hosts = hosts.dictionary.take(hosts.indices)
    chosen = pc.struct_field(pc.extract_regex(domains, r"^(?P<chosen>[^.]+)"), "chosen")
    names = [pc.fill_null(pc.replace_substring_regex(name, _OTHER, ""), "") for name in (hosts, domains, chosen)]
    return names, pc.coalesce(domains, hosts, urls.cast(pa.string()))


def names_target(texts: pa.Array, names: list[pa.Array], query: Longs, url: Longs) -> Flags:
    """Whether each query names the site of an address, for pairs of both.

    Args:
        texts: The queries.
        names: What `site_names` returns for the addresses.
        query: The query of each pair.
        url: And its address.
    """
    words = pc.utf8_trim(pc.replace_substring_regex(texts, _OTHER, " "), " ")
    named = [spelled(*byte_spans(words), *byte_spans(name), query, url) for name in names]
    return np.asarray(np.logical_or.reduce(named))


def compact(query: Longs, url: Longs, chosen: Flags) -> tuple[Longs, Longs, int]:
    """The clicks of some queries, with the queries and addresses renumbered without gaps."""
    here = chosen[query]
    number = np.cumsum(chosen) - 1
    return number[query[here]], np.unique(url[here], return_inverse=True)[1], int(chosen.sum())


def classes_of(query: Longs, url: Longs, queries: int) -> Classes:
    """Put queries with the same addresses into one class.

    Args:
        query: The query of each click; each pair of query and address occurs once, in order.
        url: The address of each click. Neither has gaps, and every query has an address.
        queries: How many queries there are.
    """
    urls = int(url.max(initial=-1)) + 1
    size = np.bincount(query, minlength=queries)
    of_query = Ragged(offsets(size))
    # Queries with the same addresses so far are split by the next address, one address at a time.
    state, known, place, queue = np.zeros(queries, np.int64), 0, 0, np.arange(queries)
    while len(queue):
        found, number = np.unique(state[queue] * urls + url[of_query.start[queue] + place], return_inverse=True)
        state[queue] = known + number
        known += len(found)
        place += 1
        queue = queue[size[queue] > place]
    _, first, of, members = np.unique(state, return_index=True, return_inverse=True, return_counts=True)
    width = size[first]
    mine = url[of_query.positions(first)]
    holder = np.repeat(np.arange(len(first)), width)
    return Classes(
        offsets(width),
        mine.astype(np.int32),
        offsets(np.bincount(mine, minlength=urls)),
        holder[np.argsort(mine, kind="stable")].astype(np.int32),
        offsets(members),
        np.argsort(of, kind="stable").astype(np.int32),
    )


def edges_of(classes: Classes, degree: Longs) -> int:
    """How many pairs of queries share an address."""
    return int((degree * np.diff(classes.member_start)).sum()) // 2


def density(n: int, edges: int) -> str:
    """The probability that two of n queries have an edge, in words."""
    share = 2 * edges / (n * (n - 1)) if n > 1 else 0.0
    return f"density {share:.3g} ({n:,} distinct queries with a click, {edges:,} edges)"
