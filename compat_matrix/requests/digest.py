"""Digests of answers: two answers are equal, bit for bit, when their digests are.

Equal as :mod:`savedmodel_common.compare` means it without a tolerance: -0.0 is not 0.0, all
NaN are one value.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from savedmodel_common.compare import (
    COMPLEX,
    FLOATS,
    flatten,
    numbers,
)
from savedmodel_common.tensors import Tensor

LENGTH = 16  # hexadecimal digits: a result keeps one for each request


def answer_digest(request: Mapping[str, Any], structure: Any, tensors: Mapping[str, Tensor]) -> str:
    """Return the digest of all outputs of one answer.

    Tensor names of a function's result are left out: the encoder chooses them.

    ``structure`` is the nest of a function's result; it is ignored for a signature.
    """
    return digest_of(*named_outputs(request, structure, tensors))


def digest_of(skeleton: Any, named: Mapping[str, Tensor]) -> str:
    """Return the digest of what :func:`named_outputs` gives."""
    digest = hashlib.sha256(json.dumps(skeleton, sort_keys=True).encode())
    for where in sorted(named):
        tensor = named[where]
        digest.update(json.dumps([where, tensor.dtype, list(np.shape(tensor.array))]).encode())
        digest.update(_content(tensor))
    return digest.hexdigest()[:LENGTH]


def named_outputs(
    request: Mapping[str, Any], structure: Any, tensors: Mapping[str, Tensor]
) -> tuple[Any, dict[str, Tensor]]:
    """Return the structure of an answer without tensors (None for a signature), and its tensors by
    output or path.
    """
    return (
        flatten(structure, tensors)
        if request["kind"] == "function"
        else (None, compared_outputs(request, tensors))
    )


def compared_outputs(
    request: Mapping[str, Any], tensors: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Return the tensors of an answer that are compared: those that a signature's request names, or
    all.
    """
    wanted = request.get("compared") if request["kind"] == "signature" else None
    return {name: tensor for name, tensor in tensors.items() if wanted is None or name in wanted}


def _content(tensor: Tensor) -> bytes:
    if tensor.dtype == "string":
        items = np.asarray(tensor.array).ravel().tolist()
        return b"".join(len(item).to_bytes(8, "little") + item for item in items)
    array = np.ascontiguousarray(tensor.array).ravel()
    dtype = tensor.dtype
    if dtype in COMPLEX:
        dtype = COMPLEX[dtype]
        array = array.view(dtype)
    if dtype in FLOATS:
        nan = np.isnan(numbers(Tensor(dtype, array)))
        if nan.any():
            bits = array.view(f"u{array.dtype.itemsize}").copy()
            bits[nan] = np.iinfo(bits.dtype).max
            array = bits
    return array.tobytes()
