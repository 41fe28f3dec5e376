"""The page of planted faults, made of the catalogue and of `data/faults.json`.

`python -m property_tests.faults --write` plants them and writes the record.
"""

from __future__ import annotations

from itertools import groupby

from compat_matrix.cases import all_cases
from docs.markdown import table
from property_tests.faults import cases, record
from property_tests.faults.catalogue import CATALOGUE
from property_tests.faults.declaring import Fault

_WIDE = 160  # characters of what a command says
COLUMNS = ("fault", "what is wrong", "found by", "result", "message")
HEAD = """# Planted faults, and who finds each

Each row is a fault that was planted on purpose, and who found it: a command of a user, the checks of a case, a run, a writer. The
result is the exit code of the command, or the check and its outcome. The last column is the line that names the fault. Each
finder also looks where nothing is planted, and does not say that line there.

`python -m property_tests.faults --write` plants all {count} and writes the record of this page. With `--resume` it continues where
it was interrupted, and plants only faults that are new or declared otherwise. `NAME` plants one fault, `--case NAME` the faults of one
case. The package `property_tests/faults` has a module for each place where faults are planted. {gate} faults (**bold**) are
planted for every commit, all of them every night (`tox -e nightly`, which the workflow `nightly` runs).
"""  # noqa: E501
CASES = """
A case of the matrix claims to test something. A loader or a saver that loses what the case is about must turn the case red. The
faults are edits of the SavedModel. A faulty loader reads the edited model; a faulty saver (`saver:`) has written it. When the
docstring of a case changes, its faults are planted again.

"""  # noqa: E501


def page() -> str:
    """A table for each place where faults are planted."""
    entries = record.read()
    out = [HEAD.format(count=len(CATALOGUE), gate=sum(fault.gate for fault in CATALOGUE))]
    for place, faults in groupby(CATALOGUE, lambda fault: fault.place):
        rows = [_row(fault, entries.get(fault.name, {})) for fault in faults]
        about = CASES if "/" in rows[0][0] else "\n"
        out.append(f"\n## In {place}\n{about}{table(COLUMNS, rows)}")
    return "".join(out)


def _row(fault: Fault, entry: record.Entry) -> tuple[str, ...]:
    name = f"**{fault.name}**" if fault.gate else fault.name
    said = entry.get("line", "not found")
    shortened = said[:_WIDE] + "…" * (len(said) > _WIDE)
    return (name, fault.what, fault.found_by.shown(), entry.get("result", ""), shortened)


def gaps() -> list[str]:
    """Cases without a fault, and faults that nobody found or that are declared otherwise now."""
    names = {case.name for case in all_cases()}
    missing = [
        f"{name}: no fault is planted; add one to property_tests/faults/cases.py"
        for name in sorted(names - set(cases.CASES))
    ]
    strangers = [f"{name}: there is no such case" for name in sorted(set(cases.CASES) - names)]
    return missing + strangers + record.gaps()
