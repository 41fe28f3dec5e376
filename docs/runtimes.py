"""What the runtimes cost, for the page `runtimes.md`: ``python -m docs.runtimes [NAME]...`` measures, `data/runtimes.json` keeps.

Each runtime is installed twice in a scratch folder, first with an empty cache of uv, and removed. What was measured with the
lock of today is kept: an interrupted run goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from compat_matrix.runtimes import places, provision, records, registry, wanted

MEASURED = Path(__file__).parent / "data" / "runtimes.json"
COSTS = ("runtime", "TensorFlow", "Python", "NumPy", "protobuf", "Keras", "cache MB", "disk MB", "install s")


def read_measured() -> dict[str, Any]:
    """``{runtime: what was measured}``."""
    if not MEASURED.exists():
        return {}
    measured: dict[str, Any] = json.loads(MEASURED.read_text(encoding="utf-8"))["runtimes"]
    return measured


def cost_rows(known: registry.Registry, measured: dict[str, Any]) -> list[tuple[str, ...]]:
    """One row per runtime; a dash for what was measured with another lock, or not at all."""
    rows = []
    for stanza in known.stanzas.values():
        found = measured.get(stanza.name, {})
        row = ["-"] * 6
        if found.get("lock") == lock_digest(stanza):
            own, shared, cache = (round(found["bytes"][part] / 1e6) for part in ("own", "shared", "cache"))
            seconds = " / ".join(f"{found['seconds'][part]:.0f}" for part in ("first", "repeat"))
            row = [found["versions"].get(name, "-") for name in ("numpy", "protobuf", "keras")]
            row += [str(cache), f"{own} + {shared} shared", seconds]
        rows.append((f"`{stanza.name}`", stanza.tensorflow, stanza.python, *row))
    return rows


def lack_rows(known: registry.Registry) -> list[tuple[str, ...]]:
    """One row per entry of what runtimes lack."""
    return [
        (
            ", ".join(f"`{name}`" for name in lack.programs),
            str(lack.versions),
            " ".join(name for name, one in known.stanzas.items() if lack.versions.contains(one.tensorflow)),
            lack.reason,
        )
        for lack in known.lacking
    ]


def lock_digest(stanza: registry.Stanza) -> str:
    """The sha256 of a lock."""
    return hashlib.sha256(wanted.lock_bytes(stanza)).hexdigest()


def measure(stanza: registry.Stanza, known: registry.Registry) -> dict[str, Any]:
    """Install a runtime twice in a scratch folder beside the usual one. Raises RuntimeTrouble."""
    seconds = {}
    usual = places.home()
    usual.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="measure-", dir=usual) as scratch:
        cache = Path(scratch) / "cache"
        os.environ.update(SAVEDMODEL_COMPAT_HOME=f"{scratch}/home", UV_CACHE_DIR=str(cache))
        try:
            for phase in ("first", "repeat"):
                began = time.monotonic()
                record = provision.install(wanted.of_stanza(stanza), known, lambda _: None, again=True)
                seconds[phase] = round(time.monotonic() - began, 1)
        finally:
            del os.environ["SAVEDMODEL_COMPAT_HOME"], os.environ["UV_CACHE_DIR"]
        size = {**record.bytes, "cache": sum(records.disk(cache).values())}
    return {"lock": record.locked, "versions": dict(record.versions), "bytes": size, "seconds": seconds}


def main(names: list[str]) -> None:
    known, measured = registry.read(), read_measured()
    for stanza in known.stanzas.values():
        if (names and stanza.name not in names) or measured.get(stanza.name, {}).get("lock") == lock_digest(stanza):
            continue
        measured[stanza.name] = measure(stanza, known)
        print(stanza.name, measured[stanza.name]["seconds"], flush=True)
        MEASURED.parent.mkdir(exist_ok=True)
        text = json.dumps({"schema": 1, "runtimes": measured}, indent=1, sort_keys=True)
        temporary = MEASURED.with_suffix(".tmp")
        temporary.write_text(text + "\n", encoding="utf-8")
        temporary.replace(MEASURED)


if __name__ == "__main__":
    main(sys.argv[1:])
