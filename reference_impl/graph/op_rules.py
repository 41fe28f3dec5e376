"""Check the attributes of a node against the definition of its op.

TensorFlow checks them when it imports a graph, and trusts them when it calls a function that was
registered later: there an empty list of branches or a negative number of tensors ends the process.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Optional, Union

from reference_impl import errors
from reference_impl.format import limits, schema
from reference_impl.format.names import CALLS
from reference_impl.format.values.shapes import has_valid_rank
from reference_impl.graph import node_attributes
from reference_impl.graph.functional_ops import CASE_OPS, IF_OPS, WHILE_OPS
from reference_impl.graph.op_table import no_attribute
from reference_impl.graph.references import function_attributes, function_values

Allowed = Optional[frozenset[Union[int, bytes]]]  # numbers of dtypes, or strings; None: all

# Ops that always call the functions in their attributes. Other ops may leave one out by an empty
# name.
_CALLING = IF_OPS | CASE_OPS | WHILE_OPS | frozenset(CALLS)
_LOOPS = WHILE_OPS | {"Enter", "RefEnter"}
# Attributes that are the number of a dimension, or of some: shape functions trust a few of them.
_DIMENSIONS = frozenset({"axis", "batch_dim", "batch_dims", "seq_dim"})
# Type of an attribute of an op -> the field of its AttrValue; of a list, the field of its items.
FIELDS = {
    "string": "s",
    "int": "i",
    "float": "f",
    "bool": "b",
    "type": "type",
    "shape": "shape",
    "tensor": "tensor",
    "func": "func",
}


class AttrRule(NamedTuple):
    """The rule for one attribute, from the definition of its op.

    Attributes:
      name: the name of the attribute.
      field: the field of the AttrValue, or of each item of a list.
      is_list: whether the value is a list.
      required: whether a node must have it.
      least: the smallest number, or the shortest length of a list; None for any.
      allowed: the dtypes or strings that are allowed.
      counts: whether it says how many tensors a node takes or gives.
    """

    name: str
    field: str
    is_list: bool
    required: bool
    least: Optional[int]
    allowed: Allowed
    counts: bool


class OpRules(NamedTuple):
    """The rules for the nodes of an op, from its definition.

    Attributes:
      attributes: the rules of its attributes.
      inputs: for each input argument, the attributes with its number of tensors and with its list
        of types; "" for a plain one.
      outputs: the names of its output arguments.
    """

    attributes: tuple[AttrRule, ...]
    inputs: tuple[tuple[str, str], ...]
    outputs: frozenset[str]

    def input_count(self, node: schema.NodeDef) -> Optional[int]:
        """Return how many tensors a node takes, or None if an attribute that tells it is missing:
        it may have a default.
        """
        counts = [self.tensors_of(node, argument) for argument in self.inputs]
        return None if None in counts else sum(count or 0 for count in counts)

    def tensors_of(self, node: schema.NodeDef, argument: tuple[str, str]) -> Optional[int]:
        """Return how many tensors of a node belong to an entry of `inputs`, or None as
        `input_count`.
        """
        number, types = argument
        if not number and not types:
            return 1
        if (number or types) not in node.attr:
            return None
        return node.attr[number].i if number else len(node.attr[types].list.type)

    def wrong_count(self, node: schema.NodeDef, count: int) -> Optional[str]:
        """Return what is wrong with a number of inputs, or None."""
        wanted = self.input_count(node)
        return None if wanted in (None, count) else f"it has {count} inputs, its op takes {wanted}"


def rule(
    name: str, kind: str, required: bool, least: Optional[int], allowed: Allowed, counts: bool
) -> AttrRule:
    """Return the rule of an attribute of the type `kind`, such as ``list(type)``.

    A number of tensors is never negative.
    """
    is_list = kind.startswith("list(")
    field = FIELDS.get(kind[len("list(") : -1] if is_list else kind, "")
    return AttrRule(
        name, field, is_list, required, max(least or 0, 0) if counts else least, allowed, counts
    )


def of_definition(definition: schema.OpDef) -> OpRules:
    """Return the rules of an op."""
    counting = {
        argument.number_attr for argument in (*definition.input_arg, *definition.output_arg)
    }
    rules = []
    for attr in definition.attr:
        values = attr.allowed_values.list
        allowed: Allowed = (
            frozenset([*values.s, *values.type]) if attr.HasField("allowed_values") else None
        )
        least = attr.minimum if attr.has_minimum else None
        required = not attr.HasField("default_value")
        rules.append(rule(attr.name, attr.type, required, least, allowed, attr.name in counting))
    inputs = tuple(
        (argument.number_attr, argument.type_list_attr) for argument in definition.input_arg
    )
    return OpRules(
        tuple(rules), inputs, frozenset(argument.name for argument in definition.output_arg)
    )


def check(node: schema.NodeDef, rules: Iterable[AttrRule], in_function: bool = True) -> None:
    """Check the attributes of a node by the rules of its op.

    In a function the caller may fill in a dtype.

    Attributes that the op does not have are TensorFlow's to judge.

    The errors do not name the node.

    Raises:
      MalformedError: an attribute is missing, has a value of another type, or a value that the op
        does not allow.
      ShapeError, LimitError: as `reference_impl.graph.node_attributes.check_item`; or it asks for
        too many tensors.
    """
    attributes = node.attr
    for one in rules:
        if one.name not in attributes:
            if one.required:  # TensorFlow reads some of them without checking that they exist
                raise no_attribute(node.op, one.name)
            continue
        value = attributes[one.name]
        if one.is_list:
            _check_list(value, one)
        elif value.HasField(one.field):
            _check_item(getattr(value, one.field), one)
        elif not (in_function and one.field == "type" and value.HasField("placeholder")):
            raise errors.MalformedError(
                f"attribute {one.name!r} is not of type {one.field!r}, but {_kind(value)!r}"
            )
    if node.op in _CALLING:
        for value in function_attributes(attributes):
            if not all(called.name for called in function_values(value)):
                raise errors.MissingKeyError("calls a function without a name")
    if node.op == "Const":
        _check_constant(attributes)
    elif node.op in _LOOPS:
        node_attributes.check_loop(node)
    elif "explicit_paddings" in attributes:
        _check_paddings(attributes)


def check_named(
    node: schema.NodeDef,
    rules: Iterable[AttrRule],
    file: str,
    where: str,
    in_function: bool = True,
) -> None:
    """Check the attributes of a node as `check` does. The errors name the file and `where`."""
    try:
        check(node, rules, in_function)
    except errors.SavedModelError as error:
        error.file, error.node = file, where
        raise


def check_inputs(node: schema.NodeDef, rules: OpRules, file: str) -> None:
    """Check how many inputs a node of a main graph has, and that control inputs follow them.

    Raises MalformedError.
    """
    controls = [text.startswith("^") for text in node.input]
    fault = rules.wrong_count(node, controls.count(False))
    if fault is None and controls != sorted(controls):
        fault = "an input follows a control input"
    if fault is not None:
        raise errors.MalformedError(fault, file=file, node=node.name)


def _check_constant(attributes: Mapping[str, schema.AttrValue]) -> None:
    """Raise MalformedError if the dtype of a constant is not that of its value, which the graph
    optimizer takes for granted.
    """
    if "dtype" in attributes and "value" in attributes and attributes["dtype"].HasField("type"):
        said, held = attributes["dtype"].type, attributes["value"].tensor.dtype
        if said != held:
            raise errors.MalformedError(
                f"a constant of the dtype {said} has a value of the dtype {held}"
            )


def _check_paddings(attributes: Mapping[str, schema.AttrValue]) -> None:
    """Raise MalformedError for paddings that the padding does not ask for, or not two for each
    dimension: oneDNN indexes them.
    """
    given = attributes["explicit_paddings"].list.i
    explicit = "padding" in attributes and attributes["padding"].s == b"EXPLICIT"
    if explicit != bool(given) or (given and (len(given) not in (8, 10) or min(given) < 0)):
        raise errors.MalformedError(
            f"attribute 'explicit_paddings' has {len(given)} items, which do not fit the padding"
        )


def _kind(value: schema.AttrValue) -> str:
    return value.WhichOneof("value") or "nothing"


def _check_list(value: schema.AttrValue, one: AttrRule) -> None:
    """Check a list: the type of its items, how many there are, and each of them."""
    if not value.HasField("list"):
        raise errors.MalformedError(f"attribute {one.name!r} is not a list, but {_kind(value)!r}")
    items = getattr(value.list, one.field)
    if not items and (others := [field.name for field, _ in value.list.ListFields()]):
        raise errors.MalformedError(
            f"attribute {one.name!r} is a list of type {others[0]!r}, not {one.field!r}"
        )
    if one.least is not None and len(items) < one.least:
        raise errors.MalformedError(
            f"attribute {one.name!r} has {len(items)} items, the op needs {one.least}"
        )
    if one.field == "i" and any(
        not -(2**31) <= item < 2**31 for item in items
    ):  # the graph optimizer takes it for granted
        raise errors.MalformedError(f"attribute {one.name!r} has a number of more than 32 bits")
    if one.field in ("type", "shape", "tensor") or one.allowed is not None:
        unlisted = one._replace(least=None)
        for item in items:
            _check_item(item, unlisted)


def _check_item(item: Any, one: AttrRule) -> None:
    """Check one value of the right type."""
    if one.field == "type":
        if item not in node_attributes.DTYPES:
            raise errors.MalformedError(
                f"attribute {one.name!r} is the dtype {item}, which does not exist or is a"
                " reference"
            )
    elif one.field in ("shape", "tensor"):
        node_attributes.check_item(item, one.field, one.name)
    elif one.field == "i":
        _check_number(item, one)
    if one.allowed is not None and item not in one.allowed:
        raise errors.MalformedError(
            f"attribute {one.name!r} is {item!r}, which the op does not allow"
        )


def _check_number(number: int, one: AttrRule) -> None:
    if one.least is not None and number < one.least:
        raise errors.MalformedError(
            f"attribute {one.name!r} is {number}, the op needs at least {one.least}"
        )
    if one.name in _DIMENSIONS and not has_valid_rank(abs(number)):
        raise errors.MalformedError(
            f"attribute {one.name!r} is {number}, a tensor has at most {limits.RANK} dimensions"
        )
    if one.counts and number > limits.TENSORS_OF_NODE:
        raise errors.LimitError(
            f"attribute {one.name!r} asks for {number} tensors", limit="TENSORS_OF_NODE"
        )
