"""The classes of this package, compiled in the driver's JVM by the compiler that Spark uses for generated code.

Source:
    ``org.codehaus.janino.SimpleCompiler``, which Spark depends on.
"""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from penstock.spark.versions.facts import CONNECT_MERGES, HAS_CLASSIC, SCHEMA_EVOLUTION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

# Of Java: the first one that allows calls of static methods of interfaces.
_TARGET_VERSION: Final = 8


def compile_driver(make_compiler: Callable[[], Any], loader: Any, gateway: Any) -> Any:  # noqa: ANN401 - objects of the JVM
    """Return an object of ``Driver.java``.

    Args:
        make_compiler: returns a new compiler.
        loader: class loader that has Spark's classes.
        gateway: of Py4J in the JVM, through which Java calls Python.
    """
    calls = compile_class(make_compiler(), loader, "PythonCalls")
    calls.setGateway(gateway)
    driver = compile_class(make_compiler(), calls.getClass().getClassLoader(), "Driver")
    driver.setCalls(calls)
    if not SCHEMA_EVOLUTION.is_here:
        driver.refuseEvolution(SCHEMA_EVOLUTION.refused())
    if not CONNECT_MERGES.is_here:
        driver.refuseMergesOfConnect(CONNECT_MERGES.refused())
    return driver


def compile_class(compiler: Any, loader: Any, name: str) -> Any:  # noqa: ANN401 - objects of the JVM
    """Return an object of one of the classes.

    Args:
        compiler: a new compiler.
        loader: class loader that has the classes which this one uses.
    """
    compiler.setParentClassLoader(loader)
    compiler.setTargetVersion(_TARGET_VERSION)
    text = files(__package__).joinpath(f"{name}.java").read_text(encoding="utf-8")
    compiler.cook(text if HAS_CLASSIC else text.replace("spark.sql.classic.", "spark.sql."))
    return compiler.getClassLoader().loadClass(f"penstock.{name}").newInstance()


def places_text(places: Iterable[int]) -> str:
    """Return positions as text for ``Driver.chosen`` and ``Driver.filters``; an array would take a call per element."""
    return ",".join(map(str, places))
