"""Lists, tuples and dicts as trackable objects, and classes of objects that public TensorFlow has no name for.

`tf.__internal__` is TensorFlow's door for Keras, without a promise to anybody else. All names are in 2.5-2.21.
"""

from __future__ import annotations

import tensorflow as tf

# Setting an attribute of a `tf.Module` wraps a container as well, but gives the wrapper's class no name.
wrap = tf.__internal__.tracking.wrap
TrackableList = type(wrap([]))
TrackableDict = type(wrap({}))
TrackableTuple = type(wrap((wrap([]),)))  # a tuple without trackable elements stays what it is

# The base of `tf.Module` that lists its attributes as dependencies; TensorFlow and Keras make plain ones for their helpers.
AutoTrackable = tf.__internal__.tracking.AutoTrackable
# The base of `tf.RaggedTensor`, `tf.sparse.SparseTensor` and all extension types.
CompositeTensor = tf.__internal__.CompositeTensor
# One variable in several parts, which strategies with parameter servers make.
ShardedVariable = tf.__internal__.distribute.ShardedVariable
