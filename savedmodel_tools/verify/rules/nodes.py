"""Nodes against their ops, and names of children against TensorFlow: what its loaders refuse, run
or do not survive.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from reference_impl import errors
from reference_impl.format import limits, schema
from reference_impl.graph import called_names, node_attributes, op_rules, trusted_inputs
from reference_impl.graph.called_children import called_children
from reference_impl.graph.device_names import is_device
from reference_impl.graph.edges import data_inputs, input_source
from reference_impl.graph.graph_view import Body
from reference_impl.graph.node_forms import OUTPUT_SHAPES, NodeForm
from reference_impl.graph.order import sources_first
from reference_impl.safety.folded_sizes import Sizes
from savedmodel_tools.skew.history import history
from savedmodel_tools.skew.records import Op
from savedmodel_tools.verify.findings import Fault, Severity, graph_rule

if TYPE_CHECKING:
    from savedmodel_tools.verify.model import Graph, Model

# Ops that trust the value of an input.
_GIVEN_VALUES = trusted_inputs.OF_ONE_ELEMENT | node_attributes.LENGTHS.keys()


@graph_rule(
    "SMC310",
    "node-against-op",
    Severity.ERROR,
    summary=(
        "An attribute, a constant, an argument or the place of a node is none that its op or"
        " TensorFlow can have."
    ),
    why=(
        "TensorFlow refuses the graph when it imports it, or ends the process when it runs the"
        " node. reference_impl refuses the node by name."
    ),
    fix="Export again; in a model from somebody else, do not load it.",
)
def node_against_op(model: Model, graph: Graph) -> Iterator[Fault]:
    reasons = {True: _Reasons(None), False: _Reasons(graph.main.by_name)}
    captured = {
        item.constant.operation for item in graph.objects.nodes if item.HasField("constant")
    }  # of SMC315
    for body, index, forms in zip(graph.bodies, graph.indexes, graph.forms):
        in_function = body.function is not None
        wrong = {
            form: found for form in dict.fromkeys(forms) if (found := reasons[in_function].of(form))
        }
        for node, form in zip(body.nodes, forms) if wrong else ():
            if not in_function and node.name in captured:
                continue
            for reason in wrong.get(form, ()):
                yield Fault(f"{form.op}: {reason}", node=node.name, function=body.function)
        if not index.op_set.isdisjoint(_GIVEN_VALUES):
            for node, reason in _wrong_values(body):
                yield Fault(f"{node.op} {reason}", node=node.name, function=body.function)
    for name, function in graph.library.functions.items():
        yield from (Fault(reason, function=name) for reason in _signature_reasons(function))


def _wrong_values(body: Body) -> Iterator[tuple[schema.NodeDef, str]]:
    """Yield the nodes whose inputs have values that TensorFlow does not survive."""
    for node, length in node_attributes.literal_lengths(body.nodes):
        if length > limits.TENSOR_LIST_ELEMENTS:
            yield node, f"makes a list of {length} tensors"
    yield from (*trusted_inputs.faults(body.nodes), *_long_lists(body))


def _long_lists(body: Body) -> Iterator[tuple[schema.NodeDef, str]]:
    """Yield the nodes that make lists whose length is computed from constants and may be too
    large.
    """
    most = limits.TENSOR_LIST_ELEMENTS_AT_RUN_TIME
    making = [node for node in body.nodes if node.op in node_attributes.LENGTHS]
    nodes = {node.name: node for node in body.nodes} if making else {}
    in_function = body.function is not None
    sources = {}
    for name, node in nodes.items():
        sources[name] = [input_source(text, in_function) for text in node.input]
    order = sources_first(sources)
    sizes = Sizes([nodes[name] for name in order or ()], in_function, nodes)
    for node in making if order is not None else ():
        given = data_inputs(node)[node_attributes.LENGTHS[node.op] :]
        maker = nodes.get(input_source(given[0], in_function)) if given else None
        if maker is not None and maker.op != "Const" and sizes.has_large_value(maker, most):
            yield node, f"makes a list whose computed length may be more than {most}"


class _Reasons:
    """What is wrong with nodes, by their forms: the first fault of their attributes, and in the
    main graph where they are to be placed.

    Args:
      names: the names of the nodes of the main graph; None in a function.
    """

    def __init__(self, names: Collection[str] | None):
        self._names = names
        self._rules: dict[str, tuple[op_rules.AttrRule, ...] | None] = {}
        self._known: dict[NodeForm, tuple[str, ...]] = {}
        # What is wrong beside `_class`, by a form and the shapes that it notes.
        self._of_attributes: dict[tuple[NodeForm, bytes | None], tuple[str, ...]] = {}

    def of(self, form: NodeForm) -> tuple[str, ...]:
        """Return what is wrong with nodes of this form."""
        if form not in self._known:
            self._known[form] = (*self._attributes(form), *self._place(form))
        return self._known[form]

    def _attributes(self, form: NodeForm) -> tuple[str, ...]:
        if form.op not in self._rules:
            self._rules[form.op] = _rules(form.op)
        rules = self._rules[form.op]
        if rules is None:  # of such an op all attributes count
            return self._first_fault(form.node, (), tuple(form.node.attr))
        at = form.plain, form.noted_shapes
        if at not in self._of_attributes:
            self._of_attributes[at] = self._first_fault(form.node, rules, (OUTPUT_SHAPES,))
        return self._of_attributes[at]

    def _first_fault(
        self,
        node: schema.NodeDef,
        rules: tuple[op_rules.AttrRule, ...],
        keys: tuple[str, ...],
    ) -> tuple[str, ...]:
        try:
            op_rules.check(node, rules, self._names is None)
            node_attributes.check(node.attr, keys, "", node.name)
        except errors.SavedModelError as error:
            return (error.reason,)
        return ()

    def _place(self, form: NodeForm) -> Iterator[str]:
        if self._names is None or "_class" not in form.node.attr:
            return
        listed = form.node.attr["_class"].list.s
        places = [text.decode("utf-8", "backslashreplace") for text in listed]
        lost = [
            text[5:] for text in places if text.startswith("loc:@") and text[5:] not in self._names
        ]
        if lost:
            yield f"is to be placed beside the node {lost[0]!r}, which does not exist"


def _rules(op: str) -> tuple[op_rules.AttrRule, ...] | None:
    """Return the rules of an op in the newest release that has it.

    Missing attributes and values are left to SMC529.
    """
    found = history().op(op)
    definition = found.definition(found.members[-1]) if found is not None else None
    if definition is None:
        return None
    counting = _counting(definition)
    return tuple(
        op_rules.rule(attr.name, attr.type, False, attr.minimum, None, attr.name in counting)
        for attr in definition.attrs
    )


def _counting(definition: Op) -> set[str]:
    """Return the attributes that say how many tensors an argument has: ``values: N*T``."""
    return set(re.findall(r"(\w+)\*", definition.signature))


def _signature_reasons(function: schema.FunctionDef) -> Iterator[str]:
    """Yield what is wrong with the dtypes and the noted shapes of the arguments of a function."""
    for argument in (*function.signature.input_arg, *function.signature.output_arg):
        plain = not argument.type_attr and not argument.type_list_attr
        if plain and argument.type % 100 not in node_attributes.DTYPES:
            yield (
                f"the argument {argument.name!r} has the dtype {argument.type}, which does not"
                " exist"
            )
    for attributes in (
        function.attr,
        *[item.attr for _, item in sorted(function.arg_attr.items())],
    ):
        try:
            node_attributes.check(attributes, tuple(attributes), "", "")
        except errors.SavedModelError as error:
            yield error.reason


@graph_rule(
    "SMC317",
    "child-name-called",
    Severity.ERROR,
    summary=(
        "A child of an object has the name of something that TensorFlow's loader calls or sets on"
        " the object."
    ),
    why=(
        "tf.saved_model.load runs the child, if it is a function, or fails without naming it."
        " reference_impl.load keeps it aside."
    ),
    fix="Rename the attribute and export again; in a model from somebody else, do not load it.",
)
def child_name_called(model: Model, graph: Graph) -> Iterator[Fault]:
    severity = Severity.WARNING if graph.is_cut else None
    for child in called_children(graph.objects.nodes):
        tables = called_names.RUN if child.runs else {**called_names.RUN, **called_names.BROKEN}
        releases = tables[child.name]
        does = "runs it" if child.runs else "fails"
        where = (
            f"TensorFlow {', '.join(releases)}"
            if len(releases) < len(called_names.RELEASES)
            else "TensorFlow"
        )
        parent = graph.paths.label(child.parent)
        yield Fault(
            f"{parent} has a child {child.name!r}: the loader of {where} {does}", severity=severity
        )


@graph_rule(
    "SMC316",
    "device-name",
    Severity.ERROR,
    summary="A variable, a table or a node is to be placed on a device whose name is none.",
    why="TensorFlow cannot read the name: the load, or the call that needs the object, fails.",
    fix="Export again; in a model from somebody else, ask for an undamaged copy.",
)
def device_name(model: Model, graph: Graph) -> Iterator[Fault]:
    for number, item in enumerate(graph.objects.nodes):
        device = item.resource.device if item.HasField("resource") else item.variable.device
        if not is_device(device):
            severity = Severity.WARNING if graph.is_cut else None
            yield Fault(
                f"the device of {graph.paths.label(number)} is {device!r}", severity=severity
            )
    for body, forms in zip(graph.bodies, graph.forms):
        wrong = {
            form for form in dict.fromkeys(forms) if form.device and not is_device(form.device)
        }
        for node, form in zip(body.nodes, forms) if wrong else ():
            if form in wrong:
                yield Fault(
                    f"the device is {form.device!r}", node=node.name, function=body.function
                )
