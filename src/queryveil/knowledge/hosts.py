"""Hosts of the web, and the domains above them."""

import re
from functools import cache, partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from queryveil.errors import require
from queryveil.knowledge.index import Form

# An address may come without its scheme, with a user, with a port.
_HOST = r"^(?:[a-z][a-z0-9+.-]*:)?(?://)?(?:[^/?#@]*@)?(?:www\d*\.)?(?P<host>[^/?#:@\[\]\s]+\.[^/?#:@\[\]\s]+?)\.?(?:[:/?#]|$)"
_NUMBERS = r"^\d+(\.\d+){3}$"
MOST_LABELS = 6


def hosts_of(urls: pa.Array) -> pa.Array:
    """The host of every address, in lower case, without `www`; null where there is none.

    Example:
        >>> hosts_of(pa.array(["http://www.Example.co.uk:80/a", "cs.example.edu", "no address"])).to_pylist()
        ['example.co.uk', 'cs.example.edu', None]
    """
    return pc.struct_field(pc.extract_regex(pc.utf8_lower(urls.cast(pa.string())), _HOST), "host")


@cache
def _suffixes() -> Any:
    require("The domain of a web site", "publicsuffixlist")
    from publicsuffixlist import PublicSuffixList

    return PublicSuffixList()


def domains_of(hosts: pa.Array) -> pa.Array:
    """The registrable domain of every host, such as `example.co.uk`; null for a number, a suffix, or no host at all."""
    domain_of = _suffixes().privatesuffix
    numbers = pc.match_substring_regex(hosts, _NUMBERS).to_pylist()
    return pa.array(
        [
            None if number or host is None else domain_of(host)
            for host, number in zip(hosts.to_pylist(), numbers, strict=True)
        ],
        pa.string(),
    )


PASSED_OVER = "wikipedia.org"
"""One site for all topics says nothing about the topic."""


def topical(hosts: pa.Array) -> pa.Array:
    """Whether a host says anything about the topic: every host except Wikipedia's."""
    other = pc.invert(pc.match_substring_regex(hosts, rf"(^|\.){re.escape(PASSED_OVER)}$"))
    return pc.fill_null(other, False)


def parent_of(hosts: pa.Array, domains: pa.Array, labels: int) -> pa.Array:
    """Hosts without their first labels; null if that cuts into the registrable domain."""
    rest = pc.struct_field(pc.extract_regex(hosts, rf"^(?:[^.]+\.){{{labels}}}(?P<rest>.+)$"), "rest")
    fits = pc.greater_equal(pc.utf8_length(rest), pc.utf8_length(domains))
    return pc.if_else(pc.fill_null(fits, False), rest, pa.scalar(None, pa.string()))


def _parent_form(hosts: pa.Array, *, labels: int) -> pa.Array:
    return parent_of(hosts, domains_of(hosts), labels)


PARENTS: tuple[Form, ...] = (*(partial(_parent_form, labels=labels) for labels in range(1, MOST_LABELS)), domains_of)
"""The domains above a host, nearest first, down to the registrable one."""
