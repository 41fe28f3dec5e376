"""A library of ops that TensorFlow does not have, compiled in a fraction of a second."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent / "custom_op.c"


def build(folder: Path) -> Path:
    """Compile the ops of `custom_op.c` for the installed TensorFlow; return the library.

    Skips the test without a compiler.
    """
    tf = pytest.importorskip("tensorflow")
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip(
            "no C compiler here: models with ops of other libraries were not tried (apt-get install"
            " gcc)"
        )
    library = folder / "custom_op.so"
    subprocess.run(
        [
            compiler,
            "-O1",
            "-shared",
            "-fPIC",
            "-o",
            library,
            SOURCE,
            *tf.sysconfig.get_link_flags(),
        ],
        check=True,
    )
    return library
