"""The configuration of a functional model, read from its graph where Keras 2 did not write it.

Keras 2 writes no configuration of a subclassed model. TF 2.0 also writes none of a functional model
with an ``Attention`` or ``AdditiveAttention``: these layers had no ``get_config``. The graph of the
model calls one function for each call of a layer, which names the layer. A model that only calls
its layers, with one input if its class is not one of Keras, has a configuration.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Optional

from reference_impl.format import schema
from reference_impl.views.text import dtype_name

_LAYER_CALL = re.compile(r"__inference_(.+)_layer_call_and_return_conditional_losses_\d+")
_CALLS = ("PartitionedCall", "StatefulPartitionedCall")
_INPUT = "input_1"  # of a subclassed model
_TENSOR = "tensor_spec_value"
_STRUCTURES = ("list_value", "tuple_value", "dict_value")
_HOLDERS = (
    "type_spec_value",
    "bounded_tensor_spec_value",
    "named_tuple_value",
)  # of tensors that are not read here

Tensor = tuple[str, int, int]  # layer, number of its call, number of the output
Spec = tuple[
    Optional[tuple[Optional[int], ...]], str
]  # shape, None if its rank is not known, and dtype


def functional_configuration(
    model: str,
    layers: Mapping[str, Optional[Mapping[str, Any]]],
    specs: Sequence[tuple[Any, Any]],
    bodies: Sequence[Any],
) -> Optional[dict[str, Any]]:
    """Return the configuration of a model that has none, None if its graph holds more than calls of
    its layers.

    Args:
      layers: name, class and configuration of each layer by name, None for one without a
        configuration.
      specs: the structured arguments and results of each trace of the model's call.
      bodies: the functions that the call runs.
    """
    entries = {name: entry for name, entry in layers.items() if entry is not None}
    counts = {outputs_of(results) for _, results in specs}
    outputs = counts.pop() if len(counts) == 1 else None
    if not layers or len(entries) < len(layers) or outputs is None:
        return None
    own = not any(entry["class_name"] == "InputLayer" for entry in entries.values())
    if own:
        inputs = [_input(given) for given, _ in specs]
        if (
            inputs[0] is None
            or any(one != inputs[0] for one in inputs)
            or _INPUT in layers
            or outputs != 1
        ):
            return None
        entries = {
            **entries,
            _INPUT: {"class_name": "InputLayer", "name": _INPUT, "config": inputs[0]},
        }
    read = (_Calls(body, entries, own) for body in bodies if _is_call(body, model))
    found = [calls for calls in read if calls.returned(outputs)]
    if not found or any(
        one.calls != found[0].calls or one.outputs != found[0].outputs for one in found
    ):
        return None
    nodes = {name: list(map(_inbound_node, calls)) for name, calls in found[0].calls.items()}
    return {
        "name": model,
        "layers": [
            {**entry, "inbound_nodes": nodes.get(name, [])} for name, entry in entries.items()
        ],
        "input_layers": found[0].inputs,
        "output_layers": found[0].outputs,
    }


def _inbound_node(call: Iterable[Sequence[Any]]) -> list[list[Any]]:
    """Return a call as a configuration has it: each tensor with its keyword arguments, which are
    none.
    """
    return [[*tensor, {}] for tensor in call]


def _is_call(body: Any, name: str) -> bool:
    match = _LAYER_CALL.fullmatch(body.signature.name)
    return match is not None and match.group(1) == name


def outputs_of(results: Any) -> Optional[int]:
    """Return the number of tensors of a tensor or a list of several, None for any other
    structure.
    """
    specs = tensor_specs(results)
    return (
        len(specs) if specs and (len(specs) > 1 or results.WhichOneof("kind") == _TENSOR) else None
    )


def tensor_specs(value: Any) -> Optional[list[Spec]]:
    """Return shape and dtype of a tensor or of each tensor of a list, None for any other
    structure.
    """
    kind = value.WhichOneof("kind")
    values = getattr(value, kind).values if kind in _STRUCTURES[:2] else [value]
    if any(item.WhichOneof("kind") != _TENSOR for item in values):
        return None
    return [_spec(item.tensor_spec_value) for item in values]


def _spec(spec: Any) -> Spec:
    shape = (
        None
        if spec.shape.unknown_rank
        else tuple([item.size if item.size >= 0 else None for item in spec.shape.dim])
    )
    return shape, dtype_name(spec.dtype)


def input_specs(given: Any) -> Optional[list[Spec]]:
    """Return the tensors that a layer takes by the structured arguments of a trace, None if they
    are more than one or a list.
    """
    parts = given.tuple_value.values
    arguments = [
        *(parts[0].tuple_value.values if parts else ()),
        *(parts[1].dict_value.fields.values() if parts[1:] else ()),
    ]
    kinds = [item.WhichOneof("kind") for item in arguments]
    return (
        tensor_specs(arguments[0])
        if arguments and not {_TENSOR, *_STRUCTURES} & {*kinds[1:]}
        else None
    )


def all_specs(given: Any) -> Optional[list[Spec]]:
    """Return every tensor in the structured arguments of a trace, in the order of the function's
    inputs.

    None if there is something else that holds tensors, as a sparse one.
    """
    specs: list[Spec] = []
    waiting = [given]
    while waiting:
        item = waiting.pop()
        kind = item.WhichOneof("kind")
        if kind == _TENSOR:
            specs.append(_spec(item.tensor_spec_value))
        elif kind in _STRUCTURES[:2]:
            waiting += reversed(getattr(item, kind).values)
        elif kind == "dict_value":
            fields = item.dict_value.fields
            waiting += [fields[name] for name in sorted(fields, reverse=True)]
        elif kind in _HOLDERS:
            return None
    return specs


def argument_names(spec: Any) -> tuple[str, ...]:
    """Return the names of the arguments of a function, in the order in which its tensors are the
    inputs of a trace.
    """
    fields = spec.fullargspec.named_tuple_value.values
    listed = {item.key: item.value.list_value.values for item in fields}
    positional = [item.string_value for item in listed.get("args", ())]
    keyword_only = [item.string_value for item in listed.get("kwonlyargs", ())]
    return (*(name for name in positional if name != "self"), *sorted(keyword_only))


def _input(given: Any) -> Optional[dict[str, Any]]:
    """Return the configuration of the input of a function that takes one tensor, whose rank is
    known and not 0.
    """
    specs = input_specs(given) or ()
    shape, dtype = specs[0] if len(specs) == 1 else (None, "")
    return {"name": _INPUT, "batch_input_shape": list(shape), "dtype": dtype} if shape else None


class _Calls:
    """The calls of layers, input layers included, in the function of a model; ``own``: it has one
    input and no input layer.
    """

    def __init__(self, body: Any, layers: Mapping[str, Mapping[str, Any]], own: bool) -> None:
        self.body = body
        self.entries = {
            name for name, entry in layers.items() if entry["class_name"] == "InputLayer"
        }
        self.tensors: dict[str, Tensor] = {}
        # The tensors that each call of a layer takes, by layer.
        self.calls: dict[str, list[list[Tensor]]] = {
            name: [] for name in layers if name not in self.entries
        }
        entries = {_as_argument(name): name for name in self.entries}
        arguments = [
            item.name for item in body.signature.input_arg if item.type != schema.DT_RESOURCE
        ]
        self.resources = {
            item.name for item in body.signature.input_arg if item.type == schema.DT_RESOURCE
        }
        if own:
            entries = dict.fromkeys(arguments[:1], _INPUT)
        known = sorted(arguments) == sorted(entries)
        self.outputs: list[Tensor] = []  # of the model, like the inputs
        self.inputs = [(entries[name], 0, 0) for name in arguments] if known else []
        self.tensors.update(zip(arguments, self.inputs))
        self._read([node for node in body.node_def if node.op in (*_CALLS, "Identity")])

    def _taken(self, node: Any) -> list[str]:
        """Return the inputs of a node that are tensors of the graph."""
        return [name for name in node.input if name[:1] != "^" and name not in self.resources]

    def _read(self, nodes: Sequence[Any]) -> None:
        """Note what each node returns, as soon as all of its inputs are known."""
        taken = list(map(self._taken, nodes))
        missing = [len({*names}) for names in taken]
        users: dict[str, list[int]] = {}
        for number, names in enumerate(taken):
            for name in {*names}:
                users.setdefault(name, []).append(number)
        known = deque(self.tensors)
        while known:
            for number in users.pop(known.popleft(), ()):
                missing[number] -= 1
                if not missing[number]:
                    found = self._returned(
                        nodes[number], [self.tensors[name] for name in taken[number]]
                    )
                    self.tensors.update(found)
                    known.extend(found)

    def _returned(self, node: Any, given: list[Tensor]) -> dict[str, Tensor]:
        """Return the tensors of a node whose inputs are known; none if it does not call a layer of
        the model.
        """
        if node.op == "Identity":
            return {f"{node.name}:output:0": given[0]}
        match = _LAYER_CALL.fullmatch(node.attr["f"].func.name)
        name = match.group(1) if match else ""
        if name not in self.calls:
            return {}
        self.calls[name].append(given)
        outputs = range(len(node.attr["Tout"].list.type))
        return {
            f"{node.name}:output:{number}": (name, len(self.calls[name]) - 1, number)
            for number in outputs
        }

    def returned(self, number: int) -> bool:
        """Note the outputs of the model; return whether they are known, and every layer is
        called.
        """
        names = [self.body.ret[item.name] for item in self.body.signature.output_arg][:number]
        found = [self.tensors.get(name) for name in names]
        idle = [name for name, calls in self.calls.items() if not calls]
        self.outputs = [end for end in found if end is not None]
        return not idle and bool(self.inputs) and len(self.outputs) == number


def _as_argument(name: str) -> str:
    return re.sub(r"\W", "_", name).lower()
