import pyarrow as pa
import pytest

import queryveil as qv
from queryveil.methods import METHODS, parameters_of


def test_every_parameter_is_declared_with_help_and_a_default_that_is_valid():
    for method in METHODS.values():
        for parameter in parameters_of(method):
            assert parameter.help, (method, parameter)
            assert parameter.kind in (int, float, bool, str) or parameter.kind.__name__ == "Path"


def test_bounds_and_choices_are_read_off_the_declaration():
    found = {parameter.name: parameter for parameter in parameters_of(qv.Rules)}
    assert found["min_query_users"].expected == "an integer of at least 2"
    assert found["time"].expected == "one of drop, day, week"
    assert found["metadata"].many
    assert found["no_digits"].kind is bool


def test_a_method_is_frozen():
    method = qv.Equality(k=3)
    with pytest.raises(Exception, match="frozen"):
        method.k = 4


def test_errors_name_the_parameter_and_what_was_given():
    with pytest.raises(
        qv.QueryveilError, match=r"The 'link' parameter of Equality must be one of none, session, user. Got 'all'"
    ):
        qv.Equality(link="all")
    with pytest.raises(qv.QueryveilError, match=r"Equality has no parameter 'theta'; there are k, link, "):
        qv.Equality(theta=0.9)
    with pytest.raises(qv.QueryveilError, match="'metadata' parameter of Rules must be a list"):
        qv.Rules(max_terms=2, metadata=5)


LOG = pa.table(
    {
        "user": [f"u{i % 8}" for i in range(40)],
        "query": ["cat dog", "dog toy"] * 20,
        "time": pa.array(range(1_700_000_000, 1_700_000_040), pa.timestamp("s")),
        "url": ["a.com", "b.org"] * 20,
        "country": ["fr"] * 40,
        "shoe": ["42"] * 40,
    }
)
RICH = {"time": "day", "min_metadata_users": 2}


@pytest.mark.parametrize(
    ("method", "note"),
    [
        (qv.Equality(k=2), "times and 2 extra columns; a last step columns can keep them with 'time' and 'min_meta"),
        (qv.Equality(k=2, link="user"), "'min_metadata_users', and must then have link='user' itself."),
        (qv.Poblete(k=1, sites=1), "times and 2 extra columns; a last step columns"),
        (qv.Odp(k=2), "clicks, times and 2 extra columns; no step keeps them beside records."),
        (qv.Rules(min_query_users=2), "rules can keep them with 'min_row_users', 'time' and 'min_metadata_users'."),
        (qv.Rules(min_query_users=2, min_row_users=2, **RICH), "1 extra column; rules can keep them with 'metadata'."),
        (qv.Pipeline([qv.Equality(k=2), qv.Columns(**RICH)]), "columns can keep them with 'min_click_users' and 'met"),
        (qv.Pipeline([qv.Poblete(k=1, sites=1), qv.Columns(**RICH)]), "Left out: 1 extra column; columns can keep"),
        (qv.Pipeline([qv.Equality(k=2), qv.Odp(k=2)]), "clicks, times and 2 extra columns; no step keeps them"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_what_is_left_out_is_named_with_what_can_keep_it(method, note):
    *_, last = method.anonymize(qv.read_log(LOG), seed=1).notes
    assert last.startswith("Left out: ")
    assert note in last


def test_nothing_is_said_where_all_is_kept():
    kept = qv.Columns(min_click_users=2, metadata=("country", "shoe"), **RICH)
    release = qv.Pipeline([qv.Equality(k=2), kept]).anonymize(qv.read_log(LOG), seed=1)
    assert not any("Left out" in note for note in release.notes)
