"""The releases of TensorFlow for which a GraphDef says that it is meant."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def refusal(versions: Any) -> str:
    """Return why the running TensorFlow must not import a GraphDef with this VersionDef, or "". The texts begin as TensorFlow's."""
    mine, release = tf.version.GRAPH_DEF_VERSION, f"TensorFlow {tf.__version__}"
    oldest = tf.version.GRAPH_DEF_VERSION_MIN_PRODUCER
    if versions.producer < oldest:
        return (
            f"GraphDef producer version {versions.producer} below min producer {oldest} supported by {release}; export it again"
        )
    if versions.min_consumer > mine:
        return (
            f"GraphDef min consumer version {versions.min_consumer} above current version {mine} for {release}; use a later one"
        )
    if mine in versions.bad_consumers:
        return f"GraphDef disallows consumer version {mine}, that of {release}: its writer knows that it reads it wrongly; use another"
    return ""
