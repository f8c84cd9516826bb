"""Settings under which a Spark session that lives for seconds, in a process of its own, costs least."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

# The optimising compiler of a JVM costs more processor time here than it saves: with it the same 46 Spark tests took
# 60 s of the processor, without it 35 s.
JVM_OPTIONS: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xlog:disable")
_JVM: Final = " ".join(JVM_OPTIONS)
_SETTINGS: Final = {
    "spark.driver.extraJavaOptions": _JVM,
    "spark.executor.extraJavaOptions": _JVM,
    # Each partition of a stream's state is a file for each micro-batch.
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def quick_environment(folder: Path) -> dict[str, str]:
    """Return the environment variables that give a process these settings; what its program sets itself wins.

    Args:
        folder: for the settings; made where it is missing.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"{key} {value}\n" for key, value in _SETTINGS.items()]
    (folder / "spark-defaults.conf").write_text("".join(lines), encoding="utf-8")
    return {"SPARK_CONF_DIR": str(folder)}
