"""Access to Spark's logical plans, which PySpark does not offer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanNode:
    """A node of a plan, whose names and children were read once: each is a call to the JVM.

    Attributes:
        java: the node in the JVM.
    """

    name: str
    children: tuple[PlanNode, ...]
    java: Any

    @property
    def is_streaming(self) -> bool:
        """Whether the node has rows of a stream."""
        return bool(self.java.isStreaming())


def analyzed_plan(frame: DataFrame) -> Any:  # noqa: ANN401 - of the JVM
    """Return the plan of a DataFrame with all names resolved."""
    java_frame: Any = frame._jdf  # noqa: SLF001 - Python has no other way to it
    return java_frame.queryExecution().analyzed()


def read_plan(plan: Any) -> PlanNode:  # noqa: ANN401 - of the JVM
    """Return a plan with all of its nodes."""
    children = tuple(map(read_plan, each_of(plan.children())))
    return PlanNode(name=str(plan.nodeName()), children=children, java=plan)


def each_node(plan: PlanNode) -> Iterator[PlanNode]:
    """Yield a plan node and all nodes below it, always in the same order."""
    plans = [plan]
    while plans:
        node = plans.pop()
        yield node
        plans += node.children


def each_of(sequence: Any) -> Iterator[Any]:  # noqa: ANN401 - of the JVM
    """Yield the elements of a Scala sequence."""
    return (sequence.apply(place) for place in range(sequence.size()))
