"""Which partitions an overwrite replaces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    PartitionTest = Callable[[bytes], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeTable:
    """Every partition, or an unpartitioned table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TouchedPartitions:
    """Exactly the partitions that have new files; nothing happens without any (dynamic overwrite)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSpecs:
    """Partitions that agree with at least one spec.

    Attributes:
        specs: each names some partition columns and their internal values; None means NULL, and only NULL.
    """

    specs: tuple[tuple[tuple[str, object], ...], ...]


OverwriteScope: TypeAlias = WholeTable | TouchedPartitions | PartitionSpecs


def partition_test(
    scope: OverwriteScope,
    *,
    touched: frozenset[bytes],
    partition_keys: tuple[str, ...],
    decode: Callable[[bytes], tuple[object, ...]],
) -> PartitionTest:
    """Return a test of serialized partitions for the scope.

    Args:
        touched: partitions of the new files.
        decode: serialized partition to internal values, in ``partition_keys`` order.
    """
    match scope:
        case WholeTable():
            return lambda _: True
        case TouchedPartitions():
            return touched.__contains__
        case PartitionSpecs(specs=specs):
            positions = {name: index for index, name in enumerate(partition_keys)}
            tests = [[(positions[name], value) for name, value in spec] for spec in specs]

            def matches(partition: bytes) -> bool:
                values = decode(partition)
                return any(all(values[index] == value for index, value in test) for test in tests)

            return matches
