import json
import tomllib
from importlib import import_module

import pytest

import queryveil as qv

POLICY = "min_k = 2\nmax_linkage = 1.0\nmin_planted_accounts = 0\nmax_residual_pii = 100000.0\n"


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Fewer values of k and theta."""
    module = import_module("queryveil.assess.planning.space")
    monkeypatch.setattr(module, "THETAS", (0.8,))
    monkeypatch.setattr(module, "FACTORS", (1,))


@pytest.fixture
def policy(tmp_path):
    place = tmp_path / "policy.toml"
    place.write_text(POLICY)
    return place


def test_a_plan_is_a_recipe_that_anonymize_takes(run, log, policy, tmp_path):
    words = ["plan", log, "--keep", "long-tail", "--policy", policy, "-o", tmp_path / "plan.toml"]
    code, out, err = run(*words)
    assert (code, err) == (0, "")
    assert "it keeps the most of the distinct queries of fewer than 5 users" in out
    assert f"Next: queryveil anonymize LOG --recipe {tmp_path / 'plan.toml'}" in out
    text = (tmp_path / "plan.toml").read_text()
    assert "my secret" not in text
    assert tomllib.loads(text)
    assert (tmp_path / "plan.search").is_dir()
    code, _, _ = run("anonymize", log, "--recipe", tmp_path / "plan.toml", "-o", tmp_path / "release")
    assert code == 0
    assert sorted(set(qv.Release.load(tmp_path / "release").to_arrow()["query"].to_pylist())) == ["mug", "tea"]
    code, _, err = run(*words)
    assert code == 4
    assert "exists already" in err
    code, out, _ = run(*words, "--overwrite", "--json")
    assert code == 0
    assert json.loads(out)["release"]["parameters"]


def test_without_a_release_that_meets_the_policy_nothing_is_written(run, log, policy, tmp_path):
    policy.write_text(POLICY.replace("= 0\n", "= 5000\n"))
    code, out, err = run("plan", log, "--keep", "long-tail", "--policy", policy, "-o", tmp_path / "plan.toml")
    assert (code, err) == (6, "")
    assert "The nearest is " in out
    assert "planted accounts that bring a chosen query into the release" in out
    assert out.endswith("Nothing was written.\n")
    assert not (tmp_path / "plan.toml").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--keep", "tail", "-o", "plan.toml"], "There is no aim 'tail'"),
        (["--keep", "long-tail", "-o", "plan.txt"], "must end with .toml"),
        (["--keep", "long-tail", "--policy", "none.toml", "-o", "plan.toml"], "There is no readable policy file"),
    ],
)
def test_wrong_words_are_refused_before_the_log_is_read(run, words, sentence):
    code, _, err = run("plan", "no-such-log.tsv", *words)
    assert code == 2
    assert sentence in err
