"""Names of the JVM that Py4J is asked for once instead of at each use.

PySpark writes ``jvm.org.apache.spark.sql.X`` at each use. Py4J keeps nothing: for each part of such a name the JVM
looks for a class of that name in some 280 JARs, once for each package that PySpark imports. Penstock keeps classes
itself (``spark/connector/gateway.py``), so this is about PySpark's own calls and those of tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from py4j.java_gateway import JavaClass, JavaPackage, JVMView

if TYPE_CHECKING:
    from collections.abc import Callable


def keep_names() -> None:
    """Let views and packages keep the classes and packages that they have found, until the process ends."""
    for owner in (JVMView, JavaPackage):
        owner.__getattr__ = _keeping(owner.__getattr__)


def _keeping(original: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    def get(owner: Any, name: str) -> Any:
        found = original(owner, name)
        # What is not found is a package for Py4J: a class of that name may come with a JAR that is added later.
        if isinstance(found, JavaClass) or (isinstance(found, JavaPackage) and name.islower()):
            vars(owner)[name] = found
        return found

    return get
