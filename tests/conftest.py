"""The options of all tests."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

# How busy the machine is says nothing about the code. All else is as Hypothesis has chosen, for CI or not.
settings.register_profile("unhurried", parent=settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite",
        action="store_true",
        help="write what scripted cases and runs come to into the kept files; read the diff",
    )


SLOW_S = 3600
"""A limit for what explores a large scope, or plants mistakes by the dozen: minutes on a quiet machine."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SLOW_S))


@pytest.fixture
def rewrite(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--rewrite"))
