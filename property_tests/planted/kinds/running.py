"""A command without a fault and with it."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from property_tests.planted.kinds.declaring import Planted
from property_tests.planted.kinds.scenes import Scene, savedmodel_compat


@dataclass(frozen=True)
class Seen:
    """What the command did. ``defect``: why the fault does not count as found; "" when it is."""

    code: int
    line: str
    defect: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class Stage:
    """Fills each scene once, copies it for every fault, and runs each command once without one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._filled: set[str] = set()
        self._sound: dict[tuple[str, str], subprocess.CompletedProcess[str]] = {}

    def plant(self, fault: Planted) -> Seen:
        """Run the command of a fault without it, then with it."""
        command = fault.command.format(fault.scene.name)
        if (fault.scene.name, command) not in self._sound:
            self._sound[fault.scene.name, command] = savedmodel_compat(
                self._copy(fault.scene, "sound"), command
            )
        sound = self._sound[fault.scene.name, command]
        folder = self._copy(fault.scene, "faulty")
        fault.plant(folder)
        done = savedmodel_compat(folder, command)
        line = _line(fault.says, done)
        if sound.returncode != fault.sound:
            defect = f"without the fault it ends with {sound.returncode}: {_text(sound)[-2000:]}"
        elif _line(fault.says, sound):
            defect = f"without the fault it says the same: {_line(fault.says, sound)}"
        elif done.returncode != fault.code:
            defect = f"it ends with {done.returncode}: {_text(done)[-2000:]}"
        else:
            defect = "" if line else f"it does not say {fault.says}: {_text(done)[-2000:]}"
        return Seen(done.returncode, line.replace(str(folder), "."), defect)

    def _copy(self, scene: Scene, name: str) -> Path:
        filled = self.folder / scene.name / "filled"  # runs that were made there remember the place
        if scene.name not in self._filled:
            shutil.rmtree(filled, ignore_errors=True)
            filled.mkdir(parents=True)
            scene.fill(filled)
            self._filled.add(scene.name)
        copy = filled.with_name(name)
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(filled, copy, symlinks=True)
        return copy


def _text(done: subprocess.CompletedProcess[str]) -> str:
    return done.stdout + done.stderr


def _line(says: str, done: subprocess.CompletedProcess[str]) -> str:
    """The first line of the output that fits, "" for none."""
    return next(
        (" ".join(line.split()) for line in _text(done).splitlines() if re.search(says, line)), ""
    )


def digest(fault: Planted) -> str:
    """What a declaration says, with the name of what is planted: a record of it depends on that."""
    planted = [
        cell.cell_contents
        for cell in fault.plant.__closure__ or ()
        if isinstance(cell.cell_contents, str)
    ]
    said = (
        fault.name,
        fault.scene.name,
        fault.command,
        fault.code,
        fault.says,
        fault.sound,
        fault.plant.__qualname__,
        planted,
    )
    return hashlib.sha256(repr(said).encode()).hexdigest()[:12]
