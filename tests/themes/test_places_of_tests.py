"""The tests of a module are where one guess finds them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

TESTS: Final = Path(__file__).parents[1]
SOURCES: Final = TESTS.parent / "src" / "penstock"
MODULES: Final = [path.relative_to(SOURCES) for path in sorted(SOURCES.rglob("*.py")) if not path.name.startswith("__")]
# Modules without a test of their name or of their package's. Only ever lower it.
MAX_UNFOUND: Final = 41


def guesses(module: Path) -> Iterator[Path]:
    """Yield where the tests of a module may be: at its path, or in the one file of its package."""
    package = module.parent
    for folder in (TESTS / "unit", TESTS):
        yield folder / package / f"test_{module.name}"
        if package.parts:
            yield folder / package / f"test_{package.name}.py"
            yield folder / package.parent / f"test_{package.name}.py"


def test_the_tests_of_most_modules_are_found_by_one_guess() -> None:
    unfound = [str(module) for module in MODULES if not any(guess.is_file() for guess in guesses(module))]
    assert len(unfound) <= MAX_UNFOUND, unfound
