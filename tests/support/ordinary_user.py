"""Commands as a user whom the modes of files concern: root without its right to pass over them,
anybody else as they are.
"""

from __future__ import annotations

import ctypes
import functools
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import fresh_tensorflow

_PR_CAPBSET_DROP = 24
_PASSING_OVER = (1, 2, 3)  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER


def _give_up_rights():
    """Between fork and exec: a program that root starts has the rights that are in the bounding
    set.
    """
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        for right in _PASSING_OVER:
            if libc.prctl(_PR_CAPBSET_DROP, right, 0, 0, 0):
                os._exit(97)


def give_up_rights_of_this_process():
    """The same for a process that starts no other program."""
    if os.geteuid():
        return
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # the version of the structures; this process
    rights = (ctypes.c_uint32 * 6)()  # effective, permitted and inheritable, two words each
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.capget(header, rights):
        raise OSError(ctypes.get_errno(), "capget")
    for right in _PASSING_OVER:
        rights[0] &= ~(1 << right)
    if libc.capset(header, rights):
        raise OSError(ctypes.get_errno(), "capset")


def run_fresh(program, *arguments, cwd=None, environment=None):
    """Do as `fresh_tensorflow.run` does, as an ordinary user."""
    drop = f"""
import sys
sys.path.insert(1, {str(Path(__file__).parent)!r})
__import__("ordinary_user").give_up_rights_of_this_process()
"""
    return fresh_tensorflow.run(drop + program, *arguments, cwd=cwd, environment=environment)


def run(*command, cwd=None, environment=None, timeout=300):
    """Run a command as an ordinary user; returns what `subprocess.run` returns, with text."""
    return subprocess.run(
        [*map(str, command)],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        preexec_fn=_give_up_rights,
    )


@functools.cache
def missing():
    """Why no command can be run as an ordinary user here; empty where it can."""
    if not sys.platform.startswith("linux") and os.geteuid() == 0:
        return "root can give up its rights on Linux only"
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o555)
        done = run(sys.executable, "-c", f"open({folder + '/x'!r}, 'w')")
        Path(folder).chmod(0o755)
    return (
        ""
        if "PermissionError" in done.stderr
        else f"root cannot give up its right to write everywhere: {done.returncode}"
    )
