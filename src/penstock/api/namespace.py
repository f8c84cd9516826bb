"""Methods of a namespace that are also methods of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

if TYPE_CHECKING:
    from collections.abc import Callable

_P = ParamSpec("_P")
_R = TypeVar("_R")


class MethodOf(Generic[_P, _R]):
    """Delegates to a method of an attribute of the owner: ``table.compact`` is ``table.maintenance.compact``.

    Args:
        attribute: name of the owner's attribute.
        method: of the attribute's object.
    """

    def __init__(self, attribute: str, method: Callable[Concatenate[Any, _P], _R]) -> None:
        self._attribute = attribute
        self._method = method
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, owner: None, kind: type) -> Callable[Concatenate[Any, _P], _R]: ...

    @overload
    def __get__(self, owner: object, kind: type) -> Callable[_P, _R]: ...

    def __get__(self, owner: object | None, kind: type) -> Callable[..., _R]:
        """Return the bound method; on the class, the function."""
        if owner is None:
            return self._method
        bound: Callable[_P, _R] = getattr(getattr(owner, self._attribute), self._method.__name__)
        return bound
