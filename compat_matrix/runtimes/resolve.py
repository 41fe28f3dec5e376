"""From what a user writes to a runtime. Interim: the local one and interpreters; helper RT replaces this file."""

from __future__ import annotations

import subprocess
from pathlib import Path

from compat_matrix.runtimes.runtime import LOCAL, Runtime, local_runtime

_ASK = """
import sys
try:
    from importlib.metadata import distributions
    found = {d.metadata['Name']: d.version for d in distributions()}
except ImportError:
    import pkg_resources
    found = {d.project_name: d.version for d in pkg_resources.working_set}
print(next((found[n] for n in ('tensorflow', 'tensorflow-cpu') if n in found), ''))
"""


class RuntimeMissing(Exception):
    """No such runtime here; the message names the command that would provide it."""


def resolve(spec: str) -> Runtime:
    """The runtime called ``spec``. Raises RuntimeMissing."""
    if spec == LOCAL:
        return local_runtime()
    python = Path(spec)
    if python.is_dir():
        python = python / "bin" / "python"
    if not python.is_file():
        raise RuntimeMissing(f"no runtime {spec}")
    version = subprocess.run([str(python), "-c", _ASK], capture_output=True, text=True, check=True).stdout.strip()
    name = "tf" + ".".join(version.split(".")[:2])
    return Runtime(name, python.absolute(), version or None, spec=spec)


def resolve_all(spec: str) -> list[Runtime]:
    """The runtimes of a comma list."""
    return [resolve(part.strip()) for part in spec.split(",")]
