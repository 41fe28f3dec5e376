"""How a worker is started: the one table of our own programs, and the description of a plug-in's
program.
"""

from __future__ import annotations

import ast
import functools
import re
import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import compat_matrix.workers
from compat_matrix.runtimes.isolation import without_network
from compat_matrix.runtimes.locked import Environment
from compat_matrix.runtimes.native import build as native
from compat_matrix.runtimes.runtime import Runtime

FOLDER = Path(next(iter(compat_matrix.workers.__path__)))
PYTHON, WORKERS = (
    "{python}",
    "{workers}",
)  # in a command: the runtime's interpreter, the folder of our worker programs
REFERENCE = "SAVEDMODEL_COMPAT_REFERENCE"
EVALUATOR = "SAVEDMODEL_COMPAT_EVALUATOR"
_IMPORTS = re.compile(r"^IMPORTS = (\(.*\))$", re.MULTILINE)  # in a program
_CONSUMER = "\nCONSUMER = {"


@dataclass(frozen=True)
class Program:
    """A command line that speaks the worker protocol (docs/exporters/protocol.md).

    ``command``: words; ``{python}`` stands for the interpreter of the runtime, unless ``python``
    names another one, ``{workers}`` for the folder of our programs. ``environment``: pairs to add.
    ``version`` and ``capabilities``: as registered; a program that contradicts them is not used.
    ``broken``: why it cannot be started at all. ``lock``: (requirements file, version of Python) of
    the environment that holds ``{python}``, made on first use. ``isolated``: it runs untrusted
    models and needs no network. ``compiled``: makes the last word of the command, the path of a
    program compiled for the runtime. ``tensorflow``: one of our programs that imports TensorFlow,
    so that it may be started as a fork of a process that has imported it.
    """

    name: str
    command: tuple[str, ...] = (PYTHON, WORKERS)
    environment: tuple[tuple[str, str], ...] = ()
    python: str = ""
    lock: tuple[str, str] | tuple[()] = ()
    version: str | None = None
    capabilities: frozenset[str] | None = None
    broken: str = ""
    isolated: bool = False
    compiled: Callable[[Runtime], Path] | None = None
    tensorflow: bool = False

    def words(self, runtime: Runtime) -> list[str]:
        """Return the command line in a runtime.

        Raises BuildError (compilation failed) or RuntimeTrouble (no environment).
        """
        known = {
            PYTHON: self.python or str(self.environment_of_lock() or runtime.python),
            WORKERS: str(FOLDER),
        }
        words = [known.get(word, word) for word in self.command]
        if self.compiled is not None:
            words.append(str(self.compiled(runtime)))
        return [*without_network(), *words] if self.isolated else words

    @property
    def at_home(self) -> bool:
        """Return whether the program has its own Python in every runtime."""
        return bool(self.python or self.lock)

    def environment_of_lock(self) -> Path | None:
        """Return the interpreter of its own environment, which is made on first use.

        Raises RuntimeTrouble.
        """
        return Environment(Path(self.lock[0]), self.lock[1]).python if self.lock else None

    def contradiction(self, hello: Mapping[str, Any]) -> str:
        """Return how the program's hello contradicts its registration, or ""."""
        if self.version is not None:
            said = hello.get("versions", {}).get(hello.get("name"))
            if said is not None and str(said) != self.version:
                return f"it was registered with the version {self.version}, and says {said}"
        missing = sorted((self.capabilities or frozenset()) - set(hello.get("capabilities", ())))
        return (
            "it was registered with capabilities that its hello does not name:"
            f" {', '.join(missing)}"
            if missing
            else ""
        )

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form for the processes of a run.

        Our own programs are written as their names.
        """
        known = self.capabilities
        return {
            **vars(self),
            "compiled": None,
            "capabilities": None if known is None else sorted(known),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Program:
        known = data["capabilities"]
        pairs = tuple((name, value) for name, value in data["environment"])
        more = {
            "command": tuple(data["command"]),
            "environment": pairs,
            "lock": tuple(data["lock"]),
            "capabilities": None if known is None else frozenset(known),
        }
        return cls(**{**data, **more})

    def __str__(self) -> str:
        return shlex.join(self.command)


_PROJECT = FOLDER.parent.parent
# What the file of a program of ours does not say.
_MORE: dict[str, dict[str, Any]] = {
    "evaluator_worker": {
        "python": sys.executable,  # it needs no TensorFlow: one process serves every runtime
        "environment": (
            (REFERENCE, str(_PROJECT / "reference_impl")),
            (EVALUATOR, str(_PROJECT / "reference_eval")),
        ),
    },
    native.BINARY: {"compiled": native.build},
}


def of(program: str | Program) -> Program:
    """Return the program of one of our names, a file of ``compat_matrix/workers`` without ``.py``;
    return a Program unchanged.
    """
    if isinstance(program, Program):
        return program
    more = {**_surroundings(_imports(program)), **_MORE.get(program, {})}
    return Program(program, (PYTHON, WORKERS, program), **more)


def of_script(path: Path, isolated: bool = False) -> Program:
    """Return the program of a file that lies elsewhere, as the workers of a package above this one.

    ``isolated``: it runs untrusted models and needs no network. Raises OSError.
    """
    packages = _imported(path.read_text(encoding="utf-8"))
    command = (PYTHON, WORKERS, str(path))
    return Program(path.stem, command, isolated=isolated, **_surroundings(packages))


def _surroundings(packages: tuple[str, ...]) -> dict[str, Any]:
    """Return what a program that imports these packages gets of its process."""
    # Never by PYTHONPATH: the folder of the installed project also holds NumPy and all other
    # packages of the harness's Python.
    reference = ((REFERENCE, str(_PROJECT / "reference_impl")),)
    return {
        "environment": reference if "reference_impl" in packages else (),
        "tensorflow": "tensorflow" in packages,
    }


@functools.cache
def _texts() -> dict[str, str]:
    return {
        file.stem: file.read_text(encoding="utf-8") for file in sorted(FOLDER.glob("*_worker.py"))
    }


@functools.cache
def _imports(program: str) -> tuple[str, ...]:
    """Return the packages that a program of ours says it imports."""
    return _imported(_texts().get(program, ""))


def _imported(text: str) -> tuple[str, ...]:
    said = _IMPORTS.search(text)
    return ast.literal_eval(said[1]) if said else ()


@functools.cache
def importing(package: str) -> tuple[str, ...]:
    """Return the names of the consumers whose program imports a package."""
    consumers = (program for program, text in _texts().items() if _CONSUMER in text)
    return tuple(
        sorted(
            program.removesuffix("_worker") for program in consumers if package in _imports(program)
        )
    )
