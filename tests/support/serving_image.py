"""An image for tests of the docker driver: this machine's Python, and ``serving_double.py`` behind
the official image's contract.

Nothing is pulled or installed: the root file system is this Python, the few packages that the
double needs, and the libraries that all of them are linked with.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    "grpc",
    "google",
    "numpy",
    "numpy.libs",
    "ml_dtypes",
    "google_crc32c",
    "cramjam",
    "typing_extensions.py",
)
REPOSITORY = "savedmodel-compat-double"
LEFT_OUT = re.compile(
    r"/(test|tests|idlelib|ensurepip|tkinter|turtledemo|__pycache__|config-[^/]*)(/|$)|lib/python[^/]*/site-packages$"
)

# What the official image's entry point does, in words of our own.
ENTRY = """#!/bin/sh
tensorflow_model_server --port=8500 --rest_api_port=8501 --model_name="$MODEL_NAME" \\
  --model_base_path="$MODEL_BASE_PATH/$MODEL_NAME" "$@"
"""
CHANGES = [
    "ENV MODEL_NAME=model",
    "ENV MODEL_BASE_PATH=/models",
    "EXPOSE 8500",
    "EXPOSE 8501",
    'ENTRYPOINT ["/usr/bin/entry.sh"]',
]


def image(client: Any, labels: Sequence[str] = ()) -> str:
    """The name of the image, built where it is not here yet. ``labels``: ``NAME=VALUE``."""
    sources = [
        Path(__file__),
        ROOT / "tests/support/serving_double.py",
        *sorted((ROOT / "savedmodel_servers").rglob("*.p*")),
    ]
    digest = hashlib.sha256(
        b"".join(path.read_bytes() for path in sources if path.suffix in (".py", ".binpb"))
    )
    digest.update(repr((sys.version, labels)).encode())
    name = f"{REPOSITORY}-{digest.hexdigest()[:12]}:latest"  # podman's import knows no other tag
    if not client.images.list(name=name):
        changes = [*CHANGES, *(f"LABEL {one}" for one in (*labels, "savedmodel-compat.test=1"))]
        repository, _, tag = name.partition(":")
        client.api.import_image_from_data(
            _archive(), repository=repository, tag=tag, changes=changes
        )
    return name


def _archive() -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", dereference=True) as archive:
        done: set[str] = set()
        for source, target in ((source, os.path.normpath(target)) for source, target in _members()):
            if target not in done:
                done.add(target)
                archive.add(source, arcname=target.lstrip("/"), recursive=False)
        for name, mode in (("tmp", 0o1777), ("models", 0o755), ("etc", 0o755)):
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, mode
            archive.addfile(folder)
        program = f'#!/bin/sh\nexec {_python()} -B /app/tests/support/serving_double.py "$@"\n'
        for name, text in (
            ("usr/bin/entry.sh", ENTRY),
            ("usr/bin/tensorflow_model_server", program),
        ):
            member = tarfile.TarInfo(name)
            member.mode, member.size = 0o755, len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return stream.getvalue()


def _python() -> str:
    return f"/usr/bin/env PYTHONPATH=/app:/packages PYTHONHOME={sys.base_prefix} {_base()}"


def _base() -> str:
    return str(Path(sys.executable).resolve())


def _members() -> Iterator[tuple[Path, str]]:
    """``(file here, path in the image)``."""
    files = [(Path(one), one) for one in (_base(), "/usr/bin/env", "/bin/sh")]
    files += _tree(Path(sysconfig.get_path("stdlib")), sysconfig.get_path("stdlib"))
    purelib = Path(sysconfig.get_path("purelib"))
    for name in PACKAGES:
        files += _tree(purelib / name, f"/packages/{name}")
    for name in ("reference_impl", "savedmodel_common", "tests/support/serving_double.py"):
        files += _tree(ROOT / name, f"/app/{name}")
    yield from files
    yield from (
        (Path(one), one) for one in sorted(_libraries([str(source) for source, _ in files]))
    )


def _tree(source: Path, target: str) -> list[tuple[Path, str]]:
    if source.is_file():
        return [(source, target)]
    # Below the folder: what lies above may be called `tests` as well.
    found = (
        path
        for path in source.rglob("*")
        if path.is_file() and not LEFT_OUT.search(f"/{path.relative_to(source)}")
    )
    # Of the standard library's folder, not what was installed into it.
    return [
        (path, f"{target}/{path.relative_to(source)}")
        for path in found
        if "site-packages" not in path.relative_to(source).parts
    ]


def _libraries(files: Sequence[str]) -> set[str]:
    linked = [
        name
        for name in files
        if ".so" in Path(name).name or name in (_base(), "/usr/bin/env", "/bin/sh")
    ]
    output = subprocess.run(["ldd", *linked], capture_output=True, text=True, check=False).stdout
    return set(re.findall(r"(?:=> )?(/\S+) \(0x", output))
