"""One pool of driver processes for all tests of a run: starting a JVM is what takes the time."""

from collections.abc import Iterator

import pytest
from tests.faults.streams.harness import Drivers


@pytest.fixture(scope="package")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drivers]:
    with Drivers(tmp_path_factory.mktemp("drivers")) as drivers:
        yield drivers
