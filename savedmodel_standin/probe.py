"""Run by a runtime's Python: where its parts are, and compiled forms of the modules that the server
imports, as JSON.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import platform
import py_compile
import re
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# Every TensorFlow depends on them.
DISTRIBUTIONS = ("grpcio", "protobuf", "numpy")
SERVER = "savedmodel_standin.server"


def main() -> None:
    """Arguments: the folder for compiled modules, and ``{folder here: folder in the image}`` of our
    packages as JSON.
    """
    compiled, ours = Path(sys.argv[1]), json.loads(sys.argv[2])
    importlib.import_module(
        SERVER
    )  # before the library: an older one's symbols would take the place of grpcio's
    wheel: Any = importlib.import_module("compat_matrix.workers.c_library")
    package = wheel.package_folder()
    site = Path(package).parent
    version = "python{}.{}".format(*sys.version_info[:2])
    stdlib = Path(sysconfig.get_path("stdlib"))
    facts = {
        "implementation": platform.python_implementation(),
        "python": version,
        "executable": os.path.realpath(sys.executable),
        "stdlib": str(stdlib),
        "site": str(site),
        "files": sorted(_files(DISTRIBUTIONS, site)),
        "libraries": wheel.libraries(package),
        "tensorflow": wheel.Library().version,
        "compiled": {},
    }
    roots = {
        str(stdlib): f"/usr/local/lib/{version}",
        str(site): f"/usr/local/lib/{version}/site-packages",
        **ours,
    }
    facts["compiled"] = _compile(compiled, roots)
    print(json.dumps(facts))


def _files(names: tuple[str, ...], site: Path) -> set[str]:
    """The files of these distributions and of those that they need, relative to ``site``."""
    pending, seen, out = list(names), set(), set()
    while pending:
        name = pending.pop()
        if name in seen:
            continue
        seen.add(name)
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            if name in names:
                raise
            continue  # needed elsewhere than here
        for file in distribution.files or ():
            path = Path(str(distribution.locate_file(file)))
            if path.is_file() and not {"..", "__pycache__"} & set(path.parts):  # scripts lie above
                out.add(str(path.relative_to(site)))
        needed = [
            requirement
            for requirement in distribution.requires or ()
            if "extra ==" not in requirement
        ]
        pending += [re.split(r"[^\w.-]", requirement, maxsplit=1)[0] for requirement in needed]
    return out


def _compile(folder: Path, roots: Mapping[str, str]) -> dict[str, str]:
    """``{file in the image: compiled file here}``.

    They name places of the image and are used without a look at the source.
    """
    out: dict[str, str] = {}
    for module in list(sys.modules.values()):
        source = getattr(module, "__file__", None) or ""
        root = max((root for root in roots if source.startswith(root + "/")), key=len, default=None)
        if root is None or not source.endswith(".py"):
            continue
        placed = roots[root] + source[len(root) :]
        name = f"{Path(placed).stem}.{sys.implementation.cache_tag}.pyc"
        target = folder / f"{len(out)}.pyc"
        py_compile.compile(
            source,
            str(target),
            placed,
            True,
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        )
        out[str(Path(placed).parent / "__pycache__" / name)] = str(target)
    return out
