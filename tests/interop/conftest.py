"""One process of each reference engine for all interop tests of a run."""

import os
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Final

import pytest
from tests.interop.engines import Engine, JavaPaimon, PyPaimon, UnavailableError

# Set where the engines can be had for certain, so that their absence is a failure and not a line among many.
IS_REQUIRED: Final = os.environ.get("PENSTOCK_REQUIRE_INTEROP") == "1"


class EngineMissing(pytest.skip.Exception):
    """The tests that ask for an engine are skipped."""


def start(make: Callable[[], Engine]) -> Engine:
    """Start an engine, or skip the tests that ask for it."""
    try:
        return make()
    except UnavailableError as error:
        reason = str(error)
    if IS_REQUIRED:
        pytest.fail(f"PENSTOCK_REQUIRE_INTEROP=1, but {reason}", pytrace=False)
    raise EngineMissing(reason)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Give all tests that miss an engine one place, since the summary folds skips by place and reason into one line."""
    report = yield
    if call.excinfo is not None and isinstance(call.excinfo.value, EngineMissing):
        report.longrepr = (__file__, None, f"Skipped: {call.excinfo.value}")
    return report


@pytest.fixture(scope="session")
def java() -> Iterator[Engine]:
    """Return the Java reference."""
    with start(JavaPaimon) as engine:
        yield engine


@pytest.fixture(scope="session")
def pypaimon() -> Iterator[Engine]:
    """Return the Python reference."""
    with start(PyPaimon) as engine:
        yield engine


@pytest.fixture(params=["java", "pypaimon"])
def engine(request: pytest.FixtureRequest) -> Engine:
    """Return each engine in turn."""
    found: Engine = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def location(tmp_path: Path) -> Path:
    """Return where a table ``d.t`` is to be."""
    return tmp_path / "w" / "d.db" / "t"
