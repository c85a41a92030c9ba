import json
import tomllib
from importlib import import_module
from types import SimpleNamespace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import queryveil as qv
from queryveil.assess.comparison import Configuration
from queryveil.assess.planning import AIMS, method_of, search, selections, space, trials
from queryveil.assess.planning.search import Search
from queryveil.assess.policy import Policy
from queryveil.log.sharing import sharing
from queryveil.methods import METHODS
from queryveil.methods.recipe import load_recipe
from tests.oracles.planning import exhaustive

LENIENT = {"max_linkage": 1.0, "max_attribution": 1.0, "max_residual_pii": 1e5, "min_planted_accounts": 0}
POLICIES = {
    "lenient": Policy(min_k=2, max_exposed_queries=10**6, **LENIENT),
    "three accounts": Policy(min_k=3, **(LENIENT | {"min_planted_accounts": 3, "max_linkage": 0.6})),
    "impossible": Policy(min_k=2, **(LENIENT | {"min_planted_accounts": 10**6})),
}


SPACE = import_module("queryveil.assess.planning.space")


def step(method, **parameters):
    return {"method": method, "parameters": parameters}


def queries(link, *names):
    families = [(name, [step(name, link=link)]) for name in names]
    return lambda policy, web_directory: (families, ["all others: this is a test"])


@pytest.fixture(scope="module", autouse=True)
def few():
    """Fewer values of k and theta, for small logs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SPACE, "THETAS", (0.8,))
        patch.setattr(SPACE, "FACTORS", (1, 1.5))
        yield


@pytest.fixture
def smaller(monkeypatch):
    """Fewer families."""
    monkeypatch.setitem(SPACE._MAKERS, "long-tail", queries("none", "affinity", "equality"))
    monkeypatch.setitem(SPACE._MAKERS, "sessions", queries("session", "equality"))
    monkeypatch.setitem(SPACE._MAKERS, "profiles", lambda policy, web: ([("odp", [step("odp")])], []))


@pytest.mark.parametrize(("keep", "name"), [("long-tail", "three accounts"), ("sessions", "impossible")])
def test_the_plan_is_what_trying_everything_finds(small_world, smaller, keep, name):
    found = qv.plan(small_world.log, keep, policy=POLICIES[name])
    expected = exhaustive(small_world.log, keep, POLICIES[name])
    assert (None if found.configuration is None else found.configuration.name) == (expected and expected[0])
    if expected is None:
        assert found.nearest is not None
        assert found.judgement.meets is not True
    else:
        assert found.judgement.meets is True


def test_profiles_keep_as_much_as_what_trying_everything_finds(small_world, smaller):
    policy = POLICIES["lenient"]
    found = qv.plan(small_world.log, "profiles", policy=policy)
    name, kept = exhaustive(small_world.log, "profiles", policy)
    assert found.configuration.name == name
    assert next(one for one in found.tried if one.name == name).keeps == kept


def configurations(log, keep, policy):
    families = space(keep, policy, log, taxonomy="wordnet", web_directory=None).families
    return [one for family in families for one in family.configurations]


def test_what_is_kept_of_the_long_tail_is_known_before_a_release_is_made(small_world):
    log, every = small_world.log, configurations(small_world.log, "long-tail", POLICIES["three accounts"])
    kept = selections.tail_kept(log, every)
    assert len(every) == len(kept) == len({one.name for one in every})
    rare = {log.query_text[int(q)].as_py() for q in (log.users_per_query < 5).nonzero()[0]}
    with sharing(log):
        for one in every:
            released = set(method_of(one).anonymize(log, seed=1).to_arrow()["query"].to_pylist())
            assert kept[one.name] == len(released & rare) / len(rare), one.name


class Fake:
    """Trials that are made up: what each release keeps, whether it misses linkage, and whether anything else."""

    def __init__(self, scores, linked, other):
        self.scores, self.linked, self.other, self.attacked = scores, linked, other, []

    def judged(self, one):
        self.attacked.append(one.name)
        missed = [SimpleNamespace(id="linkage")] if self.linked[one.name] else []
        missed = missed or ([SimpleNamespace(id="planted_accounts")] if self.other[one.name] else [])
        return SimpleNamespace(meets=not missed, missed=missed)

    def misses(self, one, line):
        return line == "linkage" and self.linked[one.name]

    def score(self, one, measure, detail):
        return self.scores[one.name]


@given(st.data())
def test_the_search_finds_the_best_wherever_the_rules_hold(data):
    sizes = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=4))
    names = [[f"{family}, {k}" for k in range(size)] for family, size in enumerate(sizes)]
    families = [SimpleNamespace(configurations=[Configuration(n, "equality", 5, {}) for n in some]) for some in names]
    scores, linked, other = {}, {}, {}
    for some in names:
        falling = data.draw(st.lists(st.integers(0, 5), min_size=len(some), max_size=len(some)))
        bound = data.draw(st.integers(0, len(some)))
        for place, (name, score) in enumerate(zip(some, sorted(falling, reverse=True), strict=True)):
            scores[name], linked[name], other[name] = score / 5, place < bound, data.draw(st.booleans())
    fake = Fake(scores, linked, other)
    found = Search(None, "sessions", families, fake, None, None).run()
    fit = [name for name in scores if scores[name] and not linked[name] and not other[name]]
    best = max((scores[name] for name in fit), default=None)
    assert {one.name for one in found.best} == {name for name in fit if scores[name] == best}
    # What keeps less than the best is never attacked, and nothing is attacked twice.
    assert len(set(fake.attacked)) == len(fake.attacked)
    assert best is None or all(scores[name] >= best for name in fake.attacked)


def test_the_recipe_makes_the_release(small_world, smaller, tmp_path):
    log = small_world.log
    for keep in ("long-tail", "profiles"):
        found = qv.plan(log, keep, policy=POLICIES["lenient"])
        found.save(tmp_path / f"{keep}.toml")
        recipe = load_recipe(str(tmp_path / f"{keep}.toml"))
        again = METHODS[recipe.method](**recipe.parameters).anonymize(log, seed=3)
        assert again.to_arrow().equals(found.method.anonymize(log, seed=3).to_arrow())
        assert (tmp_path / f"{keep}.toml").stat().st_mode & 0o777 == 0o600
        text = (tmp_path / f"{keep}.toml").read_text()
        assert text.startswith(f"# Plan of queryveil, to keep {keep}: {found.configuration.name}.\n")
        assert "# Runners-up" in text
        assert "# Never tried:" in text


def test_private_parameters_are_those_of_the_policy_and_the_order_is_fixed(small_world):
    policy = Policy(max_epsilon=300.0, max_delta=0.5, **LENIENT)
    found = qv.plan(small_world.log, "statistics", policy=policy)
    for one in configurations(small_world.log, "statistics", policy):
        assert (one.setting("epsilon"), one.setting("delta")) == (300.0, 0.5)
    assert found.private
    assert [one.name for one in found.tried] == ["publish-counts", "dp-set", "zealous"]
    assert all(one.keeps is None for one in found.tried)
    if found.configuration is not None:
        assert "not differentially private" in found.recipe
    strict = qv.plan(small_world.log, "statistics", policy=Policy(max_delta=0.0))
    assert strict.configuration is None
    assert any("delta" in reason for reason in strict.left_out)


def test_what_was_found_is_not_found_again(small_world, smaller, tmp_path, monkeypatch):
    policy = POLICIES["three accounts"]
    first = qv.plan(small_world.log, "long-tail", policy=policy, folder=tmp_path / "found")
    assert (tmp_path / "found").stat().st_mode & 0o777 == 0o700
    for file in (tmp_path / "found").iterdir():
        assert file.stat().st_mode & 0o777 == 0o600
        assert json.loads(file.read_text())["status"] in ("done", "empty", "failed")

    def again(*args, **more):
        raise AssertionError("attacked again")

    monkeypatch.setattr(trials, "attack", again)
    second = qv.plan(small_world.log, "long-tail", policy=policy, folder=tmp_path / "found")
    assert second == first


def test_when_time_is_up_the_best_by_then_counts_and_the_recipe_says_so(small_world, smaller, monkeypatch):
    spent = iter([0.6, 0.6, *[2.0] * 9])  # half of the time is over, so the middle k comes first
    monkeypatch.setattr(search.Search, "_spent", lambda self: next(spent))
    found = qv.plan(small_world.log, "long-tail", policy=POLICIES["lenient"], budget_minutes=1)
    assert found.ended
    assert found.configuration.name == "affinity, k = 3"
    assert "Time was up before the search was over" in found.recipe
    monkeypatch.setattr(search.Search, "_spent", lambda self: 2.0)
    found = qv.plan(small_world.log, "long-tail", policy=POLICIES["lenient"], budget_minutes=1)
    assert found.configuration is None
    assert found.reasons[0].startswith("Time was up before a release was found")
    with pytest.raises(qv.QueryveilError, match="Time was up"):
        found.save("plan.toml")


def test_what_is_not_tried_is_named_with_the_reason(small_world):
    log = qv.read_log(pa.table({"user": ["a", "b"], "query": ["tea", "tea"]}))
    found = space("sessions", Policy(min_k=2), log, taxonomy="wordnet", web_directory=None)
    assert found.left_out == ("Everything: the log has no times, so it has no sessions.",)
    assert space("long-tail", Policy(), log, taxonomy="wordnet", web_directory=None).families == ()
    found = space("profiles", Policy(min_k=2), small_world.log, taxonomy="wordnet", web_directory=None)
    assert any(reason.startswith("search: no web directory was given") for reason in found.left_out)
    found = space("profiles", Policy(min_k=2), small_world.log, taxonomy="wordnet", web_directory="sites")
    (mine,) = (family for family in found.families if family.name == "search")
    assert mine.configurations[0].parameters["taxonomy"] == "sites"


@pytest.mark.parametrize("keep", AIMS)
def test_every_configuration_can_be_made(small_world, keep):
    for one in configurations(small_world.log, keep, Policy(min_k=3)):
        assert (one.k or 3) >= 3
        assert method_of(one).name == one.method


def test_values_of_a_recipe_are_toml():
    from queryveil.assess.planning.planned import _comment, _toml

    hostile = 'a"b\\c\nd\x7f\x00é😀'
    given = {"a": hostile, "b": [1, 2.5e-7], "c": True}
    written = "\n".join(f"{name} = {_toml(value)}" for name, value in given.items())
    assert tomllib.loads(written) == given
    assert all(line.startswith("#") for line in _comment(f"{hostile}\nmethod = 1 " * 30))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"keep": "sesions"}, "There is no aim 'sesions'; did you mean 'sessions'"),
        ({"keep": "sessions", "budget_minutes": 0}, "'budget_minutes' parameter of plan must be a number above 0"),
    ],
)
def test_wrong_arguments_are_refused(small_world, given, sentence):
    with pytest.raises(qv.QueryveilError, match=sentence):
        qv.plan(small_world.log, **given)
