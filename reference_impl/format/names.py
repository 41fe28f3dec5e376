"""The names that the format reserves, and the parts of generated names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

# Files with the MetaGraphs: binary, text, split into chunks. Loaders look for them in this order
FORMATS = PB, PBTXT, CPB = "saved_model.pb", "saved_model.pbtxt", "saved_model.cpb"

# Signatures of a MetaGraph
DEFAULT_SIGNATURE = "serving_default"
INIT_SIGNATURE = "__saved_model_init_op"
TRAIN_SIGNATURE = "__saved_model_train_op"
RESERVED_SIGNATURES = (
    INIT_SIGNATURE,
    TRAIN_SIGNATURE,
)  # ops for a session to run, not signatures of the model

# Collections of a MetaGraph
MAIN_OP, LEGACY_INIT_OP, TRAIN_OP = "saved_model_main_op", "legacy_init_op", "saved_model_train_op"
ASSETS_COLLECTION = "saved_model_assets"

# Child of the root that holds the signatures
SIGNATURES_CHILD = "signatures"

# SavedUserObject.identifier
GENERIC = "_generic_user_object"
LIST, TUPLE, DICT = "trackable_list_wrapper", "trackable_tuple_wrapper", "trackable_dict_wrapper"
SIGNATURES = "signature_map"
OPTIMIZER = "tf_deprecated_optimizer"

# Children of a resource
CREATE, INITIALIZE, DESTROY = "_create_resource", "_initialize", "_destroy_resource"

# Checkpoint keys and attributes
OBJECT_GRAPH_KEY = "_CHECKPOINTABLE_OBJECT_GRAPH"
VALUE = "VARIABLE_VALUE"
_ATTRIBUTES, _SLOT = ".ATTRIBUTES", ".OPTIMIZER_SLOT"

# Attribute of a node: the custom gradient of its op
CUSTOM_GRADIENT = "_gradient_op_type"
# What our exports write there for a gradient that they could not keep, and the attribute with the
# reason. Without it the operation would be differentiated with the standard gradient of its op,
# wrongly.
GRADIENT_NOT_SAVED, NO_GRADIENT_BECAUSE = "ReferenceImplGradientNotSaved", "_no_gradient_because"
# What our loader puts before the number of the load in the names that it makes: `table__load3`.
LOAD_MARK = "__load"
# Names that a process makes with a running number: `tf.custom_gradient`, and our loader for each
# load.
_OF_A_PROCESS = re.compile(rf"CustomGradient-\d+|.*{LOAD_MARK}\d+", re.DOTALL)
_LOAD_MARKS = re.compile(rb"(?:%b\d+)+\Z" % LOAD_MARK.encode())

# Attributes of nodes: why a function keeps control flow of TF 1.x, and why a node stays an
# operation on a TensorArray. Nodes have them because tf.saved_model.load refuses unknown
# attributes of functions
V1_CONTROL_FLOW, V1_TENSOR_ARRAY = "_v1_control_flow", "_v1_tensor_array"

# Attribute of a FunctionDef: the interface that the function implements, beside other functions to
# which nothing refers. TensorFlow's graph optimizer chooses the implementation for the device (LSTM
# and GRU of Keras 2 for GPUs, for example)
IMPLEMENTS = "api_implements"

# Names that a program gives to its own classes and kinds: a package and a name
OWN_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+\Z")
# Packages whose names TensorFlow's own registries use
PACKAGES_OF_TENSORFLOW = ("tf", "keras", "tf_keras", "tensorflow")

# Ops that call the function in their attribute `f` in this process
CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall"})

# Prefix of the attributes that this package gives to loaded objects: no model has such a child
PRIVATE = "_self_reference_impl_"

_NUMBER_OF_BRANCH = re.compile(r"(?<=.)_\d+(?=$|_(?:grad|rewritten)(?:_|$))")
_GENERATED = re.compile(r"__(?:inference|forward|backward)_(.+)_\d+", re.DOTALL)


def is_generated_gradient(op_type: str) -> bool:
    """Return whether the name of a custom gradient has a number that only the process that wrote it
    understands.

    ``CustomGradient-130`` in a file says nothing about the gradient that another process knows
    under this name.

    RFC: FMT-14
    """
    return _OF_A_PROCESS.fullmatch(op_type) is not None


def without_load_marks(shared_name: bytes) -> bytes:
    """Return the shared name in a file without the marks of loads in the process that wrote it:
    ``table`` of ``table__load3__load1``.
    """
    return _LOAD_MARKS.sub(b"", shared_name)


def plain_name(name: str) -> str:
    """Return the Python name inside a generated one: ``f_1`` of ``__inference_f_1_2``.

    Other names are left as they are.

    TensorFlow adds a prefix and one number. For functions derived from a function (its gradient),
    it adds both again.
    """
    match = _GENERATED.fullmatch(name) if name.startswith("__") else None
    while match is not None:
        name = match.group(1)
        match = _GENERATED.fullmatch(name)
    return name


def base_name(name: str) -> str:
    """Return the part of a function's name that is the same in other files: its plain name;
    ``cond_true`` of ``cond_true_7``, ``cond_true_grad`` of ``cond_true_7_grad_9``.

    Branches and bodies have no prefix, but a number that differs from one process to the next. So
    have their gradients, and the bodies that TensorFlow rewrites for a gradient.
    """
    plain = plain_name(name)
    return _NUMBER_OF_BRANCH.sub("", name) if plain == name else plain


def escape(name: str) -> str:
    """Return the name of a child escaped for a checkpoint key, where dots and slashes have a
    meaning.
    """
    return name.replace(".", "..").replace("/", ".S")


def key_prefix(names: tuple[str, ...]) -> str:
    """Return the beginning of the checkpoint keys of the object with this path."""
    return "".join(f"{escape(name)}/" for name in names)


def object_prefixes(children: Sequence[Mapping[str, int]]) -> dict[int, str]:
    """Return the beginning of the checkpoint keys of each object: its shortest path, escaped.

    `children` has the children of each object, name -> number, in breadth-first order. For example,
    the child ``layer/a`` of the root has the prefix ``layer.Sa/``.
    """
    prefixes = {0: ""}
    for number, named in enumerate(children):
        if number in prefixes:
            for name, child in named.items():
                prefixes.setdefault(child, f"{prefixes[number]}{escape(name)}/")
    return prefixes


def slot_prefix(variable: str, optimizer: str, slot: str) -> str:
    """Return the beginning of the checkpoint keys of a slot variable, given those of the variable
    and the optimizer.
    """
    return f"{variable}{_SLOT}/{optimizer}{escape(slot)}/"


def checkpoint_key(prefix: str, attribute: str) -> str:
    """Return the checkpoint key of an attribute of the object whose keys begin with `prefix`."""
    return f"{prefix}{_ATTRIBUTES}/{attribute}"
