import tomllib

import pytest

import queryveil as qv
from queryveil.assess.policy import Policy, load_policy, shipped


def test_the_shipped_policy_has_the_values_of_the_class_and_a_comment_for_each():
    assert load_policy() == load_policy("default") == Policy()
    text = shipped()
    assert set(tomllib.loads(text)) == set(Policy.model_fields)
    for name in Policy.model_fields:
        before = text[: text.index(f"\n{name} = ")].rsplit("\n\n", 1)[1]
        assert "our choice" in before.lower() or "Source:" in before, name


def test_a_file_needs_only_what_differs(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("max_linkage = 0.2\nmin_planted_accounts = 7\nmax_residual_pii = 3\n")
    assert load_policy(path) == Policy(max_linkage=0.2, min_planted_accounts=7, max_residual_pii=3)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "max_linkge = 0.1",
            "{} is wrong: 'max_linkge' is no limit of a policy; did you mean 'max_linkage'?",
        ),
        ("colour = 'red'", "'colour' is no limit of a policy; there are max_linkage, "),
        (
            "max_linkage = 'low'",
            "{} is wrong: 'max_linkage' must be a number from 0 to 1. Got 'low' instead.",
        ),
        ("max_linkage = 1.5", "must be a number from 0 to 1. Got 1.5 instead."),
        ("max_linkage = nan", "must be a number from 0 to 1. Got nan instead."),
        ("max_linkage = true", "must be a number from 0 to 1. Got True instead."),
        ("max_exposed_queries = 0.5", "must be a whole number of at least 0. Got 0.5 instead."),
        ("min_planted_accounts = 'm'", "must be a whole number of at least 0, or \"k\". Got 'm' instead."),
        ("min_planted_accounts = true", 'must be a whole number of at least 0, or "k". Got True instead.'),
        ("min_k = 0", "must be a whole number of at least 1. Got 0 instead."),
        ("max_linkage 0.1", "is not TOML: Expected"),
    ],
)
def test_a_bad_policy_is_one_sentence(tmp_path, text, sentence):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(qv.QueryveilError) as error:
        load_policy(path)
    assert sentence.format(path) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        ({"max_linkag": 0.1}, r"^'max_linkag' is no limit of a policy; did you mean 'max_linkage'\?"),
        ({"max_linkage": 7}, r"^'max_linkage' must be a number from 0 to 1\. Got 7 instead\.$"),
    ],
)
def test_a_policy_in_python_is_checked_with_the_same_sentences(limits, sentence):
    with pytest.raises(qv.QueryveilError, match=sentence):
        Policy(**limits)


def test_a_policy_that_is_not_there(tmp_path):
    with pytest.raises(qv.QueryveilError, match=r"There is no readable policy file '.*'; give a TOML file"):
        load_policy(tmp_path / "nowhere.toml")
