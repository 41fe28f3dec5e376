"""Parts of what `inspect_types` describes that `diff` and `verify` need too: making all its classes takes longer than they do."""

from __future__ import annotations

from typing import Optional

from reference_impl.format.record import record
from reference_impl.format.values.shapes import Shape


@record
class TensorSlot:
    """One tensor of the main graph that belongs to a signature. ``part`` is ``""`` for a dense argument, else ``values``,
    ``indices``, ``dense_shape`` or ``component_0``, …"""

    part: str
    tensor: str
    dtype: str
    shape: Shape


@record
class SignatureArgument:
    """An input or output of a signature. ``kind`` is ``dense``, ``sparse`` or ``composite``; ``type_spec`` describes a
    composite type (``RaggedTensorSpec(float32[?,?], …)``); ``default`` is the value used when an input is left out."""

    name: str
    kind: str
    dtype: Optional[str]
    shape: Shape
    tensors: tuple[TensorSlot, ...]
    type_spec: Optional[str]
    default: Optional[str]


@record
class Signature:
    key: str
    method_name: str
    inputs: tuple[SignatureArgument, ...]
    outputs: tuple[SignatureArgument, ...]


@record
class InitOp:
    """What runs after loading. ``source`` is the collection or reserved signature that names ``op``."""

    source: str
    op: str


@record
class Effect:
    """Nodes of one op, in the main graph (``function`` is None) or one function, that act on the machine when they run.

    ``kind`` is a word of :mod:`.op_effects`, ``does`` says it in full, ``node`` is the first of ``count`` nodes. ``paths`` are
    the files or addresses, as far as they can be told. ``at_load`` names what a loader runs, ``at_call`` what users may run,
    that gets there; both are empty for nodes that nothing names, and None where that was too much to find out."""

    op: str
    kind: str
    does: str
    node: str
    function: Optional[str]
    count: int
    paths: tuple[str, ...]
    at_load: Optional[tuple[str, ...]]
    at_call: Optional[tuple[str, ...]]
