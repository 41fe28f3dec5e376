"""The releases of TensorFlow for which a GraphDef says that it is meant."""

from __future__ import annotations

import tensorflow as tf

from reference_impl.format import schema


def refusal(versions: schema.VersionDef) -> str:
    """Return why the running TensorFlow must not import a graph with this VersionDef, or "".

    They begin as TensorFlow's.
    """
    mine, release = tf.version.GRAPH_DEF_VERSION, f"TensorFlow {tf.__version__}"
    oldest, producer, wanted = (
        tf.version.GRAPH_DEF_VERSION_MIN_PRODUCER,
        versions.producer,
        versions.min_consumer,
    )
    if producer < oldest:
        return (
            f"GraphDef producer version {producer} below min producer {oldest} supported by"
            f" {release}; export it again"
        )
    if wanted > mine:
        return (
            f"GraphDef min consumer version {wanted} above current version {mine} for {release};"
            " use a later release"
        )
    if mine in versions.bad_consumers:
        return (
            f"GraphDef disallows consumer version {mine}, that of {release}, which reads it"
            " wrongly; use another release"
        )
    return ""
