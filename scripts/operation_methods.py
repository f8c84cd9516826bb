"""A griffe extension: methods that derive from declarations of operations are documented as methods.

``compact = method(Compact)`` is the method of the dataclass ``Compact``: its arguments are the fields, its result is
that of ``run``, and its docstring that of the class. Loaded after griffe's extension for dataclasses. It reads the code
and does not import it: the environment of the site has none of its dependencies.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any, cast

import griffe

if TYPE_CHECKING:
    from collections.abc import Iterator


class OperationMethods(griffe.Extension):
    """Replaces attributes that are made by ``method`` with functions."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:  # noqa: ANN401 - as griffe calls it
        """Replace the attributes of all classes of a package."""
        for owner in _classes(pkg):
            for name, member in list(owner.members.items()):
                if isinstance(member, griffe.Attribute) and str(member.value).startswith("method("):
                    owner.set_member(name, _function(member))


def _classes(module: griffe.Module) -> Iterator[griffe.Class]:
    yield from module.classes.values()
    for each in module.modules.values():
        if not isinstance(each, griffe.Alias):
            yield from _classes(each)


def _function(member: griffe.Attribute) -> griffe.Function:
    path = cast("griffe.Expr", cast("griffe.ExprCall", member.value).arguments[0]).canonical_path
    operation = cast("griffe.Class", member.package[path.partition(".")[2]])
    parameters = [
        griffe.Parameter(each.name, annotation=_plain(each.annotation), kind=each.kind, default=each.default)
        for each in operation.parameters
    ]
    found = griffe.Function(
        member.name,
        lineno=member.lineno,
        endlineno=member.endlineno,
        parameters=griffe.Parameters(*parameters),
        returns=cast("griffe.Function", operation["run"]).returns,
    )
    found.docstring = griffe.Docstring(_documentation(operation), parser="google", parent=found)
    found.labels |= member.labels & {"public"}
    return found


def _documentation(operation: griffe.Class) -> str:
    """Return the docstring of an operation's method, as ``documentation_of`` of its declarations does."""
    text = cast("griffe.Docstring", operation.docstring).value
    if not any("datetime" in str(each.annotation) for each in operation.parameters):
        return text
    times = cast("griffe.Attribute", operation.package["api.operations.declaration._TIMES"]).value
    description = re.split(r"\n+(?:Args|Returns|Raises):\n", text)[0]
    return description + ast.literal_eval(str(times)) + text.removeprefix(description)


def _plain(annotation: str | griffe.Expr | None) -> str | griffe.Expr | None:
    """Return an annotation without what ``Annotated`` adds."""
    if isinstance(annotation, griffe.ExprSubscript) and str(annotation.left) == "Annotated":
        return cast("griffe.ExprTuple", annotation.slice).elements[0]
    return annotation
