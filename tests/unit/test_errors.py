"""Where warnings are shown."""

from __future__ import annotations

import socket
import threading
import warnings
from typing import Any

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


GATEWAY = """
import sys
import time

def ask_java(answers, java):
    java.start()
    assert answers.readline()
    java.join()

def serve(thing, end, asking):
    while sys._current_frames()[asking].f_code.co_name != "readinto":
        time.sleep(0.001)
    thing.value
    end.sendall(b"answer\\n")
"""


def make_thing() -> Any:
    library: dict[str, Any] = {"__name__": "penstock.library"}
    exec(compile(LIBRARY, "library.py", "exec"), library)  # noqa: S102 - a module of the package
    return library["Thing"]()


def test_a_warning_names_the_line_of_the_user_behind_properties_and_context_managers() -> None:
    thing = make_thing()
    with pytest.warns(OptionWarning, match="text") as found:
        assert thing.value == 1
    assert found[0].filename == __file__


def test_a_warning_in_a_call_from_java_names_the_line_that_asked_java() -> None:
    gateway: dict[str, Any] = {"__name__": "py4j.gateway"}
    exec(compile(GATEWAY, "gateway.py", "exec"), gateway)  # noqa: S102 - a module of Py4J
    ours, theirs = socket.socketpair()
    with ours, theirs, ours.makefile("rb") as answers:
        java = threading.Thread(target=gateway["serve"], args=(make_thing(), theirs, threading.get_ident()))
        with pytest.warns(OptionWarning, match="text") as found:
            gateway["ask_java"](answers, java)
    assert found[0].filename == __file__


def test_a_warning_in_a_process_of_spark_has_no_line_of_spark() -> None:
    worker: dict[str, Any] = {"__name__": "pyspark.sql.worker"}
    exec("def run(thing):\n    return thing.value", worker)  # noqa: S102 - a module of PySpark
    with pytest.warns(OptionWarning, match="text") as found:
        worker["run"](make_thing())
    assert (found[0].filename, found[0].lineno) == ("<penstock>", 0)


def test_a_warning_of_a_thread_of_its_own_has_no_line_of_threading() -> None:
    thing = make_thing()
    thread = threading.Thread(target=type(thing).value.func, args=(thing,))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        thread.start()
        thread.join()
    assert [each.filename for each in found] == ["<penstock>"]
