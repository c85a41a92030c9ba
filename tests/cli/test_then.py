"""Pipelines on the command line: `--then`, and recipes with steps."""

import json

import pytest

import queryveil as qv
from queryveil.methods import STEPS


@pytest.fixture
def steps(run, log, tmp_path):
    """The steps of the release that some words make."""

    def call(*words):
        code, out, err = run("anonymize", log, *words, "--json", "--overwrite", "-o", tmp_path / "r")
        assert code == 0, err
        found = json.loads(out)["manifest"]
        if found["method"] != "pipeline":
            return [(found["method"], found["parameters"])]
        return [(step["method"], step["parameters"]) for step in found["parameters"]["steps"]]

    return call


def test_each_step_has_the_options_behind_it(steps):
    first, second, last = steps(
        *("--method", "rules", "--max-terms", 2, "--then", "equality", "-k", 2),
        *("--then", "columns", "--time", "day", "--link", "user"),
    )
    assert first[0] == "rules"
    assert (first[1]["max_terms"], first[1]["time"], first[1]["link"]) == (2, "drop", "none")
    assert (second[0], second[1]["k"], second[1]["link"]) == ("equality", 2, "none")
    assert (last[0], last[1]["time"], last[1]["link"]) == ("columns", "day", "user")


def test_the_same_option_of_two_steps_in_all_its_forms(steps):
    for first, last in ((["-k", 2], ["-k", 3]), (["-k2"], ["-k3"])):
        (_, one), (_, other) = steps("--method", "equality", *first, "--then=odp", *last)
        assert (one["k"], other["k"]) == (2, 3)
    words = ("--method", "affinity", "-k", 2, "--theta=0.5", "--then", "affinity", "--theta=0.9", "-k2")
    (_, one), (_, other) = steps(*words)
    assert (one["theta"], other["theta"]) == (0.5, 0.9)


def test_flags_and_what_switches_off_belong_to_their_step(steps):
    words = ("--method", "rules", "--min-query-users", 2, "--no-digits", "--then", "rules")
    (_, one), (_, other) = steps(*words, "--max-terms", 1, "--no-min-query-users", "--no-at")
    assert (one["min_query_users"], one["no_digits"], one["no_at"]) == (2, True, False)
    assert (other["min_query_users"], other["no_digits"], other["no_at"]) == (None, False, True)
    (_, one), (_, other) = steps("--method", "equality", "-k", 2, "--then", "odp", "-k", 2, "--compact")
    assert other["compact"] is True
    (_, one), (_, other) = steps("--method", "equality", "-k", 2, "--then", "odp", "-k", 2, "--no-compact")
    assert other["compact"] is False


def test_scrubbing_is_a_first_step_or_an_option(steps):
    (scrub, given), (method, _) = steps("--method", "scrub", "--how", "mask", "--then", "equality", "-k", 2)
    assert (scrub, given["how"], method) == ("scrub", "mask", "equality")
    assert [name for name, _ in steps("--scrub", "mask", "--method", "equality", "-k", 2)] == ["equality"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--method", "equality", "--then", "magic"], f"There is no method 'magic'; there are {', '.join(STEPS)}."),
        (["--method", "scrub"], "scrub protects nobody by itself; use it with other steps: --method NAME --then NAME."),
        (["--method", "columns"], "columns protects nobody by itself"),
        (["--method", "pipeline"], "Name a method with --method"),
        (["--method", "equality", "--then", "pipeline"], "no method 'pipeline'"),
        (["--recipe", "publish-queries", "--then", "odp"], "The recipe has steps of its own"),
        (["--recipe", "publish-queries", "--method", "equality"], "the recipe is for pipeline; leave one of them out."),
        (["--method", "equality", "--then", "odp", "-k", "1"], "The option -k must be an integer of at least 2. Got 1"),
        (["--method", "odp", "--then", "equality"], "equality cannot follow odp, which makes records"),
        (["--method", "equality", "--then", "columns"], "Columns needs at least one thing to keep or link"),
        (["--method", "equality", "--then", "zealous"], "zealous cannot follow equality"),
        (["--method", "equality", "--link", "user", "--then", "odp"], "Only the last step can link events"),
        (["--method", "equality", "--then", "odp", "--no-k"], "--no-k is not possible, because odp needs k"),
        (
            ["--method", "equality", "-k", "2", "--then", "columns", "--time", "day", "--user-map", "m.csv"],
            "A release with --link none has no pseudonyms",
        ),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, list) else "",
)
def test_what_makes_no_sense_is_one_sentence(run, log, tmp_path, words, sentence):
    code, _, err = run("anonymize", log, *words, "-o", tmp_path / "r")
    assert code == 2
    assert sentence in err
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "r").exists()


def test_an_unknown_option_of_a_step_is_refused(run, log, tmp_path):
    code, _, err = run("anonymize", log, "--method", "equality", "--then", "odp", "--theta", 1, "-o", tmp_path / "r")
    assert code == 2
    assert "--theta belongs to affinity, not to equality and odp" in err


RECIPE = """
seed = 4
[[steps]]
method = "scrub"
[[steps]]
method = "equality"
parameters = { k = 3 }
[[steps]]
method = "columns"
parameters = { time = "day", link = "user" }
"""


def test_a_recipe_with_steps_and_one_k_for_all(run, steps, log, tmp_path):
    (tmp_path / "mine.toml").write_text(RECIPE)
    found = steps("--recipe", tmp_path / "mine.toml")
    assert [name for name, _ in found] == ["scrub", "equality", "columns"]
    assert (found[1][1]["k"], found[2][1]["link"]) == (3, "user")
    found = steps("--recipe", tmp_path / "mine.toml", "-k", 2)
    assert found[1][1]["k"] == 2
    code, out, _ = run("verify", tmp_path / "r", "--original", log)
    assert code == 0, out
    code, out, _ = run("explain", tmp_path / "r", "--original", log, "my secret")
    assert "  FAILS   equality: at least 2 users issued the query: 1 did" in out


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('[[steps]]\nmethod = "equality"\n', "A pipeline has at least two steps"),
        ('[[steps]]\nmethod = "equality"\n[[steps]]\nmethod = "magic"\n', "There is no step 'magic'"),
        ('[[steps]]\nmethod = "equality"\n[[steps]]\nmethod = "pipeline"\n', "There is no step 'pipeline'"),
        (
            '[[steps]]\nmethod = "equality"\nparameters = { k = 1 }\n[[steps]]\nmethod = "odp"\n',
            "The option -k must be an integer of at least 2. Got 1 instead.",
        ),
        ('[[steps]]\nmethod = "odp"\n[[steps]]\nmethod = "equality"\n', "equality cannot follow odp"),
        ('steps = "odp"\n', "has a fault at 'steps'"),
        ("[[steps]]\nmethod = 5\n", "has a fault at 'steps.0.method'"),
    ],
)
def test_a_recipe_whose_steps_are_wrong_is_one_sentence(run, log, tmp_path, text, sentence):
    (tmp_path / "bad.toml").write_text(text)
    code, _, err = run("anonymize", log, "--recipe", tmp_path / "bad.toml", "-o", tmp_path / "r")
    assert code == 2
    assert sentence in err
    assert len(err.splitlines()) == 1


def test_the_help_lists_steps_and_the_options_of_each(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    _, out, _ = run("anonymize", "--help")
    assert "--then" in out
    steps = out.partition("Steps of a pipeline")[2]
    assert "scrub" in steps
    assert "columns" in steps
    _, out, _ = run("anonymize", "--method", "equality", "--then", "odp", "--help")
    assert "Parameters of equality" in out
    assert "Parameters of odp" in out
    _, out, _ = run("anonymize", "--recipe", "publish-profiles", "--help")
    assert "The k of every step that has one." in out


def test_the_release_of_the_command_line_is_that_of_python(run, log, tmp_path):
    words = ("--method", "scrub", "--then", "equality", "-k", 2, "--then", "odp", "-k", 2, "--seed", 2**127)
    code, *_ = run("anonymize", log, *words, "-o", tmp_path / "r", "--user-map", tmp_path / "map.csv")
    assert code == 0
    pipeline = qv.Pipeline([qv.Scrub(), qv.Equality(k=2), qv.Odp(k=2)])
    pipeline.anonymize(qv.read_log(log), seed=2**127).save(tmp_path / "again")
    assert (tmp_path / "r" / "log.parquet").read_bytes() == (tmp_path / "again" / "log.parquet").read_bytes()
    assert (tmp_path / "map.csv").read_text().count("u-") == 3


def test_an_option_behind_a_step_that_lacks_it_is_refused(run, log, tmp_path):
    words = ("--method", "affinity", "--then", "odp", "--theta", "0.8", "-o", tmp_path / "r")
    code, out, err = run("anonymize", log, *words)
    assert (code, out) == (2, "")
    assert "odp has no option --theta; write it behind affinity, which has." in err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--method", "publish-queries"], "is a recipe, not a method; use --recipe publish-queries"),
        (["--recipe", "publish-queries", "--scrub", "mask"], "The first step scrubs the log already"),
        (["--recipe", "publish-counts", "-k", "50"], "No step of the recipe has a k"),
        (["--method", "scrub", "--rare-term-users", "3", "--then", "zealous"], "leave that out"),
        (
            ["--method", "equality", "-k", "5", "--then", "columns", "--time", "day", "-k", "2"],
            "columns has no option -k",
        ),
    ],
)
def test_what_would_change_another_step_is_refused(run, log, tmp_path, words, sentence):
    code, out, err = run("anonymize", log, *words, "-o", tmp_path / "r")
    assert (code, out) == (2, "")
    assert sentence in err


def test_a_k_beside_a_recipe_raises_the_thresholds_of_columns(run, log, tmp_path):
    (tmp_path / "mine.toml").write_text(
        '[[steps]]\nmethod = "equality"\nparameters = { k = 2 }\n'
        '[[steps]]\nmethod = "columns"\nparameters = { min_click_users = 2, min_metadata_users = 9 }\n'
    )
    words = ("--recipe", tmp_path / "mine.toml", "-k", 3, "--json", "--allow-empty", "-o", tmp_path / "r")
    code, out, err = run("anonymize", log, *words)
    if code == 2:  # the log of these tests may have fewer users than nine
        assert "min-metadata-users is 9" in err
        return
    first, last = (step["parameters"] for step in json.loads(out)["manifest"]["parameters"]["steps"])
    assert (first["k"], last["min_click_users"], last["min_metadata_users"]) == (3, 3, 9)
