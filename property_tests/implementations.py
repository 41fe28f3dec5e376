"""The two implementations, by name, in one form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import reference_impl

TENSORFLOW, REFERENCE = "tf.saved_model", "reference_impl"
BOTH = (TENSORFLOW, REFERENCE)


def save(writer: str, root: Any, path: Path, signatures: Any = None) -> Path:
    import tensorflow as tf

    if writer == TENSORFLOW:
        tf.saved_model.save(root, str(path), signatures=signatures)
    else:
        reference_impl.save(root, path, signatures=signatures)
    return path


def load(reader: str, path: Path) -> Any:
    import tensorflow as tf

    return tf.saved_model.load(str(path)) if reader == TENSORFLOW else reference_impl.load(path)
