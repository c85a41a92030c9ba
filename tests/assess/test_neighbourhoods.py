import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import queryveil as qv
from queryveil.assess.drawings import draw_graph
from tests.oracles.affinity import affinity_degrees, are_affine, vectors_of
from tests.oracles.log import Row
from tests.strategies import examples, table

WORDS = st.lists(st.sampled_from(["cell", "phone", "case", "nokia", "red", "the"]), min_size=1, max_size=4)
LOGS = st.lists(
    st.tuples(st.sampled_from("abcdefgh"), WORDS.map(" ".join)).map(lambda pair: Row(*pair)), min_size=5, max_size=50
)
REST = {"k": 2, "concept_min_users": 2}


@settings(max_examples=examples(15))
@given(LOGS, st.sampled_from([0.6, 0.8, 0.95]), st.integers(1, 30))
def test_degrees_are_exact_in_a_whole_graph_and_lower_bounds_in_a_cut_one(rows, theta, most):
    log = qv.read_log(table(rows))
    true = affinity_degrees(rows, theta, 2, 2)
    vector = vectors_of(rows, 2)
    for query in sorted(true)[:3]:
        if not vector[query] or true[query] == 0:
            continue
        found = qv.neighbourhood(log, query, theta=theta, max_vertices=most, **REST)
        assert found.queries[0].query == query
        assert len(found.queries) <= most
        assert len({n.query for n in found.queries}) == len(found.queries)
        for neighbour in found.queries:
            assert neighbour.degree <= true[neighbour.query]
            if found.whole:
                assert neighbour.degree == true[neighbour.query]
        names = [n.query for n in found.queries]
        affine = {
            (i, j)
            for i in range(len(names))
            for j in range(i + 1, len(names))
            if are_affine(vector[names[i]], vector[names[j]], theta)
        }
        assert set(found.edges) == affine
        if found.whole:  # nobody affine to a member is missing
            outside = {q for q, degree in true.items() if degree and vector[q]} - set(names)
            assert not any(are_affine(vector[a], vector[b], theta) for a in names for b in outside)


def log_of_cases():
    rows = [Row(f"u{i}", "cell phone case") for i in range(5)]
    rows += [Row("v", "the cell phone case"), Row("w", "<script>alert(1)</script> cell phone case"), Row("x", "the")]
    rows += [Row("y", "<script>alert(1)</script>"), Row("z", "cell phone case zzz"), Row("z", "tea")]
    return qv.read_log(table(rows))


def test_the_drawing_escapes_queries_and_is_well_formed(tmp_path):
    found = qv.neighbourhood(log_of_cases(), "Cell  phone CASE", theta=0.5, min_term_users=2)
    assert found.whole
    assert {n.query for n in found.queries} >= {"cell phone case", "the cell phone case"}
    assert any("<script>" in n.query for n in found.queries)
    found.save_drawing(tmp_path / "graph.svg")
    svg = (tmp_path / "graph.svg").read_text()
    assert "<script" not in svg
    root = ET.fromstring(svg)
    circles = [e for e in root.iter() if e.tag.endswith("circle")]
    assert len(circles) >= len(found.queries)
    assert "(1) cell phone case (5 users), degree" in "".join(root.itertext())


def test_a_drawing_takes_hostile_names_and_higher_degrees_are_darker():
    svg = draw_graph(title="t", names=["\x00\x1b]&<>\"'", "b" * 500, "c"], degrees=[2, 9, 5], edges=[(0, 1), (1, 2)])
    root = ET.fromstring(svg)
    fills = [e.get("fill") for e in root.iter() if e.tag.endswith("circle")][:3]
    assert fills == ["rgb(245,245,245)", "rgb(40,40,40)", "rgb(143,143,143)"]
    assert svg == draw_graph(
        title="t", names=["\x00\x1b]&<>\"'", "b" * 500, "c"], degrees=[2, 9, 5], edges=[(0, 1), (1, 2)]
    )


@pytest.mark.parametrize(
    ("query", "given", "sentence"),
    [
        ("nobody asked this", {}, "Nobody issued this query"),
        ("tea", {}, "holds no concept, so there is no graph around it: its degree is 1"),
        ("cell phone case zzz", {}, "fewer users than these parameters ask for"),
        ("cell phone case", {"max_vertices": 0}, "must be an integer of at least 1"),
        ("cell phone case", {"theta": 0}, "The 'theta' parameter of Affinity"),
    ],
)
def test_a_query_without_a_graph_is_told_in_a_sentence(query, given, sentence):
    with pytest.raises(qv.QueryveilError, match=sentence) as error:
        qv.neighbourhood(log_of_cases(), query, **given)
    assert "zzz" not in str(error.value)


def test_a_graph_that_is_cut_says_so():
    found = qv.neighbourhood(log_of_cases(), "cell phone case", theta=0.5, max_vertices=2, min_term_users=2)
    assert not found.whole
    assert len(found.queries) <= 2
    assert found.degree >= 5
