"""Hash from log to release: the tokens of the words, what can be checked without the key, and what must not be told."""

import hmac
import json
import os
import re
from collections import Counter
from dataclasses import replace
from itertools import combinations, pairwise, permutations
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import queryveil as qv
from queryveil.claims.base import Evidence
from queryveil.errors import QueryveilError
from queryveil.methods import hash as module
from queryveil.release import loaded
from tests.both import on_both_engines_weekly, on_one_machine
from tests.engines.test_engines import ROWS, TABLE
from tests.oracles import log as oracle
from tests.oracles.text import words
from tests.strategies import LOGS, table

KEY = bytes(range(32))


@pytest.fixture(scope="module")
def key_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("key") / "key"
    path.write_bytes(KEY)
    return path


def rows_of(release):
    return pa.Table.from_batches(list(release.batches()), release.schema).to_pylist()


def token(word, key=KEY):
    return hmac.new(key, word.encode(), "sha256").hexdigest()[:16]


def expected(rows):
    """The released texts, user by user."""
    found = Counter()
    for (user, query, _), n in oracle.events(rows).items():
        if words(query):
            found[user, " ".join(token(word) for word in words(query))] += n
    return found


def check(rows, log, key_file, link):
    release = qv.Hash(key_file=key_file, link=link).anonymize(log, seed=5)
    found = rows_of(release)
    if link == "user":
        names = {r["released"]: r["original"] for batch in release.user_map() for r in batch.to_pylist()}
        assert Counter((names[row["user"]], row["query"]) for row in found) == expected(rows)
        assert [row["user"] for row in found] == sorted(row["user"] for row in found)
    else:
        texts = Counter()
        for (_, text), n in expected(rows).items():
            texts[text] += n
        assert Counter(row["query"] for row in found) == texts
    assert [row["event"] for row in found] == list(range(1, len(found) + 1))
    assert set(release.schema.names) <= {"user", "session", "event", "query"}
    verification = qv.verify(release, log)
    assert verification.holds, verification
    return release


@given(LOGS, st.sampled_from(["none", "session", "user"]))
def test_every_word_becomes_its_token(key_file, rows, link):
    if not oracle.good(rows):
        return
    log = qv.read_log(table(rows))
    check(rows, log, key_file, link if log.has_times else "user")


@on_both_engines_weekly
def test_the_same_release_on_both_engines(read, key_file, tmp_path):
    log = read(TABLE)
    release = check(ROWS, log, key_file, "user")
    here = qv.read_log(TABLE)
    other = qv.Hash(key_file=key_file, link="user").anonymize(here, seed=5)
    assert rows_of(release) == rows_of(other)
    assert release.manifest == other.manifest
    release.save(tmp_path / "r")
    assert qv.verify(tmp_path / "r", here).holds


def test_a_key_is_drawn_for_each_release_and_never_written(tmp_path, monkeypatch):
    log = qv.read_log(TABLE)
    drawn = []
    given = module.secrets.token_bytes
    monkeypatch.setattr(module.secrets, "token_bytes", lambda n: drawn.append(given(n)) or drawn[-1])
    method = qv.Hash()
    one, other = method.anonymize(log), method.anonymize(log)
    assert drawn[0] != drawn[1]
    assert not {row["query"] for row in rows_of(one)} & {row["query"] for row in rows_of(other)}
    one.save(tmp_path / "r", format="csv")
    written = b"".join(path.read_bytes() for path in (tmp_path / "r").iterdir())
    assert drawn[0] not in written
    assert drawn[0].hex().encode() not in written
    assert "is random and was not kept" in one.notes[0]
    assert [
        note for note in one.notes[1:] if "column" not in note and "click" not in note and "times" not in note
    ] == []


def test_the_key_file_is_told_to_nobody(key_file, tmp_path):
    log = qv.read_log(TABLE)
    release = qv.Hash(key_file=key_file).anonymize(log)
    release.save(tmp_path / "r", format="csv")
    written = b"".join(path.read_bytes() for path in (tmp_path / "r").iterdir())
    assert str(key_file).encode() not in written
    assert KEY not in written
    assert json.loads((tmp_path / "r/manifest.json").read_text())["parameters"]["key_file"] is None
    assert rows_of(qv.Hash(key_file=key_file).anonymize(log)) == rows_of(release)


def test_rows_are_not_in_an_order_that_tells_of_the_words(key_file):
    """Ids of queries follow from their digests, which anybody can compute; released rows must not be in that order."""
    queries = [f"w{i}" for i in range(200)]
    log = qv.read_log(pa.table({"user": ["a"] * 200, "query": queries}))
    found = [row["query"] for row in rows_of(qv.Hash(key_file=key_file, link="none").anonymize(log))]
    by_id = [token(log.query_text[i].as_py()) for i in range(200)]
    assert sorted(found) == sorted(by_id)
    places = [found.index(text) for text in by_id]
    agree = sum(a < b for a, b in pairwise(places))
    assert 70 < agree < 130


def test_the_report_says_loudly_what_it_is(key_file, tmp_path):
    log = qv.read_log(TABLE)
    qv.Hash().anonymize(log).save(tmp_path / "r")
    report = (tmp_path / "r/report.md").read_text()
    assert "THIS RELEASE IS NOT ANONYMOUS" in report
    assert "**not anonymous**" in report
    assert "by number of users" not in report


def test_the_dictionary_needs_the_key(key_file):
    log = qv.read_log(TABLE)
    found = qv.Hash(key_file=key_file).tokens(log).to_pylist()
    assert {(row["word"], row["token"]) for row in found} == {(w, token(w)) for w in log.tokens.text.to_pylist()}
    with pytest.raises(QueryveilError, match="Only a key from a file"):
        qv.Hash().tokens(log)


@pytest.mark.parametrize("size", [16, 63, 64, 65, 200])
def test_keys_of_any_size_hash_as_hmac_does(size):
    key = bytes(range(size))
    found = module.token_texts(module.hashed(key, pa.array(["cell", "été", "a" * 300]))).to_pylist()
    assert found == [token(word, key) for word in ("cell", "été", "a" * 300)]


def test_words_that_would_be_mixed_up_are_refused(key_file, monkeypatch):
    monkeypatch.setattr(module, "BYTES", 1)
    log = qv.read_log(pa.table({"user": ["a"] * 400, "query": [f"w{i}" for i in range(400)]}))
    with pytest.raises(QueryveilError, match="Two words of the log have the same token under this key"):
        qv.Hash(key_file=key_file).anonymize(log)


def test_bad_key_files(tmp_path):
    log = qv.read_log(TABLE)
    (tmp_path / "short").write_bytes(b"123")
    with pytest.raises(
        QueryveilError, match=r"short has 3 bytes, and needs 16 or more; make one with: \(umask 077; head"
    ):
        qv.Hash(key_file=tmp_path / "short").anonymize(log)
    with pytest.raises(QueryveilError, match="cannot be read: No such file"):
        qv.Hash(key_file=tmp_path / "none").anonymize(log)
    with pytest.raises(QueryveilError, match=r"cannot be read: Is a directory|is not a file"):
        qv.Hash(key_file=tmp_path).anonymize(log)
    (tmp_path / "long").write_bytes(bytes(module.MOST_KEY + 1))
    with pytest.raises(QueryveilError, match=r"long has more than 4,096 bytes; that is not a key\."):
        qv.Hash(key_file=tmp_path / "long").anonymize(log)
    (tmp_path / "most").write_bytes(bytes(module.MOST_KEY))
    assert qv.Hash(key_file=tmp_path / "most").anonymize(log).manifest.counts.events
    os.mkfifo(tmp_path / "pipe")  # nobody writes into it
    for endless in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(QueryveilError, match=r"is not a file but a pipe or a device; name a file\."):
            qv.Hash(key_file=endless).anonymize(log)


def test_a_key_that_others_can_read_is_warned_of(tmp_path):
    log = qv.read_log(TABLE)
    (tmp_path / "key").write_bytes(KEY)
    method = qv.Hash(key_file=tmp_path / "key")
    for mode, warned in ((0o600, 0), (0o640, 1), (0o604, 1)):
        (tmp_path / "key").chmod(mode)
        assert len(method.warnings(log)) == warned
    assert "others on this machine can read the key file" in method.warnings(log)[0]
    assert qv.Hash().warnings(log) == qv.Hash(key_file=tmp_path / "none").warnings(log) == []


def forged(release, change):
    rows = [made for row in rows_of(release) for made in change(row)]
    made = pa.Table.from_pylist(rows, release.schema)
    return replace(release, batches=lambda: iter(made.to_batches()))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda row: [] if row["event"] == 1 else [row], "events have|words occur"),
        (lambda row: [row | {"query": "cell phone"}] if row["event"] == 1 else [row], "'cell phone' is not made of"),
        (lambda row: [row | {"query": row["query"].split()[0]}], "events have"),
        (lambda row: [row | {"query": re.sub(r"\w{16}$", "0" * 16, row["query"])}], "words occur"),
        (lambda row: [row | {"user": 1}], "users have"),
        (lambda row: [row | {"query": row["query"].replace(" ", "  ")}], "is not made of tokens"),
    ],
    ids=["lost", "plain", "cut", "merged", "moved", "blanks"],
)
def test_what_is_not_hashed_word_by_word_is_refuted(key_file, change, why):
    log = qv.read_log(TABLE)
    release = qv.Hash(key_file=key_file, link="user").anonymize(log)
    verdicts = qv.verify(forged(release, change), log).verdicts
    assert [v for v in verdicts if not v.holds and re.search(why, v.counterexample)], verdicts


def test_tokens_whose_digits_follow_a_pattern_are_refuted(key_file):
    """They could spell the words; those of a keyed digest are as if drawn at random."""
    words = [f"w{i}" for i in range(300)]
    log = qv.read_log(pa.table({"user": ["a"] * 300, "query": words}))
    release = qv.Hash(key_file=key_file).anonymize(log)
    assert qv.verify(release, log).holds
    name = {token(word): f"{i:016x}" for i, word in enumerate(words)}
    rows = [row | {"query": name[row["query"]]} for row in rows_of(release)]
    assert refuted(log, release, rows) == (
        "the digits of tokens are not equally frequent, as those of keyed digests are"
    )


def swapped(text, one, other):
    """A text with two tokens exchanged."""
    names = {one: other, other: one}
    return " ".join(names.get(part, part) for part in text.split())


SHUFFLED = pa.table({"user": ["a"] * 6, "query": ["red tea", "red cup", "blue tea", "green cup", "tea", "blue"]})


def refuted(log, release, rows):
    """What the claim finds in the release with other rows."""
    made = pa.Table.from_pylist(rows, release.schema)
    (claim,) = release.manifest.claims
    with loaded(replace(release, batches=lambda: iter(made.to_batches())), log) as found, log.workspace() as work:
        return claim.check(Evidence(log, work, tuple(release.schema.names), found))


@on_one_machine
def test_tokens_that_were_shuffled_between_queries_are_refuted(read, key_file):
    """All that is counted alone stays: lengths, how often tokens occur, events of users."""
    log = read(SHUFFLED)
    release = qv.Hash(key_file=key_file).anonymize(log)
    blue, green, tea, cup = map(token, ["blue", "green", "tea", "cup"])
    moved = {f"{blue} {tea}": f"{blue} {cup}", f"{green} {cup}": f"{green} {tea}"}
    rows = [row | {"query": moved.get(row["query"], row["query"])} for row in rows_of(release)]
    assert re.search("no query of the log has words, events and users where", refuted(log, release, rows))


@pytest.mark.parametrize("link", ["none", "user"])
def test_an_exchange_of_two_tokens_in_one_query_is_refuted_unless_it_is_a_renaming(key_file, link):
    log = qv.read_log(EXCHANGED)
    release = qv.Hash(key_file=key_file, link=link).anonymize(log)
    rows = rows_of(release)
    tokens = sorted({part for row in rows for part in row["query"].split()})
    seen = set()
    for one, other in combinations(tokens, 2):
        at = next(i for i, row in enumerate(rows) if one in row["query"].split())
        changed = [row | {"query": swapped(row["query"], one, other)} if i == at else row for i, row in enumerate(rows)]
        same = renamed(rows, changed)
        assert (refuted(log, release, changed) is None) == same, (one, other)
        seen.add(same)
    assert False in seen


EXCHANGED = pa.table(
    {
        "user": [*"aabbbcc"],
        "query": ["red tea", "blue mug", "red cup", "blue tea", "mug", "cup-red", "cup red"],
    }
)


def renamed(rows, others):
    """Whether some renaming of tokens and users makes one release the other, by trying them all."""
    mine, theirs = (sorted({part for row in side for part in row["query"].split()}) for side in (rows, others))
    people = sorted({row.get("user", 0) for row in rows})
    wanted = Counter((row.get("user", 0), row["query"]) for row in others)
    if len(mine) != len(theirs):
        return False
    for order in permutations(theirs):
        name = dict(zip(mine, order, strict=True))
        made = [(row.get("user", 0), " ".join(name[part] for part in row["query"].split())) for row in rows]
        for who in permutations(people):
            fresh = dict(zip(people, who, strict=True))
            if Counter((fresh[user], query) for user, query in made) == wanted:
                return True
    return False


def test_a_word_that_looks_like_a_token_and_was_not_hashed_is_refuted(key_file):
    secret = "0123456789abcdef"
    log = qv.read_log(pa.table({"user": ["a", "b"], "query": [secret, "tea"]}))
    release = qv.Hash(key_file=key_file).anonymize(log)
    plain = forged(release, lambda row: [row | {"query": row["query"].replace(token(secret), secret)}])
    wrong = [v.counterexample for v in qv.verify(plain, log).verdicts if not v.holds]
    assert f"the token '{secret}' is a word of the log" in wrong


def test_why_a_query_is_not_there(key_file):
    log = qv.read_log(TABLE)
    release = qv.Hash(key_file=key_file).anonymize(log)
    found = qv.explain(release, log, "cell phone")
    assert not found.released
    assert found.reasons[0].found == "a token stands for each word"
