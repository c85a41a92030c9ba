"""Hosts of addresses, and the domains above them."""

import pyarrow as pa
import pytest

from queryveil.knowledge.hosts import PARENTS, domains_of, hosts_of


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://www.example.com", "example.com"),
        ("HTTPS://User:Secret@WWW2.Example.COM:8080/a.b/c?d.e#f", "example.com"),
        ("example.co.uk/path", "example.co.uk"),
        ("//cdn.example.net/x", "cdn.example.net"),
        ("www.com", "www.com"),
        ("http://example.com./", "example.com"),
        ("http://münchen.example", "münchen.example"),
        ("ftp://ftp.example.org", "ftp.example.org"),
        ("192.0.2.7:80", "192.0.2.7"),
        ("http://[2001:db8::1]/", None),
        ("localhost", None),
        ("not an address", None),
        ("", None),
        (None, None),
    ],
)
def test_the_host_of_an_address(url, host):
    assert hosts_of(pa.array([url], pa.string())).to_pylist() == [host]


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("a.b.example.co.uk", "example.co.uk"),
        ("example.com", "example.com"),
        ("co.uk", None),
        ("192.0.2.7", None),
        (None, None),
    ],
)
def test_the_registrable_domain(host, domain):
    assert domains_of(pa.array([host], pa.string())).to_pylist() == [domain]


def test_domains_above_a_host_nearest_first():
    hosts = pa.array(["a.b.example.co.uk", "example.com", "192.0.2.7", "x.co.uk"])
    above = [form(hosts).to_pylist() for form in PARENTS]
    tried = [
        list(dict.fromkeys(form[i] for form in above if form[i] not in (None, host)))
        for i, host in enumerate(hosts.to_pylist())
    ]
    assert tried == [["b.example.co.uk", "example.co.uk"], [], [], []]
