"""The environment of a plug-in: made from its lock on first use, kept by the lock's content, shared
by runs.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from compat_matrix.runtimes import interpreters, places, records, uv
from savedmodel_common.alone import alone
from savedmodel_common.writing import new_folder

DONE = "savedmodel-compat-plugin"  # its last file: an environment without it does not count
VERSION = re.compile(r"3\.\d+")


@dataclass(frozen=True)
class Environment:
    """A Python environment that holds the packages of a lock.

    ``lock`` is a requirements file with hashes.
    """

    lock: Path
    version: str

    @classmethod
    def of(cls, lock: Path, version: str, error: Callable[[str], Exception]) -> Environment:
        """Return the checked environment, which is not made yet.

        Raises the exception that ``error`` makes from the reason.
        """
        if not lock.is_file():
            raise error(f"lock: there is no file {lock}")
        if version and not VERSION.fullmatch(version):
            raise error(f"python is {version!r}; with a lock it is a version, like 3.11")
        return cls(lock.resolve(), version or "{}.{}".format(*sys.version_info))

    @property
    def place(self) -> Path:
        digest = hashlib.sha256(self.version.encode() + b"\0" + self.lock.read_bytes()).hexdigest()[
            :12
        ]
        return places.environments() / f"plugin-{self.lock.stem}-{digest}"

    @property
    def python(self) -> Path:
        """Return its interpreter; make the environment first if it does not exist.

        Raises RuntimeTrouble.
        """
        place = self.place
        if not (place / DONE).is_file():
            self._make(place)
        return records.interpreter(place)

    def _make(self, place: Path) -> None:
        place.parent.mkdir(parents=True, exist_ok=True)
        with alone(place.with_name(f"{place.name}.lock")):
            if (place / DONE).is_file():
                return
            print(
                f"making the environment of {self.lock.name} (Python {self.version})",
                file=sys.stderr,
                flush=True,
            )
            with new_folder(place) as staging:
                uv.make(staging, interpreters.find(self.version))
                uv.install(staging, self.version, ["--require-hashes", "-r", str(self.lock)])
                (staging / DONE).write_text(f"{self.lock.name}\n", encoding="utf-8")
