"""tensorflow-checkpoint-reader as a reader of the kit (docs/format/kit.md): level L1.

    python checkpoint_reader.py MODEL

It needs Python 3.9 and the package of this name. Its errors are the only form of refusal that it
has, so every one counts as a refusal.
"""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np


def described(key, array):
    array = np.asarray(array)
    if array.dtype == object:
        # The package takes the stored bytes for pointers to objects. To touch one ends the process.
        raise ValueError(f"{key!r}: strings are not decoded")
    content = array.tobytes()
    return {
        "key": key.decode("utf-8", "surrogateescape"),
        "dtype": array.dtype.name,
        "shape": list(array.shape),
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def main(model):
    prefix = Path(model, "variables", "variables")
    if not prefix.with_suffix(".index").exists() and not prefix.exists():
        print(json.dumps({"checkpoint": None}))
        return 0
    out, sys.stdout = sys.stdout, sys.stderr  # the package prints what it reads
    try:
        from tensorflow_checkpoint_reader import bundle_reader, env

        reader = bundle_reader.BundleReader(env.Env.default(), str(prefix))
        tensors = [described(key, array) for key, array in reader._tensors]
    except Exception as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2
    sys.stdout = out
    print(json.dumps({"checkpoint": {"tensors": tensors}}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
