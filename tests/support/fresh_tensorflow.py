"""Programs in a process that has imported TensorFlow and done nothing else.

An import takes seconds of CPU. One process imports, and each program runs in a fork of it, which ends with the program.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import traceback
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

LIMIT = 600  # seconds until a program is ended by SIGALRM
_server: list[subprocess.Popen[str]] = []


def run(
    program: str | Path, *arguments: object, cwd: Path | None = None, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Do as ``python -c PROGRAM ARGUMENTS...`` does, or ``python PROGRAM`` for the path of a file, in a fork.

    Returns the exit code and all that was written. TensorFlow and Keras are imported already: a variable of ``environment`` that
    they read at their import has no effect.
    """
    if not _server:
        command = [sys.executable, __file__]
        _server.append(
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        )
        atexit.register(_close)
    process = _server[0]
    assert process.stdin is not None and process.stdout is not None
    words = [str(argument) for argument in arguments]
    head = [str(program)] if isinstance(program, Path) else ["-c", program]
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        asked = {"head": head, "arguments": words, "cwd": str(cwd or Path.cwd()), "out": str(out), "err": str(err)}
        asked["environment"] = dict(os.environ if environment is None else environment)
        process.stdin.write(json.dumps(asked) + "\n")
        process.stdin.flush()
        exit_code = json.loads(process.stdout.readline())
        said = (path.read_text(encoding="utf-8", errors="replace") for path in (out, err))
        return subprocess.CompletedProcess([*head, *words], exit_code, *said)


def printed(
    program: str | Path, *arguments: object, cwd: Path | None = None, environment: Mapping[str, str] | None = None
) -> str:
    """Return what a program printed that ended without an error."""
    done = run(program, *arguments, cwd=cwd, environment=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def _close() -> None:
    process = _server.pop()
    assert process.stdin is not None and process.stdout is not None
    process.stdin.close()
    process.wait()
    process.stdout.close()


def _serve() -> None:
    import tensorflow  # noqa: F401

    import reference_impl.api  # noqa: F401

    gc.freeze()  # a collection in a fork would copy what is here
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            _work(json.loads(line))
        _, status = os.waitpid(pid, 0)
        print(-os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status), flush=True)


def _work(asked: dict[str, Any]) -> NoReturn:
    """The life of a fork."""
    status = 1
    try:
        signal.alarm(LIMIT)
        for descriptor, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(asked[name], os.O_WRONLY | os.O_CREAT | os.O_APPEND), descriptor)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.chdir(asked["cwd"])
        os.environ.clear()
        os.environ.update(asked["environment"])
        random.seed()
        sys.modules["numpy"].random.seed()
        head = asked["head"]
        module = types.ModuleType("__main__")
        sys.modules["__main__"] = module
        sys.argv = [head[0], *asked["arguments"]]
        if head[0] == "-c":
            sys.path[0], code = "", compile(head[1], "<string>", "exec")
        else:
            module.__file__ = head[0]
            sys.path[0], code = str(Path(head[0]).parent), compile(Path(head[0]).read_bytes(), head[0], "exec")
        exec(code, module.__dict__)
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        if not isinstance(end.code, (int, type(None))):
            print(end.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    _serve()
