"""The page of what the op history promises, of ``data/promises.json`` and ``promises.toml``.

python -m docs.promises_asked --out FOLDER    # makes the first
"""

from __future__ import annotations

import functools
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from docs.markdown import table
from docs.promised import promises
from docs.promises_asked import FIRST, PASSED_OVER, REFUSED, key
from savedmodel_common import toml
from savedmodel_tools.skew.forms import FORMS
from savedmodel_tools.skew.history import history

HERE = Path(__file__).parent
RECORD = HERE / "data" / "promises.json"
WAIVERS = HERE / "promises.toml"
HEAD = """# What the op history promises, and what shows it

`compat`, `downgrade` and the expectations of every run rest on the op history: which release has which op, attribute, value, data
type and CPU kernel. This page lists every change since {first}, and what shows that it is true.

A change is shown by a model with one node (`docs.promised.specimen`). The C API of the releases on both
sides of the change loads the model. The release that lacks what changed must refuse it *by that name*, the other must
not. Since 2.5 releases pass over attributes that they do not know; there both must do the same. A change that no such
model shows needs a waiver, with a reason.

<!-- not run: it asks every release; instead: python -m docs.promised --help -->

```
python -m docs.promises_asked --out FOLDER
```

asks all releases that are installed and writes the record of this page (`FOLDER/promises.json`). `tests/savedmodel_tools/test_promises.py`
fails when a change of the op history is neither in the record nor waived, and when a waiver is no longer needed.

"""  # noqa: E501


def record() -> dict[str, Any]:
    """Promise -> how it is shown; of one that is not shown what each release said."""
    found: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8"))
    return found


@functools.cache
def waivers() -> list[dict[str, Any]]:
    """Rules for promises that no specimen shows: ``match``, a regular expression, and
    ``reason``.
    """
    return toml.read(WAIVERS)["waiver"]


def forms() -> dict[str, Any]:
    """Form of a SavedModel beyond ops -> the case or fixture that shows it."""
    found: dict[str, Any] = toml.read(WAIVERS)["forms"]
    return found


def waived(name: str) -> list[int]:
    """The numbers of the waivers that speak of a promise."""
    return [number for number, rule in enumerate(waivers()) if re.search(rule["match"], name)]


def page() -> str:
    """Markdown."""
    shown, rules = record(), waivers()
    names = [
        (promise.release, promise.kind, key(promise)) for promise in promises(history(), FIRST)
    ]
    counts: Counter[tuple[str, str]] = Counter()
    used: Counter[int] = Counter()
    changes = []
    for release, _, name in names:
        how = shown.get(name)
        if not isinstance(how, str):
            used[next(iter(waived(name)), -1)] += 1
            how = "waived"
        counts[release, how] += 1
        sign, _, what = name.partition(" ")[2].partition(" ")
        changes.append((release, "came" if sign == "+" else "went", f"`{what}`", how))
    promising = {release for release, _, _ in names}
    every = dict.fromkeys(release.name for release in history().releases)
    releases = [name for name in every if name in promising]
    states = (REFUSED, PASSED_OVER, "waived")
    rows = []
    totals: Counter[str] = Counter()
    for release in releases:
        of_release = {state: counts[release, state] for state in states}
        rows.append((release, *(str(count or "") for count in of_release.values())))
        totals.update(of_release)
    rows.append(("all", *(str(totals[state]) for state in states)))
    out = [HEAD.format(first=FIRST), table(("new in", *states), rows), "\n## Waivers\n\n"]
    out += [
        table(
            ("changes", "match", "why"),
            [(str(used[n]), f"`{rule['match']}`", rule["reason"]) for n, rule in enumerate(rules)],
        )
    ]
    out += ["\n## Forms beyond ops\n\n"]
    out += [
        table(
            ("form", "shown by"),
            [(FORMS[name].what, f"`{case}`") for name, case in forms().items()],
        )
    ]
    changes.sort(key=lambda change: (releases.index(change[0]), *change[1:]))
    out += ["\n## Every change\n\n", table(("release", "change", "what", "shown"), changes)]
    return "".join(out)
