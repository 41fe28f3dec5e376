"""Programs of Python in forks of a process that has imported what they import.

An import of TensorFlow takes seconds of CPU, one of our own commands three quarters of a short run.
A server imports once; each program runs in a fork of it, with an environment, a folder and a
``sys.path`` of its own, and the fork ends with the program.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import random
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

LIMIT = 600  # seconds until a program is ended by SIGALRM


class ForkServer:
    """Runs programs.

    Several threads may run one each at the same time: each has a process that forks.

    Args:
      imports: modules. A variable of a program's environment that they read at their import has no
        effect.
      environment: that of the process that imports; by default the one of this process.
    """

    def __init__(self, *imports: str, environment: Mapping[str, str] | None = None) -> None:
        self._imports, self._environment = imports, environment
        self._idle: list[subprocess.Popen[str]] = []
        atexit.register(self.close)

    def run(
        self,
        head: Sequence[str],
        *arguments: object,
        cwd: Path | None = None,
        environment: Mapping[str, str] | None = None,
        limit: int = LIMIT,
    ) -> subprocess.CompletedProcess[str]:
        """Do as ``python HEAD ARGUMENTS...``, and return the exit code and all that was written.

        ``head`` is ``("-c", PROGRAM)``, ``("-m", MODULE)`` or the path of a file.
        """
        words = [*head, *map(str, arguments)]
        try:
            server = self._idle.pop()
        except IndexError:
            server = self._start()
        assert server.stdin is not None and server.stdout is not None
        with tempfile.TemporaryDirectory() as folder:
            out, err = Path(folder, "out"), Path(folder, "err")
            asked = {
                "words": words,
                "cwd": str(cwd or Path.cwd()),
                "out": str(out),
                "err": str(err),
                "limit": limit,
            }
            asked["environment"] = dict(os.environ if environment is None else environment)
            server.stdin.write(json.dumps(asked) + "\n")
            server.stdin.flush()
            exit_code = json.loads(server.stdout.readline())
            self._idle.append(server)
            said = (path.read_text(encoding="utf-8", errors="replace") for path in (out, err))
            return subprocess.CompletedProcess(words, exit_code, *said)

    def _start(self) -> subprocess.Popen[str]:
        command = [sys.executable, __file__, *self._imports]
        pipes: dict[str, Any] = {
            "stdin": subprocess.PIPE,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.DEVNULL,
        }
        return subprocess.Popen(command, env=self._environment, text=True, **pipes)

    def close(self) -> None:
        """End the processes that fork."""
        while self._idle:
            server = self._idle.pop()
            assert server.stdin is not None and server.stdout is not None
            server.stdin.close()
            server.wait()
            server.stdout.close()


def _serve() -> None:
    for name in sys.argv[1:]:
        importlib.import_module(name)
    own = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    installed = [entry for entry in sys.path[1:] if entry not in own]
    gc.freeze()  # a collection in a fork would copy what is here
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            _work(json.loads(line), installed)
        _, status = os.waitpid(pid, 0)
        print(
            -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status), flush=True
        )


def _work(asked: dict[str, Any], installed: list[str]) -> NoReturn:
    """The life of a fork."""
    status = 1
    try:
        signal.alarm(asked["limit"])
        for descriptor, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(asked[name], os.O_WRONLY | os.O_CREAT | os.O_APPEND), descriptor)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.chdir(asked["cwd"])
        os.environ.clear()
        os.environ.update(asked["environment"])
        random.seed()
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed()
        _run(asked["words"], installed)
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        if not isinstance(end.code, (int, type(None))):
            print(end.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _run(words: list[str], installed: list[str]) -> None:
    kind, path = (
        words[0],
        [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry],
    )
    first = {"-c": "", "-m": str(Path.cwd())}.get(kind, str(Path(kind).parent))
    sys.path[:] = [first, *path, *installed]
    if path:  # as Python does when it starts
        sys.modules.pop("sitecustomize", None)
        with contextlib.suppress(ImportError):
            importlib.import_module("sitecustomize")
    if kind == "-m":
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        return
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    if kind == "-c":
        sys.argv, code = ["-c", *words[2:]], compile(words[1], "<string>", "exec")
    else:
        module.__file__ = kind
        sys.argv, code = words, compile(Path(kind).read_bytes(), kind, "exec")
    exec(code, module.__dict__)


if __name__ == "__main__":
    _serve()
