"""Logs in other languages: scripts, blanks, planted data, a mix of users."""

import unicodedata
from collections import Counter

import pyarrow.parquet as pq
import pytest

from queryveil.errors import QueryveilError
from queryveil.synth import LANGUAGES, generate
from queryveil.text import normal_form

SENSITIVE = {None, "vanity", "name_place", "phone", "card", "national_id", "address", "email", "health"}


@pytest.fixture(scope="module")
def mix(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mix")
    generate(folder / "log.parquet", users=1000, seed=3, language="mix", truth=folder / "truth")
    return folder


@pytest.fixture(scope="module")
def truth(mix):
    return pq.read_table(mix / "truth/queries.parquet").to_pylist()


def test_a_mix_has_every_language_and_everything_planted_in_each(truth):
    assert {row["language"] for row in truth} == set(LANGUAGES)
    assert {row["sensitive"] for row in truth} == SENSITIVE
    for code in LANGUAGES:
        assert {"base", "navigational"} <= {row["kind"] for row in truth if row["language"] == code}


def test_queries_are_in_normal_form(truth):
    import pyarrow as pa

    queries = pa.array([row["query"] for row in truth])
    assert normal_form(queries).cast(queries.type).equals(queries)


@pytest.mark.parametrize(("code", "script"), [("el", "GREEK"), ("zh", "CJK"), ("ja", "KATAKANA")])
def test_words_are_in_their_script(truth, code, script):
    queries = [row["query"] for row in truth if row["language"] == code and row["kind"] in ("base", "refinement")]
    held = sum(any(unicodedata.name(sign, "").startswith(script) for sign in query) for query in queries)
    assert held > (0.9 if script != "KATAKANA" else 0.5) * len(queries)


def test_chinese_and_japanese_have_few_blanks(truth):
    blanks = {}
    for code in LANGUAGES:
        queries = [row["query"] for row in truth if row["language"] == code and row["kind"] == "refinement"]
        blanks[code] = sum(" " in query for query in queries) / len(queries)
    assert blanks["zh"] < 0.5 < blanks["de"]
    assert blanks["ja"] < blanks["de"]


def test_planted_ids_have_valid_check_digits(truth):
    pytest.importorskip("stdnum", reason="needs the extra scrub")
    from stdnum.es import dni
    from stdnum.fr import nir
    from stdnum.gr import vat
    from stdnum.iso7064 import mod_11_2, mod_11_10
    from stdnum.jp import in_
    from stdnum.pl import pesel

    seen = 0
    checks = {"es": dni, "fr": nir, "el": vat, "de": mod_11_10, "zh": mod_11_2, "ja": in_, "pl": pesel}
    for code, check in checks.items():
        ids = [
            r["query"]
            for r in truth
            if r["language"] == code and r["sensitive"] == "national_id" and r["kind"] == "personal"
        ]
        seen += len(ids)
        assert all(check.is_valid(number.replace(" ", "").upper()) for number in ids), (code, ids)
    assert seen >= 10


def test_a_user_has_one_language(mix, truth):
    # By refinements: addresses, numbers and single words such as `bank` are queries of several languages, and the
    # truth names one of them. Some users hardly type anything else.
    language = {row["query"]: row["language"] for row in truth if row["kind"] == "refinement"}
    rows = pq.read_table(mix / "log.parquet", columns=["user", "query"]).to_pydict()
    spoken, greek = {}, set()
    for user, query in zip(rows["user"], rows["query"], strict=True):
        spoken.setdefault(user, set()).update({language[query]} if query in language else ())
        if any(unicodedata.name(sign, "").startswith("GREEK") for sign in query):
            greek.add(user)
    assert max(map(len, spoken.values())) == 1
    users = Counter(code for found in spoken.values() for code in found)
    assert min(users[code] for code in LANGUAGES) > sum(users.values()) / len(LANGUAGES) / 2
    assert sum(users.values()) > 0.8 * len(spoken)
    assert all(spoken[user] <= {"el"} for user in greek)
    assert list(spoken) == sorted(spoken, key=int)


def test_a_log_of_more_users_begins_with_the_log_of_fewer(tmp_path):
    for users in (100, 140):
        generate(tmp_path / f"{users}.tsv", users=users, seed=2, language=["el", "de"])
    fewer = (tmp_path / "100.tsv").read_bytes()
    assert (tmp_path / "140.tsv").read_bytes().startswith(fewer)
    assert "ς".encode() in fewer


@pytest.mark.parametrize("wrong", ["deu", "de,xx", [], "mix,de"])
def test_an_unknown_language_is_refused_in_one_sentence(tmp_path, wrong):
    with pytest.raises(QueryveilError, match="must be some of en, de") as error:
        generate(tmp_path / "log.tsv", users=100, language=wrong)
    assert str(error.value).count(". ") <= 2
    assert not list(tmp_path.iterdir())
