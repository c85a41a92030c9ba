import json
import re
import shlex
import shutil

import pytest

import queryveil as qv


@pytest.fixture(scope="module")
def made_once(tmp_path_factory, small_world):
    folder = tmp_path_factory.mktemp("reported")
    log = qv.scrub(small_world.log, "remove")
    release = qv.Affinity(k=3, theta=0.8, link="user").anonymize(log, seed=7)
    release.save(folder / "release")
    release.save_user_map(folder / "map.csv")
    return folder


@pytest.fixture
def released(made_once, small_world, tmp_path):
    """A synthetic log, its release, and who is who in it."""
    shutil.copytree(made_once, tmp_path, dirs_exist_ok=True)
    return small_world.file, tmp_path / "release", tmp_path / "map.csv"


def test_a_report_says_how_to_make_the_release_again(run, released, tmp_path):
    log, release, secret = released
    target = tmp_path / "report.html"
    code, out, err = run("report", release, "--original", log, "--user-map", secret, "-o", target, "--seed", 5)
    assert (code, err) == (0, "")
    assert "checks hold" in out
    assert target.stat().st_mode & 0o777 == 0o600
    page = target.read_text()
    assert str(tmp_path) not in page
    (command,) = re.findall(r"queryveil (anonymize LOG .*)", page)
    words = shlex.split(command.replace("LOG", str(log)).replace("map.csv", str(tmp_path / "map2.csv")))
    words[words.index("-o") + 1] = str(tmp_path / "again")
    assert run(*words)[0] == 0
    old, new = (json.loads((folder / "manifest.json").read_text()) for folder in (release, tmp_path / "again"))
    seeded = ("input_fingerprint", "linkage", "files")  # these follow from the seed, which no report has
    assert {name: new[name] for name in new if name not in seeded} == {
        name: old[name] for name in old if name not in seeded
    }
    assert "queryveil attack release --original LOG --user-map map.csv --seed 5" in page


def test_a_release_that_was_changed_is_reported_and_fails(run, released, tmp_path):
    log, release, _ = released
    (release / "report.md").write_text("all is well")
    code, _, _ = run("report", release, "--original", log, "-o", tmp_path / "report.html")
    assert code == 1
    assert "The release is refuted." in (tmp_path / "report.html").read_text()


def test_a_place_inside_the_release_is_refused(run, released):
    log, release, _ = released
    code, _, err = run("report", release, "--original", log, "-o", release / "report.html")
    assert code == 2
    assert "is a release" in err
    assert not (release / "report.html").exists()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A log, and releases of it by equality that link nothing, sessions and users, with their user maps."""
    folder = tmp_path_factory.mktemp("policy")
    qv.generate(folder / "log.tsv.gz", users=600, seed=1)
    log = qv.read_log(folder / "log.tsv.gz")
    for link in ("none", "session", "user"):
        release = qv.Equality(k=5, link=link).anonymize(log)
        release.save(folder / link)
        if link != "none":
            release.save_user_map(folder / f"{link}.csv")
    (folder / "strict.toml").write_text("max_linkage = 0.001\n")
    (folder / "wrong.toml").write_text("max_linkge = 0.1\n")
    return folder


@pytest.mark.parametrize(
    ("link", "known", "policy", "code", "sentence"),
    [
        ("none", False, "default", 0, "The release meets the policy."),
        ("session", True, "default", 0, "The release meets the policy."),
        ("session", False, "default", 6, "Run again with the user map: --user-map FILE"),
        ("user", True, "default", 6, "The release does not meet the policy."),
        ("user", True, None, 0, "The release does not meet the policy."),
        ("none", False, "strict.toml", 6, "The release does not meet the policy."),
    ],
)
def test_a_pipeline_can_stop_at_the_policy(run, made, tmp_path, link, known, policy, code, sentence):
    words = ["report", made / link, "--original", made / "log.tsv.gz", "-o", tmp_path / "report.html"]
    words += ["--user-map", made / f"{link}.csv"] if known else []
    words += ["--policy", policy if policy == "default" else made / policy] if policy else []
    found, out, _ = run(*words)
    assert found == code
    assert sentence in out
    assert sentence.split(":")[0] in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize("link", ["none", "user"])
def test_attack_judges_a_release_too(run, made, link):
    words = ["attack", made / link, "--original", made / "log.tsv.gz", "--n-known", 1]
    words += ["--user-map", made / f"{link}.csv"] if link == "user" else []
    assert run(*words)[0] == 0
    code, out, _ = run(*words, "--policy", "default")
    assert code == (6 if link == "user" else 0)
    assert ("The release meets the policy." in out) == (link == "none")
    code, out, _ = run(*words, "--policy", "default", "--json")
    assert code == (6 if link == "user" else 0)
    assert json.loads(out)["judgement"]["meets"] == (link == "none")


@pytest.mark.parametrize("verb", ["report", "attack", "compare"])
def test_a_policy_with_an_unknown_key_is_one_sentence(run, made, tmp_path, verb):
    words = [made / "log.tsv.gz"] if verb == "compare" else [made / "none", "--original", made / "log.tsv.gz"]
    words += [] if verb == "attack" else ["-o", tmp_path / "report.html"]
    code, out, err = run(verb, *words, "--policy", made / "wrong.toml")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "'max_linkge' is no limit of a policy; did you mean 'max_linkage'?" in err
    assert list(tmp_path.iterdir()) == []
