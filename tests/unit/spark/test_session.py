"""The session that commands start, as far as it needs no JVM."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
from pyspark import SparkContext

from penstock import UnsupportedFeatureError
from penstock.spark.session import _held_back, open_session

_SPEAKER = "import sys; print('noise', file=sys.stderr, flush=True); input(); print('later', file=sys.stderr)"


def _start() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", _SPEAKER], stdin=subprocess.PIPE)


def test_what_a_process_says_on_its_way_up_is_held_back_and_the_rest_is_not(capfd: pytest.CaptureFixture[str]) -> None:
    with _held_back():
        process = _start()
        time.sleep(0.3)
    assert process.stdin is not None
    process.communicate(b"\n")
    for _ in range(100):
        err = capfd.readouterr().err
        if err:
            break
        time.sleep(0.02)
    assert err.splitlines()[-1] == "later"


def test_a_start_that_fails_says_what_was_held_back(capfd: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        with _held_back():
            subprocess.run([sys.executable, "-c", _SPEAKER], input=b"\n", check=True)
            time.sleep(0.1)
            raise RuntimeError("exited")

    with pytest.raises(RuntimeError) as caught:
        fail()
    assert caught.value.__notes__ == ["noise", "later"]
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(("home", "says"), [("/nowhere", "JAVA_HOME is /nowhere"), (None, "no java on the PATH")])
def test_a_machine_without_java_gets_an_error(monkeypatch: pytest.MonkeyPatch, home: str | None, says: str) -> None:
    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setenv("PATH", "/nowhere")
    if home is None:
        monkeypatch.delenv("JAVA_HOME", raising=False)
    else:
        monkeypatch.setenv("JAVA_HOME", home)
    with pytest.raises(UnsupportedFeatureError, match=f"Java 17 or newer: .*{says}"):
        open_session("local[1]", {}, shows_start=False)
