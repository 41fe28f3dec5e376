"""Save a model in the place of another again and again: ``replacing_saves.py EXPORT STOP``, until
the file STOP exists.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import tensorflow as tf

import reference_impl

root = tf.Module()
root.parts = [tf.Variable([0.0]) for _ in range(4)]
for number in itertools.count(1):
    for part in root.parts:
        part.assign([float(number)])
    reference_impl.save(root, sys.argv[1])
    if Path(sys.argv[2]).exists():
        break
