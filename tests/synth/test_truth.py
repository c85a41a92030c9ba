"""The truth: labels, planted data, and the directory."""

import re
from collections import Counter
from xml.etree import ElementTree

import pytest

NS = {"r": "http://www.w3.org/TR/RDF/", "d": "http://purl.org/dc/elements/1.0/", "o": "http://dmoz.org/rdf/"}
ID, RESOURCE = f"{{{NS['r']}}}id", f"{{{NS['r']}}}resource"


def luhn(number: str) -> bool:
    digits = [int(c) for c in reversed(number)]
    return sum(digits[0::2]) % 10 == -sum(sum(divmod(2 * d, 10)) for d in digits[1::2]) % 10


def planted(made, kind: str) -> list[str]:
    return [query for (query,) in made.sql(f"select query from truth where sensitive = '{kind}'")]


def test_every_distinct_query_has_one_row(made):
    assert made.sql("select count(*), count(distinct query) from truth") == made.sql(
        "select count(distinct query), count(distinct query) from log"
    )
    assert made.sql("select query from log except select query from truth") == []


def test_all_sensitive_kinds_are_planted(made):
    kinds = {kind for (kind,) in made.sql("select distinct sensitive from truth")}
    assert kinds == {
        None, "vanity", "name_place", "phone", "card", "national_id", "address", "email", "health",
    }  # fmt: skip


def test_smallest_log_holds_every_kind(tmp_path):
    import pyarrow.parquet as pq

    from queryveil.synth import generate

    generate(tmp_path / "log.tsv", users=100, truth=tmp_path / "truth")
    kinds = pq.read_table(tmp_path / "truth/queries.parquet")["sensitive"].unique().to_pylist()
    assert len(kinds) == 9


def test_cards_pass_luhn_behind_test_prefixes(made):
    cards = [query.replace("-", "") for query in planted(made, "card")]
    assert cards
    for card in cards:
        assert re.fullmatch(r"(411111|424242|555555|400000)\d{10}", card)
        assert luhn(card)


def test_national_ids_are_of_ranges_never_given_out(made):
    numbers = [query.replace("-", "") for query in planted(made, "national_id")]
    british = [number for number in numbers if len(number) == 10]
    american = [number for number in numbers if len(number) == 9]
    assert len(british) + len(american) == len(numbers)
    for number in british:
        assert number.startswith("999")
        assert sum(int(digit) * (10 - place) for place, digit in enumerate(number)) % 11 == 0
    for number in american:
        assert number.startswith("9")
        assert int(number[3:5]) < 50


def test_phones_and_mail_are_fictional(made):
    assert all(re.fullmatch(r"\d{3}-?555-?01\d\d", query) for query in planted(made, "phone"))
    assert all(re.fullmatch(r"[a-z]+\.[a-z]+\d+@example\.(com|org|net)", query) for query in planted(made, "email"))


def test_addresses_have_a_number_and_a_place(made):
    assert all(re.fullmatch(r"\d+( [a-z]+){3,}", query) for query in planted(made, "address"))


def test_health_queries_belong_to_health_topics(made):
    assert (
        made.sql("select topic from truth where sensitive = 'health' and not starts_with(topic, 'Top/Health/')") == []
    )


def test_a_user_has_one_name(made):
    """Vanity queries of the same user repeat the same name."""
    rows = made.sql(
        """
        select user, count(distinct query) from log join truth using (query)
        where sensitive = 'vanity' and kind = 'personal' group by user
        """
    )
    assert rows
    assert sum(names == 1 for _, names in rows) > 0.9 * len(rows)  # names may be shared with another user's


def test_cell_phone_case_is_a_real_query(made):
    assert made.sql("select topic, kind from truth where query = 'cell phone case'") == [
        ("Top/Shopping/Phones", "base")
    ]
    assert made.sql("select count(distinct user) >= 3 from log where query = 'cell phone case'") == [(True,)]


def test_refinements_are_about_two_fifths(made):
    ((share,),) = made.sql("select avg((kind = 'refinement')::int) from truth")
    assert 0.3 <= share <= 0.5


@pytest.fixture(scope="module")
def directory(made):
    return {name: ElementTree.parse(made.truth / f"{name}.rdf.u8").getroot() for name in ("structure", "content")}


def test_structure_is_a_tree_of_all_topics(made, directory):
    topics = {topic.get(ID): topic for topic in directory["structure"].findall("o:Topic", NS)}
    children = [link.get(RESOURCE) for topic in topics.values() for link in topic.findall("o:narrow", NS)]
    assert sorted(children) == sorted(set(topics) - {"Top"})
    assert {topic for (topic,) in made.sql("select distinct topic from truth")} <= set(topics)
    assert sum(topic.count("/") <= 2 for topic in topics) == 1 + 15 + 120
    assert max(topic.count("/") for topic in topics) == 5


def test_sites_have_title_and_description_and_some_are_in_two_categories(directory):
    pages = directory["content"].findall("o:ExternalPage", NS)
    places = Counter(page.get("about") for page in pages)
    assert len(places) == 120 * 200
    assert set(places.values()) == {1, 2}
    assert len({(page.get("about"), page.findtext("o:topic", None, NS)) for page in pages}) == len(pages)
    assert all(page.findtext("d:Title", None, NS) and page.findtext("d:Description", None, NS) for page in pages)
    linked = {
        (link.get(RESOURCE), topic.get(ID))
        for topic in directory["content"].findall("o:Topic", NS)
        for link in topic.findall("o:link", NS)
    }
    assert linked == {(page.get("about"), page.findtext("o:topic", None, NS)) for page in pages}


def test_clicked_sites_are_in_the_directory_under_the_topic_of_their_query(made, directory):
    topic_of = {
        page.get("about"): "/".join(page.findtext("o:topic", None, NS).split("/")[:3])
        for page in directory["content"].findall("o:ExternalPage", NS)
    }
    clicks = made.sql("select url, topic from log join truth using (query) where url is not null")
    assert all(url in topic_of for url, _ in clicks)
    # The few others are words that two topics share: the truth names the more frequent one.
    assert sum(topic_of[url] == topic for url, topic in clicks) > 0.97 * len(clicks)
