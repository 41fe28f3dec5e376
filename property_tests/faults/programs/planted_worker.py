"""The worker of the reference implementation with a fault in it, named by the file of the
environment variable PLANTED.

A fault of the loader is an edit of what it reads (`property_tests/faults/losses`), one of the saver
an edit of what it wrote. The others are in the process itself: a loader and a saver that accept
what they must refuse, a saver that stores the values of its first save again, and calls that go
wrong only in some circumstances.
"""

import collections
import os
import shutil
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from compat_matrix.workers import describing, protocol, reference_worker, tf2_worker
from property_tests.faults import losses

ACCEPTS, STALE, SAVER = "accepts", "stale_values", "saver:"
SWALLOWED, OTHER_THREADS, THIRD_CALL = "swallowed_errors", "other_threads", "third_call"
THIRD = 3


class PlantedWorker(reference_worker.ReferenceWorker):
    """As the reference worker, but for one fault."""

    name = "planted"

    def __init__(self) -> None:
        super().__init__()
        self.saved: Any = None
        self.calls: collections.Counter[Any] = collections.Counter()

    @property
    def fault(self) -> str:
        return Path(os.environ["PLANTED"]).read_text(encoding="utf-8")

    def load(self, directory: str, tags: list[str]) -> Any:
        copy = Path(tempfile.mkdtemp()) / "model"
        if self.fault in losses.LOSSES:
            shutil.copytree(directory, copy)
            if not losses.apply(self.fault, copy):
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
            answer = super().call_signature(model, key, inputs)
        except Exception:
            if self.fault not in (ACCEPTS, SWALLOWED):
                raise
            return protocol.named([])
        return self.spoilt(answer) if self.goes_wrong(model, key) else answer

    def call_function(self, model: Any, path: str, args: Any, kwargs: Any, inputs: Any) -> Any:
        try:
            structure, answer = super().call_function(model, path, args, kwargs, inputs)
        except Exception:
            if self.fault not in (ACCEPTS, SWALLOWED):
                raise
            return None, protocol.named([])
        return structure, self.spoilt(answer) if self.goes_wrong(model, path) else answer

    def goes_wrong(self, model: Any, name: str) -> bool:
        """Whether this call of a signature or a function is one that the fault spoils."""
        if self.fault == OTHER_THREADS:
            return threading.current_thread() is not threading.main_thread()
        self.calls[id(model), name] += 1
        return self.fault == THIRD_CALL and self.calls[id(model), name] == THIRD

    def spoilt(self, answer: Any) -> Any:
        return protocol.named((name, describing.altered(tensor)) for name, tensor in answer.items())

    def resave(self, model: Any, directory: str, tags: list[str]) -> Any:
        done = super().resave(model, directory, tags)
        if self.fault.startswith(SAVER):
            losses.apply(self.fault[len(SAVER) :], Path(directory))
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
