import pytest
from hypothesis import given
from hypothesis import strategies as st

import queryveil as qv
from queryveil.methods import METHODS
from queryveil.methods.recipe import load_recipe, recipe_text, shipped


def test_every_shipped_recipe_is_valid_and_names_its_source():
    pipelines = {"publish-queries", "publish-sessions", "publish-profiles", "publish-counts"}
    assert set(shipped()) == {"dma-30-5", "dma-draft-2026"} | pipelines
    for name, text in shipped().items():
        recipe = load_recipe(name)
        METHODS[recipe.method](**recipe.parameters)
        assert text.startswith("#"), "a recipe opens with its source"


def test_thirty_five_is_thirty_users_a_query_and_five_a_row():
    method = qv.Rules(**load_recipe("dma-30-5").parameters)
    assert (method.min_query_users, method.min_row_users) == (30, 5)


def test_a_file_is_a_recipe_too(tmp_path):
    (tmp_path / "mine.toml").write_text('method = "equality"\nseed = 3\n[parameters]\nk = 7\n')
    recipe = load_recipe(str(tmp_path / "mine.toml"))
    assert (recipe.method, recipe.seed, recipe.parameters) == ("equality", 3, {"k": 7})


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("method = ", "is not TOML"),
        ("[parameters]\nk = 5\n", "either a method with its parameters, or steps"),
        ('method = "equality"\n[[steps]]\nmethod = "odp"\n', "either a method with its parameters, or steps"),
        ('[[steps]]\nmethod = "odp"\nk = 5\n', "fault at 'steps.0.k'"),
        ('method = "equality"\nk = 5\n', "fault at 'k'"),
        ('method = "equality"\nseed = "one"\n', "fault at 'seed'"),
    ],
)
def test_a_bad_recipe_is_one_sentence(tmp_path, text, sentence):
    (tmp_path / "bad.toml").write_text(text)
    with pytest.raises(qv.QueryveilError, match=sentence):
        load_recipe(str(tmp_path / "bad.toml"))


def test_an_unknown_recipe_is_answered_with_the_known_ones():
    with pytest.raises(qv.QueryveilError, match="there are dma-30-5, dma-draft-2026"):
        load_recipe("forty-two")


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), st.integers(0, 2**128), st.booleans())
def test_a_recipe_that_is_written_is_read_again(tmp_path, text, seed, pipeline):
    given = {"text": text, "many": [text, "x"], "on": True, "k": 5, "theta": 0.85, "off": None}
    steps = [("rules", given), ("odp", {"k": 3})] if pipeline else [("rules", given)]
    (tmp_path / "recipe.toml").write_text(recipe_text(steps, seed), "utf-8")
    found = load_recipe(str(tmp_path / "recipe.toml"))
    read = [(step.method, step.parameters) for step in found.steps] or [(found.method, found.parameters)]
    kept = {name: value for name, value in given.items() if value is not None}
    assert (read[0], found.seed) == (("rules", kept), seed)
    assert len(read) == len(steps)
