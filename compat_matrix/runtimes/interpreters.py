"""Find the Pythons on this machine: pyenv's, those on PATH, uv's.

Each is started once to verify its version.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from compat_matrix.runtimes import uv
from compat_matrix.runtimes.places import RuntimeTrouble, environment

MINORS = tuple(f"3.{minor}" for minor in range(20, 5, -1))  # newest first
# TensorFlow is made for CPython with its global lock.
_ASK = """
import platform, sys, sysconfig
usual = platform.python_implementation() == "CPython" and not sysconfig.get_config_var("Py_GIL_DISABLED")
print("%d.%d" % sys.version_info[:2] if usual else "")
"""  # noqa: E501


class NoInterpreter(RuntimeTrouble):
    """Raised when there is no Python of the version; the message lists the places searched."""


@functools.cache
def find(version: str) -> str:
    """Return an interpreter of exactly this ``major.minor``. Raises :class:`NoInterpreter`."""
    tried = []
    for candidate in _candidates(version):
        tried.append(candidate)
        # Run it: a pyenv shim also exists for versions that are not selected, and fails only when
        # started.
        if _output([candidate, "-c", _ASK]) == version:
            return candidate
    looked = ", ".join(tried) or "pyenv, PATH and uv know none"
    raise NoInterpreter(
        f"no Python {version} ({looked}); `uv python install {version}` or `pyenv install"
        f" {version}` makes one"
    )


def here() -> dict[str, str]:
    """Return ``{major.minor: interpreter}`` for all installed Pythons, newest first.

    Downloads nothing.
    """
    found = {}
    known = _Known.asked()
    for version in MINORS:
        for candidate in known.of(version):
            if _output([candidate, "-c", _ASK]) == version:
                found[version] = candidate
                break
    return found


def _candidates(version: str) -> Iterator[str]:
    yield from _Known.asked().of(version)
    if os.environ.get("UV_PYTHON_DOWNLOADS") not in ("never", "manual"):
        _uv("install", version)
        found = _uv("find", version)
        if found:
            yield found


@dataclass(frozen=True)
class _Known:
    """The Pythons that pyenv and uv list at one moment. A Python may be installed later."""

    pyenv: str  # its root, or ""
    managed: Mapping[str, str]  # {major.minor: interpreter} that uv installed

    @classmethod
    def asked(cls) -> _Known:
        return cls(_pyenv(), _managed())

    def of(self, version: str) -> Iterator[str]:
        """Yield the interpreters that may be of a version, the preferred ones first."""
        if self.pyenv:
            micros = Path(self.pyenv, "versions").glob(f"{version}.*/bin/python")
            yield from map(str, sorted(micros, key=_micro, reverse=True))
        on_path = shutil.which(f"python{version}")
        if on_path:
            yield on_path
        if version in self.managed:
            yield self.managed[version]


def _micro(path: Path) -> list[int]:
    """Return the version in ``versions/3.11.7/bin/python``, as numbers."""
    return [int(part) for part in re.findall(r"\d+", path.parts[-3])]


def _pyenv() -> str:
    return _output(["pyenv", "root"]) or os.environ.get("PYENV_ROOT", "")


def _managed() -> dict[str, str]:
    """Return ``{major.minor: interpreter}`` for the Pythons that uv installed."""
    try:
        listed = json.loads(
            uv.run(
                [
                    "python",
                    "list",
                    "--managed-python",
                    "--only-installed",
                    "--output-format",
                    "json",
                ]
            )
        )
    except (uv.UvTrouble, ValueError):
        return {}
    parts = [
        (one["version_parts"], one["path"])
        for one in listed
        if one.get("implementation") == "cpython" and one.get("path")
    ]
    return {f"{part['major']}.{part['minor']}": path for part, path in parts}


def _uv(command: str, version: str) -> str:
    try:
        return uv.run(["python", command, version]).strip()
    except uv.UvTrouble:
        return ""


def _output(command: list[str]) -> str:
    """Return the standard output of a command, empty when it fails or does not exist."""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
            stdin=subprocess.DEVNULL,
            env=environment(),
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
