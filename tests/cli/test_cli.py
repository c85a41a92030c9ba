import json
import math
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

import queryveil as qv
from queryveil.cli import printing
from queryveil.engines import memory
from queryveil.methods import STEPS

VERBS = (
    "synth",
    "profile",
    "concepts",
    "sweep",
    "neighbours",
    "anonymize",
    "verify",
    "sign",
    "keygen",
    "attack",
    "evaluate",
    "compare",
    "explain",
    "categorize",
    "taxonomy",
    "web-directory",
)


def test_the_tour_of_the_readme(run, tmp_path):
    log, release = tmp_path / "log.tsv.gz", tmp_path / "release"
    code, out, _ = run("synth", "--users", 200, "--seed", 1, "-o", log)
    assert code == 0
    assert "users" in out
    code, out, _ = run("profile", log)
    assert code == 0
    assert "distinct queries" in out
    code, out, err = run("anonymize", log, "--method", "equality", "-k", 5, "-o", release)
    assert (code, err) == (0, "")
    assert "Every released query was issued by at least 5 users" in out
    code, out, _ = run("verify", release, "--original", log)
    assert code == 0
    assert "The release keeps its promises." in out
    code, out, _ = run("explain", release, "--original", log, "google")
    assert code == 0
    assert "passes  at least 5 users issued the query" in out


def test_profile_as_json(run, log):
    code, out, _ = run("profile", log, "--json")
    assert code == 0
    found = json.loads(out)
    assert (found["events"], found["users"], found["queries"]) == (6, 3, 3)


def test_anonymize_as_json_is_the_manifest(run, log, tmp_path):
    code, out, _ = run("anonymize", log, "--method", "equality", "-k", 2, "-o", tmp_path / "r", "--json")
    assert code == 0
    assert json.loads(out)["manifest"]["counts"]["queries"] == 2
    assert json.loads(out)["manifest"]["parameters"] == {"k": 2, "link": "none"}


def test_concepts_are_listed_heaviest_first(run, tmp_path):
    log = tmp_path / "log.csv"
    log.write_text(
        "user,query\n" + "".join(f"{user},{query}\n" for user in "abc" for query in ("red tea", "red", "the"))
    )
    code, out, _ = run("concepts", log, "--concept-min-users", 3, "--json")
    assert code == 0
    found = json.loads(out)
    assert found["concepts"] == 3
    assert [(row["concept"], row["words"], row["users"]) for row in found["top"]] == [
        ("red tea", 2, 3),
        ("red", 1, 3),
        ("tea", 1, 3),
    ]
    assert [row["weight"] for row in found["top"]] == [3.1699, 2.8074, 2.0]  # log2 of 9, 7 and 4
    code, out, _ = run("concepts", log, "--concept-min-users", 3, "--words", 2, "--top", 1)
    assert code == 0
    assert "1 concepts of at least 3 users" in out
    assert "red tea" in out


@pytest.fixture
def cases(tmp_path):
    """Six users ask for a case, one of them and another in other words; one query holds a word of its own."""
    rows = [(f"u{i}", "cell phone case") for i in range(6)]
    rows += [("u7", "the cell phone case"), ("u1", "the"), ("u8", "cell phone case \x1b[31m zzz")]
    path = tmp_path / "cases.csv"
    path.write_text("user,query\n" + "".join(f"{user},{query}\n" for user, query in rows))
    return path


def test_sweep_shows_every_setting_and_draws_them(run, cases, tmp_path):
    code, out, err = run("sweep", cases, "-k", "2,6", "--theta", "0.9", "--chart", tmp_path / "sweep.svg")
    assert (code, err) == (0, "")
    assert "Distinct queries released, of 4" in out
    assert "AFF θ = 0.9" in out
    assert (tmp_path / "sweep.svg").stat().st_size > 0
    code, out, _ = run("sweep", cases, "-k", "2,6", "--theta", "0.9", "--min-query-users", 2, "--json")
    assert [point["queries"] for point in json.loads(out)["points"]] == [1, 1, 1, 1]
    code, _, err = run("sweep", cases, "--chart", tmp_path / "sweep.svg")
    assert (code, "exists already" in err) == (4, True)


def test_neighbours_are_listed_and_drawn_without_what_steers_a_terminal(run, cases, tmp_path):
    words = ("neighbours", cases, "-q", "Cell phone  case", "--theta", 0.5, "--min-term-users", 1)
    code, out, err = run(*words, "--draw", tmp_path / "around.svg")
    assert (code, err) == (0, "")
    assert "\x1b" not in out
    assert "This is the complete component" in out
    assert "the cell phone case" in (tmp_path / "around.svg").read_text()
    code, out, _ = run(*words, "--max-vertices", 1, "--json")
    assert (code, json.loads(out)["whole"], len(json.loads(out)["queries"])) == (0, False, 1)


def test_explain_under_affinity_shows_degrees_and_released_neighbours(run, cases, tmp_path):
    code, *_ = run("anonymize", cases, "--method", "affinity", "--min-term-users", 2, "-o", tmp_path / "r")
    assert code == 0
    code, out, _ = run("explain", tmp_path / "r", "--original", cases, "the cell phone case")
    assert code == 0
    assert "        degree under equality: 1, the users who issued it" in out
    assert "passes  at least 5 users issued it or a released query similar to it: its degree under affinity is 7" in out
    assert "similar queries that are released: 1, issued by 6 users: 'cell phone case' (6)" in out
    assert "zzz" not in out


def test_a_recipe_and_options_that_override_it(run, log, tmp_path):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text('method = "equality"\nseed = 4\n[parameters]\nk = 3\n')
    code, out, _ = run("anonymize", log, "--recipe", recipe, "-o", tmp_path / "a", "--json")
    assert code == 0
    made = qv.read_log(log)
    assert json.loads(out)["manifest"]["parameters"]["k"] == 3
    assert json.loads(out)["manifest"]["input_fingerprint"] == made.keyed_fingerprint(4)
    code, out, err = run("anonymize", log, f"--recipe={recipe}", "-k", 2, "--seed", 0, "-o", tmp_path / "b", "--json")
    assert json.loads(out)["manifest"]["parameters"]["k"] == 2
    assert json.loads(out)["manifest"]["input_fingerprint"] == made.keyed_fingerprint(0)
    assert "can be guessed" in err


def test_a_seed_below_0_is_refused_without_a_warning_before(run, log, tmp_path):
    code, _, err = run("anonymize", log, "--method", "equality", "--seed", -1, "-o", tmp_path / "a")
    assert (code, err) == (2, "queryveil: The seed must be a whole number of at least 0. Got -1 instead.\n")


def test_without_a_seed_two_releases_do_not_line_up(run, log, tmp_path):
    prints = [
        json.loads(run("anonymize", log, "--method", "equality", "-k", 2, "-o", tmp_path / name, "--json")[1])[
            "manifest"
        ]
        for name in "ab"
    ]
    assert prints[0]["input_fingerprint"] != prints[1]["input_fingerprint"]


def test_a_shipped_recipe_by_name(run, log, tmp_path):
    code, _, err = run("anonymize", log, "--recipe", "dma-30-5", "-o", tmp_path / "r")
    assert code == 5
    assert "The option --min-query-users is 30, but the log has only 3 users" in err


def test_every_parameter_of_a_method_is_an_option(run):
    code, out, _ = run("anonymize", "--method", "rules", "--help")
    assert code == 0
    for option in ("--min-query-users", "--no-digits", "--allow-list", "--time", "--metadata", "--link"):
        assert option in out
    assert "at least 2" in out


def test_options_of_rules_reach_the_method(run, log, tmp_path):
    words = [
        "anonymize",
        log,
        "--method",
        "rules",
        "--max-terms",
        1,
        "--no-digits",
        "--time",
        "week",
        "-o",
        tmp_path / "r",
    ]
    code, out, _ = run(*words, "--metadata", "device", "--metadata", "country", "--json")
    assert code == 0
    found = json.loads(out)["manifest"]["parameters"]
    assert (found["max_terms"], found["no_digits"], found["time"]) == (1, True, "week")
    assert found["metadata"] == ["device", "country"]


def test_an_option_switches_off_what_a_recipe_sets(run, log, tmp_path):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text('method = "rules"\n[parameters]\nmax_terms = 1\nmin_query_users = 2\n')
    words = ("anonymize", log, "--recipe", recipe, "--json", "-o")
    code, out, _ = run(*words, tmp_path / "a", "--no-max-terms")
    assert code == 0
    found = json.loads(out)["manifest"]["parameters"]
    assert (found["max_terms"], found["min_query_users"]) == (None, 2)
    _, out, _ = run(*words, tmp_path / "b")
    assert json.loads(out)["manifest"]["parameters"]["max_terms"] == 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("equality", "--no-k"), "--no-k is not possible, because equality needs k; leave it out."),
        (
            ("rules", "--max-terms", "3", "--no-max-terms"),
            "--max-terms and --no-max-terms contradict each other; leave one of them out.",
        ),
        (("rules", "--no-max-terms"), "Rules needs at least one rule"),
        (
            ("zealous", "--no-epsilon"),
            "--no-epsilon has no effect, because zealous then sets epsilon to 1.0 itself; leave it out.",
        ),
    ],
    ids=" ".join,
)
def test_what_cannot_be_switched_off_is_said_in_a_sentence(run, log, tmp_path, words, sentence):
    code, _, err = run("anonymize", log, "--method", *words, "-o", tmp_path / "r")
    assert code == 2
    assert sentence in err
    assert len(err.splitlines()) == 1


def test_the_help_says_how_a_parameter_is_switched_off(run):
    _, out, _ = run("anonymize", "--method", "rules", "--help")
    assert "To switch off what a recipe sets: --no-min-query-users, " in " ".join(out.split())
    assert "--no-min-metadata-users" in out
    assert "--no-time" not in out  # what cannot be off


def test_the_help_of_anonymize_names_methods_and_recipes(run):
    _, out, _ = run("anonymize", "--help")
    assert "equality" in out
    assert "dma-30-5" in out


def test_verify_refutes_with_exit_code_one(run, log, tmp_path):
    run("anonymize", log, "--method", "equality", "-k", 2, "-o", tmp_path / "r")
    (tmp_path / "r" / "report.md").write_text("changed")
    code, out, _ = run("verify", tmp_path / "r", "--original", log)
    assert code == 1
    assert "REFUTED" in out
    code, out, _ = run("verify", tmp_path / "r", "--original", log, "--json")
    assert code == 1
    assert json.loads(out)["holds"] is False


def test_explain_as_json(run, log, tmp_path):
    run("anonymize", log, "--method", "equality", "-k", 2, "-o", tmp_path / "r")
    code, out, _ = run("explain", tmp_path / "r", "--original", log, "MY  secret", "--json")
    assert code == 0
    assert json.loads(out) == {
        "query": "my secret",
        "rows": 0,
        "reasons": [{"rule": "at least 2 users issued the query", "passed": False, "found": "1 did", "step": None}],
        "released": False,
    }


def test_a_terminal_escape_in_a_query_is_not_printed(run, tmp_path):
    log = tmp_path / "log.csv"
    log.write_text("user,query\na,red \u202etext\nb,red \u202etext\n")
    run("anonymize", log, "--method", "equality", "-k", 2, "-o", tmp_path / "r")
    _, out, _ = run("explain", tmp_path / "r", "--original", log, "red \u202etext")
    assert "is in the release" in out
    assert "\u202e" not in out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--method", "equality", "-k", "1"], "The option -k must be an integer of at least 2. Got 1"),
        (
            ["--method", "magic"],
            f"There is no method 'magic'; there are {', '.join(STEPS)}.",
        ),
        (["--method", "magic", "-k", "3"], "There is no method 'magic'"),
        ([], "Name a method with --method"),
        (["-k", "3"], "Name a method with --method"),
        (
            ["--method", "equality", "-k", "3", "--link", "user", "--user-map", "/no/such/place"],
            "for the user map does not exist",
        ),
        (["--method", "equality", "--columns", "user=a,user=b"], "has a name twice"),
        (["--recipe", "none.toml"], "There is no recipe 'none.toml'"),
        (["--recipe", "dma-30-5", "--method", "equality"], "the recipe is for rules"),
        (["--method", "equality", "--output-format", "xml"], "There is no release format 'xml'"),
        (["--method", "equality", "--columns", "user"], "--columns takes NAME=COLUMN pairs"),
        (["--method", "equality", "--format", "doc"], "There is no format 'doc'"),
        (["--method", "rules"], "Rules needs at least one rule"),
        (["--method", "affinity", "-k", "1"], "The option -k must be an integer of at least 2. Got 1"),
        (["--method", "affinity", "--theta", "1.5"], "The option --theta must be a number in (0, 1]."),
        (["--method", "affinity", "--concept-min-users", "1"], "must be an integer of at least 2. Got 1"),
        (["--method", "affinity", "--max-new-users", "-1"], "must be an integer of at least 0"),
    ],
)
def test_bad_input_is_one_sentence_with_exit_code_two_and_leaves_nothing(run, log, tmp_path, words, sentence):
    code, out, err = run("anonymize", log, *words, "-o", tmp_path / "r")
    assert code == 2
    assert out == ""
    assert sentence in err
    assert err.count("\n") == 1
    assert err.startswith("queryveil: ")
    assert [path.name for path in tmp_path.iterdir()] == ["log.tsv"]


@pytest.mark.parametrize(
    ("words", "exit_code", "sentence"),
    [
        (["-k", "4"], 5, "the log has only 3 users"),
        (["-k", "3", "--link", "user", "--user-map", __file__], 4, "exists already"),
    ],
)
def test_what_has_a_code_of_its_own_is_one_sentence_and_leaves_nothing(run, log, tmp_path, words, exit_code, sentence):
    code, out, err = run("anonymize", log, "--method", "equality", *words, "-o", tmp_path / "r")
    assert (code, out, err.count("\n"), sentence in err) == (exit_code, "", 1, True)
    assert [path.name for path in tmp_path.iterdir()] == ["log.tsv"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["sweep", "-k", "5,x"], "-k takes whole numbers with commas between them. Got '5,x' instead."),
        (["sweep", "-k", "1"], "The option -k must be an integer of at least 2"),
        (["sweep", "--theta", "0"], "The option --theta must be a number in (0, 1]"),
        (["sweep", "--chart", "a.pdf"], "a.pdf must end with .svg or .png or .html"),
        (["neighbours", "-q", "tea", "--draw", "a.pdf"], "a.pdf must end with .svg"),
        (["neighbours", "-q", "no such thing"], "Nobody issued this query"),
        (["neighbours", "-q", "my secret"], "holds no concept"),
    ],
)
def test_bad_questions_are_one_sentence_too(run, log, tmp_path, words, sentence):
    code, out, err = run(words[0], log, *words[1:])
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert sentence in err
    assert "secret" not in err
    assert [path.name for path in tmp_path.iterdir()] == ["log.tsv"]


def test_the_user_map_stays_out_of_the_release_and_goes_when_the_release_fails(run, log, tmp_path):
    words = ["anonymize", log, "--method", "equality", "-k", 2, "--link", "user", "-o", tmp_path / "r"]
    code, _, err = run(*words, "--user-map", tmp_path / "r" / "map.csv")
    assert code == 2
    assert "must stay secret" in err
    code, _, _ = run(*words[:-1], tmp_path / "e", "-k", 3, "--user-map", tmp_path / "m.csv")
    assert code == 0
    assert (tmp_path / "m.csv").exists()
    (tmp_path / "x.csv").write_text("user,query\na,x\nb,y\n")
    code, _, _ = run("anonymize", tmp_path / "x.csv", *words[2:-1], tmp_path / "f", "--user-map", tmp_path / "n.csv")
    assert code == 5
    assert not (tmp_path / "n.csv").exists()


def test_a_certificate_stays_out_of_the_release_and_helps_to_verify_it(run, log, tmp_path):
    words = ["anonymize", log, "--method", "affinity", "-k", 2, "-o", tmp_path / "r"]
    code, _, err = run(*words, "--certificate", tmp_path / "r" / "a.certificate")
    assert code == 2
    assert "must stay secret" in err
    code, _, err = run(*words, "--certificate", tmp_path / "a.txt")
    assert code == 2
    assert "must end with .certificate" in err
    code, _, _ = run(*words, "--certificate", tmp_path / "a.certificate")
    assert code == 0
    code, out, _ = run("verify", tmp_path / "r", "--original", log, "--certificate", tmp_path / "a.certificate")
    assert code == 0
    assert "the users behind all of them were counted" in out
    assert run(*words, "--certificate", tmp_path / "a.certificate", "--overwrite")[0] == 0
    assert {file.name for file in tmp_path.iterdir()} == {"log.tsv", "r", "a.certificate"}
    (tmp_path / "a.certificate").write_text("damaged")
    code, _, err = run("verify", tmp_path / "r", "--original", log, "--certificate", tmp_path / "a.certificate")
    assert code == 2
    assert "is damaged" in err


def test_a_user_map_needs_pseudonyms(run, log, tmp_path):
    code, _, err = run(
        "anonymize", log, "--method", "equality", "-k", 2, "-o", tmp_path / "r", "--user-map", tmp_path / "m"
    )
    assert code == 2
    assert "has no pseudonyms, so there is no user map; leave --user-map out, or choose --link" in err
    assert not (tmp_path / "r").exists()


def test_linked_events_are_warned_of_with_a_number(run, log, tmp_path):
    words = ["anonymize", log, "--method", "equality", "-k", 2, "-o", tmp_path / "r"]
    assert run(*words)[2] == ""
    code, _, err = run(*words, "--link", "user", "--overwrite")
    assert code == 0
    assert err.count("Warning: The events of each user are linked by a pseudonym.") == 1
    assert re.search(r"links [0-9.]+ % of the users to the right person", err)
    assert "linked by a pseudonym" in (tmp_path / "r" / "report.md").read_text()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--link", "session", "--session-gap", "0"], "The option --session-gap must be an integer in"),
        (["--link", "people"], "The option --link must be one of none, session, user. Got 'people'"),
        (["--output-format", "aol"], "has no user ids; use parquet or csv, or link the events of a user with --link"),
    ],
)
def test_bad_links_are_one_sentence(run, log, tmp_path, words, sentence):
    code, _, err = run("anonymize", log, "--method", "equality", "-k", 2, "-o", tmp_path / "r", *words)
    assert code == 2
    assert sentence in err
    assert not (tmp_path / "r").exists()


def test_nothing_is_written_that_does_not_meet_the_policy(run, tmp_path):
    log = tmp_path / "log.tsv"
    run("synth", "--users", 200, "--seed", 1, "-o", log)
    words = ["anonymize", log, "--method", "equality", "-k", 5, "-o", tmp_path / "r", "--policy", "default"]
    code, out, _ = run(*words, "--link", "user")
    assert code == 6
    assert "The release does not meet the policy." in out
    assert "Nothing was written." in out
    assert not (tmp_path / "r").exists()
    code, _, err = run(*words)
    assert (code, "The release meets the policy." in err) == (0, True)
    assert (tmp_path / "r" / "report.md").exists()
    (tmp_path / "mine.toml").write_text("max_linkag = 0.5\n")
    code, _, err = run(*words[:-1], tmp_path / "mine.toml", "--overwrite")
    assert code == 2
    assert "did you mean 'max_linkage'?" in err


def test_usage_errors_have_exit_code_two(run, log):
    assert run("anonymize", log, "--method", "equality", "--theta", "0.9", "-o", "x")[0] == 2
    assert run("profile")[0] == 2
    assert run("dance")[0] == 2


def test_an_existing_directory_is_refused_before_the_log_is_read(run, log, tmp_path):
    run("anonymize", log, "--method", "equality", "-k", 2, "-o", tmp_path / "r")
    code, _, err = run("anonymize", tmp_path / "no-log", "--method", "equality", "-o", tmp_path / "r")
    assert code == 4
    assert "exists already" in err


def test_an_empty_release_needs_a_word(run, tmp_path):
    log = tmp_path / "log.csv"
    log.write_text("user,query\na,x\nb,y\n")
    code, _, err = run("anonymize", log, "--method", "equality", "-k", 2, "-o", tmp_path / "r")
    assert code == 5
    assert "--allow-empty" in err
    assert not (tmp_path / "r").exists()
    assert run("anonymize", log, "--method", "equality", "-k", 2, "-o", tmp_path / "r", "--allow-empty")[0] == 0


def test_bad_rows_are_reported_on_stderr(run, tmp_path):
    log = tmp_path / "log.csv"
    log.write_text("user,query,time\n" + "a,x,2006-01-01\n" * 200 + "a,x,never\n")
    code, _, err = run("profile", log)
    assert code == 0
    assert err == f"queryveil: left out 1 row with bad time, the first at {log}:202.\n"


def test_a_fault_of_queryveil_does_not_quote_the_log(run, log, monkeypatch):
    def fail(*args, **kwargs):
        raise RuntimeError("my secret")

    monkeypatch.setattr("queryveil.assess.profiles.profile", fail)
    code, _, err = run("profile", log)
    assert code == 3
    assert "secret" not in err
    monkeypatch.setenv("QUERYVEIL_DEBUG", "1")
    with pytest.raises(RuntimeError):
        run("profile", log)


def test_version(run):
    from queryveil import __version__

    code, out, _ = run("--version")
    assert (code, out) == (0, f"queryveil {__version__}\n")


def test_every_verb_has_help(run):
    for verb in VERBS:
        code, out, _ = run(verb, "--help")
        assert code == 0
        assert len(out) > 200


def test_the_help_of_evaluate_shows_measures_by_group(run):
    _, out, _ = run("evaluate", "--help")
    kept, frequent = out.index("How much is kept:"), out.index("How frequent things are:")
    assert kept < out.index("users_kept             share of users that is released") < frequent
    assert frequent < out.index("query_frequencies ") < out.index("Profiles of users:")


def test_the_help_of_attack_shows_what_each_does_by_question(run):
    _, out, _ = run("attack", "--help")
    assert out.index("Attacks (singling out):") < out.index("unique_queries         find released queries that only")
    assert out.index("Attacks (linkability):") < out.index("record_linkage ") < out.index("Attacks (inference):")


def queryveil(*words, **options) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "queryveil.cli", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=300,
        **options,
    )


def test_a_disk_that_fills_up_leaves_nothing(tmp_path, log):
    # A limit on file size makes real writes fail in the middle; the table is made large enough to meet it.
    rows = "".join(f"u{i % 50}\tquery {i % 997}\t2006-03-01 10:00:00\t\t\n" for i in range(60_000))
    log.write_text(log.read_text() + rows)
    made = queryveil("anonymize", log, "--method", "equality", "-k", 2, "-o", tmp_path / "r", "--output-format", "csv")
    assert made.returncode == 0, made.stderr
    size = (tmp_path / "r" / "log.csv").stat().st_size
    (tmp_path / "work").mkdir()

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, size // 2))

    found = queryveil(
        "anonymize", log, "--method", "equality", "-k", 2, "-o", tmp_path / "work" / "r", "--output-format", "csv",
        preexec_fn=limit, env={**os.environ, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert found.returncode == 2, found.stderr
    assert "cannot be written" in found.stderr
    assert found.stderr.count("\n") == 1
    assert list((tmp_path / "work").iterdir()) == []
    assert not list(tmp_path.glob("queryveil-*"))


def test_a_temporary_folder_that_fills_up_is_one_sentence(tmp_path, log):
    log.write_text(log.read_text() + "".join(f"u{i}\tquery {i}\t2006-03-01 10:00:00\t\t\n" for i in range(30_000)))

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    found = queryveil("profile", log, preexec_fn=limit, env={**os.environ, "TMPDIR": str(tmp_path)})
    assert found.returncode == 2, found.stderr
    assert "cannot hold the texts of this log" in found.stderr
    assert found.stderr.count("\n") == 1
    assert not list(tmp_path.glob("queryveil-*"))


def test_a_polite_kill_leaves_nothing(tmp_path):
    script = (
        "import os, signal, sys, queryveil.release.checks as r\n"
        "r.check_claims = lambda *a: os.kill(os.getpid(), signal.SIGTERM)\n"
        "sys.argv = ['queryveil', *sys.argv[1:]]\n"
        "from queryveil.cli import main; main()\n"
    )
    log = tmp_path / "log.csv"
    log.write_text("user,query\na,x\nb,x\n")
    (tmp_path / "out").mkdir()
    found = subprocess.run(
        [sys.executable, "-c", script, "anonymize", str(log), "--method", "equality", "-k", "2", "-o", "out/r"],
        cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert found.returncode == 143, found.stderr
    assert list((tmp_path / "out").iterdir()) == []
    assert not list(tmp_path.glob("queryveil-*"))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shell_completion_knows_verbs_and_the_options_of_a_method(shell):
    def complete(line: str) -> str:
        words = line.split(" ")
        environment = {**os.environ, "_QUERYVEIL_COMPLETE": f"complete_{shell}"}
        if shell == "bash":
            environment |= {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
        else:
            environment |= {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
        script = Path(sys.executable).parent / "queryveil"
        return subprocess.run([script], capture_output=True, text=True, env=environment, timeout=60, check=False).stdout

    assert "anonymize" in complete("queryveil an")
    assert "--min-query-users" in complete("queryveil anonymize --method rules --min-q")


def test_scrubbing_before_a_method_and_its_check(run, log, tmp_path):
    with log.open("a") as file:
        file.writelines(f"u-{i}\tjane{i}@example.com tea\t2006-03-02 10:00:00\t\t\n" for i in range(1, 4))
    release = tmp_path / "r"
    code, out, err = run("anonymize", log, "--method", "equality", "-k", 3, "-o", release, "--scrub", "mask")
    assert (code, err) == (0, "")
    assert "What was scrubbed" in out
    assert "jane" not in out
    manifest = json.loads((release / "manifest.json").read_text())
    assert manifest["scrub"]["hits"] == {"email": {"queries": 3, "events": 3, "urls": 0, "clicks": 0}}
    assert manifest["counts"]["queries"] == 2  # `tea` and `<email> tea`, which three users have in common
    code, out, _ = run("verify", release, "--original", log)
    assert code == 0
    assert "holds    The log was scrubbed as the manifest says." in out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--scrub", "hide"], "The option --scrub must be one of remove, mask. Got 'hide' instead."),
        (["--scrub", "mask", "--scrub-kinds", "mail"], "Got 'mail' instead."),
        (["--scrub-kinds", "email"], "need --scrub remove or --scrub mask."),
        (["--scrub", "mask", "--scrub-rare-users", 1], "must be an integer of at least 2. Got 1 instead."),
    ],
)
def test_wrong_scrubbing_is_refused_before_the_log_is_read(run, tmp_path, words, sentence):
    code, _, err = run("anonymize", tmp_path / "no.tsv", "--method", "equality", "-o", tmp_path / "r", *words)
    assert code == 2
    assert sentence in err
    assert len(err.splitlines()) == 1


def test_json_holds_null_where_a_number_is_none():
    found = printing.json_text({"a": [1.5, math.nan], "b": (math.inf, {"c": -math.inf}), "d": "NaN", "e": None})
    assert json.loads(found) == {"a": [1.5, None], "b": [None, {"c": None}], "d": "NaN", "e": None}


def test_every_verb_prints_json_in_the_same_way():
    """Python's own way writes NaN and Infinity, which are no JSON."""
    verbs = Path(printing.__file__).parent.glob("*.py")
    assert [verb.name for verb in verbs if "json.dumps" in verb.read_text("utf-8")] == []


def test_a_senseless_number_of_threads_is_one_sentence(run, log):
    code, out, err = run("profile", log, "--threads", 100_000)
    assert (code, out) == (2, "")
    assert re.fullmatch(r"queryveil: The number of threads must be between 1 and \d+. Got 100000 instead.\n", err)


def test_a_memory_limit_that_is_none_is_one_sentence(run, log):
    code, out, err = run("profile", log, "--memory-limit", "many")
    assert (code, out) == (2, "")
    assert err == "queryveil: The memory limit must be a size of at least 500 MB, such as 4GB. Got 'many'.\n"


def test_a_memory_limit_is_obeyed(run, log, monkeypatch):
    monkeypatch.setattr(memory, "_limit", None)
    code, _, err = run("profile", log, "--memory-limit", "3GB")
    assert (code, err) == (0, "")
    monkeypatch.setattr(memory, "_held", lambda: 3_000_000_000)
    code, _, err = run("profile", log, "--memory-limit", "3GB")
    assert code == 2
    assert "left of the memory limit of 3 GB; raise --memory-limit" in err


def test_what_one_machine_alone_can_do_is_refused_before_a_cluster_reads_the_log(run, log, tmp_path, monkeypatch):
    monkeypatch.setattr("queryveil.cli.reading.start_spark", lambda *_: pytest.fail("Spark was started"))
    for options in (["--similarity", "clicks"], ["--link", "session", "--unit", "session"]):
        code, _, err = run(
            "anonymize", log, "--method", "affinity", *options, "-o", tmp_path / "r", "--engine", "spark"
        )
        assert code == 2
        assert "needs a log in the memory of one machine; read it without --engine." in err
