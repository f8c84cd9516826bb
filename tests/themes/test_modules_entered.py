"""The number of modules that an operation enters does not grow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from scripts.count_modules import Entered, count_in_python

if TYPE_CHECKING:
    from pathlib import Path

# As counted: lower a limit when its operation enters fewer modules. A new feature of an operation may need one more; a
# split of a module that exists does not.
MAX_MODULES: Final = {
    "append": 55,
    "append to a queue": 62,
    "filtered to_arrow": 43,
    "delete": 79,
    "load_table": 20,
    "compact": 78,
}


@pytest.fixture(scope="module")
def counts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Entered]:
    directory: Path = tmp_path_factory.mktemp("entered")
    return count_in_python(directory)


@pytest.mark.parametrize("operation", MAX_MODULES)
def test_an_operation_enters_no_more_modules_than_before(counts: dict[str, Entered], operation: str) -> None:
    assert len(counts[operation].modules) <= MAX_MODULES[operation], sorted(counts[operation].modules)


def test_every_counted_operation_has_a_limit(counts: dict[str, Entered]) -> None:
    assert counts.keys() == MAX_MODULES.keys()
