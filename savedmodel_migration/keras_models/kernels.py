"""Compute a Keras 3 model as Keras 2 did: without the graph optimizer, or with the kernel by which
Keras 2 normalized.

A rebuilt model whose answers are close has the bits of the original under one of these, or differs
in something else. The table tells which. Imports TensorFlow and Keras.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import keras
import tensorflow as tf


@contextlib.contextmanager
def without_graph_optimizer() -> Iterator[None]:
    """Switch off TensorFlow's graph optimizer, which joins ops to kernels that round otherwise."""
    before = tf.config.optimizer.get_experimental_options().get("disable_meta_optimizer", False)
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    try:
        yield
    finally:
        tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": before})


@contextlib.contextmanager
def normalization_of_keras_2() -> Iterator[None]:
    """Let ``BatchNormalization`` of images and ``LayerNormalization`` call
    ``tf.nn.fused_batch_norm`` where Keras 2 did.

    Only calls outside of training are changed. All other layers are those of Keras 3.
    """
    with (
        _called(keras.layers.BatchNormalization, _batch),
        _called(keras.layers.LayerNormalization, _layer),
    ):
        yield


@contextlib.contextmanager
def _called(layer: Any, function: Callable[..., Any]) -> Iterator[None]:
    original = layer.call
    layer.call = lambda self, *given, **named: function(self, original, *given, **named)
    try:
        yield
    finally:
        layer.call = original


def _batch(self: Any, original: Any, inputs: Any, training: Any = None, mask: Any = None) -> Any:
    rank = len(inputs.shape)
    axis = self.axis % rank if isinstance(self.axis, int) else 0
    if (
        (training and self.trainable)
        or rank not in (4, 5)
        or axis not in (1, rank - 1)
        or inputs.dtype != tf.float32
    ):
        return original(self, inputs, training=training, mask=mask)
    sizes = "DHW"[5 - rank :]
    return tf.compat.v1.nn.fused_batch_norm(
        inputs,
        tf.convert_to_tensor(self.gamma) if self.scale else tf.ones_like(self.moving_mean),
        tf.convert_to_tensor(self.beta) if self.center else tf.zeros_like(self.moving_mean),
        mean=tf.convert_to_tensor(self.moving_mean),
        variance=tf.convert_to_tensor(self.moving_variance),
        epsilon=self.epsilon,
        data_format=f"NC{sizes}" if axis == 1 else f"N{sizes}C",
        is_training=False,
    )[0]


def _layer(self: Any, original: Any, inputs: Any) -> Any:
    rank, shape = len(inputs.shape), tf.shape(inputs)
    axes = sorted(
        axis % rank for axis in ([self.axis] if isinstance(self.axis, int) else self.axis)
    )
    if axes != list(range(axes[0], rank)) or self.epsilon < 1.001e-5 or inputs.dtype != tf.float32:
        return original(self, inputs)
    before, after = tf.reduce_prod(shape[: axes[0]]), tf.reduce_prod(shape[axes[0] :])
    scaled = tf.compat.v1.nn.fused_batch_norm(
        tf.reshape(inputs, [1, before, after, 1]),
        tf.ones([before]),
        tf.zeros([before]),
        epsilon=self.epsilon,
        data_format="NCHW",
    )[0]
    found = tf.reshape(scaled, shape)
    found = found if self.gamma is None else found * tf.convert_to_tensor(self.gamma)
    return found if self.beta is None else found + tf.convert_to_tensor(self.beta)
