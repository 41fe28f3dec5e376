"""Makes a fixture: runs its generator inside the TensorFlow 1.x it names.

``python -m fixtures_v1.recorder CASE OUT`` writes OUT/model, OUT/io and OUT/provenance.json. What a
generator is, and how its answers are recorded, stands in ``compat_matrix/workers/v1_recording.py``.
Python 3.6 syntax, TensorFlow 1.4 to 1.15.
"""

import importlib
import os
import sys
import tempfile

import numpy as np

import fixtures_v1
from compat_matrix.workers import v1_recording
from savedmodel_common import provenance


def record(case, out):
    """Generate one case into the new folder ``out``.

    Raises AssertionError when live and loaded answers differ.
    """
    v1_recording.seed(case)
    import google.protobuf
    import tensorflow as tf

    module = importlib.import_module("fixtures_v1.{}.generate".format(case))
    lock = fixtures_v1.lock_file(module.RUNTIME)
    os.makedirs(out)
    v1_recording.record(tf, module, out, tempfile.mkdtemp())
    versions = {
        "python": ".".join(map(str, sys.version_info[:3])),
        "tensorflow": tf.VERSION,
        "numpy": np.__version__,
        "protobuf": google.protobuf.__version__,
    }
    provenance.write(
        out,
        case=case,
        title=module.__doc__.strip().splitlines()[0],
        clauses=module.CLAUSES,
        features=module.FEATURES,
        producer={"name": "fixture", "versions": versions},
        generator=module.__file__,
        environment={
            "lock": "locks/" + os.path.basename(lock),
            "sha256": provenance.file_sha256(lock),
        },
        command="python -m fixtures_v1.recorder {} OUT".format(case),
        unasked=getattr(module, "UNASKED", {}),
    )


if __name__ == "__main__":
    record(sys.argv[1], os.path.abspath(sys.argv[2]))
