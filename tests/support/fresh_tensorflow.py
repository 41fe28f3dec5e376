"""Programs in a process that has imported TensorFlow and done nothing else.

An import takes seconds of CPU. One process imports, and each program runs in a fork of it, which ends with the program.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import tempfile
import traceback
import types
from pathlib import Path
from typing import Any, NoReturn

LIMIT = 600  # seconds until a program is ended by SIGALRM
_server: list[subprocess.Popen[str]] = []


def run(code: str, *arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Do as ``python -c CODE ARGUMENTS...`` does, in a fork; returns the exit code and all that was written."""
    if not _server:
        command = [sys.executable, __file__]
        _server.append(
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        )
        atexit.register(_close)
    process = _server[0]
    assert process.stdin is not None and process.stdout is not None
    words = [str(argument) for argument in arguments]
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        asked = {"code": code, "arguments": words, "cwd": str(cwd or Path.cwd()), "out": str(out), "err": str(err)}
        process.stdin.write(json.dumps(asked) + "\n")
        process.stdin.flush()
        exit_code = json.loads(process.stdout.readline())
        said = (path.read_text(encoding="utf-8", errors="replace") for path in (out, err))
        return subprocess.CompletedProcess(["-c", code, *words], exit_code, *said)


def _close() -> None:
    process = _server.pop()
    assert process.stdin is not None and process.stdout is not None
    process.stdin.close()
    process.wait()
    process.stdout.close()


def _serve() -> None:
    import tensorflow  # noqa: F401

    import reference_impl.api  # noqa: F401

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
        sys.argv, sys.path[0] = ["-c", *asked["arguments"]], ""
        module = types.ModuleType("__main__")
        sys.modules["__main__"] = module
        exec(compile(asked["code"], "<string>", "exec"), module.__dict__)
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
