"""The class ``Driver.java``: compiled by the compiler that Spark has for the code of its queries, in the driver's JVM.

Source:
    ``org.codehaus.janino.SimpleCompiler``, which Spark depends on.
"""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_NAME: Final = "Driver"


def compile_driver(compiler: Any, loader: Any) -> Any:  # noqa: ANN401 - objects of the JVM
    """Return an object of the class.

    Args:
        compiler: a new compiler.
        loader: class loader that has Spark's classes.
    """
    compiler.setParentClassLoader(loader)
    compiler.cook(files(__package__).joinpath(f"{_NAME}.java").read_text(encoding="utf-8"))
    made = compiler.getClassLoader().loadClass(f"penstock.{_NAME}")
    return made.newInstance()


def places_text(places: Iterable[int]) -> str:
    """Return the text in which ``Driver.chosen`` and ``Driver.filters`` take places; an array takes a call for each."""
    return ",".join(map(str, places))


def ordered_files(runs: Iterable[Sequence[tuple[str, int]]]) -> str:
    """Return the text that ``Driver.ordered`` takes.

    Args:
        runs: URI and exact size in bytes of the files of each partition; no run is empty.
    """
    return "\n\n".join(map(listed_files, runs))


def listed_files(given: Iterable[tuple[str, int]]) -> str:
    """Return the text that ``Driver.packed`` takes; a URI has no tabulator and no line break."""
    return "\n".join(f"{uri}\t{size}" for uri, size in given)
