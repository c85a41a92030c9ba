from collections import defaultdict
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import queryveil as qv
from queryveil.claims import CombinationUsers
from queryveil.methods.recipe import load_recipe
from queryveil.methods.rule_metadata import MERGED, merge_until
from tests.oracles import log as oracle
from tests.oracles.text import normal_form, words
from tests.strategies import LOGS, table

SOME = st.none() | st.integers(2, 3)
SETTINGS = st.fixed_dictionaries(
    {
        "min_query_users": SOME,
        "min_row_users": SOME,
        "min_term_users": SOME,
        "max_characters": st.none() | st.integers(1, 9),
        "max_terms": st.none() | st.integers(1, 3),
        "no_digits": st.booleans(),
        "no_at": st.booleans(),
        "time": st.sampled_from(["drop", "day", "week"]),
        "min_metadata_users": SOME,
        "metadata": st.sampled_from([["country", "device"], ["device"]]),
        "link": st.sampled_from(["none", "session", "user"]),
    }
)
FILTERS = ("min_query_users", "min_row_users", "min_term_users", "max_characters", "max_terms", "no_digits", "no_at")


def rows_of(release: qv.Release) -> list[dict]:
    return pa.Table.from_batches(list(release.batches()), release.schema).to_pylist()


def queries_of(release: qv.Release) -> set[str]:
    return {row["query"] for row in rows_of(release)}


def allowed(rows, settings) -> set[str]:
    """Queries that pass every rule about queries, read off the rules one by one."""
    users, word_users = oracle.users_per_query(rows), oracle.users_per_word(rows)
    kept = set()
    for query, n in users.items():
        parts = words(query)
        if settings["min_query_users"] and n < settings["min_query_users"]:
            continue
        if settings["min_term_users"] and (not parts or min(word_users[w] for w in parts) < settings["min_term_users"]):
            continue
        if settings["max_characters"] and len(query) > settings["max_characters"]:
            continue
        if settings["max_terms"] and len(parts) > settings["max_terms"]:
            continue
        if settings["no_digits"] and any(c.isdigit() for c in query):
            continue
        if settings["no_at"] and "@" in query:
            continue
        kept.add(query)
    return kept


@given(LOGS, SETTINGS)
def test_releases_what_the_rules_say_and_the_verifier_accepts_it(rows, settings):
    if not any(settings[name] for name in FILTERS):
        with pytest.raises(qv.QueryveilError, match="at least one rule"):
            qv.Rules(**settings)
        return
    if len({row.user for row in oracle.good(rows)}) < 3:
        return
    log = qv.read_log(table(rows))
    if settings["link"] == "session" and not log.has_times:
        settings |= {"link": "user"}
    try:
        release = qv.Rules(**settings).anonymize(log, seed=5)
    except qv.QueryveilError as error:
        assert "users are left in the release" in str(error)  # noqa: PT017
        assert settings["min_metadata_users"]
        return
    verification = qv.verify(release, log)
    assert verification.holds, verification
    kept = allowed(rows, settings)
    if settings["min_row_users"] is None:
        assert queries_of(release) == kept
        assert not {"url", "rank"} & set(release.schema.names)
    else:
        sharers = defaultdict(set)
        for row in oracle.good(rows):
            sharers[row.query, row.url, row.device, row.country].add(row.user)
        expected = {key for key, users in sharers.items() if key[0] in kept and len(users) >= settings["min_row_users"]}
        assert queries_of(release) == {key[0] for key in expected}
        if not settings["min_metadata_users"]:
            names = ("query", "url", "device", "country")
            assert {tuple(row.get(name) for name in names) for row in rows_of(release)} == {
                tuple(value if name in release.schema.names else None for name, value in zip(names, key, strict=True))
                for key in expected
            }


def users_of(user: np.ndarray, group: np.ndarray) -> np.ndarray:
    pairs = set(zip(group.tolist(), user.tolist(), strict=True))
    return np.bincount([pair[0] for pair in pairs])


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.integers(-1, 2), st.integers(0, 2), st.integers(0, 1)), min_size=1, max_size=40
    ),
    st.integers(2, 5),
)
def test_merging_leaves_no_small_combination_and_only_gives_up(pairs, least):
    pairs = sorted(set(pairs))
    user = np.array([pair[0] for pair in pairs], np.int32)
    combination = np.array([pair[1:] for pair in pairs], np.int32)
    if len(set(user.tolist())) < least:
        with pytest.raises(qv.QueryveilError, match="users are left"):
            merge_until(combination, partial(users_of, user), least)
        return
    merged = merge_until(combination, partial(users_of, user), least)
    users = defaultdict(set)
    for row, who in zip(merged.tolist(), user.tolist(), strict=True):
        users[tuple(row)].add(who)
    assert min(map(len, users.values())) >= least
    assert ((merged == combination) | (merged == MERGED)).all()
    large = defaultdict(set)
    for row, who in zip(combination.tolist(), user.tolist(), strict=True):
        large[tuple(row)].add(who)
    if min(map(len, large.values())) >= least:
        assert np.array_equal(merged, combination)


def test_merging_gives_up_the_last_column_first():
    combination = np.array([[0, 0], [0, 0], [0, 1], [0, 2], [1, 0], [1, 0]], np.int32)
    merged = merge_until(combination, partial(users_of, np.arange(6)), 2)
    assert merged.tolist() == [[0, 0], [0, 0], [0, MERGED], [0, MERGED], [1, 0], [1, 0]]


def test_metadata_that_is_as_good_as_a_name_is_refused(monkeypatch):
    monkeypatch.setattr("queryveil.methods.rule_metadata.MOST_COMBINATIONS", 3)
    log = qv.read_log(pa.table({"user": list("abcd"), "query": ["x"] * 4, "device": list("efgh")}))
    with pytest.raises(qv.QueryveilError, match="The columns device have 4 combinations of values"):
        qv.Rules(min_query_users=2, min_metadata_users=2, metadata=["device"]).anonymize(log)


def log_of(*queries: str) -> qv.QueryLog:
    return qv.read_log(pa.table({"user": [f"u{i}" for i in range(len(queries))], "query": list(queries)}))


def test_a_block_list_drops_whole_words_and_phrases(tmp_path):
    (tmp_path / "block").write_text("Flu\nnew york\n\nnobody said this\n")
    log = log_of("flu shot", "influenza", "hotels new york", "york new", "new", "york")
    kept = queries_of(qv.Rules(block_list=tmp_path / "block").anonymize(log))
    assert kept == {"influenza", "york new", "new", "york"}


@given(
    st.lists(st.text("ab ", min_size=1, max_size=6), min_size=2, max_size=12),
    st.lists(st.text("ab ", max_size=4), max_size=4),
)
def test_a_block_list_is_what_a_search_for_runs_of_words_finds(tmp_path, queries, phrases):
    queries = [query for query in queries if normal_form(query)]
    if not queries:
        return
    path = tmp_path / "block"
    path.write_text("\n".join(phrases))
    log = log_of(*queries)
    kept = queries_of(qv.Rules(block_list=path).anonymize(log))

    def holds(query: str, phrase: list[str]) -> bool:
        parts = words(query)
        return any(parts[i : i + len(phrase)] == phrase for i in range(len(parts) - len(phrase) + 1))

    blocked = [words(normal_form(phrase)) for phrase in phrases if words(normal_form(phrase))]
    assert kept == {q for q in map(normal_form, queries) if not any(holds(q, phrase) for phrase in blocked)}


@pytest.mark.parametrize("name", ["back\\slash", "bell\a"])
def test_a_list_whose_name_cannot_stand_in_a_manifest_is_refused(tmp_path, name):
    with pytest.raises(qv.QueryveilError, match="a backslash or a control character"):
        qv.Rules(block_list=tmp_path / name)


def test_an_allow_list_releases_nothing_else(tmp_path):
    (tmp_path / "allow").write_text("  TEA \ncoffee\n")
    log = log_of("tea", "tea pot", "Coffee")
    assert queries_of(qv.Rules(allow_list=tmp_path / "allow").anonymize(log)) == {"tea", "coffee"}


def test_the_manifest_names_a_list_without_its_place(tmp_path):
    (tmp_path / "allow").write_text("tea\n")
    manifest = qv.Rules(allow_list=tmp_path / "allow").anonymize(log_of("tea", "pot")).manifest
    assert manifest.parameters["allow_list"] == "allow"
    assert str(tmp_path) not in manifest.model_dump_json()


def test_a_list_that_cannot_be_read(tmp_path):
    with pytest.raises(qv.QueryveilError, match="cannot be read"):
        qv.Rules(allow_list=tmp_path / "none").anonymize(log_of("a"))
    (tmp_path / "latin").write_bytes("café".encode("latin-1"))
    with pytest.raises(qv.QueryveilError, match="not UTF-8"):
        qv.Rules(block_list=tmp_path / "latin").anonymize(log_of("a"))


def test_what_the_log_lacks_is_told():
    log = log_of("a", "b")
    with pytest.raises(qv.QueryveilError, match="needs times"):
        qv.Rules(max_terms=3, time="day").anonymize(log)
    with pytest.raises(qv.QueryveilError, match="'min_term_users' parameter of Rules is 9"):
        qv.Rules(min_term_users=9).anonymize(log)


@pytest.mark.parametrize(
    ("columns", "claimed", "note"),
    [
        ((), None, "was not used: the log has none of the columns country, device, language."),
        (("country",), ("country",), "used only country: the log has none of the columns device, language."),
        (
            ("device", "country"),
            ("country", "device"),
            "used only country, device: the log has no column language.",
        ),
        (("country", "device", "language"), ("country", "device", "language"), None),
    ],
    ids=["none", "one", "two", "all"],
)
def test_metadata_columns_that_the_log_lacks_are_named(tmp_path, columns, claimed, note):
    table = {"user": ["a", "b", "c"], "query": ["tea", "tea", "tea with milk"], **dict.fromkeys(columns, ["x"] * 3)}
    log = qv.read_log(pa.table(table))
    release = qv.Rules(max_terms=1, min_metadata_users=2).anonymize(log)
    assert queries_of(release) == {"tea"}
    assert release.notes == (() if note is None else (f"The rule 'min_metadata_users' {note}",))
    promised = [claim.columns for claim in release.manifest.claims if isinstance(claim, CombinationUsers)]
    assert promised == ([] if claimed is None else [claimed])
    release.save(tmp_path / "r")
    assert qv.verify(tmp_path / "r", log).holds
    claims = tuple(claim for claim in release.manifest.claims if not isinstance(claim, CombinationUsers))
    silent = replace(release, manifest=release.manifest.model_copy(update={"claims": claims}))
    assert qv.verify(silent, log).holds == (claimed is None)


def test_a_rule_without_a_column_to_look_at_needs_no_users():
    """The shipped recipe asks for 1,000 users a combination, which a log without metadata need not have."""
    recipe = load_recipe("dma-draft-2026")
    log = log_of(*["tea"] * 60)
    release = qv.Rules(**recipe.parameters).anonymize(log)
    assert queries_of(release) == {"tea"}


def test_explain_names_every_rule():
    log = log_of("tea", "tea", "x9")
    method = qv.Rules(min_query_users=2, min_term_users=2, max_characters=3, max_terms=1, no_digits=True, no_at=True)
    assert all(reason.passed for reason in method.explain(log, log.find("tea")))
    failed = [reason.rule for reason in method.explain(log, log.find("x9")) if not reason.passed]
    assert failed == ["at least 2 users issued the query", "at least 2 users used each of its words", "no digit"]


def test_explain_counts_rows():
    rows = pa.table(
        {"user": list("abc"), "query": ["x"] * 3, "url": ["http://u", "http://u", "http://v"], "rank": [1, 1, 1]}
    )
    log = qv.read_log(rows)
    (reason,) = qv.Rules(min_row_users=2).explain(log, log.find("x"))
    assert (reason.passed, reason.found) == (True, "2 of its 3 rows are")


def test_explain_says_when_a_list_is_not_at_hand(tmp_path):
    (tmp_path / "block").write_text("tea\n")
    log = log_of("tea", "mug")
    release = qv.Rules(block_list=tmp_path / "block").anonymize(log)
    assert qv.explain(release, log, "tea").reasons[0].found == "it has an entry"
    release.save(tmp_path / "r")
    found = qv.explain(tmp_path / "r", log, "tea")  # the manifest knows the list by its file name alone
    assert not found.released
    assert "there is no file block here" in found.reasons[0].found


def test_metadata_columns_may_have_blanks_in_their_names():
    users = list("abcdef")
    table_ = pa.table({"user": users, "query": ["tea"] * 6, "my device": ["x"] * 5 + ["y"]})
    log = qv.read_log(table_)
    for link in ("none", "user"):
        method = qv.Rules(min_query_users=2, min_metadata_users=2, metadata=["my device"], link=link)
        assert qv.verify(method.anonymize(log), log).holds
