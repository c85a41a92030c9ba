"""Messages name the option on the command line and the argument in Python, and suggest what was meant."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from queryveil.errors import command_line, did_you_mean, option, parameter


@pytest.mark.parametrize(
    ("given", "in_python", "on_the_command_line"),
    [
        (("max_bad_rows",), "'max_bad_rows'", "--max-bad-rows"),
        (("k",), "'k'", "-k"),
        (("overwrite", True), "overwrite=True", "--overwrite"),
        (("link", "user"), "link='user'", "--link user"),
        (("min_users", 30), "min_users=30", "--min-users 30"),
        (
            ("columns", {"user": "NAME", "query": "NAME"}),
            "columns={'user': 'NAME', 'query': 'NAME'}",
            "--columns user=NAME,query=NAME",
        ),
    ],
)
def test_an_option_is_an_argument_in_python(given, in_python, on_the_command_line):
    assert option(*given) == in_python
    with command_line():
        assert option(*given) == on_the_command_line
    assert option(*given) == in_python


def test_what_python_calls_otherwise():
    assert option("list", python="'lists'") == "'lists'"
    assert parameter("scrub", "how", flag="scrub") == "The 'how' parameter of scrub"
    with command_line():
        assert option("list", python="'lists'") == "--list"
        assert parameter("scrub", "how", flag="scrub") == "The option --scrub"


def test_worker_threads_know_that_the_command_line_runs():
    with command_line(), ThreadPoolExecutor(1) as pool:
        assert pool.submit(option, "seed").result() == "--seed"


def test_an_unknown_name_gets_a_suggestion():
    known = ("equality", "rules")
    assert did_you_mean("equalty", known) == "did you mean 'equality'? There are equality, rules"
    assert did_you_mean("magic", known) == "there are equality, rules"
