"""A registry with one runtime whose "TensorFlow" is a few lines in a wheel of ours: real
installations through uv, no network.

The wheel's modules find NumPy and protobuf in the environment that runs the tests, so both have the
same Python.
"""

from __future__ import annotations

import base64
import hashlib
import platform
import sysconfig
import zipfile
from pathlib import Path

PYTHON = ".".join(platform.python_version_tuple()[:2])
TAG = f"cp{PYTHON.replace('.', '')}-none-any"
_MODULE = """
import os, time
__version__ = {said!r}
class errors:
    class UnimplementedError(Exception): pass
class compat:
    class v1:
        __version__ = {said!r}
if os.path.exists({hold!r}):
    time.sleep(600)
"""


def wheel(folder: Path, version: str = "9.9.9", said: str | None = None) -> Path:
    """Write a wheel of "TensorFlow"; the module says that it is ``said``, and hangs when
    ``folder/hold`` exists.
    """
    module = _MODULE.format(said=said or version, hold=str(folder / "hold"))
    info = f"tensorflow-{version}.dist-info"
    files = {
        "tensorflow/__init__.py": module,
        # The packages of this environment, behind those of the new one.
        "tiny.pth": sysconfig.get_path("purelib") + "\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: tensorflow\nVersion: {version}\n",
        f"{info}/WHEEL": (
            f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: {TAG}\n"
        ),
    }
    listed = "".join(
        f"{name},{_digest(text)},{len(text.encode())}\n" for name, text in files.items()
    )
    files[f"{info}/RECORD"] = listed + f"{info}/RECORD,,\n"
    path = folder / f"tensorflow-{version}-{TAG}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def _digest(text: str) -> str:
    return (
        "sha256="
        + base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
    )


TEXT = f"""schema = 1
platform = "x86_64-unknown-linux-gnu"
reference = ["numpy"]

[runtime."tf9.9"]
tensorflow = "9.9.9"
python = "{PYTHON}"
requirements = ["tensorflow==9.9.9"]
lock = "locks/tf9.9.9.txt"

[[lacks]]
programs = ["reference", "reference_to_tf2", "tf2_to_reference"]
tensorflow = "<10"
reason = "none of the tests needs it"
"""


def registry(folder: Path, text: str = TEXT) -> Path:
    """Write a registry with the text."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "runtimes.toml"
    path.write_text(text, encoding="utf-8")
    return path
