"""Test every promise of the op history in genuine releases: the record of
docs/evidence/index.md.

    python -m docs.promises_asked --out FOLDER [RELEASE...]

Each change is shown by a model with one node (:mod:`docs.promised`), which the C API of the
releases on both sides of the change loads. The one that lacks what changed must refuse the model by
that name, the other must not.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from compat_matrix.cases import title_and_rest
from compat_matrix.cells.consumers import CONSUMERS
from compat_matrix.hosts.pool import Hosts
from compat_matrix.runtimes.places import RuntimeTrouble
from compat_matrix.runtimes.resolve import resolve
from compat_matrix.runtimes.worker import ReplyError, WorkerDied
from docs.promised import ATTR, DTYPE, KERNEL, OP, VALUE, NoSpecimen, Promise, promises, specimen
from savedmodel_common.gist import gist
from savedmodel_tools.downgrade.attrs import IGNORED_SINCE
from savedmodel_tools.skew import naming
from savedmodel_tools.skew.history import History, history

FIRST = "2.4"
READER = "c_api"
LIMIT = 60.0  # seconds for one model
REFUSED, PASSED_OVER = (
    "refused by name",
    "passed over",
)  # how a release without what changed shows it
_KINDS = {
    OP: ("unknown_op", "removed_op", "renamed_contrib_op"),
    ATTR: ("unknown_attr", "missing_attr", "changed_inputs"),
    VALUE: ("attr_value", "unknown_dtype"),
    KERNEL: ("missing_kernel", "attr_value", "unknown_dtype"),
    DTYPE: ("unknown_dtype", "missing_kernel"),
}


def key(promise: Promise) -> str:
    """The name of a promise in the record."""
    return f"{promise.release} {promise}"


def sides(promise: Promise, table: History) -> tuple[str, str]:
    """The release without what changed, and the one with it: neighbours."""
    after = table.index(promise.release)
    assert after is not None
    names = table.releases[after - 1].name, table.releases[after].name
    return names if promise.came else (names[1], names[0])


def shows(promise: Promise, without: str, with_: str, table: History) -> str:
    """How the errors of the two releases, "" where the model loads, show the promise; "" when they
    do not.
    """
    release, other = sides(promise, table)
    if _names(promise, with_, other):
        return ""
    if _names(promise, without, release):
        return REFUSED
    ignores = (table.index(release) or 0) >= (table.index(IGNORED_SINCE) or 0)
    return (
        PASSED_OVER
        if promise.kind == ATTR and ignores and _kind(without, release) == _kind(with_, other)
        else ""
    )


def _skew(error: str, version: str) -> naming.Skew | None:
    """Return what an error of a release names, None where the model loads."""
    return naming.name(None, error, version) if error else None


def _kind(error: str, version: str) -> str:
    """Return what an error is about beside the attr: a release without a kernel of the op says so
    with and without it.
    """
    skew = _skew(error, version)
    return skew.kind if skew is not None else gist(error)


def _names(promise: Promise, error: str, version: str) -> bool:
    skew = _skew(error, version)
    if skew is None or skew.kind not in _KINDS[promise.kind]:
        return False
    wanted = {"op": promise.op, "attr": promise.attr} if promise.kind not in (DTYPE, KERNEL) else {}
    wanted |= {"op": promise.op} if promise.kind == KERNEL else {}
    return all(
        not getattr(skew, name) or not text or getattr(skew, name) == text
        for name, text in wanted.items()
    )


def ask(
    release: str, asked: Iterable[Promise], table: History, folder: Path
) -> Iterator[tuple[Promise, str]]:
    """Load the model of each promise in a release; yield what it says, "" where the model loads.

    Raises RuntimeTrouble.
    """
    runtime = resolve(release)
    with Hosts(folder / "hosts") as hosts:
        hosts.know([runtime])
        host = hosts.of(runtime.name)
        for promise in asked:
            model = folder / "model"
            shutil.rmtree(model, ignore_errors=True)
            model.mkdir(parents=True)
            (model / "saved_model.pb").write_bytes(specimen(promise, table).SerializeToString())
            try:
                with host.model(
                    host.worker(runtime.name, CONSUMERS[READER].program),
                    model,
                    ["serve"],
                    LIMIT,
                    shared=False,
                ):
                    yield promise, ""
            except (ReplyError, WorkerDied) as error:
                yield promise, str(error) or type(error).__name__


def measure(releases: Iterable[str], folder: Path, table: History) -> dict[str, Any]:
    """Ask these releases; return for each promise between two of them how it is shown, or what was
    said instead.
    """
    every = [promise for promise in promises(table, FIRST) if _has_specimen(promise, table)]
    said: dict[Promise, dict[str, str]] = {promise: {} for promise in every}
    for release in releases:
        mine = [promise for promise in every if release in sides(promise, table)]
        try:
            for promise, error in ask(release, mine, table, folder):
                said[promise][release] = error
        except RuntimeTrouble as trouble:
            print(f"{release}: {trouble}", flush=True)
        print(f"{release}: {len(mine)} asked", flush=True)
    found: dict[str, Any] = {}
    folder.joinpath("said.json").write_text(
        json.dumps({key(promise): errors for promise, errors in said.items()})
    )
    for promise, errors in said.items():
        without, with_ = sides(promise, table)
        if without in errors and with_ in errors:
            how = shows(promise, errors[without], errors[with_], table)
            found[key(promise)] = how or {
                name: gist(errors[name])[:200] for name in (without, with_)
            }
    return found


def _has_specimen(promise: Promise, table: History) -> bool:
    try:
        specimen(promise, table)
    except NoSpecimen:
        return False
    return True


def main() -> None:
    table = history()
    names = [release.name for release in table.releases[table.index(FIRST) :]]
    parser = argparse.ArgumentParser(description=title_and_rest(__doc__ or "")[0])
    parser.add_argument("releases", nargs="*", default=names)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    found = measure(given.releases, given.out, table)
    (given.out / "promises.json").write_text(
        json.dumps(found, indent=0, sort_keys=True) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main()
