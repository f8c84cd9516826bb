"""Errors of ``format("penstock")`` without a Python trace, which Spark would print before the message."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from penstock.errors import TableStoreError

if TYPE_CHECKING:
    from collections.abc import Callable

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


def without_frames(method: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
    """Wrap a method: raise Penstock's errors without frames and without a cause, which the message already contains.

    Other exceptions are defects, and keep their trace.
    """

    @wraps(method)
    def called(*args: _Given.args, **kwargs: _Given.kwargs) -> _Result:
        try:
            return method(*args, **kwargs)
        except TableStoreError as error:
            failure = error.with_traceback(None)
        # Outside of the handler, so that the error is not its own context.
        failure.__cause__ = failure.__context__ = None
        raise failure

    return called
