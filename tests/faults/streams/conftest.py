"""One pool of driver processes for all tests of a run: starting a JVM is what takes the time."""

from collections.abc import Iterator
from typing import Final

import pytest
from tests.faults.streams.harness import Drivers
from tests.spark.forked_python import forked_python
from tests.spark.needs import skip_without

from penstock.spark.versions.facts import PYTHON_WRITES


@pytest.fixture(scope="package")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drivers]:
    root = tmp_path_factory.mktemp("drivers")
    with forked_python(root) as python, Drivers(root, python=python) as drivers:
        yield drivers


# The test that always runs through `writeStream.toTable`: its kill is between a snapshot and Spark's log. The others
# always run through `write_stream`, of which one has such a kill, too.
ALWAYS_TO_TABLE: Final = "test_rows_of_producers_that_append_at_once_arrive_in_the_order_of_their_commits"
TO_TABLE_MODULES: Final = {"test_first_batch", "test_killed_streams", "test_refused_restarts", "test_task_order"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests with both entry points of a stream that writes to a table; soaks only with the first of them."""
    name = metafunc.function.__name__
    if metafunc.module.__name__.rpartition(".")[2] not in TO_TABLE_MODULES or "soak" in name:
        return
    always = "to_table" if name == ALWAYS_TO_TABLE else "write_stream"
    ways = [
        pytest.param(way, marks=() if way == always else (pytest.mark.slow,)) for way in ("write_stream", "to_table")
    ]
    metafunc.parametrize("entry_point", ways, indirect=True)


@pytest.fixture(autouse=True)
def entry_point(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    way: str = getattr(request, "param", "write_stream")
    if way == "to_table":
        skip_without(PYTHON_WRITES)
    monkeypatch.setattr(Drivers, "entry_point", way)
    return way
