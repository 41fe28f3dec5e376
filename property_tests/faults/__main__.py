"""Plant faults and write down what finds each: ``python -m property_tests.faults [NAME ...]``.

A name is that of a fault (``lost-asset``, ``tree_tuples/captures``). With ``--resume`` those are
left out that the record has as they are declared now, so an interrupted command goes on.
The record is docs/data/faults.json; the site has a page that is built from it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from property_tests.faults import cases, record
from property_tests.faults.catalogue import CATALOGUE
from property_tests.faults.declaring import Fault, NotHere, Seen
from property_tests.faults.stage import Stage


def main() -> int:
    options = _options()
    known = record.read()
    chosen = [fault for fault in CATALOGUE if _is_chosen(fault, options)]
    if options.resume:
        chosen = [fault for fault in chosen if not record.is_current(fault, known)]
    found = silent = 0
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, Stage(Path(folder)) as stage:
        for fault in chosen:
            try:
                seen = fault.found_by.look(fault, stage)
            except NotHere as reason:
                seen = Seen("", "", f"not planted: {reason}")
            found, silent = found + (not seen.defect), silent + bool(seen.defect)
            print(f"{fault.name}: {seen.result}: {seen.defect or seen.line}", flush=True)
            known.pop(fault.name, None)
            if not seen.defect:
                known[fault.name] = record.entry(fault, seen)
            if options.write:
                record.write(known)
    print(f"{found} faults were found, {silent} were not, in {time.monotonic() - began:.0f} s")
    return 1 if silent else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m property_tests.faults", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these faults")
    parser.add_argument("--case", action="append", help="only the faults of this case")
    parser.add_argument("--cases", action="store_true", help="only the faults of all cases")
    parser.add_argument(
        "--gate", action="store_true", help="only those that are planted for every commit"
    )
    parser.add_argument(
        "--write", action="store_true", help="put each result into the record as it comes"
    )
    parser.add_argument(
        "--resume", action="store_true", help="leave out what is on record as it is declared now"
    )
    options = parser.parse_args()
    unknown = set(options.names) - {fault.name for fault in CATALOGUE}
    unknown |= set(options.case or []) - set(cases.CASES)
    if unknown:
        parser.error(f"there is no fault {', '.join(sorted(unknown))}")
    return options


def _is_chosen(fault: Fault, options: argparse.Namespace) -> bool:
    case = fault.name.partition("/")[0] if "/" in fault.name else ""
    if options.gate and not fault.gate:
        return False
    if options.names and fault.name not in options.names:
        return False
    if options.case:
        return case in options.case
    return bool(case) or not options.cases


if __name__ == "__main__":
    sys.exit(main())
