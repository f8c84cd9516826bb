"""Access to Spark's logical plans, which PySpark does not offer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame


def analyzed_plan(frame: DataFrame) -> Any:  # noqa: ANN401 - of the JVM
    """Return the plan of a DataFrame with all names resolved."""
    given: Any = frame._jdf  # noqa: SLF001 - Python has no other way to it
    return given.queryExecution().analyzed()


def each_node(plan: Any) -> Iterator[Any]:  # noqa: ANN401 - of the JVM
    """Yield a plan node and all nodes below it, always in the same order."""
    plans = [plan]
    while plans:
        node = plans.pop()
        yield node
        plans += each_of(node.children())


def each_of(sequence: Any) -> Iterator[Any]:  # noqa: ANN401 - of the JVM
    """Yield the elements of a Scala sequence."""
    return (sequence.apply(place) for place in range(sequence.size()))
