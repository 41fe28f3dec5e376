"""pytest in a fork of this process, which has imported what the tests need except the project
itself.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import gc
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import CodeType
from typing import Any, Callable, Optional

import pytest

WARM = (
    "click",
    "cramjam",
    "google.protobuf.text_format",
    "google_crc32c",
    "hypothesis",
    "jinja2",
    "ml_dtypes",
    "numpy",
    "psutil",
)
QUIET_POLLS = 100
MEMORY = 4 << 30  # of addresses; with TensorFlow ten times that
OTHERS = ("cacheprovider", "xdist", "randomly", "cov", "unraisableexception", "threadexception")
QUIET = (
    "-q",
    "--tb=no",
    "--no-header",
    "--assert=plain",
    *(part for name in OTHERS for part in ("-p", f"no:{name}")),
)


def warm(tensorflow: bool) -> None:
    """Imports what is not the project's; TensorFlow is there for no test, or imported, too."""
    for name in (*WARM, "tensorflow") if tensorflow else WARM:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for name in () if tensorflow else ("tensorflow", "keras", "tf_keras"):
        sys.modules[name] = None  # type: ignore[assignment]
    gc.collect()
    gc.freeze()  # no child looks at all that again


@dataclasses.dataclass
class Fork:
    """A child at work: ``finished`` once it is over, then ``said`` is what it sent, or None if it
    was killed.
    """

    pid: int
    pipe: int
    folder: str
    deadline: float
    said: Any = None
    overdue: bool = False
    quiet: int = 0  # how often in a row nothing of it was seen to compute, past the deadline
    cpu: float = 0.0

    def finished(self) -> bool:
        """Whether it is over.

        Past its deadline it is killed, with its children, unless one computes: that has a limit
        too.
        """
        pid, _, used = os.wait4(self.pid, os.WNOHANG)
        if pid == 0 and time.monotonic() > self.deadline:
            self.quiet = 0 if _computes(self.pid) else self.quiet + 1
        if pid == 0 and self.quiet > QUIET_POLLS:
            self.overdue = True
            os.killpg(self.pid, signal.SIGKILL)
            pid, _, used = os.wait4(self.pid, 0)
        if pid == 0:
            return False
        self.cpu = used.ru_utime + used.ru_stime
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)  # what its tests left running
        with os.fdopen(self.pipe, "rb") as stream:
            text = stream.read()
        self.said = json.loads(text) if text else None
        shutil.rmtree(self.folder, ignore_errors=True)
        return True


def _computes(group: int) -> bool:
    """Whether a process of a group runs, or waits for a processor that others have."""
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, of = (
                status.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[:3]
            )
            if of == str(group) and state in "RD":
                return True
    return False


def fork(root: Path, work: Callable[[], Any], cpu: Optional[int], wall: float) -> Fork:
    """Does ``work`` in a child; its answer (some hundred bytes of JSON) is sent back."""
    folder = tempfile.mkdtemp(prefix="mutant-")
    reader, writer = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        os.close(writer)
        with contextlib.suppress(PermissionError, ProcessLookupError):
            os.setpgid(pid, pid)
        return Fork(pid, reader, folder, time.monotonic() + wall)
    try:
        os.setpgid(0, 0)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        os.chdir(root)
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        sys.path.insert(0, str(root))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if cpu is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (cpu, resource.RLIM_INFINITY))
            resource.setrlimit(
                resource.RLIMIT_AS,
                (MEMORY * (10 if sys.modules.get("tensorflow") else 1), resource.RLIM_INFINITY),
            )
        os.write(writer, json.dumps(work()).encode())
    except BaseException as error:
        os.write(writer, json.dumps([f"{type(error).__name__}: {error}"[:1000]]).encode())
    finally:
        os._exit(0)


class _Mutated(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Imports one module of the project from a changed tree."""

    def __init__(self, name: str, path: Path, tree: ast.Module) -> None:
        self.name, self.path, self.tree = name, path, tree

    def find_spec(
        self, fullname: str, path: Any, target: Any = None
    ) -> Optional[importlib.machinery.ModuleSpec]:
        return (
            importlib.util.spec_from_loader(fullname, self, origin=str(self.path))
            if fullname == self.name
            else None
        )

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.tree, str(self.path), "exec", dont_inherit=True)

    def get_source(self, fullname: str) -> str:
        return self.path.read_text(encoding="utf-8")

    def exec_module(self, module: Any) -> None:
        module.__file__ = str(self.path)
        super().exec_module(module)


def install(root: Path, module: str, tree: ast.Module) -> None:
    """From now on an import of this module gives the changed one."""
    name = module[: -len(".py")].replace("/", ".").removesuffix(".__init__")
    sys.meta_path.insert(0, _Mutated(name, root / module, tree))


def settings(root: Path) -> list[str]:
    """pytest's arguments but for what it runs."""
    return [
        *QUIET,
        "-c",
        str(root / "pyproject.toml"),
        "--rootdir",
        str(root),
        f"--basetemp={tempfile.gettempdir()}/pytest",
    ]


class Chosen:
    """A pytest plugin: of what is collected these tests only, in this order; notes the first that
    fails.
    """

    def __init__(self, tests: Sequence[str]) -> None:
        self.order = {test: number for number, test in enumerate(tests)}
        self.failed: Optional[str] = None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        there = {item.nodeid for item in items}
        missing = [test for test in self.order if test not in there]
        if missing:
            self.failed = missing[0]
            raise pytest.UsageError("not collected")
        items[:] = sorted(
            (item for item in items if item.nodeid in self.order),
            key=lambda item: self.order[item.nodeid],
        )

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and self.failed is None:
            self.failed = report.nodeid


def run(root: Path, groups: Sequence[Sequence[str]]) -> Optional[str]:
    """Runs groups of tests, each of one file; the first that fails ends it and is returned, None if
    none does.
    """
    for group in groups:
        chosen = Chosen(group)
        file = group[0].split("::")[0]
        code = pytest.main([*settings(root), "-x", file], plugins=[chosen])
        if code:
            return chosen.failed or f"{file}: pytest ends with {int(code)}"
    return None
