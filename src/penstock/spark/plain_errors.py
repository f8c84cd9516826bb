"""Errors as users of ``format("penstock")`` read them: Spark prints the trace of a Python data source before them."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from penstock.errors import TableStoreError

if TYPE_CHECKING:
    from collections.abc import Callable

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


def without_frames(method: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
    """Raise errors of ours without the frames that they come from, and without their cause: the message has it.

    Other exceptions keep theirs, since they are defects.
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
