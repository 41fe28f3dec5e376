"""Plant faults of every kind and write down what finds each: ``python -m
property_tests.planted.kinds [NAME ...] [--write]``.

With ``--resume`` those are left out that the record has as they are declared now, so an interrupted
command goes on. ``docs.generate`` makes docs/evidence/index.md of the record,
docs/data/faults.json.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from property_tests.planted.kinds.running import Stage, digest
from property_tests.planted.kinds.table import TABLE

RECORD = Path(__file__).parents[3] / "docs" / "data" / "faults.json"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m property_tests.planted.kinds", description=__doc__
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these faults")
    parser.add_argument(
        "--gate", action="store_true", help="only those that are planted for every commit"
    )
    parser.add_argument(
        "--write", action="store_true", help=f"put each result into {RECORD.name} as it comes"
    )
    parser.add_argument(
        "--resume", action="store_true", help="leave out what is on record as it is declared now"
    )
    options = parser.parse_args()
    unknown = set(options.names) - {fault.name for fault in TABLE}
    if unknown:
        parser.error(f"there is no fault {', '.join(sorted(unknown))}")
    record = read()
    found = silent = 0
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        stage = Stage(Path(folder))
        for fault in TABLE:
            known = record.get(fault.name, {}).get("declared") == digest(fault)
            if (
                (options.names and fault.name not in options.names)
                or (options.gate and not fault.gate)
                or (options.resume and known)
            ):
                continue
            seen = stage.plant(fault)
            found, silent = found + (not seen.defect), silent + bool(seen.defect)
            print(f"{fault.name}: exit {seen.code}: {seen.defect or seen.line}", flush=True)
            record.pop(fault.name, None)
            if not seen.defect:
                record[fault.name] = {
                    "declared": digest(fault),
                    "code": seen.code,
                    "line": seen.line,
                }
            if options.write:
                write(record)
    print(f"{found} faults were found, {silent} were not, in {time.monotonic() - began:.0f} s")
    return 1 if silent else 0


def read() -> dict[str, Any]:
    """Name -> what the command said, of the faults on record."""
    return dict(json.loads(RECORD.read_text(encoding="utf-8"))) if RECORD.exists() else {}


def write(record: dict[str, Any]) -> None:
    names = {fault.name for fault in TABLE}
    kept = {name: seen for name, seen in record.items() if name in names}
    temporary = RECORD.with_suffix(".tmp")
    temporary.write_text(
        json.dumps(kept, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    temporary.replace(RECORD)


if __name__ == "__main__":
    sys.exit(main())
