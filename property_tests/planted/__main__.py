"""Plant every fault and write down which check finds it: ``python -m property_tests.planted [--case
NAME ...] [--write]``.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from property_tests.planted import running
from property_tests.planted.cases import CASES

RECORD = Path(__file__).parents[2] / "docs" / "data" / "planted.json"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", action="append", help="only this case (several times: these)")
    parser.add_argument(
        "--write",
        action="store_true",
        help=f"put the result into {RECORD.name}, keeping what was not run",
    )
    options = parser.parse_args()
    chosen = options.case or list(CASES)
    found = (
        json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() and options.case else {}
    )
    silent = 0
    with tempfile.TemporaryDirectory() as folder, running.Planted(Path(folder)) as planted:
        for case in chosen:
            found[case] = {}
            for fault in CASES[case]:
                seen = planted.plant(case, fault)
                print(
                    f"{case} {fault}: {seen['check']} {seen['outcome']} {seen['message']}",
                    flush=True,
                )
                found[case][fault] = seen
                silent += not seen["check"]
    if options.write:
        RECORD.write_text(
            json.dumps(found, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8"
        )
    print(f"{silent} faults were found by no check")
    return 1 if silent else 0


if __name__ == "__main__":
    sys.exit(main())
