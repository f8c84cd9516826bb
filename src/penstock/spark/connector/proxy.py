"""Python objects that implement Spark's Java interfaces."""

from __future__ import annotations

import threading
from functools import cached_property, wraps
from inspect import isfunction
from typing import TYPE_CHECKING, ClassVar, Final, ParamSpec, TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions.captured import CapturedException

from penstock.errors import TableStoreError
from penstock.spark.connector.failures import to_java, unchecked
from penstock.spark.failures import SparkFailureError
from penstock.spark.versions.facts import interfaces_here

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql.types import StructType

    from penstock.spark.connector.gateway import Bridge, JavaObject

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")
_LAST: Final = threading.local()


class Proxy:
    """Base class of objects that implement Spark's interfaces; a subclass lists them in ``interfaces``.

    Spark gets the object that ``exposed`` returns. The JVM answers methods that the Python class does not define with
    the defaults of their interfaces. Spark compares proxies by their key, which shows it that two scans read the same
    rows.

    Args:
        bridge: access to the JVM.
        key: identifies the value of the object; objects of one class with equal keys are equal. It may be a function
            that returns the key, called on first use.
        keys_text: keys of the partitions of a scan, as text for ``Driver.proxy``.
    """

    interfaces: ClassVar[tuple[str, ...]] = ()
    names_errors: ClassVar[bool] = False
    """Whether messages of errors begin with the names of their classes, as those of Python processes do."""

    rethrows: ClassVar[bool] = False
    """Whether checked exceptions of Java reach the caller; the proxies of the JVM wrap them otherwise."""

    methods: ClassVar[frozenset[str]] = frozenset()
    """Methods that Python answers; set for each subclass."""

    cached_methods: ClassVar[frozenset[str]] = frozenset()
    """Methods without parameters whose answers stay the same until a method with parameters is called."""
    shared_methods: ClassVar[frozenset[str]] = frozenset()
    """Methods without parameters that all objects answer alike for which ``exposed`` gets the same answers."""
    driver_methods: ClassVar[frozenset[str]] = frozenset()
    """Methods that ``Driver.java`` answers, without a call of Python."""

    def __init__(self, bridge: Bridge, key: str | Callable[[], str], *, keys_text: str | None = None) -> None:
        self._bridge = bridge
        self._key_source = key
        self._keys_text = keys_text

    def exposed(self, answers: JavaObject | None = None) -> JavaObject:
        """Return a JVM object that implements these interfaces and caches some answers of this object.

        Args:
            answers: ``Driver.sharedAnswers`` for the answers of ``shared_methods``.
        """
        bridge = self._bridge
        shared_methods = frozenset[str]() if answers is None else self.shared_methods
        shared = bridge.cached("nothing shared", bridge.driver.sharedAnswers) if answers is None else answers
        text = self._key if isinstance(self._key_source, str) else None
        names = map(bridge.names, (self.methods, self.cached_methods, shared_methods))
        return bridge.driver.proxy(self, text, *names, shared, self._keys_text)

    def __init_subclass__(cls) -> None:
        cls.methods = frozenset(name for name in dir(cls) if not name.startswith("_"))
        for name in cls.methods & vars(cls).keys():
            if isfunction(method := vars(cls)[name]):
                setattr(cls, name, _kept(method))
        # Py4J reads the names of interfaces from this class.
        cls.Java = type("Java", (), {"implements": interfaces_here(cls.interfaces)})  # type: ignore[attr-defined] # made for Py4J

    @cached_property
    def _key(self) -> str:
        key = self._key_source
        return f"{type(self).__name__}[{key if isinstance(key, str) else key()}]"

    def toString(self) -> str:
        """Return the class and the key, by which the JVM compares objects."""
        return self._key


def _kept(method: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Keep what a method returns or raises until the next call of this thread.

    Py4J sends the name of an object of the JVM, and drops the object before the JVM has looked the name up: with the
    last reference of Python it would go away, and Spark would get null.
    """

    @wraps(method)
    def called(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        try:
            answer = method(*args, **kwargs)
        except Py4JJavaError as error:
            _LAST.answer = error.java_exception
            raise
        _LAST.answer = answer
        return answer

    return called


def from_spark(method: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Wrap a method that Spark calls: expose proxies, and convert our errors to Spark's exceptions without a trace.

    Other exceptions are defects, and keep their trace.
    """

    @wraps(method)
    def called(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        try:
            result = method(*args, **kwargs)
            return result.exposed() if isinstance(result, Proxy) else result
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
            thrown = _thrown_by_java(error)
            failure = SparkFailureError(thrown) if proxy.rethrows else unchecked(proxy._bridge, thrown)
        raise failure

    return called


def _thrown_by_java(error: CapturedException | Py4JJavaError) -> JavaObject:
    """Return the exception of the JVM for which an error of PySpark stands."""
    if isinstance(error, CapturedException):
        if error._origin is not None:
            return error._origin
        # PySpark before 4.2 leaves it out where a Python worker has failed.
        error = error.__context__
        assert isinstance(error, Py4JJavaError)  # noqa: S101 - PySpark raises the one while it handles the other
    return error.java_exception


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

    @from_spark
    def schema(self) -> JavaObject:
        """Return the columns."""
        return self._bridge.schema(self._schema)

    @from_spark
    def columns(self) -> JavaObject:
        """Return the columns."""
        return self._bridge.columns(self.schema())

    def capabilities(self) -> JavaObject:
        """Return the capability."""
        return self._bridge.values_of("catalog.TableCapability", (self.capability,))
