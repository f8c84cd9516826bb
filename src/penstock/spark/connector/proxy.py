"""Objects of this process that Spark calls as its own."""

from __future__ import annotations

import zlib
from functools import wraps
from typing import TYPE_CHECKING, ClassVar, ParamSpec, TypeVar

from pyspark.errors.exceptions.captured import CapturedException

from penstock.errors import TableStoreError
from penstock.spark.connector.failures import SparkFailureError, to_java

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.spark.connector.gateway import Bridge, JavaObject

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


class Proxy:
    """What implements interfaces of Spark; each subclass names them in a class ``Java`` of its own.

    Py4J answers for the methods that the class has and for no others, not even for those with a default in Java. Two
    proxies of equal values are equal to Spark, which is how it finds that two scans read the same.

    Args:
        bridge: the way to the JVM.
        key: of what the object is a view; equal keys are equal objects.
    """

    interfaces: ClassVar[tuple[str, ...]] = ()

    def __init__(self, bridge: Bridge, key: str) -> None:
        self._bridge = bridge
        self._key = f"{type(self).__name__}[{key}]"

    def __init_subclass__(cls) -> None:
        # Where Py4J looks for the names of interfaces.
        cls.Java = type("Java", (), {"implements": list(cls.interfaces)})  # type: ignore[attr-defined] # made for Py4J

    def hashCode(self) -> int:
        """Return a number that is the same for equal objects, as an ``int`` of Java."""
        return zlib.crc32(self._key.encode()) - (1 << 31)

    def equals(self, other: JavaObject) -> bool:
        """Whether another object of the JVM is a view of the same."""
        return other is self or (other is not None and other.toString() == self._key)

    def toString(self) -> str:
        """Return what the object is a view of."""
        return self._key


def from_spark(method: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
    """Mark a method that Spark calls: errors of ours become exceptions of Spark's, without a trace of Python's.

    Other exceptions are defects, and keep theirs.
    """

    @wraps(method)
    def called(*args: _Given.args, **kwargs: _Given.kwargs) -> _Result:
        try:
            return method(*args, **kwargs)
        except TableStoreError as error:
            proxy = args[0]
            assert isinstance(proxy, Proxy)  # noqa: S101 - the decorator is for its methods
            failure = to_java(proxy._bridge, error)
        except CapturedException as error:
            # Of a job that the method has run: it goes on as it came.
            failure = SparkFailureError(error._origin)
        raise failure

    return called
