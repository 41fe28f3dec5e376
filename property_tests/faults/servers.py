"""Faults in a model server, and in a TensorFlow that a run asks."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from property_tests.faults import losses
from property_tests.faults.declaring import Fault, Plant
from property_tests.faults.found_by.command import Command
from property_tests.faults.planting import artifact_of, release
from property_tests.faults.scenes import SERVED, TWO_RUNTIMES
from savedmodel_standin import executable

OTHER_MODEL = """

_sound = Servable.__init__


def _other(self, library, path, *arguments, **options):
    _sound(self, library, {other!r}, *arguments, **options)


Servable.__init__ = _other
"""


def serves(fault: str) -> Plant:
    """The server loads another version of the model, which has this fault."""

    def plant(folder: Path) -> None:
        other = shutil.copytree(artifact_of(folder) / "model", folder / "other")
        assert losses.apply(fault, other)
        release(
            folder,
            "savedmodel_standin/servable.py",
            OTHER_MODEL.format(other=str(other)),
        )
        executable.write(folder / "server", sys.executable, str(folder / "site"))

    return plant


def _claims_another_version(folder: Path) -> None:
    """The metadata of the package names the version that is installed, TensorFlow itself another
    one.
    """
    (path,) = (folder / "other").glob(
        "lib/python3.*/site-packages/tensorflow/python/framework/versions.py"
    )
    path.write_text(
        path.read_text(encoding="utf-8") + '\n__version__ = VERSION = "2.1.0"\n', encoding="utf-8"
    )


SERVE = "check artifacts/predictor --servers-only --server binary:./server"
SERVING_RUN = (
    "matrix run --servers-only --out run -n 1 --fixtures artifacts --server binary:./server"
)
RUN = (
    "matrix run --out run -n 1 --fixtures artifacts --consumer tf2 --check values --runtime"
    " other/bin/python"
)
ROWS = (
    Fault(
        "other-version-served",
        "the server has a version of the model with other weights",
        serves("values"),
        Command(SERVED, SERVE, 1, "FAIL_VALUE"),
    ),
    Fault(
        "other-signatures-served",
        "the server has a version of the model with other signatures",
        serves("signature_keys"),
        Command(SERVED, SERVING_RUN, 1, "serve_grpc"),
    ),
    Fault(
        "other-version-claimed",
        "a TensorFlow says that it is another version",
        _claims_another_version,
        Command(TWO_RUNTIMES, RUN, 4, "2.1.0"),
    ),
)
