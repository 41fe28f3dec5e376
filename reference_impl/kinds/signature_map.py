"""The immutable map of signatures.

RFC: ATTR-01, ATTR-02, SIG-10
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Optional

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import MalformedError, SavedModelError, UnknownSignatureError, like
from reference_impl.format import schema
from reference_impl.format.names import SIGNATURES, SIGNATURES_CHILD
from reference_impl.functions import specs
from reference_impl.functions.load_context import LoadContext
from reference_impl.functions.registered_function import RegisteredFunction
from reference_impl.functions.steps import type_text
from reference_impl.functions.unknown_ops import why_not_found
from reference_impl.graph import node_kinds
from reference_impl.kinds.kind import Export, Kind, SavedNode, write_dependencies
from reference_impl.tracing import Watch


class SignatureMap(Mapping[str, Any], api.Trackable):
    """Signature key -> concrete function.

    A function takes keywords, or one positional argument if it has one input.

    Results are dicts with sorted keys. The map cannot be changed: it shows what the file holds.
    """

    def __init__(self, functions: Mapping[str, Any]):
        self._functions = dict(functions)
        for key, function in functions.items():
            if isinstance(function, RegisteredFunction):
                function.label = f"signature {key}"

    @property
    def _signatures(self) -> dict[str, Any]:
        """The functions under the name used by the map of `tf.saved_model.load`, which converters
        read.
        """
        return dict(self._functions)

    def __getitem__(self, key: str) -> Any:
        if key not in self._functions:
            there = (
                f"there are: {', '.join(self._functions)}"
                if self._functions
                else "the model has none"
            )
            reason = f"there is no signature {key!r}; {there}.{like(str(key), self._functions)}"
            raise UnknownSignatureError(reason, node=SIGNATURES_CHILD)
        return self._functions[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)

    def __repr__(self) -> str:
        return f"SignatureMap({self._functions})"


class SignatureMapKind(Kind):
    """The map of signatures. The children are the signatures, which are concrete functions.

    The map is made with its children, when its parent gets its own (`make`).
    """

    message = node_kinds.SIGNATURE_MAP

    def made_of(self, node: schema.SavedObject) -> Iterable[int]:
        return [needed.node_id for needed in node.dependencies]

    def read(self, load: LoadContext, number: int, node: schema.SavedObject) -> None:
        """Make nothing: the functions of the map are made later."""

    def matches(self, obj: object) -> bool:
        return is_live_map(obj)

    def write(self, export: Export, node: SavedNode, out: schema.SavedObject) -> None:
        """Write the identifier of the map."""
        out.user_object.identifier = SIGNATURES
        out.user_object.version.producer = out.user_object.version.min_consumer = 1
        write_dependencies(out, node.dependencies)


def make(load: LoadContext, number: int) -> SignatureMap:
    """Return the map of a signature node, whose functions have been made.

    Raises MalformedError if a child is not a function.
    """
    functions = load.children(number)
    for key, function in functions.items():
        if not isinstance(function, RegisteredFunction):
            raise MalformedError(
                "a signature is not a concrete function",
                file=load.file,
                node=f"signatures[{key!r}]",
            )
        if key in load.meta_graph.signature_def:
            definition = load.meta_graph.signature_def[key]
            defaults = {
                name: load.tensor(value, f"signatures[{key!r}]")
                for name, value in sorted(definition.defaults.items())
            }
            _complete(function, definition, defaults)
    return SignatureMap(functions)


def of_node(load: LoadContext, number: int) -> SignatureMap:
    """Return the map that is a child of a node, whatever its kind; an empty map if there is
    none.
    """
    found = [
        child.node_id
        for child in load.graph.nodes[number].children
        if load.kinds[child.node_id].message is node_kinds.SIGNATURE_MAP
    ]
    return make(load, found[0]) if found else SignatureMap({})


def _complete(
    function: RegisteredFunction,
    definition: schema.SignatureDef,
    defaults: dict[str, tf.Tensor],
) -> None:
    """Add the data that only the SignatureDef has: the method, default values of inputs, shapes of
    outputs.

    The object graph has the output shapes of the function's own nodes; a session's graph also has
    those of its callee.
    """
    function.signature_def, function.defaults = definition, defaults
    described = function.signature
    file, node = (
        function.library.file,
        function.saved_name,
    )  # not the function itself, which holds this closure

    def signature() -> tuple[Any, Any]:
        inputs, outputs = described()
        if not isinstance(outputs, dict):
            raise MalformedError("the results of a signature are not a dict", file=file, node=node)
        return inputs, {
            name: _refine(spec, definition.outputs.get(name)) for name, spec in outputs.items()
        }

    function.signature = signature


def _refine(spec: tf.TypeSpec, info: Optional[schema.TensorInfo]) -> tf.TypeSpec:
    if info is None or not isinstance(spec, tf.TensorSpec) or spec.shape.rank is not None:
        return spec
    return tf.TensorSpec(specs.shape_of(info.tensor_shape), spec.dtype, spec.name)


def is_live_map(obj: object) -> bool:
    """Return whether an object is our map of signatures, or the map of `tf.saved_model.load`, which
    has no public name.
    """
    return isinstance(obj, SignatureMap) or (
        type(obj).__name__ == "_SignatureMap" and isinstance(obj, Mapping)
    )


def tell_signatures(watch: Watch, file: str, signatures: Mapping[str, Any], rule: str) -> None:
    """Tell the inputs and outputs of each signature, or why it cannot be called."""
    for key, function in signatures.items():
        try:
            inputs, outputs = function.structured_input_signature[1], function.structured_outputs
            said = f"({_specs_text(inputs)}) -> ({_specs_text(outputs)})"
        except SavedModelError as error:
            said = f"cannot be called: {error.reason}"
        refused = getattr(function, "reason", None)
        if refused is None and isinstance(function, RegisteredFunction):
            refused = why_not_found(function.library, function.saved_name)
        if refused is not None:
            said += f"; cannot be called: {refused.reason}"
        watch.tell("signature", file, key, said, rule)


def _specs_text(specs: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name}: {type_text(spec.dtype, spec.shape)}"
        if isinstance(spec, tf.TensorSpec)
        else f"{name}: {spec}"
        for name, spec in specs.items()
    )


KIND = SignatureMapKind()
