"""``python -m property_tests.fuzz TARGET... --runs N --seed S``: run targets, keep what breaks the
contract.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
from pathlib import Path

from property_tests.fuzz.guard import SECONDS
from property_tests.fuzz.loop import Outcome, run
from property_tests.fuzz.targets import LIVE, TARGETS

ALL = {**TARGETS, LIVE.name: LIVE}


def show(name: str, outcome: Outcome) -> str:
    """One line of figures."""
    rate = outcome.executions / max(outcome.seconds, 1e-9)
    answers = ", ".join(f"{kind} {count}" for kind, count in outcome.answers.most_common())
    return (
        f"{name}: {outcome.executions} executions, {rate:.0f}/s, {len(outcome.endings)} different"
        f" endings, slowest {outcome.slowest:.3f} s, {len(outcome.findings)} findings; {answers}"
    )


def main() -> int:
    """The command. Exit code 1 when something was found."""
    parser = argparse.ArgumentParser(prog="python -m property_tests.fuzz", description=__doc__)
    some = f"of {', '.join(ALL)}; default: all but {LIVE.name}, which needs TensorFlow"
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=some)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="CPU time of one input")
    parser.add_argument("--input", type=Path, action="append", help="replay these files")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("fuzz-findings"),
        help="where findings go (default: %(default)s)",
    )
    options = parser.parse_args()
    unknown = sorted(set(options.targets) - set(ALL))
    if unknown:
        parser.error(f"no target {unknown[0]!r}")
    inputs = [path.read_bytes() for path in options.input] if options.input else None
    found = 0
    for name in options.targets or TARGETS:
        outcome = run(ALL[name], options.runs, options.seed, options.seconds, inputs)
        print(show(name, outcome), flush=True)
        for what, data in outcome.findings.items():
            found += 1
            file = options.out / name / hashlib.sha256(data).hexdigest()[:16]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
            print(f"  {what}\n    {os.fspath(file)}", flush=True)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
