"""What :func:`reference_impl.inspection.model.inspect` answers: plain dataclasses, and their JSON form (GOAL-07).

The JSON form is these classes field by field: a class becomes an object, a tuple a list. ``schema`` counts changes that a
reader would notice; fields may be added without a new number. A shape is a list of sizes, ``null`` where a size is
unknown, or ``null`` altogether when even the rank is. Objects refer to each other by ``id``, so cycles and shared objects
need no special case. Sizes are bytes.
"""

from __future__ import annotations

from typing import Any, Optional

from reference_impl.format.record import record
from reference_impl.format.values.shapes import Shape as Shape
from reference_impl.inspection.parts import Effect as Effect
from reference_impl.inspection.parts import InitOp as InitOp
from reference_impl.inspection.parts import Signature as Signature
from reference_impl.inspection.parts import SignatureArgument as SignatureArgument
from reference_impl.inspection.parts import TensorSlot as TensorSlot

SCHEMA = 1


@record
class Child:
    name: str
    id: int


@record
class ObjectNode:
    """A node of the object graph. ``path`` is its shortest path from the root (``""``), names joined by dots; None when no
    path leads to it. ``details`` holds what the kind has to say (dtype, identifier, traces, …)."""

    id: int
    path: Optional[str]
    kind: str
    children: tuple[Child, ...]
    registered_name: str
    details: dict[str, Any]


@record
class ConcreteFunction:
    """One trace. ``signature`` is Python-like: ``f(x: float32[?,3], training=True) -> float32[?]``."""

    name: str
    signature: str
    bound_inputs: tuple[str, ...]
    in_library: bool


@record
class Function:
    """A function of the object graph with its traces in the order in which a call tries them (FN-05)."""

    id: int
    path: Optional[str]
    polymorphic: bool
    traces: tuple[ConcreteFunction, ...]


@record
class LibraryFunction:
    """A FunctionDef; ``signature`` shows its flat arguments.
    ``reachable_from`` names the signatures whose call may run it; None where that was too much to find out."""

    name: str
    signature: str
    nodes: int
    size: int
    calls: tuple[str, ...]
    reachable_from: Optional[tuple[str, ...]]


@record
class OpCount:
    """How often an op occurs: in the main graph, in all functions, and which functions these are."""

    op: str
    count: int
    main_graph: int
    functions: tuple[str, ...]
    reachable_from: Optional[tuple[str, ...]]


@record
class Variable:
    """A variable. ``kind`` is ``resource`` or ``reference``; ``key`` its checkpoint key; ``stored`` whether the checkpoint
    has that key; ``slice`` which part of the key's tensor it is (partitioned variables)."""

    name: str
    path: Optional[str]
    kind: str
    dtype: str
    shape: Shape
    size: Optional[int]
    trainable: Optional[bool]
    key: Optional[str]
    stored: bool
    slice: Optional[str]
    node: Optional[str]
    device: str


@record
class Asset:
    """A file of assets/.

    Attributes:
      filename, tensor: its name, and the tensor that its path is fed to.
      size: in bytes, if it is present.
      status: ``present``, ``missing``, ``unreadable`` (such as a pipe) or ``escapes`` (its name leads out of the directory).
    """

    filename: str
    tensor: str
    size: Optional[int]
    status: str


@record
class Saver:
    filename_tensor: str
    save_tensor: str
    restore_op: str
    version: str
    sharded: bool
    restores: Optional[int]


@record
class Collection:
    key: str
    kind: str
    items: int


@record
class Constant:
    """A tensor written out in the graph, among the largest."""

    node: str
    function: Optional[str]
    dtype: str
    shape: Shape
    size: int


@record
class Sizes:
    """Bytes of the parts of one MetaGraph; ``constants`` is contained in ``graph`` and ``functions``."""

    total: int
    graph: int
    functions: int
    object_graph: int
    constants: int
    largest_constants: tuple[Constant, ...]


@record
class MetaGraph:
    tags: tuple[str, ...]
    tensorflow_version: str
    tensorflow_git_version: str
    meta_graph_version: str
    producer: int
    min_consumer: int
    bad_consumers: tuple[int, ...]
    stripped_default_attrs: bool
    has_object_graph: bool
    nodes: int
    sizes: Sizes
    signatures: tuple[Signature, ...]
    objects: tuple[ObjectNode, ...]
    functions: tuple[Function, ...]
    function_aliases: dict[str, str]
    library: tuple[LibraryFunction, ...]
    variables: tuple[Variable, ...]
    assets: tuple[Asset, ...]
    init_ops: tuple[InitOp, ...]
    saver: Optional[Saver]
    effects: tuple[Effect, ...]
    ops: tuple[OpCount, ...]
    collections: tuple[Collection, ...]


@record
class File:
    path: str
    size: int


@record
class Checkpoint:
    """variables/: ``tensors`` is the number of keys, ``size`` the bytes of their values as stored."""

    tensors: int
    shards: int
    size: int


@record
class SavedModelInfo:
    """A SavedModel directory. ``problems`` lists what is damaged or missing, one sentence each."""

    path: str
    format: str
    schema_version: int
    size: int
    meta_graphs: tuple[MetaGraph, ...]
    checkpoint: Optional[Checkpoint]
    fingerprint: Optional[dict[str, Any]]
    debug_info: Optional[File]
    extra: tuple[File, ...]
    problems: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The JSON form described at the top of this module."""
        return {"schema": SCHEMA, **_json(self)}


def _json(value: Any) -> Any:
    if isinstance(value, (str, int, type(None))):
        return value
    if isinstance(value, (tuple, list)):
        return [_json(item) for item in value]
    if isinstance(value, dict):
        return {key: _json(item) for key, item in value.items()}
    return {name: _json(item) for name, item in vars(value).items()}
