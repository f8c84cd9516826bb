"""One process of each reference engine for all interop tests of a run."""

import os
from collections.abc import Callable, Iterator
from typing import Final

import pytest
from tests.interop.engines import Engine, JavaPaimon, PyPaimon, UnavailableError

# Set where the engines can be had for certain, so that their absence is a failure and not a line among many.
IS_REQUIRED: Final = os.environ.get("PENSTOCK_REQUIRE_INTEROP") == "1"


def start(make: Callable[[], Engine]) -> Engine:
    """Start an engine, or skip the tests that ask for it with one line of reason."""
    try:
        return make()
    except UnavailableError as reason:
        if IS_REQUIRED:
            pytest.fail(f"PENSTOCK_REQUIRE_INTEROP=1, but {reason}", pytrace=False)
        pytest.skip(str(reason))


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
