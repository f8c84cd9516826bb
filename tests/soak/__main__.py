"""Run everything that works on tables at the same time, for long, and see that nothing grows: ``make soak``."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

from bench.environment import describe_machine
from tests.cloud_servers import BUCKET, VersityServer
from tests.s3_server import ACCESS_KEY, SECRET_KEY
from tests.soak.processes import refuse_huge_pages
from tests.soak.record import load_samples
from tests.soak.report import figures, to_markdown
from tests.soak.run import Part, run_part
from tests.soak.scene import BATCH_SECONDS, Scene

LONGEST_MINUTES = 50.0


def main() -> int:
    """Run a part, or only read a record again; return 1 where a bound is broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=2.0, help=f"of this part, at most {LONGEST_MINUTES:g} (2)")
    parser.add_argument("--resume", type=Path, metavar="DIR", help="tables and record of the parts before, or new ones")
    parser.add_argument(
        "--warm-up", type=float, metavar="MINUTES", help="left out of each part (a quarter, at most 12)"
    )
    parser.add_argument("--keep", type=Path, metavar="FILE", help="add the raw samples here")
    parser.add_argument("--report", type=Path, metavar="FILE", help="run nothing, judge this record")
    parser.add_argument(
        "--s3", action="store_true", help="the tables are on an S3 server of this run, which make test-cloud fetches"
    )
    given = parser.parse_args()
    minutes = min(given.minutes, LONGEST_MINUTES)
    warm_up = 60 * (given.warm_up if given.warm_up is not None else min(12.0, minutes / 4))
    if given.report is not None:
        return _judge(given.report, warm_up)
    refuse_huge_pages()
    root = given.resume or Path(tempfile.mkdtemp(prefix="penstock-soak-"))
    # A slot a minute, less in a short part, so that old ones go during the warm-up.
    slot_batches = max(2, round(min(60.0, minutes * 60 / 20) / BATCH_SECONDS))
    with VersityServer() if given.s3 else nullcontext() as server:
        warehouse, files = ("", "") if server is None else _on_store(server)
        scene = Scene.make(root.absolute(), slot_batches=slot_batches, warehouse=warehouse, files=files)
        print(f"{minutes:g} minutes in {root}, from {time.strftime('%Y-%m-%d %H:%M')}", flush=True)
        record = run_part(Part(scene=scene, seconds=minutes * 60, sample_seconds=min(10.0, minutes * 60 / 24)))
    if given.keep is not None:
        given.keep.parent.mkdir(parents=True, exist_ok=True)
        given.keep.write_bytes(record.read_bytes())
    return _judge(record, warm_up)


def _on_store(server: VersityServer) -> tuple[str, str]:
    """Let all processes find a store by the environment; return a location on it, and the directory of its files."""
    os.environ.update(
        {
            "AWS_ENDPOINT_URL": server.bucket.url,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        }
    )
    return f"{server.bucket.root}/warehouse", str(server.folder / BUCKET / "warehouse")


def _judge(record: Path, warm_up: float) -> int:
    samples = load_samples(record)
    found = figures(samples, warm_up=warm_up)
    broken = [figure for figure in found if figure.verdict == "BROKEN"]
    machine = ", ".join(f"{value} {key}" for key, value in describe_machine().items() if key in {"cores", "memory"})
    parts = {sample.part: sample.seconds / 60 for sample in samples}
    print(
        f"parts of {', '.join(f'{each:.0f}' for each in parts.values())} minutes, warm-up {warm_up / 60:g}; {machine}"
    )
    print(f"counted at the end: {dict(samples[-1].notes)}")
    print(to_markdown(found))
    print(f"\n{len(found)} series, {len(broken)} broken" + "".join(f"\n  {each.series.name}" for each in broken))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
