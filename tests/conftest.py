"""The options of all tests."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Generator, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from barrierlab.model.checkpoint import external
from tests import breadth, longest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite",
        action="store_true",
        help="write what scripted cases and runs come to into the kept files; read the diff",
    )


def looked_at(handle: int) -> None:
    """Look at an open file for `os.fsync`, in a quick run: no test cuts the power, and each wait for the disk is some
    milliseconds long. A test that asks what is synced, and when, has a substitute of its own.
    """
    os.fstat(handle)


def pytest_configure(config: pytest.Config) -> None:
    breadth.is_whole = "not slow" not in config.getoption("markexpr")
    if not breadth.is_whole:
        os.fsync = looked_at
        external._WALKS = breadth.examples(external._WALKS)  # of the first look at a class, which 300 tests take
    # How busy the machine is says nothing about the code. All else is as Hypothesis has chosen, for CI or not.
    settings.register_profile(
        "unhurried",
        parent=settings(),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        max_examples=breadth.examples(settings().max_examples),
    )
    settings.load_profile("unhurried")


SLOW_S = 3600
"""A limit for what explores a large scope, or plants mistakes by the dozen: minutes on a quiet machine."""


SPARK = ("tests/sweep/test_spark.py", "tests/sweep/test_verify.py")
"""The files whose quick tests use a Spark session: a JVM of a quarter of a minute, once, if one worker has them all."""
LONGEST = (
    *SPARK,
    "tests/docs/test_pages.py",
    "tests/model/test_asked.py",
    "tests/notebooks/test_notebooks.py",
    "tests/sim/test_check.py",
    "tests/sim/test_program.py",
    "tests/sim/test_predict.py",
    "tests/sweep/test_analyse.py",
    "tests/sim/test_check_in_ci.py",
    "tests/sim/test_ask.py",
    "tests/model/test_scopes.py",
    "tests/sweep/test_compact.py",
    "tests/sweep/test_pages.py",
    "tests/compiled/test_compiled.py",  # with the slow tests
)
"""The files that take longest, the longest first: begun last, one of them would leave the other workers idle."""


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Let one of two workers begin with the last file: where nothing is compiled yet, each compiles half of them."""
    report = yield
    if isinstance(collector, pytest.Dir) and os.environ.get("PYTEST_XDIST_WORKER", "gw0")[-1] in "13579":
        report.result.reverse()
    return report


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    place = {file: number for number, file in enumerate(LONGEST)}

    def key(item: pytest.Item) -> tuple[int, str]:
        file = item.nodeid.partition("::")[0]
        return place.get(file, len(place)), file

    items.sort(key=key)
    long = longest.names()
    for item in items:
        if longest.function_of(item.nodeid) in long:
            item.add_marker(pytest.mark.long)
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SLOW_S))


MUCH_GARBAGE = 1_000_000
"""So many objects more than at the last look are looked through between two tests: some hundred MB at most."""


def pytest_collection_finish(session: pytest.Session) -> None:
    """Leave the tests themselves out of what is looked through for garbage, and seldom look while one runs: what it
    explores is alive until it ends, and looking through that was an eighth of the time of all."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(2 * MUCH_GARBAGE, 20, 100)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """Look for garbage where little is alive."""
    if gc.get_count()[0] > MUCH_GARBAGE:
        gc.collect()


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist, which may be left out
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Together(LoadFileScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            file: str = super()._split_scope(nodeid)
            if file.startswith("tests/architecture/"):
                return "tests/architecture"  # they share the trees of all modules
            return SPARK[0] if file in SPARK else file

    config.option.loadscopereorder = False  # in the order of the collection, not by how many tests a file has
    return Together(config, log)


@pytest.fixture
def rewrite(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--rewrite"))


@pytest.fixture(autouse=True)
def forgotten(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Forget the modules that a test has loaded from a folder of its own: the next test's may have the same name."""
    known, folders = set(sys.modules), f"{tmp_path_factory.getbasetemp()}{os.sep}"
    yield
    for name in sys.modules.keys() - known:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(folders):
            del sys.modules[name]
    sys.path[:] = [each for each in sys.path if not each.startswith(folders)]
