import csv
import json
import shutil
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import queryveil as qv
from queryveil.assess import comparison
from queryveil.assess.comparison import Comparison, Configuration, Row, compare, grid, recommend
from queryveil.assess.measures import MEASURES
from queryveil.assess.policy import Evidence, Number, Policy
from queryveil.knowledge.directory import build_directory
from queryveil.methods import METHODS
from queryveil.methods.recipe import load_recipe, shipped
from queryveil.release.bands import Band
from queryveil.release.manifest import Counts

SOME = {"methods": ["equality", "clump"], "ks": [2, 5], "tests": 50}
ONE = {"methods": ["equality"], "ks": [2], "tests": 10}


@pytest.fixture(scope="module")
def log(small_world):
    return qv.read_log(small_world.file)


@pytest.fixture(scope="module")
def finished(log, tmp_path_factory):
    """A comparison and its folder, made once by one thread; a test that changes the folder takes a copy."""
    folder = tmp_path_factory.mktemp("comparisons") / "finished"
    boards = []
    found = compare(log, folder, **SOME, threads=1, progress=boards.append)
    assert all(set(board.states) == {"done"} for board in boards)
    return found, folder


@pytest.fixture(scope="module")
def small(log, tmp_path_factory):
    """One configuration, the same way."""
    folder = tmp_path_factory.mktemp("comparisons") / "small"
    return compare(log, folder, **ONE), folder


def stored(folder):
    return {file.name: file.read_bytes() for file in (folder / "configurations").iterdir()}


def test_the_grid_has_every_method_and_every_value():
    configurations = grid(ks=[2, 9], epsilons=[1.0, 3.0])
    assert {configuration.method for configuration in configurations} == set(METHODS)
    assert len({configuration.name for configuration in configurations}) == len(configurations)
    names = [
        configuration.name
        for configuration in configurations
        if configuration.method in ("affinity", "clump", "zealous", "hash")
    ]
    assert names == [
        *("affinity, k = 2", "affinity, k = 2, link session", "affinity, k = 2, link user"),
        *("affinity, k = 9", "affinity, k = 9, link session", "affinity, k = 9, link user"),
        *("clump, k = 2", "clump, k = 9", "zealous, ε = 1", "zealous, ε = 3", "hash"),
    ]
    for configuration in configurations:
        METHODS[configuration.method](**configuration.parameters)


def test_there_are_no_sessions_without_times():
    links = [
        configuration.parameters.get("link", "none")
        for configuration in grid(["equality", "rules"], ks=[5], times=False)
    ]
    rules = [name for name in shipped() if load_recipe(name).method == "rules"] + ["words, k = 5", "pairs, k = 5"]
    assert links == ["none", "user", *["none"] * len(rules)]


def test_a_log_without_times_is_compared_without_sessions(tmp_path):
    log = qv.read_log(pa.table({"user": ["a", "b", "c"] * 4, "query": ["tea", "mug"] * 6}))
    found = compare(log, tmp_path / "c", methods=["equality"], ks=[2], tests=5)
    assert [
        (configuration.name, configuration.status, configuration.linked) for configuration in found.configurations
    ] == [
        ("equality, k = 2", "done", False),
        ("equality, k = 2, link user", "done", True),
    ]


def test_a_configuration_has_the_numbers_of_evaluate_and_attack(log, tmp_path):
    found = compare(log, tmp_path / "c", **(SOME | {"methods": ["equality"], "ks": [2]}), seed=4)
    release = qv.Equality(k=2).anonymize(log, seed=4)
    mine = [row for row in found.rows if row.configuration == "equality, k = 2"]
    kept = qv.evaluate(release, log, tests=50, seed=4)
    assert [(row.measure, row.setting, row.value) for row in mine if row.kind == "utility"] == [
        (one.measure, one.detail, one.value) for one in kept.measured
    ]
    attacked = qv.attack(release, log, n_known=comparison.KNOWN, seed=4)
    assert [
        (row.measure, row.setting, row.value, row.low, row.baseline, row.succeeds)
        for row in mine
        if row.kind == "risk" and row.value is not None
    ] == [
        (one.attack, one.setting, one.estimate.value, one.estimate.low, one.baseline, one.succeeds)
        for one in attacked.findings
    ]
    assert all(configuration.holds for configuration in found.configurations)


def test_the_tables_have_a_row_for_every_number(log, finished):
    found, folder = finished
    table = pq.read_table(folder / "measures.parquet")
    assert table.equals(found.to_arrow())
    assert set(table["configuration"].to_pylist()) == {configuration.name for configuration in found.configurations}
    assert set(table["fingerprint"].to_pylist()) == {log.fingerprint}
    with (folder / "measures.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["measure"] for row in rows] == table["measure"].to_pylist()
    assert [float(row["value"]) if row["value"] else None for row in rows] == table["value"].to_pylist()
    for row in table.to_pylist():
        METHODS[row["method"]](**json.loads(row["parameters"]))


def test_what_was_finished_is_not_made_again(log, tmp_path, monkeypatch, finished):
    made = []
    do = comparison.Job.do

    def few(self, configuration, log):
        made.append(configuration.name)
        if len(made) == 3:
            raise KeyboardInterrupt
        return do(self, configuration, log)

    monkeypatch.setattr(comparison.Job, "do", few)
    with pytest.raises(KeyboardInterrupt):
        compare(log, tmp_path / "c", **SOME, threads=1)
    assert len(stored(tmp_path / "c")) == 2
    first = made.copy()
    found = compare(log, tmp_path / "c", **SOME)
    assert sorted(first[:2] + made[3:]) == sorted(configuration.name for configuration in found.configurations)
    monkeypatch.undo()
    whole, folder = finished
    assert found.configurations == whole.configurations
    assert found.rows == whole.rows
    assert stored(tmp_path / "c") == stored(folder)
    narrower = compare(log, tmp_path / "c", **(SOME | {"ks": [5]}))
    assert narrower == found
    further = compare(log, tmp_path / "c", **(SOME | {"ks": [2, 5, 7]}))
    assert [row for row in further.rows if "7" not in row.configuration] == list(found.rows)


def test_several_threads_make_the_same(log, tmp_path, finished):
    one, folder = finished
    boards = []
    assert compare(log, tmp_path / "three", **SOME, threads=3, progress=boards.append) == one
    for name in ("measures.parquet", "measures.csv"):
        assert (folder / name).read_bytes() == (tmp_path / "three" / name).read_bytes()
    for board in boards:
        assert set(board.states) == {"done"}


def test_what_fails_in_another_thread_is_raised(log, tmp_path, monkeypatch):
    def fail(self, configuration, log):
        raise ValueError(configuration.name)

    monkeypatch.setattr(comparison.Job, "do", fail)
    with pytest.raises(ValueError, match="k = "):
        compare(log, tmp_path / "c", **SOME, threads=3)


def test_another_log_needs_another_folder(log, tmp_path):
    compare(log, tmp_path / "c", methods=["hash"], tests=10)
    with pytest.raises(qv.QueryveilError, match="another log, or with another seed, version or setting"):
        compare(log, tmp_path / "c", methods=["hash"], tests=10, seed=1)
    found = compare(log, tmp_path / "c", methods=["hash"], tests=10, seed=1, overwrite=True)
    assert found.seed == 1
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(qv.QueryveilError, match="is no comparison"):
        compare(log, tmp_path / "mine", overwrite=True)
    assert (tmp_path / "mine" / "letter.txt").read_text() == "dear"


def test_what_cannot_be_made_is_told(log, tmp_path):
    found = compare(log, tmp_path / "c", methods=["search", "zealous"], ks=[2], epsilons=[0.1], tests=10)
    by = {configuration.name: configuration for configuration in found.configurations}
    assert (by["search, k = 2"].status, by["zealous, ε = 0.1"].status) == ("failed", "empty")
    assert "has no sites" in by["search, k = 2"].why
    assert found.rows == ()
    assert [one.configuration for one in recommend(found)] == [None, None, None]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"methods": ["magic"]}, "There is no method 'magic'"),
        ({"ks": [], "methods": ["odp"]}, "Nothing is to be compared"),
        ({"ks": [1]}, "'ks' parameter of compare must be a whole number of at least 2"),
        ({"epsilons": [0]}, "epsilon"),
        ({"taxonomy": "nowhere"}, "There is no taxonomy 'nowhere'"),
    ],
)
def test_bad_arguments_leave_nothing(log, tmp_path, given, sentence):
    with pytest.raises(qv.QueryveilError, match=sentence):
        compare(log, tmp_path / "c", **given)
    assert not (tmp_path / "c").exists()


def known(risk, k=5, epsilon=None, **changed):
    """What a policy asks for, of a release that meets the default one if its risk does."""
    numbers = (
        Number("history_linkage", "random half", risk, risk),
        Number("sybil", "", 30.0),
        Number("personal_data", "", 0.0),
    )
    return Evidence("events", False, k, epsilon, 0, True, 0, numbers if risk is not None else numbers[1:], **changed)


def made_up(points, method="equality", parameters=None, *, linked=True):
    """A comparison with a configuration for every tail, profiles and risk."""
    configurations, rows = [], []
    for i, (tail, profiles, risk) in enumerate(points):
        name = f"configuration {i}"
        given = parameters or {"k": 5}
        found = known(risk, epsilon=given.get("epsilon"))
        configurations.append(Configuration(name, method, 5, given, holds=True, linked=linked, known=found))
        rows += [
            Row(name, "utility", "retention", "queries_kept", "", tail),
            Row(name, "utility", "retention", "queries_kept_by_users", "1 user", tail),
            Row(name, "utility", "profiles", "profile_retention", "", profiles),
            Row(name, "risk", "linkability", "history_linkage", "random half", risk),
        ]
    counts = Counts(rows=9, events=9, users=3, queries=9, clicks=0)
    bands = (Band(least=1, most=1, queries=9, events=9), Band(least=2, most=4, queries=0, events=0))
    return Comparison("f", 0, 9, counts, bands, tuple(configurations), tuple(rows))


UNIT = st.integers(0, 10).map(lambda tenths: tenths / 10)


@given(st.lists(st.tuples(UNIT, UNIT, UNIT), max_size=12))
def test_nothing_beats_the_frontier_and_it_beats_the_rest(points):
    for frontier in made_up(points).frontiers[:2]:
        assert list(frontier.points) == [f"configuration {i}" for i in range(len(points))]

        def beaten(name, frontier=frontier):
            kept, risk = frontier.points[name]
            return any(k >= kept and r <= risk and (k, r) != (kept, risk) for k, r in frontier.points.values())

        assert not any(beaten(name) for name in frontier.configurations)
        on = {frontier.points[name] for name in frontier.configurations}
        best = {point for name, point in frontier.points.items() if not beaten(name)}
        assert {point for point in best if point[0] > 0} == on
        assert len(on) == len(frontier.configurations)


@given(st.lists(st.tuples(UNIT, UNIT, st.integers(0, 20).map(lambda n: n / 100)), max_size=12))
def test_recommendations_keep_the_most_of_what_meets_the_policy(points):
    tail, histories, _ = recommend(made_up(points))
    for place, chosen in ((0, tail), (1, histories)):
        fit = [point for point in points if point[2] <= Policy().max_linkage and point[place] > 0]
        if not fit:
            assert chosen.configuration is None
        else:
            assert chosen.configuration is not None
            best = points[int(chosen.configuration.split()[1])]
            assert (best[place], -best[2]) == max((point[place], -point[2]) for point in fit)


@given(st.lists(st.tuples(UNIT, UNIT, UNIT), max_size=12), UNIT)
def test_only_what_meets_the_policy_is_recommended(points, limit):
    found = replace(made_up(points), policy=Policy(max_linkage=limit))
    for one in recommend(found):
        assert one.configuration is None or found.judgement(one.configuration).meets is True
    assert set(found.meeting) == {f"configuration {i}" for i, point in enumerate(points) if point[2] <= limit}


def test_another_policy_recommends_another_release():
    found = made_up([(0.9, 0, 0.3), (0.2, 0, 0.05)])
    assert recommend(found)[0].configuration == "configuration 1"
    assert recommend(replace(found, policy=Policy(max_linkage=0.3)))[0].configuration == "configuration 0"
    assert recommend(replace(found, policy=Policy(min_k=6)))[0].configuration is None


def test_when_nothing_meets_the_policy_it_says_so_with_the_nearest_miss_and_why():
    found = made_up([(0.9, 0, 0.3), (0.2, 0, 0.1), (0.5, 0, 0.2)])
    worse = replace(found.configurations[1], known=replace(found.configurations[1].known, few=7, covered=False))
    chosen = recommend(replace(found, configurations=(found.configurations[0], worse, found.configurations[2])))[0]
    assert chosen.configuration is None
    assert chosen.reason == (
        "No release that keeps anything of it meets the policy. The nearest is configuration 2: queries that an"
        " attacker links to the right person: 20.0 %; at most 9.0 % allowed."
    )
    assert not replace(found, configurations=(worse,)).meeting


def test_of_equal_misses_the_smaller_one_is_the_nearest():
    found = made_up([(0.2, 0, 0.01), (0.9, 0, 0.01)])
    few, fewer = (
        replace(
            configuration,
            known=replace(
                configuration.known, numbers=(*configuration.known.numbers[:1], Number("sybil", "", n), *rest)
            ),
        )
        for configuration, n in zip(found.configurations, (3.0, 1.0), strict=True)
        for rest in [configuration.known.numbers[2:]]
    )
    assert (
        "The nearest is configuration 0: planted accounts"
        in recommend(replace(found, configurations=(few, fewer)))[0].reason
    )


def test_what_was_not_measured_is_not_recommended():
    found = made_up([(0.9, 0.9, None)])
    assert found.risk("configuration 0") is None
    assert {one.configuration for one in recommend(found)} == {None}
    assert "not measured" in recommend(found)[0].reason


def test_histories_need_linked_events():
    found = made_up([(0.5, 0.5, 0.01)], linked=False)
    tail, histories, _ = recommend(found)
    assert (tail.configuration, histories.configuration) == ("configuration 0", None)


def test_what_does_not_separate_is_left_out_of_the_ranking():
    found = made_up([(0.5, 0.9, 0.01), (0.5, 0.1, 0.02)])
    assert recommend(found)[1].configuration == "configuration 0"
    rows = tuple(
        replace(row, separates=False, why="the log itself scores 1.1 %") if row.measure == "profile_retention" else row
        for row in found.rows
    )
    rows += tuple(
        Row(f"configuration {i}", "utility", "profiles", "cluster_retention", "", value)
        for i, value in enumerate((0.2, 0.3))
    )
    blind = replace(found, rows=rows)
    assert recommend(blind)[1].configuration == "configuration 1"
    assert MEASURES["cluster_retention"].label in recommend(blind)[1].rule
    assert blind.unranked == {MEASURES["profile_retention"].label: "the log itself scores 1.1 %"}
    assert blind.kept("configuration 0")["profiles"] is None
    assert not blind.frontiers[1].points


def private(epsilon, kept, name):
    found = made_up([(kept, 0, 0.01)], "zealous", {"epsilon": epsilon, "delta": 1e-6}, linked=False)
    return replace(found.configurations[0], name=name), tuple(replace(row, configuration=name) for row in found.rows)


def test_statistics_are_of_the_smallest_epsilon():
    (weak, some), (strict, others), (more, rest) = (
        private(8.0, 0.5, "weak"),
        private(0.5, 0.1, "strict"),
        private(0.5, 0.2, "more"),
    )
    found = replace(made_up([]), configurations=(weak, strict, more), rows=some + others + rest)
    assert recommend(found)[2].configuration == "more"
    assert "e^0.5" in recommend(found)[2].reason
    assert "guarantee is weak" in recommend(replace(found, configurations=(weak,)))[2].reason
    assert recommend(replace(found, policy=Policy(max_epsilon=0.1)))[2].configuration is None
    wrong = replace(weak, known=replace(weak.known, refuted=1))
    assert recommend(replace(found, configurations=(wrong,)))[2].configuration is None


def test_why_there_are_no_statistics_is_said_as_it_is():
    found = made_up([(0.3, 0.2, 0.05)])
    assert recommend(found)[2].reason == "No differentially private method was tried."
    missing = Configuration("zealous", "zealous", None, {"epsilon": 1.0}, "failed", "OpenDP is not installed.")
    assert "OpenDP is not installed." in recommend(replace(found, configurations=(missing,)))[2].reason
    empty = tuple(Configuration(f"z {e}", "zealous", None, {"epsilon": e}, "empty", "Nothing.") for e in (1.0, 10.0))
    assert recommend(replace(found, configurations=empty[:1]))[2].reason == (
        "No differentially private release is possible on this log: at epsilon 1 nothing passes."
    )
    assert "at epsilon 1 and 10 nothing passes" in recommend(replace(found, configurations=empty))[2].reason


def test_risk_is_what_the_policy_limits():
    words = replace(known(0.1), kind="tokens")
    words = replace(words, numbers=(*words.numbers, Number("token_hashing", "", 0.6, 0.7)))
    older = replace(known(0.1), numbers=(*known(0.1).numbers, Number("history_linkage", "older half", 0.3, 0.4)))
    configurations = tuple(
        Configuration(name, "equality", 5, {}, holds=True, known=one)
        for name, one in (("half", known(0.25)), ("older", older), ("words", words), ("nothing", known(None)))
    )
    found = replace(made_up([]), configurations=configurations)
    assert [found.risk(configuration.name) for configuration in configurations] == [0.25, 0.3, 0.6, None]


def test_releases_without_linked_events_are_on_no_frontier():
    found = made_up([(0.3, 0.2, 0.05), (0.9, 0.8, 0.01)])
    apart = replace(found, configurations=(found.configurations[0], replace(found.configurations[1], linked=False)))
    for frontier, kept in zip(apart.frontiers[:2], (0.9, 0.8), strict=True):
        assert frontier.configurations == tuple(frontier.points) == ("configuration 0",)
        assert frontier.apart == {"configuration 1": kept}


def test_refuted_releases_are_on_no_frontier():
    made = made_up([(0.3, 0.2, 0.05), (0.2, 0.1, 0.5)])
    refuted = replace(made.configurations[0], holds=False, known=replace(made.configurations[0].known, refuted=1))
    wrong = replace(made, configurations=(refuted, made.configurations[1]))
    assert wrong.frontiers[0].configurations == ("configuration 1",)
    assert {one.configuration for one in recommend(wrong)} == {None}


def test_a_policy_is_applied_to_what_is_stored(log, tmp_path, monkeypatch):
    given = {"methods": ["equality"], "ks": [5], "tests": 10}
    first = compare(log, tmp_path / "c", **given)
    monkeypatch.setattr(comparison.Job, "do", lambda *given: pytest.fail("made again"))
    strict = compare(log, tmp_path / "c", **given, policy=Policy(min_k=6))
    assert strict.rows == first.rows
    assert first.policy == Policy()
    limits = {one.judgement("equality, k = 5").criteria[1].limit for one in (first, strict)}
    assert limits == {5, 6}


@pytest.mark.parametrize(
    "damage",
    [
        lambda configuration: configuration.update(status="bogus"),
        lambda configuration: configuration.update(name="equality, k = 5"),
        lambda configuration: configuration.pop("method"),
    ],
)
def test_a_configuration_that_is_damaged_is_made_again(log, tmp_path, damage, small):
    found, folder = small
    shutil.copytree(folder, tmp_path / "c")
    file = tmp_path / "c" / "configurations" / "equality_k-2.json"
    good = file.read_bytes()
    bad = json.loads(good)
    damage(bad["configuration"])
    file.write_text(json.dumps(bad))
    assert compare(log, tmp_path / "c", **ONE) == found
    assert file.read_bytes() == good


def test_configurations_that_are_gone_are_made_again(log, tmp_path, small):
    found, folder = small
    shutil.copytree(folder, tmp_path / "c")
    shutil.rmtree(tmp_path / "c" / "configurations")
    assert compare(log, tmp_path / "c", **ONE) == found


def test_a_package_that_was_missing_is_asked_for_again(log, tmp_path, monkeypatch):
    given = {"methods": ["hash"], "tests": 10}
    made = comparison.Job._made
    lacking = Row(
        "hash", "risk", "linkability", "user_linkage", "", None, why="needs it: pip install 'queryveil[attack]'"
    )
    monkeypatch.setattr(comparison.Job, "_made", lambda *given: (made(*given)[0], [lacking]))
    assert compare(log, tmp_path / "c", **given).rows == (lacking,)
    monkeypatch.undo()
    assert len(compare(log, tmp_path / "c", **given).rows) > 10


def test_another_directory_of_the_same_name_is_another_comparison(tmp_path, log):
    for place, name in (("a", "Arts"), ("b", "Science")):
        (tmp_path / place).mkdir()
        dump = tmp_path / place / "dump.tsv"
        dump.write_text(f"Top/{name}/Music\thttp://a.com/\n")
        build_directory([dump], tmp_path / place / "d.qvd")
    given = {"methods": ["hash"], "tests": 10}
    compare(log, tmp_path / "c", taxonomy=str(tmp_path / "a" / "d.qvd"), **given)
    with pytest.raises(qv.QueryveilError, match="or setting"):
        compare(log, tmp_path / "c", taxonomy=str(tmp_path / "b" / "d.qvd"), **given)


def test_values_given_twice_count_once():
    assert grid(["equality", "zealous"], ks=[5, 2, 5], epsilons=[2, 2]) == grid(
        ["equality", "zealous"], ks=[2, 5], epsilons=[2]
    )


def test_the_folder_is_for_its_owner(log, tmp_path):
    compare(log, tmp_path / "c", methods=["hash"], tests=10)
    assert (tmp_path / "c").stat().st_mode & 0o077 == 0


def test_a_pipeline_goes_by_the_name_of_its_recipe():
    found = grid(["pipeline", "affinity"], ks=[5, 9], epsilons=[1.0])
    recipes = ["publish-counts", "publish-profiles", "publish-queries", "publish-sessions"]
    assert list(dict.fromkeys(one.family for one in found)) == [*recipes, "affinity"]
    assert [one.name for one in found if one.family == "publish-profiles"] == [
        "publish-profiles, k = 5",
        "publish-profiles, k = 9",
    ]
