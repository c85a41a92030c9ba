import csv
import json
import os
from dataclasses import replace
from functools import partial

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import queryveil as qv
from queryveil import comparison
from queryveil.bands import Band
from queryveil.comparison import Cell, Comparison, Row, compare, grid
from queryveil.knowledge.directory import build_directory
from queryveil.manifest import Counts
from queryveil.methods import METHODS
from queryveil.sharing import shared, sharing

SOME = {"methods": ["equality", "wngen", "clump"], "ks": [2, 5], "tests": 50}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    place = tmp_path_factory.mktemp("logs") / "log.tsv"
    qv.generate(place, users=100, seed=3)
    return place


@pytest.fixture(scope="module")
def log(path):
    return qv.read_log(path)


def stored(folder):
    return {file.name: file.read_bytes() for file in (folder / "cells").iterdir()}


def test_the_grid_has_every_method_and_every_value():
    cells = grid(ks=[2, 9], epsilons=[1.0, 3.0])
    assert {cell.method for cell in cells} == set(METHODS)
    assert len({cell.name for cell in cells}) == len(cells)
    names = [cell.name for cell in cells if cell.method in ("affinity", "clump", "zealous", "hash")]
    assert names == [
        *("affinity, k = 2", "affinity, k = 2, no users", "affinity, k = 9", "affinity, k = 9, no users"),
        *("clump, k = 2", "clump, k = 9", "zealous, ε = 1", "zealous, ε = 3", "hash"),
    ]
    for cell in cells:
        METHODS[cell.method](**cell.parameters)


def test_a_cell_has_the_numbers_of_evaluate_and_attack(log, tmp_path):
    found = compare(log, tmp_path / "c", **SOME, seed=4)
    release = qv.Equality(k=2).anonymize(log, seed=4)
    mine = [row for row in found.rows if row.cell == "equality, k = 2"]
    kept = qv.evaluate(release, log, tests=50, seed=4)
    assert [(row.measure, row.value) for row in mine if row.kind == "utility"] == [
        (one.measure, one.value) for one in kept.measured
    ]
    attacked = qv.attack(release, log, m=comparison.KNOWN, seed=4)
    assert [
        (row.measure, row.setting, row.value, row.low, row.baseline, row.succeeds)
        for row in mine
        if row.kind == "risk" and row.value is not None
    ] == [
        (one.attack, one.setting, one.estimate.value, one.estimate.low, one.baseline, one.succeeds)
        for one in attacked.findings
    ]
    assert all(cell.holds for cell in found.cells)


def test_the_tables_have_a_row_for_every_number(log, tmp_path):
    found = compare(log, tmp_path / "c", **SOME)
    table = pq.read_table(tmp_path / "c" / "measures.parquet")
    assert table.equals(found.table())
    assert set(table["cell"].to_pylist()) == {cell.name for cell in found.cells}
    assert set(table["fingerprint"].to_pylist()) == {log.fingerprint}
    with (tmp_path / "c" / "measures.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["measure"] for row in rows] == table["measure"].to_pylist()
    assert [float(row["value"]) if row["value"] else None for row in rows] == table["value"].to_pylist()
    for row in table.to_pylist():
        METHODS[row["method"]](**json.loads(row["parameters"]))


def test_what_was_finished_is_not_made_again(log, tmp_path, monkeypatch):
    made = []
    do = comparison.Job.do

    def few(self, cell, log):
        made.append(cell.name)
        if len(made) == 3:
            raise KeyboardInterrupt
        return do(self, cell, log)

    monkeypatch.setattr(comparison.Job, "do", few)
    with pytest.raises(KeyboardInterrupt):
        compare(log, tmp_path / "c", **SOME)
    assert len(stored(tmp_path / "c")) == 2
    first = made.copy()
    found = compare(log, tmp_path / "c", **SOME)
    assert sorted(first[:2] + made[3:]) == sorted(cell.name for cell in found.cells)
    monkeypatch.undo()
    whole = compare(log, tmp_path / "whole", **SOME)
    assert found.cells == whole.cells
    assert found.rows == whole.rows
    assert stored(tmp_path / "c") == stored(tmp_path / "whole")
    narrower = compare(log, tmp_path / "c", **(SOME | {"ks": [5]}))
    assert narrower == found
    further = compare(log, tmp_path / "c", **(SOME | {"ks": [2, 5, 7]}))
    assert [row for row in further.rows if "7" not in row.cell] == list(found.rows)


def test_two_processes_make_the_same(path, log, tmp_path):
    boards = []
    one = compare(log, tmp_path / "one", **SOME, watch=boards.append)
    two = compare(log, tmp_path / "two", **SOME, again=partial(qv.read_log, path), watch=boards.append)
    assert one == two
    for name in ("measures.parquet", "measures.csv"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    for board in boards:
        assert {board.state(place) for place in range(len(board.cells))} == {"done"}


def dies():
    os._exit(9)


def test_a_second_process_that_dies_costs_nothing(log, tmp_path):
    found = compare(log, tmp_path / "c", **SOME, again=dies)
    assert {cell.status for cell in found.cells} == {"done"}


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
    by = {cell.name: cell for cell in found.cells}
    assert (by["search, k = 2"].status, by["zealous, ε = 0.1"].status) == ("failed", "empty")
    assert "knows no sites" in by["search, k = 2"].why
    assert found.rows == ()
    assert [one.cell for one in found.recommendations] == [None, None, None]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"methods": ["magic"]}, "There is no method 'magic'"),
        ({"ks": [], "methods": ["odp"]}, "Nothing is to be compared"),
        ({"ks": [1]}, "must be an integer of at least 2"),
        ({"epsilons": [0]}, "epsilon"),
        ({"knowledge": "nowhere"}, "There is no knowledge base 'nowhere'"),
    ],
)
def test_bad_arguments_leave_nothing(log, tmp_path, given, sentence):
    with pytest.raises(qv.QueryveilError, match=sentence):
        compare(log, tmp_path / "c", **given)
    assert not (tmp_path / "c").exists()


def made_up(points, method="equality", parameters=None):
    """A comparison with a cell for every tail, interests and risk."""
    cells, rows = [], []
    for i, (tail, interests, risk) in enumerate(points):
        name = f"cell {i}"
        cells.append(Cell(name, method, 2, parameters or {"k": 2}, holds=True, guards=True))
        rows += [
            Row(name, "utility", "retention", "distinct queries", "", tail),
            Row(name, "utility", "retention", "distinct queries of 1 user", "", tail),
            Row(name, "utility", "interests", "users' interests left, level 1 (SRP)", "", interests),
            Row(name, "risk", "linkability", "record linkage", "", risk),
        ]
    counts = Counts(rows=9, events=9, users=3, queries=9, clicks=0)
    bands = (Band(least=1, most=1, queries=9, events=9), Band(least=2, most=4, queries=0, events=0))
    return Comparison("f", 0, 9, counts, bands, tuple(cells), tuple(rows))


UNIT = st.integers(0, 10).map(lambda tenths: tenths / 10)


@given(st.lists(st.tuples(UNIT, UNIT, UNIT), max_size=12))
def test_nothing_beats_the_frontier_and_it_beats_the_rest(points):
    for frontier in made_up(points).frontiers[:2]:
        assert list(frontier.points) == [f"cell {i}" for i in range(len(points))]

        def beaten(name, frontier=frontier):
            kept, risk = frontier.points[name]
            return any(k >= kept and r <= risk and (k, r) != (kept, risk) for k, r in frontier.points.values())

        assert not any(beaten(name) for name in frontier.cells)
        on = {frontier.points[name] for name in frontier.cells}
        best = {point for name, point in frontier.points.items() if not beaten(name)}
        assert {point for point in best if point[0] > 0} == on
        assert len(on) == len(frontier.cells)


@given(st.lists(st.tuples(UNIT, UNIT, st.integers(0, 20).map(lambda n: n / 100)), max_size=12))
def test_recommendations_keep_the_most_within_the_risk(points):
    tail, _, histories = made_up(points).recommendations
    for place, chosen in ((0, tail), (1, histories)):
        fit = [point for point in points if point[2] <= comparison.MOST_RISK and point[place] > 0]
        if not fit:
            assert chosen.cell is None
        else:
            assert chosen.cell is not None
            best = points[int(chosen.cell.split()[1])]
            assert (best[place], -best[2]) == max((point[place], -point[2]) for point in fit)


def test_the_strictest_guarantee_has_the_smallest_epsilon():
    weak = made_up([(0.5, 0, 0)], "dp-set", {"epsilon": 8.0, "delta": 1e-6})
    strict = made_up([(0.1, 0, 0)], "zealous", {"epsilon": 0.5, "delta": 1e-6})
    both = Comparison(
        "f",
        0,
        9,
        weak.counts,
        weak.bands,
        (weak.cells[0], Cell("strict", "zealous", None, {"epsilon": 0.5, "delta": 1e-6}, holds=True)),
        weak.rows + tuple(Row(**(vars(row) | {"cell": "strict"})) for row in strict.rows),
    )
    assert both.recommendations[1].cell == "strict"
    assert "e^0.5" in both.recommendations[1].reason
    assert "guarantee is weak" in weak.recommendations[1].reason
    refuted = Comparison(
        "f", 0, 9, weak.counts, weak.bands, (Cell("cell 0", "dp-set", None, {"epsilon": 8.0}),), weak.rows
    )
    assert refuted.recommendations[1].cell is None


def test_risk_is_that_of_groups_where_nothing_can_be_linked_and_there_is_none_without_records():
    cells = tuple(Cell(name, "clump", 2, {}, holds=True) for name in ("groups", "words", "nobody"))
    rows = (
        Row("groups", "risk", "singling out", "classic risks", "", 0.25),
        Row("words", "risk", "linkability", "record linkage", "", 0.1),
        Row("words", "risk", "singling out", "classic risks", "", 0.9),
        Row("words", "risk", "inference", "token hashing", "", 0.6),
        Row("nobody", "utility", "retention", "distinct queries", "", 0.5),
    )
    made = Comparison("f", 0, 9, Counts(rows=1, events=1, users=1, queries=1, clicks=0), (), cells, rows)
    assert [made.risk(cell.name) for cell in cells] == [0.25, 0.6, None]


def test_what_is_shared_is_made_once_and_only_while_it_is_shared():
    made = []

    class Thing:
        pass

    log, other = Thing(), Thing()
    for _ in range(2):
        shared(log, "a", lambda: made.append("alone"))
    with sharing(log), sharing(log):
        assert shared(log, "a", lambda: made.append("once") or 1) == shared(log, "a", lambda: 2)
        shared(other, "a", lambda: made.append("other"))
    shared(log, "a", lambda: made.append("after"))
    assert made == ["alone", "alone", "once", "other", "after"]


def test_a_release_without_records_says_so_and_one_that_counts_no_people_is_not_recommended():
    made = made_up([(0.3, 0.2, 0.05)])
    open_to_all = replace(made, cells=(replace(made.cells[0], guards=False),))
    assert [one.cell for one in open_to_all.recommendations] == [None, None, None]
    assert "promises something about people" in open_to_all.recommendations[0].reason
    nobody = replace(made, rows=tuple(row for row in made.rows if row.kind == "utility"))
    assert nobody.recommendations[0].cell == "cell 0"
    assert "no record to be linked" in nobody.recommendations[0].reason
    assert "chance" not in nobody.recommendations[0].reason


def test_why_there_is_no_strict_guarantee_is_told_as_it_is():
    made = made_up([(0.3, 0.2, 0.05)])
    assert made.recommendations[1].reason == "No differentially private method was tried."
    missing = Cell("zealous", "zealous", None, {"epsilon": 1.0}, "failed", "OpenDP is not installed.")
    assert "OpenDP is not installed." in replace(made, cells=(missing,)).recommendations[1].reason


def test_refuted_releases_are_on_no_frontier():
    made = made_up([(0.3, 0.2, 0.05), (0.2, 0.1, 0.5)])
    wrong = replace(made, cells=(replace(made.cells[0], holds=False), made.cells[1]))
    assert wrong.frontiers[0].cells == ("cell 1",)
    assert {one.cell for one in wrong.recommendations} == {None}


@pytest.mark.parametrize(
    "damage",
    [
        lambda cell: cell.update(status="bogus"),
        lambda cell: cell.update(name="equality, k = 5"),
        lambda cell: cell.pop("method"),
    ],
)
def test_a_cell_that_is_damaged_is_made_again(log, tmp_path, damage):
    given = {"methods": ["equality"], "ks": [2], "tests": 10}
    found = compare(log, tmp_path / "c", **given)
    file = tmp_path / "c" / "cells" / "equality_k-2.json"
    good = file.read_bytes()
    bad = json.loads(good)
    damage(bad["cell"])
    file.write_text(json.dumps(bad))
    assert compare(log, tmp_path / "c", **given) == found
    assert file.read_bytes() == good
    for one in (tmp_path / "c" / "cells").iterdir():
        one.unlink()
    (tmp_path / "c" / "cells").rmdir()
    assert compare(log, tmp_path / "c", **given) == found


def test_a_package_that_was_missing_is_asked_for_again(log, tmp_path, monkeypatch):
    given = {"methods": ["hash"], "tests": 10}
    made = comparison.Job._made
    lacking = Row("hash", "risk", "linkability", "same user", "", None, why="needs it: pip install 'queryveil[attack]'")
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
    compare(log, tmp_path / "c", knowledge=str(tmp_path / "a" / "d.qvd"), **given)
    with pytest.raises(qv.QueryveilError, match="or setting"):
        compare(log, tmp_path / "c", knowledge=str(tmp_path / "b" / "d.qvd"), **given)


def test_values_given_twice_count_once():
    assert grid(["equality", "zealous"], ks=[5, 2, 5], epsilons=[2, 2]) == grid(
        ["equality", "zealous"], ks=[2, 5], epsilons=[2]
    )


def test_the_folder_is_for_its_owner(log, tmp_path):
    compare(log, tmp_path / "c", methods=["hash"], tests=10)
    assert (tmp_path / "c").stat().st_mode & 0o077 == 0
