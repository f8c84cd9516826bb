"""One pool of driver processes for all tests of a run: starting a JVM is what takes the time."""

from collections.abc import Iterator

import pytest
from tests.faults.streams.class_archive import options_with_archive
from tests.faults.streams.harness import Drivers


@pytest.fixture(scope="package")
def jvm(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Options of the JVMs of drivers."""
    cache: pytest.Cache | None = getattr(pytestconfig, "cache", None)  # pytest may have been told to keep none
    if cache is None:
        return ""
    return options_with_archive(cache.mkdir("spark-classes"), tmp_path_factory.mktemp("classes") / "run")


@pytest.fixture(scope="package")
def drivers(jvm: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drivers]:
    with Drivers(tmp_path_factory.mktemp("drivers"), jvm=jvm) as drivers:
        yield drivers
