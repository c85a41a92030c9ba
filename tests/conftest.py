"""Shared settings: no deadline for hypothesis, because kernels compile on their first call; which worker runs what."""

import pytest
from hypothesis import HealthCheck, settings

from tests.strategies import examples

settings.register_profile(
    "queryveil", deadline=None, max_examples=examples(15), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
settings.load_profile("queryveil")

pytest_plugins = ["tests.both", "tests.worlds"]


def shares_with(nodeid: str) -> str:
    """Tests that share what they make, so that one worker runs them: those on Spark, and the others of a file."""
    return "spark" if "spark" in nodeid else nodeid.partition("::")[0]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with Spark, which takes longest."""
    items.sort(key=lambda item: shares_with(item.nodeid) != "spark")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """The loadgroup of pytest-xdist reads nothing from the tests of pytest 9."""
    from xdist.scheduler import LoadScopeScheduling

    config.option.loadscopereorder = False
    scheduler = LoadScopeScheduling(config, log)
    scheduler._split_scope = shares_with
    return scheduler
