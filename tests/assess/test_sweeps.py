import json
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import queryveil as qv
from tests.oracles.log import Row
from tests.strategies import examples, table

WORDS = st.lists(st.sampled_from(["cell", "phone", "case", "the", "x1"]), min_size=1, max_size=4).map(" ".join)
LOGS = st.lists(st.tuples(st.sampled_from("abcdefgh"), WORDS).map(lambda pair: Row(*pair)), min_size=8, max_size=50)


@settings(max_examples=examples(13))
@given(
    LOGS,
    st.fixed_dictionaries(
        {
            "vectors": st.sampled_from(["words", "concepts"]),
            "concept_min_users": st.sampled_from([None, 2, 3]),
            "min_term_users": st.sampled_from([None, None, 1, 3]),
            "min_query_users": st.sampled_from([1, 2]),
        }
    ),
)
def test_each_point_is_what_the_method_releases(rows, rest):
    if len({row.user for row in rows}) < 4:
        return
    log = qv.read_log(table(rows))
    found = qv.sweep(log, ks=[4, 2], thetas=[0.8, 1.0, 0.6], **rest)
    assert [(point.theta, point.k) for point in found.points] == [
        (theta, k) for theta in (None, 1.0, 0.8, 0.6) for k in (2, 4)
    ]
    for point in found.points:
        if point.theta is None:
            release = qv.Equality(k=point.k).anonymize(log)
        else:
            release = qv.Affinity(k=point.k, theta=point.theta, **rest).anonymize(log)
        counts = release.manifest.counts
        assert (counts.queries, counts.events) == (point.queries, point.events)
        assert point.concept_min_users == (rest["concept_min_users"] or 5)
        assert point.min_term_users == (rest["min_term_users"] or point.k)


def small():
    return qv.read_log(table([Row(f"u{i % 9}", f"cell phone {'case' * (i % 2)}") for i in range(40)]))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"ks": []}, "A sweep needs at least one k and one theta"),
        ({"ks": [1]}, r"The 'ks' parameter of sweep must be a whole number of at least 2\. Got 1 instead"),
        ({"ks": [2, 50]}, "The 'k' parameter of Affinity is 50, but the log has only 9 users"),
        ({"thetas": [0.8, 1.5]}, r"The 'theta' parameter of Affinity must be a number in \(0, 1\]"),
        ({"concept_min_users": 1}, "The 'concept_min_users' parameter of Affinity must be an integer of at least 2"),
        ({"vectors": "letters"}, "The 'vectors' parameter of Affinity must be one of words, concepts"),
        ({"colour": 5}, "Affinity has no parameter 'colour'"),
        ({"ks": ["x"]}, r"The 'ks' parameter of sweep must be a whole number of at least 2\. Got 'x' instead"),
        ({"k": 5}, "A sweep takes lists"),
    ],
)
def test_a_wrong_setting_is_told_in_a_sentence(given, sentence):
    with pytest.raises(qv.QueryveilError, match=sentence):
        qv.sweep(small(), **({"ks": [2], "thetas": [0.9]} | given))


def test_the_chart_is_drawn_in_three_formats(tmp_path):
    found = qv.sweep(small(), ks=[2, 5], thetas=[0.9])
    found.save_chart(tmp_path / "sweep.svg")
    text = "".join(ET.parse(tmp_path / "sweep.svg").getroot().itertext())
    assert "Distinct queries released" in text
    assert "AFF θ = 0.9" in text
    found.save_chart(tmp_path / "sweep.html")
    page = (tmp_path / "sweep.html").read_text()
    assert "<script src=" not in page, "it must need no network"
    found.save_chart(tmp_path / "sweep.png")
    assert (tmp_path / "sweep.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["sweep.html", "sweep.png", "sweep.svg"]


def test_default_values_of_k_stop_at_the_users_of_the_log():
    assert {point.k for point in qv.sweep(small()).points} == {2, 5}


def test_a_sweep_is_plain_values_too():
    found = json.loads(json.dumps(qv.sweep(small(), ks=[5], thetas=[0.9]).as_dict()))
    assert found["points"][1]["method"] == "AFF θ = 0.9"
    assert found["points"][1]["query_share"] == found["points"][1]["queries"] / found["queries"]
