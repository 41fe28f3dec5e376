"""The features that a loader needs beyond ops: forms of signatures, of the object graph and of
tables, each with its releases.

Every range was seen in the version grid (docs/evidence/index.md): a genuine release loads
the model, or fails so.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Optional

from reference_impl.format import schema
from reference_impl.format.names import RESERVED_SIGNATURES
from reference_impl.format.values.structure import nested_values
from reference_impl.graph.closure import reachable
from reference_impl.graph.edges import data_inputs, parse_input
from reference_impl.graph.functional_ops import CASE_OPS, IF_OPS, WHILE_OPS
from reference_impl.graph.node_defs import integers_of_constant
from reference_impl.graph.references import bodies
from reference_impl.views.types import Program
from savedmodel_tools.returned_handles import (
    FIRST,
    FIXED,
    Made,
    ReturnedHandles,
)
from savedmodel_tools.skew import advice, forms
from savedmodel_tools.skew.forms import FORMS, KIND, SILENT
from savedmodel_tools.skew.history import History
from savedmodel_tools.skew.lacks import Lack
from savedmodel_tools.skew.protos import dtype_name
from savedmodel_tools.verify.rules.loaders import everywhere

_AUTO_SELECT = 3  # of tf.random.Algorithm
_DRAWN = ("Normal", "Uniform", "UniformFullInt", "UniformInt")
_ALGORITHM = 3  # which input of these ops says it
_RANDOM = frozenset(
    {"StatelessTruncatedNormalV2"} | {f"StatelessRandom{kind}V2" for kind in _DRAWN}
)
REFERENCE = 100  # data types above are references
# To assign these, releases before 2.4 have kernels for XLA_CPU alone: the variable that is read on
# the CPU is another one.
XLA_ALONE = frozenset({"uint32", "uint64", "qint16", "quint16"})
# the identifier of Keras 2's optimizers; those of Keras 2.11 and newer save no slots
_KERAS_OPTIMIZER = "optimizer"
_TENSORFLOW_OPTIMIZER = (  # of the copy of Keras 2 inside TensorFlow, since 2.6
    "tf_deprecated_optimizer"
)
_KERAS_2_UNTIL, _KERAS_NOT_IMPORTED = (
    "2.15",
    ("2.6",),
)  # seen with 24 models of seven writers in 1.15 to 2.16
_LOWERED = IF_OPS | CASE_OPS | WHILE_OPS
_LOWERED_IN_FUNCTIONS = frozenset(
    {"If", "While"}
)  # already by the first release that lowers in functions
_LOWERS_IN_FUNCTIONS = "1.13"


def of_objects(graph: schema.MetaGraphDef, table: History) -> list[Lack]:
    """Return the features that ``tf.saved_model.load`` needs for the whole MetaGraph."""
    found = list(_xla_alone(graph.graph_def.node, table))
    infos: list[schema.TensorInfo] = []
    for key, item in graph.signature_def.items():
        if key not in RESERVED_SIGNATURES:
            infos += (*item.inputs.values(), *item.outputs.values())
    if not graph.HasField("object_graph_def"):
        found += [lack for lack in of_sessions(graph, table) if lack.value == forms.HANDLE]
        if any(info.WhichOneof("encoding") in ("coo_sparse", "composite_tensor") for info in infos):
            found.append(_since(forms.COMPOSITE, table))
        if any(info.dtype > REFERENCE for info in infos):
            found.append(_only((), forms.REFERENCES))
        return found
    nodes = graph.object_graph_def.nodes
    if any(_tensor_defaults(spec) for spec in map(_spec, nodes) if spec is not None):
        found.append(_since(forms.TENSOR_DEFAULT, table))
    if any(node.saveable_objects for node in nodes):
        found.append(_since(forms.TABLES, table, SILENT))
        if not _saved_by_key(graph):
            readers = tuple(
                index
                for index, release in enumerate(table.releases)
                if release.name not in ("2.11", "2.12")
            )
            found.append(_only(readers, forms.SAVE_FUNCTION))
    found += _slots(nodes, table)
    bodies = [function.node_def for function in graph.graph_def.library.function]
    if any(node.op in CASE_OPS for node in itertools.chain.from_iterable(bodies)):
        found.append(_since(forms.LISTED, table))
    handles = ReturnedHandles(graph.graph_def.library)
    inner = (handles.used(body, in_function=True) for body in bodies)
    for call, made in itertools.islice(itertools.chain.from_iterable(inner), 1):
        found.append(_handed_out(call, made, table, SILENT))
    return found


def _slots(nodes: Sequence[schema.SavedObject], table: History) -> Iterator[Lack]:
    """The class of optimizers with slot variables.

    Importing tensorflow registers that of Keras 2, and later a copy of it.
    """
    holders = {node.user_object.identifier for node in nodes if node.slot_variables}
    if holders - {_KERAS_OPTIMIZER, _TENSORFLOW_OPTIMIZER}:
        yield _only((), forms.SLOTS)
        return
    if _KERAS_OPTIMIZER in holders:
        last = table.nearest(_KERAS_2_UNTIL) or 0
        members = tuple(
            index
            for index in range(last + 1)
            if table.releases[index].name not in _KERAS_NOT_IMPORTED
        )
        yield _only(members, forms.KERAS_SLOTS)
    if _TENSORFLOW_OPTIMIZER in holders:
        yield _since(forms.TENSORFLOW_SLOTS, table)


def of_function(graph: schema.MetaGraphDef, node: schema.SavedObject, table: History) -> list[Lack]:
    """Return the further features of ``tf.saved_model.load`` that a call of one function of the
    object graph needs.
    """
    spec = _spec(node)
    found: list[Lack] = []
    if spec is None:
        return found
    items = {item.key: item.value for item in spec.fullargspec.named_tuple_value.values}
    defaults = items.get("kwonlydefaults", schema.StructuredValue()).dict_value.fields
    functions = graph.object_graph_def.concrete_functions
    traces = [
        functions[name].canonicalized_input_signature
        for name in node.function.concrete_functions
        if name in functions
    ]
    # Older releases wrote, and look for, traces without them.
    values = itertools.chain.from_iterable(trace.tuple_value.values for trace in traces)
    pairs = itertools.product(values, defaults)
    if any(key in value.dict_value.fields for value, key in pairs):
        found.append(_since(forms.KEYWORD_DEFAULTS, table))
    arguments = len(items.get("args", schema.StructuredValue()).list_value.values) - spec.is_method
    given = len(spec.input_signature.tuple_value.values)
    # Releases before 2.12 wrote traces without them, which older readers find.
    called = [trace.tuple_value.values[0] for trace in traces if trace.tuple_value.values]
    traced = max((len(value.tuple_value.values) for value in called), default=0)
    if spec.input_signature.WhichOneof("kind") == "tuple_value" and given < min(arguments, traced):
        found.append(_since(forms.DEFAULTS, table))
    return found


def of_signature(graph: schema.MetaGraphDef, key: str, table: History) -> list[Lack]:
    """Return the further features of ``tf.saved_model.load`` that a call of one signature needs."""
    found = []
    if any(
        info.WhichOneof("encoding") == "composite_tensor"
        for info in graph.signature_def[key].inputs.values()
    ):
        found.append(_since(forms.RAGGED_INPUT, table))
    if not graph.HasField("object_graph_def") and any(
        node.op in CASE_OPS for node in graph.graph_def.node
    ):
        found.append(_since(forms.LISTED, table))
    return found


def auto_selected(graph: schema.MetaGraphDef) -> frozenset[str]:
    """Return the random ops whose nodes let the device select the algorithm."""
    found = set()
    for function, place in bodies(graph.graph_def):
        drawn = [node for node in place if node.op in _RANDOM]
        constants = {node.name: node for node in place if node.op == "Const"} if drawn else {}
        for node in drawn:
            inputs = data_inputs(node)
            if len(inputs) <= _ALGORITHM:
                continue
            value = constants.get(parse_input(inputs[_ALGORITHM], function is not None).source)
            if integers_of_constant(value, 1) == [_AUTO_SELECT]:
                found.add(node.op)
    return frozenset(found)


def of_run(selected: frozenset[str], nodes: Iterable[schema.NodeDef], table: History) -> list[Lack]:
    """Return the further features that any loader needs to run these nodes; ``selected`` is from
    :func:`auto_selected`.
    """
    if not selected or selected.isdisjoint(node.op for node in nodes):
        return []
    return [_since(forms.AUTO_SELECT, table)]


def of_cut_run(nodes: Iterable[schema.NodeDef], table: History) -> list[Lack]:
    """Return the further features that functions cut out of the main graph need to run these
    nodes.
    """
    placed = any(not everywhere(node.device) for node in nodes if node.device)
    return [_since(forms.PLACED, table, SILENT)] if placed else []


def of_sessions(graph: schema.MetaGraphDef, table: History) -> list[Lack]:
    """Return the features that a session needs for the whole MetaGraph."""
    found = []
    nodes = graph.graph_def.node
    if any(is_lowered(node) for node in nodes):
        found.append(_since(forms.LOWERED, table))
    handles = ReturnedHandles(graph.graph_def.library)
    called = list(itertools.chain.from_iterable(map(handles.library.references, nodes)))
    bodies = (
        [
            handles.library.functions[name].node_def
            for name in reachable(called, handles.library.calls())
        ]
        if called
        else []
    )
    inner = (handles.used(body, in_function=True, returned=False) for body in bodies)
    every = itertools.chain(handles.used(nodes), itertools.chain.from_iterable(inner))
    for call, made in itertools.islice(every, 1):
        found.append(_handed_out(call, made, table, KIND))
    return found


def is_lowered(node: schema.NodeDef) -> bool:
    """Return whether a node of control flow becomes Switch and Merge when it is run."""
    # Asking a map of messages for what it does not have would put it there.
    marked = node.op in _LOWERED and "_lower_using_switch_merge" in node.attr
    return marked and bool(node.attr["_lower_using_switch_merge"].b)


def goes_before_it_is_read(node: schema.NodeDef, index: int, table: History) -> bool:
    """Return whether a node of a function is lowered before a session looks at its attributes."""
    first = table.index(_LOWERS_IN_FUNCTIONS)
    return (
        first is not None
        and index >= first
        and node.op in _LOWERED_IN_FUNCTIONS
        and is_lowered(node)
    )


def of_functions_run(nodes: Iterable[schema.NodeDef], table: History) -> list[Lack]:
    """Return the features that a session needs to run these nodes of functions: the first releases
    did not lower all of them.
    """
    refused = any(is_lowered(node) and node.op not in _LOWERED_IN_FUNCTIONS for node in nodes)
    return [_since(forms.LOWERED, table)] if refused else []


def of_session_call(
    graph: schema.MetaGraphDef, nodes: Iterable[schema.NodeDef], table: History
) -> list[Lack]:
    """Return the features that a session needs to run these nodes of the main graph."""
    # Without functions a session puts variable and reader onto one device.
    return list(_xla_alone(nodes, table)) if graph.HasField("object_graph_def") else []


def of_program(program: Program, index: int, table: History) -> Iterator[str]:
    """Yield the reason if a release may not read a StableHLO program. A program with only old ops
    still runs; ops are not examined."""
    own = advice.newer_stablehlo(program.stablehlo, index, table) if program.stablehlo else None
    if own:
        yield (
            f"reads StableHLO up to {own}, and node '{program.node}' holds a program of StableHLO"
            f" {program.stablehlo}"
        )


def of_programs_without_python(ops: Iterable[str], called: bool, table: History) -> list[Lack]:
    """Return the features that a program without Python needs to load these ops or, if they are
    ``called``, to run them.

    Until 2.11 the only library is that of Python, which has the kernels: a graph with them loads,
    and fails when they run.
    """
    found = []
    for name in sorted(set(ops)):
        known = table.op(name)
        if known is not None and known.needs_python:
            members = (
                ()
                if called
                else tuple(index for index in known.members if not known.in_python(index))
            )
            found.append(
                Lack(
                    KIND,
                    name,
                    "",
                    forms.PYTHON,
                    members,
                    f"a kernel of op '{name}' outside of Python",
                )
            )
    return found


def _handed_out(call: schema.NodeDef, made: Made, table: History, kind: str) -> Lack:
    what = (
        f"safe memory for the handle that node '{call.name}' gets from function"
        f" '{made.functions[0]}', which makes it ({made.node.op}): the process may die"
    )
    first, fixed = (table.index(release) or 0 for release in (FIRST, FIXED))
    safe = tuple(index for index in range(len(table.releases)) if not first <= index < fixed)
    return Lack(kind, made.node.op, "", forms.HANDLE, safe, what)


def _xla_alone(nodes: Iterable[schema.NodeDef], table: History) -> Iterator[Lack]:
    assigned = {
        dtype_name(node.attr["dtype"].type)
        for node in nodes
        if node.op == "VarHandleOp" and "dtype" in node.attr
    }
    dtypes = sorted(assigned & XLA_ALONE)
    if dtypes:
        yield _since(
            forms.XLA_ALONE,
            table,
            words=f"a CPU kernel to restore variables of {', '.join(dtypes)}",
        )


def _since(form: str, table: History, kind: str = KIND, words: str = "") -> Lack:
    first = table.nearest_after(FORMS[form].since)
    return _only(range(first, len(table.releases)), form, kind, words)


def _only(members: Iterable[int], form: str, kind: str = KIND, words: str = "") -> Lack:
    return Lack(kind, "", "", form, tuple(members), words or FORMS[form].what)


def _spec(node: schema.SavedObject) -> Optional[schema.FunctionSpec]:
    kind = node.WhichOneof("kind")
    return (
        getattr(node, kind).function_spec
        if kind in ("function", "bare_concrete_function")
        else None
    )


def _tensor_defaults(spec: schema.FunctionSpec) -> bool:
    return any(
        value.WhichOneof("kind") in ("tensor_value", "numpy_value")
        for value in nested_values(spec.fullargspec, spec.input_signature)
    )


def _saved_by_key(graph: schema.MetaGraphDef) -> bool:
    """Return whether every function that saves tables takes the checkpoint's key as a Python
    string.

    It does if it was traced for one, as before 2.13, or has an input_signature to make a tensor of
    it.
    """
    nodes = graph.object_graph_def.nodes
    numbers: set[int] = set()
    for node in nodes:
        numbers.update(item.save_function for item in node.saveable_objects.values())
    return all(
        _takes_string(graph, nodes[number]) for number in numbers if 0 <= number < len(nodes)
    )


def _takes_string(graph: schema.MetaGraphDef, node: schema.SavedObject) -> bool:
    spec = _spec(node)
    if spec is not None and spec.input_signature.WhichOneof("kind") == "tuple_value":
        return True
    functions = graph.object_graph_def.concrete_functions
    traces = [
        functions[name].canonicalized_input_signature
        for name in node.function.concrete_functions
        if name in functions
    ]
    values = itertools.chain.from_iterable(map(nested_values, traces))
    return any(value.WhichOneof("kind") == "string_value" for value in values)
