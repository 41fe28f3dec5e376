"""A command of a user, without a fault and with it."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from property_tests.faults.declaring import Fault, Seen
from property_tests.faults.scenes import Scene, savedmodel_compat
from property_tests.faults.stage import Stage

Done = subprocess.CompletedProcess[str]


@dataclass(frozen=True)
class Command:
    """A command that a user runs in the folder of a scene.

    Attributes:
      scene: the sound files.
      command: the words behind ``savedmodel-compat``; ``{}`` is the name of the scene.
      code: its exit code with the fault.
      says: a regular expression that its output fits with the fault, and without it does not.
      sound: its exit code without the fault.
    """

    scene: Scene
    command: str
    code: int
    says: str
    sound: int = 0

    def words(self) -> str:
        return self.command.format(self.scene.name)

    def shown(self) -> str:
        return f"`{self.words()}`"

    def declaration(self) -> tuple[object, ...]:
        return (self.scene.name, self.command, self.code, self.says, self.sound)

    def look(self, fault: Fault, stage: Stage) -> Seen:
        """Run the command without the fault, then with it."""
        scenes = stage.shared(Scenes)
        sound = scenes.sound(self)
        folder = scenes.copy(self.scene, "faulty")
        fault.plant(folder)
        done = savedmodel_compat(folder, self.words())
        line = _line(self.says, done)
        if sound.returncode != self.sound:
            defect = f"without the fault it ends with {sound.returncode}: {_text(sound)[-2000:]}"
        elif _line(self.says, sound):
            defect = f"without the fault it says the same: {_line(self.says, sound)}"
        elif done.returncode != self.code:
            defect = f"it ends with {done.returncode}: {_text(done)[-2000:]}"
        else:
            defect = "" if line else f"it does not say {self.says}: {_text(done)[-2000:]}"
        return Seen(str(done.returncode), line.replace(str(folder), "."), defect)


class Scenes:
    """Fills each scene once, copies it for every fault, and runs each command once without one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._filled: set[str] = set()
        self._sound: dict[tuple[str, str], Done] = {}

    def sound(self, command: Command) -> Done:
        """Return what the command did without a fault."""
        key = (command.scene.name, command.words())
        if key not in self._sound:
            folder = self.copy(command.scene, "sound")
            self._sound[key] = savedmodel_compat(folder, command.words())
        return self._sound[key]

    def copy(self, scene: Scene, name: str) -> Path:
        """Return a new copy of the files of a scene."""
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


def _text(done: Done) -> str:
    return done.stdout + done.stderr


def _line(says: str, done: Done) -> str:
    """The first line of the output that fits, "" for none."""
    return next(
        (" ".join(line.split()) for line in _text(done).splitlines() if re.search(says, line)), ""
    )
