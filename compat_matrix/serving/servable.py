"""What TensorFlow Serving can be asked of a model at all, seen from its signatures."""

from __future__ import annotations

from reference_impl.format.schema import SignatureDef


def unaskable(signature: SignatureDef) -> str | None:
    """Why no server answers a Predict with this signature; None if one may.

    The server feeds and fetches the one tensor that `TensorInfo.name` names, under the signature's own key. A sparse or composite
    input or output has its tensors named elsewhere and no name: nothing can be sent for its parts, since the server counts the
    inputs, and what it runs is a tensor called "". Such models are asked with `tf.Example`s, by Classify or Regress.
    """
    for side, infos in (("input", signature.inputs), ("output", signature.outputs)):
        for key in sorted(infos):
            kind = infos[key].WhichOneof("encoding")
            if kind in ("coo_sparse", "composite_tensor"):
                words = "sparse" if kind == "coo_sparse" else "composite"
                return f"the {side} {key!r} is {words}: TensorFlow Serving feeds and fetches single tensors"
    return None
