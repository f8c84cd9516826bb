"""Where warnings are shown."""

from __future__ import annotations

import pytest

from penstock.errors import OptionWarning

LIBRARY = """
from contextlib import contextmanager
from functools import cached_property
from penstock.errors import OptionWarning, warn

@contextmanager
def opened():
    warn("text", OptionWarning)
    yield

class Thing:
    @cached_property
    def value(self):
        with opened():
            return 1
"""


def test_a_warning_names_the_line_of_the_user_behind_properties_and_context_managers() -> None:
    library: dict[str, object] = {"__name__": "penstock.library"}
    exec(compile(LIBRARY, "library.py", "exec"), library)  # noqa: S102 - a module of the package
    thing = library["Thing"]()  # type: ignore[operator] # a class
    with pytest.warns(OptionWarning, match="text") as found:
        assert thing.value == 1
    assert found[0].filename == __file__
