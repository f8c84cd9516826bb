"""Compile the small catalog through which Iceberg runs on Spark 4.2."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyspark

from bench.settings import DATA

if TYPE_CHECKING:
    from collections.abc import Sequence

SOURCE: Final = Path(__file__).parent / "java" / "IcebergTables.java"


def compile_catalog(jars: Sequence[Path]) -> Path:
    """Return a JAR with the catalog's class, compiled if the source has changed.

    Raises:
        OSError: this Java has no compiler, or the source does not compile with the JARs.
    """
    key = hashlib.sha256(b"\0".join([SOURCE.read_bytes(), *(jar.name.encode() for jar in jars)])).hexdigest()[:12]
    target = DATA / f"iceberg-catalog-{key}.jar"
    if target.exists():
        return target
    DATA.mkdir(parents=True, exist_ok=True)
    spark_jars = (Path(pyspark.__file__).parent / "jars").glob("*.jar")
    home = os.environ.get("JAVA_HOME")
    # A JRE has no javac on the PATH but usually the compiler's module.
    compiler = [f"{home}/bin/java" if home else "java", "-m", "jdk.compiler/com.sun.tools.javac.Main", "-nowarn"]
    with tempfile.TemporaryDirectory(dir=DATA) as folder:
        class_path = os.pathsep.join(map(str, (*jars, *spark_jars)))
        command = [*compiler, "--release", "17", "-d", folder, "-cp", class_path, SOURCE]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            message = f"the catalog for Iceberg does not compile: {done.stderr.strip().splitlines()[:1]}"
            raise OSError(message)
        packed = Path(folder) / "catalog.jar"
        with zipfile.ZipFile(packed, "w") as archive:
            for file in Path(folder).rglob("*.class"):
                archive.write(file, file.relative_to(folder))
        packed.rename(target)
    return target
