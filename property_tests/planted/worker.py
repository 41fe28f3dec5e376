"""The worker of the reference implementation with a fault in it, named by the file of the environment variable PLANTED.

A fault of the loader is an edit of what it reads (:mod:`.faults`), one of the saver an edit of what it wrote. Three more: a
loader and a saver that accept what they must refuse, and a saver that stores the values of its first save again.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from compat_matrix.workers import protocol, reference_worker, tf2_worker
from property_tests.planted import faults

ACCEPTS, STALE, SAVER = "accepts", "stale_values", "saver:"


class PlantedWorker(reference_worker.ReferenceWorker):
    """As the reference worker, but for one fault."""

    name = "planted"

    def __init__(self) -> None:
        super().__init__()
        self.saved: Any = None

    @property
    def fault(self) -> str:
        return Path(os.environ["PLANTED"]).read_text(encoding="utf-8")

    def load(self, directory: str, tags: list[str]) -> Any:
        copy = Path(tempfile.mkdtemp()) / "model"
        if self.fault in faults.FAULTS:
            shutil.copytree(directory, copy)
            if not faults.apply(self.fault, copy):
                shutil.rmtree(copy.parent)
                return super().load(directory, tags)
            return tf2_worker.Model(self.reference.load(str(copy), tags), str(copy))
        try:
            return super().load(directory, tags)
        except Exception:
            if self.fault != ACCEPTS:
                raise
            root = self.tf.Module()
            root.signatures = {}
            return tf2_worker.Model(root, directory)

    def call_signature(self, model: Any, key: str, inputs: Any) -> Any:
        try:
            return super().call_signature(model, key, inputs)
        except Exception:
            if self.fault != ACCEPTS:
                raise
            return protocol.named([])

    def call_function(self, model: Any, path: str, args: Any, kwargs: Any, inputs: Any) -> Any:
        try:
            return super().call_function(model, path, args, kwargs, inputs)
        except Exception:
            if self.fault != ACCEPTS:
                raise
            return None, protocol.named([])

    def resave(self, model: Any, directory: str, tags: list[str]) -> Any:
        done = super().resave(model, directory, tags)
        if self.fault.startswith(SAVER):
            faults.apply(self.fault[len(SAVER) :], Path(directory))
        if self.fault == STALE:
            if self.saved and self.saved[0] is model:
                shutil.rmtree(Path(directory, "variables"))
                shutil.copytree(self.saved[1], Path(directory, "variables"))
            else:
                self.saved = model, tempfile.mkdtemp() + "/variables"
                shutil.copytree(Path(directory, "variables"), self.saved[1])
        return done

    def produce(self, case: str, directory: str, scratch: str) -> None:
        try:
            super().produce(case, directory, scratch)
        except Exception:
            if self.fault != ACCEPTS:
                raise
            self.reference.save(self.tf.Module(), Path(directory, "model"))


if __name__ == "__main__":
    protocol.serve(PlantedWorker)
