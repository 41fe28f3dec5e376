"""The stand-in as a process of this machine, on the TensorFlow of a runtime: no container engine is
needed.
"""

from __future__ import annotations

import hashlib

from compat_matrix.runtimes import places, registry, resolve, wanted
from compat_matrix.runtimes.places import NotInstalled, RuntimeTrouble, UnknownRuntime
from compat_matrix.runtimes.runtime import LOCAL

from .base import STANDIN, NotHere, ServerIdentity
from .binary import PROGRAM, BinaryDriver

_KNOWN = "savedmodel-compat runtimes list"


class StandinDriver(BinaryDriver):
    """Starts the stand-in with the Python of ``runtime`` (2.15, local, an interpreter).

    Raises ValueError for an unknown runtime.
    """

    def __init__(self, runtime: str) -> None:
        super().__init__()
        try:
            if runtime != LOCAL:
                wanted.parse(runtime, registry.read())
        except UnknownRuntime as error:
            raise ValueError(str(error)) from None
        self.name, self._runtime = f"{STANDIN}@{runtime}", runtime

    def identify(self) -> ServerIdentity:
        if self._wanted is None:
            self._wanted = self._executable()
        return super().identify()

    def _executable(self) -> str:
        """Write the program; returns its path. Raises NotHere."""
        from savedmodel_standin import executable

        try:
            python = str(resolve.resolve(self._runtime).python)
        except NotInstalled as error:
            raise NotHere(
                f"the runtime {self._runtime} is not installed",
                resolve.install_command(*error.specs).removeprefix("run: "),
            ) from None
        except RuntimeTrouble as error:
            raise NotHere(str(error), _KNOWN) from None
        text = executable.script(python)
        path = (
            places.home()
            / "serving"
            / "standins"
            / hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]
            / PROGRAM
        )
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            executable.write(path, python)
        return str(path)

    def _program(self) -> str:
        if self._wanted is None:
            self._wanted = self._executable()
        return super()._program()
