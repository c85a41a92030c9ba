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
