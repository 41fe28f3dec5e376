"""The named tuples inside the result of `reference_impl.inspect`.

Objects refer to each other by ``id``; sizes are bytes.

RFC: GOAL-07
"""

# Annotations are evaluated here: if they were text, typing would compile each one at the start of
# each command.
from typing import Any, NamedTuple, Optional

from reference_impl.format.values.shapes import Shape as Shape
from reference_impl.graph.signature_tensors import InitOp as InitOp
from reference_impl.safety.effect import Effect as Effect


class TensorSlot(NamedTuple):
    """One tensor of the main graph that belongs to a signature. ``part`` is ``""`` for a dense
    argument, else ``values``, ``indices``, ``dense_shape`` or ``component_0``, …"""

    part: str
    tensor: str
    dtype: str
    shape: Shape


class SignatureArgument(NamedTuple):
    """An input or output of a signature. ``kind`` is ``dense``, ``sparse`` or ``composite``;
    ``type_spec`` describes a composite type (``RaggedTensorSpec(float32[?,?], …)``); ``default`` is
    the value used when an input is left out."""

    name: str
    kind: str
    dtype: Optional[str]
    shape: Shape
    tensors: tuple[TensorSlot, ...]
    type_spec: Optional[str]
    default: Optional[str]


class Signature(NamedTuple):
    """A signature for serving systems. ``loads`` is False if the object graph lacks it, so that
    `tf.saved_model.load` does not offer it.
    """

    key: str
    method_name: str
    inputs: tuple[SignatureArgument, ...]
    outputs: tuple[SignatureArgument, ...]
    loads: bool


class Child(NamedTuple):
    name: str
    id: int


class ObjectNode(NamedTuple):
    """A node of the object graph. ``path`` is its shortest path from the root (``""``), names
    joined by dots; None if no path leads to it. ``details`` holds data of the kind (dtype,
    identifier, traces, …).
    """

    id: int
    path: Optional[str]
    kind: str
    children: tuple[Child, ...]
    registered_name: str
    details: dict[str, Any]


class ConcreteFunction(NamedTuple):
    """One trace.

    ``signature`` is Python-like: ``f(x: float32[?,3], training=True) -> float32[?]``.
    """

    name: str
    signature: str
    bound_inputs: tuple[str, ...]
    in_library: bool


class Function(NamedTuple):
    """A function of the object graph with its traces in the order in which a call tries them.

    RFC: FN-05
    """

    id: int
    path: Optional[str]
    polymorphic: bool
    traces: tuple[ConcreteFunction, ...]


class LibraryFunction(NamedTuple):
    """A FunctionDef; ``signature`` shows its flat arguments.
    ``reachable_from`` names the signatures whose call may run it; None if the search was too large.
    """

    name: str
    signature: str
    nodes: int
    size: int
    calls: tuple[str, ...]
    reachable_from: Optional[tuple[str, ...]]


class OpCount(NamedTuple):
    """The number of occurrences of an op in the main graph and in all functions, and the functions
    that contain it.
    """

    op: str
    count: int  # type: ignore[assignment]  # hides tuple.count
    main_graph: int
    functions: tuple[str, ...]
    reachable_from: Optional[tuple[str, ...]]


class Program(NamedTuple):
    """A StableHLO module that an ``XlaCallModule`` node runs.

    ``version`` is the version of the op, ``stablehlo`` the version of the module (None for a text,
    which has none). ``custom_calls`` are the targets of custom calls, or, for bytecode (``exact``
    is false), names that include the targets.
    """

    node: str
    function: Optional[str]
    version: int
    stablehlo: Optional[str]
    platforms: tuple[str, ...]
    custom_calls: tuple[str, ...]
    exact: bool


class Variable(NamedTuple):
    """A variable. ``kind`` is ``resource`` or ``reference``; ``key`` its checkpoint key; ``stored``
    whether the checkpoint has that key; ``slice`` which part of the key's tensor it is (partitioned
    variables)."""

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


class Asset(NamedTuple):
    """A file of assets/. Its path is fed to ``tensor``."""

    filename: str
    tensor: str
    size: Optional[int]
    # ``present``, ``missing``, ``unreadable`` (such as a pipe) or ``escapes`` (the name leads out
    # of the directory)
    status: str


class Saver(NamedTuple):
    filename_tensor: str
    save_tensor: str
    restore_op: str
    version: str
    sharded: bool
    restores: Optional[int]


class Collection(NamedTuple):
    key: str
    kind: str
    items: int


class Constant(NamedTuple):
    """One of the largest constants in the graph."""

    node: str
    function: Optional[str]
    dtype: str
    shape: Shape
    size: int


class Sizes(NamedTuple):
    """Bytes of the parts of one MetaGraph; ``constants`` is contained in ``graph`` and
    ``functions``.
    """

    total: int
    graph: int
    functions: int
    object_graph: int
    constants: int
    largest_constants: tuple[Constant, ...]


class MetaGraph(NamedTuple):
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
    programs: tuple[Program, ...] = ()


class File(NamedTuple):
    path: str
    size: int


class Checkpoint(NamedTuple):
    """variables/: ``tensors`` is the number of keys, ``size`` the bytes of their values as
    stored.
    """

    tensors: int
    shards: int
    size: int
