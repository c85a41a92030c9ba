"""What is found in clicked addresses, and what only looks like it."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryveil.scrubbing import DEFAULT_KINDS, KINDS, url_hits
from queryveil.scrubbing.patterns import has_email, names_user
from queryveil.text import normal_form

FOUND = {
    "http://bob:secret@ftp.example.com/files": "url",
    "http://www.cs.example.edu/~jdoe/cv.html": "url",
    "http://www.cs.example.edu/%7Ejdoe": "url",
    "HTTP://WWW.MYSPACE.COM/JaneDoe": "url",
    "http://www.youtube.com/@jane": "url",
    "http://www.linkedin.com/in/jane-doe-12": "url",
    "http://example.com/forum/members/jdoe77": "url",
    "http://example.com/profile.php?mode=view&username=jane": "url",
    "http://example.com/?first_name=jane&last_name=doe": "url",
    "http://example.com/unsubscribe/jane.doe@example.org": "email",
    "http://example.com/?to=jane%40example.org&x=1": "email",
    "http://search.example.com/search?q=jane+doe+springfield&hl=en": "name_place",
    "http://search.example.com/search?hl=en&Q=Jane%20Doe%20Springfield": "name_place",
    "http://search.example.com/#q=jane+doe+springfield": "name_place",
    "http://maps.example.com/?daddr=12+main+st+springfield+il+62701": "address",
    "http://example.com/lookup?phone=2125550123": "phone",
    "http://example.com/lookup?q=212-555-0123": "phone",
    "http://example.com/lookup?ssn=536904399": "national_id",
    "http://example.com/pay?iban=DE89370400440532013000": "iban",
    "http://example.com/pay?note=card+4111+1111+1111+1111": "card",
}

NEAR_MISSES = (
    "http://www.example.com", "http://www.example.com/", "https://example.com/index.html", "http://8.8.8.8/",
    "http://example.com/item?id=4111111111111111", "http://example.com/item/2125550123", "http://example.com/536904399",
    "http://example.com/p?isbn=0306406152&sid=536904399", "http://example.com/modules.php?name=News&file=article&sid=3",
    "http://example.com/photo@2x.png", "http://cdn.example.com/react@16.8.0/react.min.js", "http://www.facebook.com/",
    "http://www.facebook.com/login", "http://maps.example.com/@40.71,-73.99,15z", "http://example.com/?username=",
    "http://search.example.com/search?q=cheap+pizza+dallas", "http://example.com/2006/john-smith-chicago-mayor.html",
    "http://example.com/users.html", "http://netflix.com/title", "http://example.com/?page=12&q=", "http://[", "%", "",
)  # fmt: skip


@pytest.mark.parametrize("url", FOUND)
def test_a_personal_address_is_found_with_its_kind(url):
    assert url_hits(pa.array([url]), DEFAULT_KINDS).tolist() == [1 << KINDS.index(FOUND[url])]


@pytest.mark.parametrize("url", NEAR_MISSES)
def test_what_only_looks_personal_stays(url):
    assert url_hits(pa.array([url]), KINDS).tolist() == [0]


def test_nulls_and_empty_arrays_are_fine():
    assert url_hits(pa.array([None, "http://example.com/~jdoe"], pa.string()), ["url"]).tolist() == [0, 1]
    assert url_hits(pa.array([], pa.string()), KINDS).tolist() == []


parts = st.sampled_from([*FOUND, *NEAR_MISSES, "?q=", "&", "jane", "%40", "%", "+", "@", "/~", "=", "#", "example.com"])


@given(st.lists(st.lists(parts, max_size=4).map("".join), max_size=5))
def test_an_address_has_the_same_hits_alone_and_among_others(urls):
    found = url_hits(pa.array(urls, pa.string()), KINDS).tolist()
    assert found == [url_hits(pa.array([url]), KINDS)[0] for url in urls]


@given(st.lists(parts.filter(lambda part: "%" not in part), max_size=4).map("".join))
def test_the_cheap_tests_let_pass_whatever_names_a_user(url):
    plain = normal_form(pa.array([url]))[0].as_py()
    if names_user(plain):
        assert url_hits(pa.array([plain]), ["url"])[0]
    if has_email(plain):
        assert url_hits(pa.array([plain]), ["email"])[0]
