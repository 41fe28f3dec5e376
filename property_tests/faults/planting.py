"""How faults get into the files of a scene."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

from property_tests.faults import losses
from property_tests.faults.declaring import Plant
from property_tests.faults.scenes import ROOT, stamp
from savedmodel_common import tensors
from savedmodel_common.packages import OURS

FAULT_FILE = "fault"


def artifact_of(folder: Path) -> Path:
    """The artifact of a scene that has one."""
    (artifact,) = (folder / "artifacts").iterdir()
    return artifact


def edit(fault: str) -> Plant:
    """The model is one that its maker wrote with this fault.

    Neither it nor the original has a fingerprint any more.
    """

    def plant(folder: Path) -> None:
        model = artifact_of(folder) / "model"
        for path in (model, folder / "original"):
            (path / "fingerprint.pb").unlink(missing_ok=True)
        assert losses.apply(fault, model), f"{fault}: there is nothing to lose"
        stamp(artifact_of(folder))

    return plant


def implementation(fault: str) -> Plant:
    """The program that reads the file ``fault`` of the folder has this fault: a loader and saver
    (`programs/planted_worker.py`), a consumer (`programs/wrong_sample.py`), a disk.
    """

    def plant(folder: Path) -> None:
        (folder / FAULT_FILE).write_text(fault)

    return plant


def flip(pattern: str, place: int = -1) -> Plant:
    """One byte of a file of the model is another, as a disk or a copy does it.

    ``place`` -1: that in the middle.
    """

    def plant(folder: Path) -> None:
        (path,) = (artifact_of(folder) / "model").glob(pattern)
        data = bytearray(path.read_bytes())
        data[len(data) // 2 if place < 0 else place] ^= 1
        path.unlink()
        path.write_bytes(data)

    return plant


def answers(change: Callable[[dict[str, tensors.Tensor]], None], stamped: bool) -> Plant:
    """The first recorded answer of a signature is another; ``stamped``: with a provenance that
    knows it so.
    """

    def plant(folder: Path) -> None:
        artifact = artifact_of(folder)
        asked = json.loads((artifact / "io" / "io.json").read_text(encoding="utf-8"))["requests"]
        path = (
            artifact
            / "io"
            / next(request["outputs"] for request in asked if request["kind"] == "signature")
        )
        answer = tensors.load(str(path))
        change(answer)
        path.unlink()
        tensors.save(str(path), answer)
        if stamped:
            stamp(artifact)

    return plant


def release(folder: Path, module: str, text: str) -> None:
    """The commands are those of a release of this project whose module has this text at its end."""
    for package in OURS:
        shutil.copytree(
            ROOT / package, folder / "site" / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    with (folder / "site" / module).open("a", encoding="utf-8") as stream:
        stream.write(text)


def ledger(**fields: Any) -> Plant:
    """The ledger has one entry more, with these fields in place of those of a known failure of
    ``values``.
    """

    def plant(folder: Path) -> None:
        entry = {
            "case": artifact_of(folder).name, "producer": "*", "consumer": "*", "check": "values",
            "outcome": "FAIL_VALUE", "kind": "bug", "reason": "planted", **fields,
        }  # fmt: skip
        words = {
            key: value.isoformat() if isinstance(value, date) else json.dumps(value)
            for key, value in entry.items()
        }
        text = "".join(f"{key} = {value}\n" for key, value in words.items())
        with (folder / "ledger.toml").open("a", encoding="utf-8") as stream:
            stream.write(f"[[expect]]\nadded = 2025-01-31\n{text}")

    return plant
