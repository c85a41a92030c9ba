import json

import pytest

import queryveil as qv


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """A synthetic log, its release, and who is who in it; no test changes them."""
    folder = tmp_path_factory.mktemp("attacked")
    log, release, secret = folder / "log.tsv.gz", folder / "release", folder / "map.csv"
    qv.generate(log, users=100, seed=1)
    made = qv.Equality(k=3, link="user").anonymize(qv.read_log(log))
    made.save(release)
    made.save_user_map(secret)
    return log, release, secret


def test_attacks_stand_under_the_three_questions(run, released):
    log, release, secret = released
    code, out, err = run("attack", release, "--original", log, "--user-map", secret, "--n-known", "1,3")
    assert (code, err) == (0, "")
    at = [out.index(question) for question in ("\nLinkability\n", "\nInference\n", "attacks were tried")]
    assert at == sorted(at)
    assert out.startswith("Singling out")
    assert "background knowledge of n queries, 3 random" in out
    assert "record linkage" in out
    assert "history linkage, random half: " in out
    assert "anonymity loss" in out
    assert "safe" not in out.lower()


def test_without_the_user_map_it_says_what_needs_it(run, released):
    log, release, _ = released
    code, out, _ = run("attack", release, "--original", log)
    assert code == 0
    assert "Not tried: background knowledge of n queries (needs the user map)" in out
    assert "Not tried: record linkage (needs the user map)" in out


def test_as_json(run, released, tmp_path):
    log, release, secret = released
    other = tmp_path / "other"
    run("anonymize", log, "--method", "equality", "-k", 4, "-o", other)
    words = [
        "attack",
        release,
        "--original",
        log,
        "--user-map",
        secret,
        "--known",
        "rarest",
        "--n-known",
        2,
        "--seed",
        5,
    ]
    code, out, _ = run(*words, "--other", other, "--json")
    assert code == 0
    found = json.loads(out)
    by = {(finding["attack"], finding["setting"]): finding for finding in found["findings"]}
    assert ("background_knowledge", "2 rarest") in by
    flips = by["differencing", "two releases"]["estimate"]
    alone = json.loads(run(*words, "--json")[1])
    assert flips == next(f["estimate"] for f in alone["findings"] if f["attack"] == "differencing")
    assert by["sybil", ""]["estimate"]["value"] == 3
    assert by["sybil", ""]["loss"] is None
    assert 0 <= by["history_linkage", "random half"]["loss"] <= 1
    assert json.loads(run(*words, "--json")[1]) == alone


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--n-known", "0"], "--n-known takes whole numbers of at least 1 with commas between them. Got '0' instead."),
        (["--n-known", "1;2"], "--n-known takes whole numbers"),
        (["--known", "all"], "The option --known must be one of random, rarest, half. Got 'all' instead."),
        (["--user-map", "none.csv"], "The user map none.csv cannot be read: No such file or directory."),
        (["--other", "nowhere"], "There is no release in nowhere"),
        (["--taxonomy", "nowhere"], "There is no taxonomy 'nowhere'"),
    ],
)
def test_bad_input_is_one_sentence(run, released, words, sentence):
    log, release, _ = released
    code, out, err = run("attack", release, "--original", log, *words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert sentence in err


def test_another_log_is_refused(run, released, log):
    _, release, _ = released
    code, _, err = run("attack", release, "--original", log)
    assert code == 7
    assert "made from another log" in err


def test_hashed_words_are_read_with_a_log_of_ones_own_and_personal_data_is_shown_masked(run, tmp_path):
    log, other, release, plain = (tmp_path / name for name in ("log.tsv", "other.tsv", "hashed", "plain"))
    run("synth", "--users", 100, "--seed", 1, "-o", log)
    run("synth", "--users", 100, "--seed", 2, "-o", other)
    assert run("anonymize", log, "--method", "hash", "-o", release)[0] == 0
    code, out, _ = run("attack", release, "--original", log, "--reference", other, "--n-known", 1)
    assert code == 0
    assert "token hashing, with another log" in out
    assert run("anonymize", log, "--method", "rules", "--max-characters", 1000, "-o", plain)[0] == 0
    out = run("attack", plain, "--original", log, "--n-known", 1)[1]
    assert "residual personal data, masked: <" in out
    assert "@" not in out


def test_labelled_queries_are_evaluated(run, released, tmp_path):
    log, release, _ = released
    labels = tmp_path / "labels.csv"
    labels.write_text("query,sensitive\ngoogle,\nyahoo,\nebay,vanity\n")
    code, out, err = run("evaluate", release, "--original", log, "--sensitive", labels, "--tests", 20)
    assert (code, err) == (0, "")
    assert "F of beta 0.1" in out
    code, _, err = run("evaluate", release, "--original", log, "--sensitive", tmp_path / "none.csv")
    assert code != 0
    assert "none.csv cannot be read" in err
