"""fingerprint.pb of an export, with the hash of the TensorFlow that is loaded anyway."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Union

import numpy as np
import tensorflow as tf

from reference_impl.format.container import fingerprint as of_files


def fingerprint(message: Any, data: bytes, prefix: Union[str, os.PathLike[str]], assets: Mapping[str, str]) -> Any:
    """See `reference_impl.format.container.fingerprint.fingerprint`, whose own FarmHash is in Python."""
    return of_files.fingerprint(message, data, prefix, assets, _hash)


def _hash(data: bytes) -> int:
    """FarmHash, 64 bits, as the public op computes it."""
    row = np.frombuffer(data, np.uint8).reshape(1, -1)
    return int.from_bytes(tf.fingerprint(tf.constant(row)).numpy().tobytes(), "little")
