"""One pool of driver processes for all tests of a run: starting a JVM is what takes the time."""

from collections.abc import Iterator

import pytest
from tests.faults.streams.harness import Drivers
from tests.spark.forked_python import forked_python


@pytest.fixture(scope="package")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drivers]:
    root = tmp_path_factory.mktemp("drivers")
    with forked_python(root) as python, Drivers(root, python=python) as drivers:
        yield drivers
