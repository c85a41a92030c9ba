"""What is found in texts, what only looks like it, and what masking promises whatever the text."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryveil.scrubbing import DEFAULT_KINDS, KINDS, mask
from queryveil.scrubbing.texts import Masked, mask_rare
from queryveil.text import language, normal_form

FOUND = {
    "url": {
        "http://bob:secret@ftp.example.com/files now": "<url> now",
        "ftp://bob@example.com": "<url>",
        "bob:secret@example.com": "<url>",
        "see www.cs.example.edu/~jdoe/cv": "see <url>",
        "facebook.com/jane.doe photos": "<url> photos",
        "https://www.linkedin.com/in/janedoe": "<url>",
        "youtube.com/@jane": "<url>",
        "example.com/forum/members/jdoe77": "<url>",
        "http://example.com/mail?box=1&user=jane": "<url>",
    },
    "email": {
        "jane@example.com pizza": "<email> pizza",
        "jane.o'neil+spam@mail.example.co.uk": "<email>",
        "mailto:jane@example.com": "mailto:<email>",
        "jane_doe@yahoo": "<email>",
        "(jane@example.com),bob@example.org": "(<email>),<email>",
        "jörg@müller.de": "<email>",
        "jane @ example.com": "<email>",
        "mail jane@ example.com": "mail <email>",
        "jane%40example.com tea": "<email> tea",
        "jane at example dot com": "<email>",
        "jane doe at example dot com": "<email>",
        "jdoe77 at mail dot example dot co dot uk": "<email>",
        "jane dot doe at example dot com": "<email>",
        "jane (at) example.com": "<email>",
        "smith[at]example[dot]org": "<email>",
    },
    "card": {
        "4111 1111 1111 1111 declined": "<card> declined",
        "visa 4111-1111-1111-1111": "visa <card>",
        "card4111111111111111": "card<card>",
        "1234 4111 1111 1111 1111": "1234 <card>",
        "3782 822463 10005": "<card>",
        "30569309025904": "<card>",
        "5555555555554444": "<card>",
        "2223003122003222": "<card>",
        "4111 111111 111111": "<card>",
        "4111-1111 1111-1111": "<card>",
        "41111111 11111111 09 declined": "<card> 09 declined",
    },
    "iban": {
        "de89370400440532013000": "<iban>",
        "de89 3704 0044 0532 0130 00 bank": "<iban> bank",
        "transfer gb82 west 1234 5698 7654 32": "transfer <iban>",
    },
    "national_id": {
        "536-90-4399": "<national_id>",
        "912-12-3456 lookup": "<national_id> lookup",
        "ssn 536904399": "ssn <national_id>",
        "social security 536 90 4399": "social security <national_id>",
        "itin 912903456": "itin <national_id>",
        "ab 12 34 56 c": "<national_id>",
        "nhs number 943 476 5919": "nhs number <national_id>",
        "999-123-4578": "<national_id>",
        "36 574 261 809": "<national_id>",
        "steuer-id 36574261809": "steuer-id <national_id>",
        "2 95 10 99 126 111 93": "<national_id>",
        "54362315k": "<national_id>",
        "x-2482300w": "<national_id>",
        "rccmnl83s18d969h": "<national_id>",
        "bsn 111222333": "bsn <national_id>",
        "pesel 44051401359": "pesel <national_id>",
        "880320-0016": "<national_id>",
        "131052-308t": "<national_id>",
        "151086 95088": "<national_id>",
        "cpr 211062-5629": "cpr <national_id>",
        "85.07.30-033.28": "<national_id>",
        "756.9217.0769.85": "<national_id>",
        "pps 6433435f": "pps <national_id>",
        "710319/2745": "<national_id>",
        "390.533.447-05": "<national_id>",
        "123-456-782": "<national_id>",
        "tfn 123456782": "tfn <national_id>",
        "2341 2341 2346": "<national_id>",
        "ssn 123456789": "ssn <national_id>",
        "ssn:536904399": "ssn:<national_id>",
        "ssn 912.12.3456": "ssn <national_id>",
        "ss# 536904399": "ss# <national_id>",
        "social security number 000123456": "social security number <national_id>",
        "soc sec no 536904399": "soc sec no <national_id>",
        "passport no 123456789": "passport no <national_id>",
        "my passport number is c01234567": "my passport number is <national_id>",
        "driver's license number d1234567": "driver's license number <national_id>",
        "dni 12345678": "dni <national_id>",
    },
    "phone": {
        "212-555-0123": "<phone>",
        "(415) 555-0199 pizza": "<phone> pizza",
        "1-212-555-0123": "<phone>",
        "2125550123": "<phone>",
        "call 555-0123": "call <phone>",
        "+44 20 7946 0958": "<phone>",
        "0049 30 90182055": "<phone>",
        "020 7946 0958": "<phone>",
        "01 42 68 53 00": "<phone>",
    },
    "ip": {
        "8.8.8.8 location": "<ip> location",
        "who is 2001:4860:4860::8888": "who is <ip>",
        "who is 8.8.8.8": "who is <ip>",
        "ping google 8.8.8.8": "ping google <ip>",
        "comcast 67.163.22.9": "comcast <ip>",
    },
    "address": {
        "1234 oak hill road dallas texas": "<address>",
        "12 main st springfield il 62701 map": "<address> map",
        "57 w elm street apt 4b": "<address>",
        "350 elm avenue 90210": "<address>",
        "hauptstraße 12 berlin": "<address> berlin",
        "12 rue de la paix": "<address>",
        "calle mayor 5": "<address>",
        "p.o. box 123 reno": "<address> reno",
    },
    "name_place": {
        "jane doe springfield": "<name_place>",
        "jennifer garcia in dallas texas": "<name_place>",
        "dr jennifer garcia dallas": "dr <name_place>",
        "michael b rodriguez new york ny": "<name_place>",
        "sean o'brien boston": "<name_place>",
        "maria lopez-garcia tucson arizona": "<name_place>",
        "robert garcia divorce san antonio": "<name_place>",
        "houston kevin rodriguez": "<name_place>",
        "pictures of jennifer rodriguez dallas pizza party": "pictures of <name_place> pizza party",
        "james dranoberg chicago illinois": "<name_place>",
        "james smith brandol texas": "<name_place>",
        "grace hill chicago illinois": "<name_place>",
        "katherine bennett washington dc": "<name_place>",
        "josé garcía madrid": "<name_place>",
        "rené rodriguez houston": "<name_place>",
        "søren nielsen chicago": "<name_place>",
        "mary-ann smith boston": "<name_place>",
        "jean-paul martin paris": "<name_place>",
        "priya sharma chicago": "<name_place>",
        "mehmet yilmaz berlin": "<name_place>",
        "jennifer garcia 75201": "<name_place>",
        "jennifer garcia 75201-1234": "<name_place>",
        "jennifer garcia dallas tx 75201": "<name_place>",
        "jennifer garcia tx": "<name_place>",
        "jennifer garcia pa 19019": "<name_place>",
        "jennifer garcia springfield high school": "<name_place> high school",
    },
    "name": {"jose rodriguez": "<name>", "jose rodriguez obituary": "<name> obituary"},
}

NEAR_MISSES = (
    # web addresses and mail
    "facebook.com/login", "example.com/index.html", "meet @ 5", "user@host", "c/o jones", "@home", "a=b", "and/or",
    "http://www.example.com/search?q=pizza",
    "shop at amazon dot com", "buy tea @ tea.com", "look at polka dot bags", "best pizza (at) home", "50%40 off",
    # numbers
    "4111111111111112", "9780306406157", "1234 5678 9012 3456", "isbn 0306406152", "ups 1z999aa10123456784",
    "123456789",
    "536904399", "9991234578", "44051401359", "part 12345678", "2006-12-12", "12/31/2006", "1-800-555-1234",
    "800 555 1234", "555-0123", "300 400 5000", "nokia 6230 7610", "12:30:45", "1941-1945", "66-67-68", "000-12-3456",
    "version 1.2.3.4", "firefox 3.0.0.1", "download nero 7.5.9.1", "ssn office 12345", "passport photos 2006",
    "passport renewal form ds 82", "4111 111111 111112", "2001 2002 2003 2004 2005", "driver 12345678",
    "192.168.1.1", "999.1.1.1", "1.2.3.4.5", "de00370400440532013000", "54362315a", "rccmnl83s18d969x",
    "880320-0017", "qq 12 34 56 c", "mp3 320 kbps",
    # streets
    "2006 wall street journal", "4 lane road", "2 way radio", "24 hour drive thru", "1999 street", "3 doors down way",
    "50 cent place", "12 main st", "calle 13 songs", "via voice", "10 ways to court",
    # names, places and words
    "paris hilton", "virginia woods", "virginia woods atlanta", "michael jordan chicago bulls", "summer camp texas",
    "crystal lake illinois", "santa ana california", "george washington bridge new york", "rose hill kansas",
    "john deere houston texas", "grant park chicago", "easter christmas in boston", "christian school dallas",
    "jean shorts in philadelphia", "chicago illinois", "new york pizza", "bill pay texas", "may day chicago",
    "barbara cooper wedding cake", "faith church houston", "sandy beach florida", "mobile phones",
    "houston robert garcia elementary school", "george mason university virginia", "thomas church houston",
    "grace church houston texas", "hospital maria garcia madrid", "university of robert garcia houston",
    "jennifer lopez houston tickets", "houston jennifer lopez lyrics", "jose garcia md", "jennifer garcia in",
    "may-june sale texas", "jennifer garcia 2006", "roberts collins houston",
)  # fmt: skip


def masked(text: str, kinds: tuple[str, ...] = DEFAULT_KINDS) -> str:
    return mask(pa.array([text]), kinds).texts[0].as_py()


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind in FOUND for text in FOUND[kind]])
def test_a_kind_is_masked_with_its_name(kind, text):
    assert masked(text, (kind,)) == FOUND[kind][text]


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind in FOUND if kind != "name" for text in FOUND[kind]])
def test_all_kinds_together_find_the_same_kind(kind, text):
    found = mask(pa.array([text]))
    assert found.texts[0].as_py() == FOUND[kind][text]
    assert found.hits[0] == 1 << KINDS.index(kind)


@pytest.mark.parametrize("text", NEAR_MISSES)
def test_what_only_looks_personal_stays(text):
    assert masked(text) == text


def test_a_name_alone_stays_unless_asked_for():
    assert masked("jose rodriguez") == "jose rodriguez"


@pytest.mark.parametrize("text", ["paris hilton", "virginia woods", "jane doe", "jose rodriguez store"])
def test_a_name_alone_is_no_name_if_it_is_made_of_words_or_other_words_are_there(text):
    assert masked(text, KINDS) == text


def test_several_kinds_in_one_text_are_all_masked_and_counted():
    found = mask(pa.array(["jane@example.com 4111111111111111 pizza 212-555-0123"]))
    assert found.texts.to_pylist() == ["<email> <card> pizza <phone>"]
    assert found.hits.tolist() == [sum(1 << KINDS.index(kind) for kind in ("email", "card", "phone"))]


def test_texts_keep_their_places_nulls_and_type():
    texts = pa.array(["pizza", None, "jane@example.com", ""], pa.large_string())
    found = mask(texts)
    assert found.texts.to_pylist() == ["pizza", None, "<email>", ""]
    assert found.texts.type == pa.large_string()


def test_an_empty_array_is_fine():
    assert len(mask(pa.array([], pa.string())).texts) == 0


def luhn_complete(digits: str) -> str:
    """The digits and the one behind them that makes them pass (Luhn 1960), by the literal rule."""
    for check in "0123456789":
        total = 0
        for place, digit in enumerate(reversed(digits + check)):
            value = int(digit) * (2 if place % 2 else 1)
            total += value - 9 if value > 9 else value
        if total % 10 == 0:
            return digits + check
    raise AssertionError


pieces = st.sampled_from(
    [word for kind in FOUND for text in FOUND[kind] for word in text.split()]
    + [
        "in",
        "the",
        "<email>",
        "<",
        ">",
        "@",
        "/",
        "/~",
        "?user=",
        "0",
        "12",
        "-",
        ".",
        "+",
        "\u0338",
        "texas",
        "version",
    ]
)
texts = st.one_of(
    st.text(max_size=60), st.lists(pieces, max_size=8).map(" ".join), st.lists(pieces, max_size=6).map("".join)
)


@given(texts)
def test_masking_again_changes_nothing(text):
    once = mask(normal_form(pa.array([text])), KINDS).texts
    assert normal_form(once).equals(once)
    again = mask(once, KINDS)
    assert again.texts.equals(once)
    assert not again.hits.any()


@given(st.lists(texts, max_size=5))
def test_a_text_is_masked_alike_alone_and_among_others(some):
    queries = normal_form(pa.array(some, pa.string()))
    assert mask(queries).texts.to_pylist() == [masked(text) for text in queries.to_pylist()]


@given(texts)
def test_the_cheap_tests_let_pass_whatever_can_be_found(text):
    from queryveil.scrubbing.scope import ENGLISH
    from queryveil.scrubbing.texts import _finders

    query = normal_form(pa.array([text]))
    for kind in KINDS:
        assert bool(list(_finders(ENGLISH)[kind](query[0].as_py()))) == bool(mask(query, (kind,)).hits[0])


@given(
    st.sampled_from(["4", "51", "55", "2221", "2720", "6011", "65"]),
    st.text("0123456789", min_size=15, max_size=15),
    st.sampled_from(["", " ", "-", "."]),
    texts,
    texts,
)
def test_valid_cards_are_found_wherever_they_stand(head, tail, sign, before, after):
    number = luhn_complete((head + tail)[:15])
    written = sign.join(number[i : i + 4] for i in range(0, 16, 4))
    before, after = before.rstrip("0123456789"), after.lstrip("0123456789")
    text = normal_form(pa.array([f"{before}{written}{after}"]))[0].as_py()
    if written in text:  # the normal form may turn what stands around it into digits
        before, after = text.split(written, 1)
        if not before[-1:].isdigit() and not after[:1].isdigit():
            assert written not in masked(text, ("card",))


@given(st.text("0123456789 -.()+/", max_size=30))
def test_numbers_of_any_shape_do_no_harm(text):
    masked(normal_form(pa.array([text]))[0].as_py(), KINDS)


def test_rare_words_are_masked_with_what_clings_to_them_and_masks_stay():
    queries = pa.array(
        ["<email> zebra, pizza", "pizza - (pizza)", "--", "<rare> xylophone", "pizza<ip>,zebra <ip>pizza"]
    )
    found = mask_rare(Masked(queries, mask(queries).hits), pa.array(["pizza"]), language())
    assert found.texts.to_pylist() == [
        "<email> <rare> pizza", "pizza - (pizza)", "--", "<rare> <rare>", "<rare> <ip>pizza"
    ]  # fmt: skip
    assert (found.hits > 0).tolist() == [True, False, False, True, True]
