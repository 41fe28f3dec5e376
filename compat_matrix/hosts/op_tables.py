"""Make the op history from the registries of installed runtimes:
``python -m compat_matrix.commands.ops update``.

Each runtime is queried in its own worker (``compat_matrix/workers/registry_worker.py``). A release
that is not queried keeps its entries in the table, so adding a runtime costs one query.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Optional

from compat_matrix.hosts.host import Host
from compat_matrix.runtimes.runtime import Runtime
from reference_impl.format import schema
from savedmodel_tools.skew.history import TABLE, History
from savedmodel_tools.skew.protos import dtype_name, kernels_of, op_record
from savedmodel_tools.skew.records import Kernel, Release, Snapshot
from savedmodel_tools.skew.table import encode

LIMIT = 300.0  # seconds for one runtime


def ask(runtime: Runtime) -> tuple[Release, Snapshot]:
    """Return what a runtime registers.

    Raises what a worker's request raises (ReplyError, WorkerDied, NotStarted).
    """
    with (
        tempfile.TemporaryDirectory() as scratch,
        Host(Path(scratch), {runtime.name: runtime}) as host,
    ):
        folder = Path(scratch) / "registry"
        reply = host.worker(runtime.name, "registry_worker").request(
            "registry", LIMIT, dir=str(folder)
        )
        version = str(reply["versions"]["tensorflow"])
        name = ".".join(version.split(".")[:2])
        kernels = folder / "kernels.binpb"
        dtypes = tuple(sorted(dtype_name(number) for number in reply["dtypes"]))
        release = Release(
            name,
            version,
            int(reply["producer"]),
            int(reply["min_consumer"]),
            kernels.exists(),
            dtypes,
        )
        return release, read_registry(folder, reply["devices"])


def read_registry(folder: Path, devices: Collection[str]) -> Snapshot:
    """Read the files that the worker wrote, as records; ``devices`` are the device types of a
    session.
    """
    known = _kernels(folder / "kernels.binpb", devices)
    in_python = _kernels(folder / "kernels_python.binpb", devices)
    found: Snapshot = {}
    files = [("", folder / "ops.binpb")]
    files += [
        (path.stem.replace("__", "/"), path)
        for path in sorted((folder / "libraries").glob("*.binpb"))
    ]
    for library, path in files:
        for definition in schema.OpList.FromString(path.read_bytes()).op:
            kernels, python = None, False
            if known is not None and in_python is not None and not library:
                kernels = frozenset(in_python.get(definition.name, ()))
                python = bool(kernels) and definition.name not in known
            found.setdefault(definition.name, op_record(definition, library, kernels, python))
    return found


def _kernels(path: Path, devices: Collection[str]) -> Optional[dict[str, set[Kernel]]]:
    """Map each op to its kernels; return None when the release does not list its kernels."""
    return kernels_of(path.read_bytes(), devices) if path.exists() else None


def update(
    runtimes: Iterable[Runtime],
    report: Callable[[str], object] = lambda line: None,
    table: Path = TABLE,
) -> str:
    """Query the runtimes and rewrite the table.

    Returns its text; ``report`` is called with one line for each runtime.
    """
    known: dict[str, tuple[Release, Snapshot]] = {}
    if table.exists():
        old = History(table.read_text(encoding="utf-8"), table.name)
        known = {
            release.name: (release, old.snapshot(index))
            for index, release in enumerate(old.releases)
        }
    for runtime in runtimes:
        release, snapshot = ask(runtime)
        known[release.name] = release, snapshot
        report(f"{runtime.name}: TensorFlow {release.tensorflow}, {len(snapshot)} ops")
    text = encode([known[name] for name in sorted(known, key=_order)])
    table.write_text(text, encoding="utf-8")
    return text


def _order(name: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", name)]
