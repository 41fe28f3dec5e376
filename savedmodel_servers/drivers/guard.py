"""Stands between the harness and a server: when the harness goes, however it goes, so does the
server.

Run as a program, without anything but the standard library: ``guard.py STATUS COMMAND...``. Its
stdin is a pipe that only the harness holds open. How the server ended is written to STATUS. It
leads the process group of the server.
"""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time


def main(status: str, *command: str) -> None:
    threading.Thread(target=_watch, daemon=True).start()
    told: dict[str, object] = {"started": _now()}
    try:
        told["code"] = subprocess.Popen(command, stdin=subprocess.DEVNULL).wait()
    except OSError as error:
        told.update(code=127, error=str(error))
    told["finished"] = _now()
    fresh = pathlib.Path(status + ".tmp")
    fresh.write_text(json.dumps(told))
    fresh.replace(status)
    os._exit(0)


def _watch() -> None:
    while os.read(0, 1024):
        pass
    os.killpg(0, signal.SIGKILL)


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


if __name__ == "__main__":
    main(*sys.argv[1:])
