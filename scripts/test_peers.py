"""Run pypaimon's own tests with Penstock as a second reader of every table that they make.

The newest pypaimon and its requirements come from PyPI into an environment below .interop/. Its tests are not part of
the package: they come from ``PAIMON_SOURCE``, a clone of Paimon's repository, or are cloned from GitHub. What cannot be
fetched ends the script with one line. ``test_peers.py [arguments of pytest]``; the exit code is 1 if Penstock reads a
table differently, or ends in another error than a refusal.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from tests.interop.engines import INSTALLED, UnavailableError, install_environment, run_step  # noqa: E402

PEERS: Final = ROOT / "tests" / "peers"
REPOSITORY: Final = "https://github.com/apache/paimon"
# Other systems, which the tests start, and tests of what no table is made for.
IGNORED: Final = ("*ray*", "*daft*", "*torch*", "*e2e*", "*oss*", "*gcs*", "*hdfs*", "*kerberos*", "*jdbc*", "*py36*")
KNOWN: Final = {
    "test_schema_evolution_with_scan_filter": "pypaimon cuts digits of a DECIMAL that Java and Penstock round",
    "/pt=0.000000000/": "pypaimon names the directory 0E-9, and no other engine does",
    "is added twice": "a file that a manifest adds twice, which Java refuses, too",
}
"""Text in a difference, and why it is none."""


def main() -> int:
    """Run the tests and print the findings."""
    try:
        environment = install_environment("peers", PEERS / "requirements.txt", INSTALLED)
        source = fetch_tests()
    except UnavailableError as error:
        print(f"skipped: {error}")
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        result = Path(scratch) / "result.json"
        run_tests(environment, source, result, sys.argv[1:])
        if not result.exists():
            print("pypaimon's tests did not run to their end")
            return 1
        return report(json.loads(result.read_text(encoding="utf-8")))


def fetch_tests() -> Path:
    """Return the folder of pypaimon's sources and tests.

    Raises:
        UnavailableError: neither a clone nor GitHub can be used.
    """
    clone = os.environ.get("PAIMON_SOURCE") or str(INSTALLED / "paimon.git")
    if "PAIMON_SOURCE" not in os.environ and not Path(clone).is_dir():
        clone_command = ["git", "clone", "-q", "--bare", "--depth=1", "--filter=blob:none", REPOSITORY, clone]
        run_step(clone_command, "pypaimon's tests cannot be fetched")
    commit = run_step(["git", "-C", clone, "rev-parse", "HEAD"], "pypaimon's tests").strip()
    target = INSTALLED / f"paimon-{commit[:12]}"
    if not target.is_dir():
        INSTALLED.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(dir=INSTALLED))
        archive = fresh / "tests.tar"
        run_step(["git", "-C", clone, "archive", "-o", archive, commit, "paimon-python"], "pypaimon's tests")
        shutil.unpack_archive(archive, fresh, filter="data")
        (fresh / "paimon-python").rename(target)
        shutil.rmtree(fresh)
    return target


def run_tests(environment: Path, source: Path, result: Path, arguments: list[str]) -> None:
    """Run pytest in pypaimon's environment; its own failures are counted, not judged."""
    reader = [sys.executable, str(PEERS / "reader.py")]
    command = [environment / "bin" / "python", "-m", "pytest", "-q", "--no-header", "--tb=no", "-p", "beside_pypaimon"]
    command += [
        f"--rootdir={source}",
        "-c",
        os.devnull,
        "-p",
        "no:cacheprovider",
        "--continue-on-collection-errors",
        "-W",
        "ignore",
        "-r",
        "N",
    ]
    command += [f"--ignore-glob={pattern}" for pattern in IGNORED]
    paths = os.pathsep.join(str(path) for path in (PEERS, ROOT / "tests" / "interop"))
    settings = {"PYTHONPATH": paths, "PENSTOCK_READER": json.dumps(reader), "PEERS_RESULT": str(result)}
    subprocess.run([*command, *(arguments or ["pypaimon/tests"])], cwd=source, env=os.environ | settings, check=False)


def report(found: dict[str, Any]) -> int:
    """Print counts and differences; return the exit code."""
    known = [each for each in found["different"] if reason_for(each)]
    fresh = [each for each in found["different"] if not reason_for(each)]
    print("\npypaimon's tests with Penstock beside:")
    for name, count in found["counts"].items():
        print(f"{count:6} {name}")
    print("\nrefused by design:")
    for reason, count in sorted(found["refused"].items(), key=lambda item: -item[1]):
        print(f"{count:6} {reason}")
    for reason, count in found["unread"].items():
        print(f"{count:6} not read by pypaimon: {reason}")
    for each in known:
        print(f"       known: {reason_for(each)}: {each['test']}")
    for each in fresh:
        print(f"\nDIFFERENT in {each['test']}\n  Penstock: {each['penstock']}\n  pypaimon: {each['pypaimon']}")
    print(f"\n{len(fresh)} differences")
    return 1 if fresh else 0


def reason_for(difference: dict[str, str]) -> str | None:
    """Return why a difference is none."""
    text = " ".join(difference.values())
    return next((why for part, why in KNOWN.items() if part in text), None)


if __name__ == "__main__":
    sys.exit(main())
