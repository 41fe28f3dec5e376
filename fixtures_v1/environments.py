"""The Python environments the generators run in: made by uv from the locks, kept in a cache folder. Needs no TensorFlow."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from fixtures_v1 import lock_file, sha256


class EnvironmentTrouble(Exception):
    """No interpreter, no uv, no network: nothing that a fixture could be blamed for."""


def home() -> Path:
    """Where environments are kept: SAVEDMODEL_COMPAT_HOME, else the user's cache folder."""
    if os.environ.get("SAVEDMODEL_COMPAT_HOME"):
        return Path(os.environ["SAVEDMODEL_COMPAT_HOME"]).absolute()
    cache = os.environ.get("XDG_CACHE_HOME") or (Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache"))
    return Path(cache) / "savedmodel-compat"


def python_version(runtime: str) -> str:
    """The Python a runtime's lock was made for, such as ``3.7``. Raises LookupError for an unknown runtime."""
    lock = Path(lock_file(runtime))
    found = re.search(r"-py(\d+\.\d+)$", lock.stem)
    if found is None:
        raise LookupError(f"{lock.name} does not name its Python")
    return found.group(1)


def find_interpreter(version: str) -> str:
    """An interpreter of exactly this ``major.minor``, from pyenv, PATH or uv. Raises EnvironmentTrouble with what was tried."""
    tried = []
    for candidate in _candidates(version):
        tried.append(str(candidate))
        # Run it: a pyenv shim exists for versions that are not selected and only fails when started.
        answer = _output([str(candidate), "-c", "import sys; print('%d.%d' % sys.version_info[:2])"])
        if answer == version:
            return str(candidate)
    raise EnvironmentTrouble(f"no Python {version} found (tried {', '.join(tried) or 'nothing'})")


def _candidates(version: str) -> Iterator[str]:
    root = _output(["pyenv", "root"]) or os.environ.get("PYENV_ROOT", "")
    if root:
        yield from map(str, sorted(Path(root, "versions").glob(f"{version}.*/bin/python")))
    on_path = shutil.which(f"python{version}")
    if on_path:
        yield on_path
    # uv knows other places and, unless UV_PYTHON_DOWNLOADS forbids it, installs what is missing.
    managed = _output(["uv", "python", "find", version])
    if not managed and os.environ.get("UV_PYTHON_DOWNLOADS") not in ("never", "manual"):
        _output(["uv", "python", "install", version])
        managed = _output(["uv", "python", "find", version])
    if managed:
        yield managed


def _output(command: list[str]) -> str:
    """Standard output of a command, empty when it fails or is not there."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def is_ready(runtime: str) -> bool:
    """Whether the environment exists already."""
    return _python(_place(runtime)).exists()


def provide(runtime: str) -> Path:
    """The interpreter of the runtime's environment, which is made on first use. Raises EnvironmentTrouble."""
    place = _place(runtime)
    if _python(place).exists():
        return _python(place)
    if shutil.which("uv") is None:
        raise EnvironmentTrouble("uv is not on PATH; it makes the environments of TensorFlow 1.x")
    interpreter = find_interpreter(python_version(runtime))
    place.parent.mkdir(parents=True, exist_ok=True)
    fresh = place.with_name(f"{place.name}.{os.getpid()}.tmp")
    try:
        _run("uv", "venv", "--quiet", "--python", interpreter, str(fresh))
        # uv cannot compile for Python 3.6; the first import does it.
        install = ["uv", "pip", "install", "--quiet", "--no-compile-bytecode", "--require-hashes"]
        _run(*install, "--python", str(_python(fresh)), "-r", lock_file(runtime))
        try:
            fresh.rename(place)
        except OSError:
            if not _python(place).exists():  # another process may have been quicker
                raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return _python(place)


def _place(runtime: str) -> Path:
    lock = Path(lock_file(runtime))
    return home() / "environments" / f"{lock.stem}-{sha256(str(lock))[:12]}"


def _python(place: Path) -> Path:
    return place / "bin" / "python"


def _run(*command: str) -> None:
    try:
        subprocess.run(command, capture_output=True, text=True, check=True)
    except subprocess.CalledProcessError as error:
        raise EnvironmentTrouble(f"{' '.join(command)}: {error.stderr.strip()}") from error
