"""Python objects that implement Spark's Java interfaces."""

from __future__ import annotations

import zlib
from functools import cached_property, wraps
from typing import TYPE_CHECKING, ClassVar, NoReturn, ParamSpec, TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions.captured import CapturedException

from penstock.errors import TableStoreError
from penstock.spark.connector.failures import SparkFailureError, to_java, unchecked

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql.types import StructType

    from penstock.spark.connector.gateway import Bridge, JavaObject

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


class Proxy:
    """Base class of objects that implement Spark's interfaces; a subclass lists them in ``interfaces``.

    Py4J only calls methods that the Python class defines: default methods of a Java interface do not work. Spark
    compares proxies by their key, which shows it that two scans read the same rows.

    Args:
        bridge: access to the JVM.
        key: identifies the value of the object; objects of one class with equal keys are equal. It may be a function
            that returns the key, called on first use.
    """

    interfaces: ClassVar[tuple[str, ...]] = ()
    names_errors: ClassVar[bool] = False
    """Whether messages of errors begin with the names of their classes, as those of Python processes do."""

    rethrows: ClassVar[bool] = False
    """Whether checked exceptions of Java reach the caller; the proxies of the JVM wrap them otherwise."""

    keeps: ClassVar[frozenset[str]] = frozenset()
    """Methods without parameters whose answers stay the same until a method with parameters is called."""
    shares: ClassVar[frozenset[str]] = frozenset()
    """Methods without parameters that all objects answer alike for which ``exposed`` is given the same answers."""

    def __init__(self, bridge: Bridge, key: str | Callable[[], str]) -> None:
        self._bridge = bridge
        self._key_source = key

    def exposed(self, answers: JavaObject | None = None) -> JavaObject:
        """Return a JVM object that implements these interfaces and caches some answers of this object.

        Args:
            answers: ``Driver.sharedAnswers`` for the answers in ``shares``.
        """
        bridge = self._bridge
        shares = frozenset[str]() if answers is None else self.shares
        given = bridge.once("nothing shared", bridge.driver.sharedAnswers) if answers is None else answers
        text = self._key if isinstance(self._key_source, str) else None
        return bridge.driver.keeping(self, text, bridge.names(self.keeps), given, bridge.names(shares))

    def __init_subclass__(cls) -> None:
        # Py4J reads the names of interfaces from this class.
        cls.Java = type("Java", (), {"implements": list(cls.interfaces)})  # type: ignore[attr-defined] # made for Py4J

    @cached_property
    def _key(self) -> str:
        key = self._key_source
        return f"{type(self).__name__}[{key if isinstance(key, str) else key()}]"

    def hashCode(self) -> int:
        """Return the same hash for equal objects, in the range of a Java ``int``."""
        return zlib.crc32(self._key.encode()) - (1 << 31)

    def equals(self, other: JavaObject) -> bool:
        """Whether another JVM object has the same key."""
        return other is self or (other is not None and other.toString() == self._key)

    def toString(self) -> str:
        """Return the class and the key."""
        return self._key

    def _refuse(self, what: str) -> NoReturn:
        """Raise: Spark called a method that this object does not support."""
        raise RuntimeError(f"Spark asks {type(self).__name__} for {what}, which it has not offered")


def from_spark(method: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
    """Wrap a method that Spark calls: convert our errors to Spark's exceptions, without a Python trace.

    Other exceptions are defects, and keep their trace.
    """

    @wraps(method)
    def called(*args: _Given.args, **kwargs: _Given.kwargs) -> _Result:
        try:
            return method(*args, **kwargs)
        except TableStoreError as error:
            proxy = args[0]
            assert isinstance(proxy, Proxy)  # noqa: S101 - the decorator is for its methods
            failure = to_java(proxy._bridge, error, is_named=proxy.names_errors)
        except SparkFailureError:
            raise
        except (CapturedException, Py4JJavaError) as error:
            # From a Spark job that the method has run.
            proxy = args[0]
            assert isinstance(proxy, Proxy)  # noqa: S101 - as above
            thrown = error._origin if isinstance(error, CapturedException) else error.java_exception
            failure = SparkFailureError(thrown) if proxy.rethrows else unchecked(proxy._bridge, thrown)
        raise failure

    return called


class PlainTable(Proxy):
    """A table with only a name, columns and one capability: no partitions, properties or versions.

    Args:
        key: as for every proxy.
        name: name that messages and plans show.
        schema: its columns.
    """

    capability: ClassVar[str]

    def __init__(self, bridge: Bridge, key: str, name: str, schema: StructType) -> None:
        super().__init__(bridge, key)
        self._name = name
        self._schema = schema

    def name(self) -> str:
        """Return the name."""
        return self._name

    def id(self) -> None:
        """Return none: Spark need not detect another table of the same name."""

    def version(self) -> None:
        """Return none."""

    @from_spark
    def schema(self) -> JavaObject:
        """Return the columns."""
        return self._bridge.schema(self._schema)

    @from_spark
    def columns(self) -> JavaObject:
        """Return the columns."""
        return self._bridge.columns(self.schema())

    def partitioning(self) -> JavaObject:
        """Return none."""
        return self._bridge.identities(())

    def properties(self) -> JavaObject:
        """Return none."""
        return self._bridge.java_map({})

    def capabilities(self) -> JavaObject:
        """Return the capability."""
        return self._bridge.values_of("catalog.TableCapability", (self.capability,))

    def constraints(self) -> JavaObject:
        """Return none."""
        return self._bridge.no_items("catalog.constraints.Constraint")
