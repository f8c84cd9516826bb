"""What holds for all tests: Hypothesis profiles, markers by folder, a shorter leash for tests without a JVM."""

import gc
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, Verbosity, settings
from tests.quick_spark import JVM_OPTIONS
from tests.s3_server import S3Bucket, S3Server

HERE: Final = Path(__file__).parent
JVM_MARKS: Final = ("spark", "jvm", "interop", "slow", "faults", "bench")
QUICK_TEST_SECONDS: Final = 120

# No deadlines: four lanes share the machine, and a slow one must not fail a test. The CI is derandomised, so that a
# change is judged by itself.
# Few examples: they add up over the runs, and `make test-slow` has 800 of each.
settings.register_profile("dev", max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile(
    "ci",
    max_examples=15,
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("long", max_examples=800, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("soak", max_examples=5_000, deadline=None, verbosity=Verbosity.quiet)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev"))


@pytest.fixture
def small_heap() -> Iterator[None]:
    """Take what earlier tests left out of the garbage collector's sight: a collection looks at new objects only."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """Start an S3 server, once."""
    with S3Server() as server:
        yield server


@pytest.fixture(scope="session")
def s3_bucket(s3_server: S3Server) -> S3Bucket:
    """Make a bucket for all tests, each of which has a directory of its own in it."""
    return s3_server.make_bucket()


def pytest_configure(config: pytest.Config) -> None:
    """Add the marker of a folder, let SIGINT work in the processes that tests start, and keep what they compile.

    A shell starts what runs in the background with SIGINT ignored, which children inherit. A process without compiled
    files takes two seconds more to import Penstock.
    """
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
        os.environ.setdefault("PYTHONPYCACHEPREFIX", str(HERE.parent / ".pytest_cache" / "compiled"))
        sys.dont_write_bytecode = False
        sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # For each JVM that Spark starts, in this process or in one that a test starts.
    os.environ.setdefault("SPARK_SUBMIT_OPTS", " ".join(JVM_OPTIONS))
    config.addinivalue_line("markers", "interop: asks Java Paimon or pypaimon (given to everything in tests/interop)")


def pytest_collection_finish() -> None:
    """Keep modules and tests, which live to the end, from being looked through by each of Python's collections."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Let Python collect them at its exit, where extension modules report what is left."""
    gc.unfreeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark by folder, and let a quick test hang for two minutes at most instead of the ten of a Spark test."""
    for item in items:
        folder = item.path.relative_to(HERE).parts[0]
        if folder in {"spark", "interop", "faults"}:
            item.add_marker(folder)
        has_own_limit = item.get_closest_marker("timeout") is not None
        # Property tests draw until they have enough, which takes minutes where others take the cores.
        is_quick = folder != "property" and not any(item.get_closest_marker(mark) for mark in JVM_MARKS)
        if is_quick and not has_own_limit:
            item.add_marker(pytest.mark.timeout(QUICK_TEST_SECONDS))
