"""What the package promises."""

from __future__ import annotations

import inspect

import penstock
from penstock import errors


def test_every_error_and_warning_is_in_the_package() -> None:
    kinds = [name for name, kind in vars(errors).items() if inspect.isclass(kind) and issubclass(kind, Exception)]
    assert [name for name in kinds if not name.startswith("_") and not hasattr(penstock, name)] == []
    assert set(kinds) <= set(penstock.__all__)
