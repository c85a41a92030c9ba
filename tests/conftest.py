"""Shared settings: hypothesis without a deadline, because kernels compile on their first call."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "queryveil", deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
settings.load_profile("queryveil")

pytest_plugins = ["tests.both", "tests.worlds"]
