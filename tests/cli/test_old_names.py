"""The names of version 0.1 are accepted, with a notice, and only where they were used."""

import pytest
import typer

from queryveil import cli
from queryveil.cli import OLD, _modern
from queryveil.cli.method_options import off_option
from queryveil.errors import QueryveilWarning
from queryveil.methods import STEPS, parameters_of


@pytest.mark.parametrize(
    ("old", "new", "notices"),
    [
        ("link log --knowledge wordnet", "categorize log --taxonomy wordnet", 2),
        ("knowledge show wordnet tea", "taxonomy show wordnet tea", 1),
        ("directory build dump -o odp.qvd", "web-directory build dump -o odp.qvd", 1),
        ("anonymize log --method zealous -d 5", "anonymize log --method zealous --max-queries-per-user 5", 1),
        ("anonymize log --method zealous -d5", "anonymize log --method zealous --max-queries-per-user=5", 1),
        ("anonymize log --method zealous --no-d", "anonymize log --method zealous --no-max-queries-per-user", 1),
        ("anonymize log --method search --no-knowledge", "anonymize log --method search --no-taxonomy", 1),
        ("anonymize log --method odp --knowledge=odp.qvd", "anonymize log --method odp --taxonomy=odp.qvd", 1),
        ("attack release -m 1,2", "attack release --n-known 1,2", 1),
        ("attack release -m1,2", "attack release --n-known=1,2", 1),
        ("compare log --directory d --processes 1", "compare log --web-directory d --jobs 1", 2),
    ],
)
@pytest.mark.filterwarnings("always")
def test_old_names_are_translated_with_a_notice(old, new, notices, recwarn):
    assert " ".join(_modern(old.split())) == new
    assert [warning.category for warning in recwarn] == [QueryveilWarning] * notices


@pytest.mark.parametrize(
    "words",
    [
        "",
        "--version",
        "profile link",  # a file called so
        "profile log -m 5 --directory d",  # never options of profile
        "compare log --knowledgeable x",
        "attack release -- -m 5",
    ],
)
def test_nothing_else_is_translated(words, recwarn):
    assert _modern(words.split()) == words.split()
    assert not recwarn.list


def test_the_new_names_exist():
    commands = typer.main.get_command(cli.build([])).commands
    assert set(OLD[""].values()) <= commands.keys()
    names = {one.name for method in STEPS.values() for one in parameters_of(method)}
    of_methods = {f"--{name.replace('_', '-')}" for name in names} | {off_option(name) for name in names}
    for verb in OLD.keys() - {""}:
        known = {name for one in commands[verb].params for name in one.opts}
        known |= of_methods if verb == "anonymize" else set()
        assert set(OLD[verb].values()) <= known
        assert not OLD[verb].keys() & known


def test_the_notice_is_one_line_and_the_verb_runs(run):
    code, out, err = run("knowledge", "show", "wordnet", "teapot")
    assert code == 0
    assert "teapot" in out
    assert err == "Warning: 'knowledge' is now called 'taxonomy'; the old name will be removed in version 0.3.\n"


def test_the_help_says_what_each_method_does(run):
    code, out, _ = run("anonymize", "--help")
    assert code == 0
    plain = " ".join(out.split())
    for name, method in STEPS.items():
        assert f"{name} {method.summary}" in plain
        assert len(method.summary.split()) <= 12
