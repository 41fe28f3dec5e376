"""An executable file that starts the stand-in with the Python of a TensorFlow runtime."""

from __future__ import annotations

import shlex
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
PACKAGES = ("reference_impl", "savedmodel_common", "compat_matrix", "savedmodel_standin")
# Our packages are opened one by one, never by a search path: the folder of the installed project
# also holds the harness's own NumPy and protobuf.
_OPENING = """\
import importlib.util, sys
for name in {packages!r}:
    folder = {project!r} + "/" + name
    spec = importlib.util.spec_from_file_location(name, folder + "/__init__.py", submodule_search_locations=[folder])
    sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[name])
"""  # noqa: E501
_SERVE = """\
from savedmodel_standin import server
sys.argv[0] = "tensorflow_model_server"
sys.exit(server.main(sys.argv[1:]))
"""


def opening(project: str) -> str:
    """Python statements that make our packages importable in an interpreter that does not know
    them.
    """
    return _OPENING.format(packages=PACKAGES, project=project)


def script(python: str, project: str = str(PROJECT)) -> str:
    """Return the text of the file: a shell script that executes that Python.

    ``project`` is the folder of our packages.
    """
    program = shlex.quote(opening(project) + _SERVE)
    return f'#!/bin/sh\nexec {shlex.quote(python)} -I -c {program} "$@"\n'


def write(path: Path, python: str, project: str = str(PROJECT)) -> None:
    """Write the executable ``path`` and create its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(script(python, project), encoding="utf-8")
    path.chmod(0o755)
