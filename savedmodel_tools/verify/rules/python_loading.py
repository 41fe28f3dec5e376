"""Names, versions, types and collections that only TensorFlow's Python loaders read."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from reference_impl.errors import SavedModelError
from reference_impl.format import schema
from reference_impl.format.names import LEGACY_INIT_OP, MAIN_OP, TRAIN_OP
from reference_impl.format.values.structure import nested_values
from reference_impl.graph.edges import input_source
from reference_impl.graph.object_references import traces
from reference_impl.graph.saved_variables import invalid_settings
from reference_impl.graph.variable_defs import COLLECTIONS, variable_defs
from reference_impl.views.signatures import slots_of
from savedmodel_tools.skew import advice, contrib
from savedmodel_tools.skew.history import history
from savedmodel_tools.skew.lacks import Lack
from savedmodel_tools.skew.needs import Part, UseKey, Walk
from savedmodel_tools.verify.consequences import CUT_FAILS
from savedmodel_tools.verify.findings import (
    Fault,
    Severity,
    few,
    graph_rule,
)

if TYPE_CHECKING:
    from savedmodel_tools.verify.model import Graph, Model

_REGISTERED = schema.TypeSpecProto.REGISTERED_TYPE_SPEC
_KNOWN = frozenset(schema.TypeSpecProto.TypeSpecClass.values()) - {schema.TypeSpecProto.UNKNOWN}
_BUILT_IN = "tf."  # how the names of the types begin that importing tensorflow registers


@graph_rule(
    "SMC309",
    "collection-broken",
    Severity.WARNING,
    summary=(
        "A collection names a node that is not in the graph, or defines a variable as none can be."
    ),
    why=(
        "TensorFlow's Python loaders import every collection: tf.compat.v1.saved_model.load fails,"
        " and tf.saved_model.load too if the graph has no objects. Servers do not look at"
        " collections."
    ),
    fix="Export again; if a tool cut the graph, it must edit the collections too.",
)
def collection_broken(model: Model, graph: Graph) -> Iterator[Fault]:
    severity = None if graph.is_cut else Severity.INFO
    for key, collection in sorted(graph.proto.collection_def.items()):
        lost = [
            name for name in collection.node_list.value if input_source(name) not in graph.nodes
        ]
        if lost and key not in _OPS_OF_LOADERS:
            yield Fault(
                f"collection {key!r} names {', '.join(few(lost))}, which does not exist",
                severity=severity,
            )
    for key in COLLECTIONS:
        try:
            for _, node, definition in variable_defs(graph.proto, [key], model.layout.file.name):
                names = [
                    definition.variable_name,
                    definition.initializer_name,
                    definition.snapshot_name,
                ]
                lost = [name for name in names if name and input_source(name) not in graph.nodes]
                reason = (
                    f"names {', '.join(few(lost))}, which does not exist"
                    if lost
                    else invalid_settings(definition)
                )
                if reason:
                    yield Fault(
                        f"the variable {node!r} of collection {key!r}: {reason}", severity=severity
                    )
        except SavedModelError as error:
            yield Fault(f"collection {key!r}: {error.reason}", severity=severity)


_PLAIN_VERSION = re.compile(r"[0-9]+(\.[0-9]+)*(-?rc[0-9]+)?")
_OPS_OF_LOADERS = (MAIN_OP, LEGACY_INIT_OP, TRAIN_OP)  # SMC302 tells of these


@graph_rule(
    "SMC526",
    "input-name",
    Severity.WARNING,
    summary=(
        "The name of an input cannot be the name of a Python parameter: a keyword, empty, or like"
        " another one."
    ),
    why=(
        "tf.saved_model.load fails ('is not a valid parameter name', 'duplicate parameter name') on"
        " Python 3.11 and newer for keywords, on any Python for the others. It writes other"
        " characters than letters and digits as '_' first."
    ),
    fix=(
        "Rename the input (`savedmodel-compat edit signatures --input KEY:OLD=NEW`); servers take"
        " any name."
    ),
)
def input_name(model: Model, graph: Graph) -> Iterator[Fault]:
    for what, function, positional, names in _parameters(graph):
        first: dict[str, str] = {
            f"arg_{number}": f"argument {number}" for number in range(positional)
        }
        for name in names:
            parameter = _parameter_of(name)
            if not parameter.isidentifier() or keyword.iskeyword(parameter):
                why = (
                    "empty"
                    if not name
                    else "a Python keyword"
                    if keyword.iskeyword(parameter)
                    else "no Python name"
                )
                # Python before 3.11 takes keywords.
                stops = None if keyword.iskeyword(parameter) else CUT_FAILS
                yield Fault(
                    f"input {name!r} of {what}: its name is {why}",
                    function=function,
                    consequences=stops,
                )
            elif parameter in first:
                message = (
                    f"inputs {first[parameter]!r} and {name!r} of {what} become one parameter,"
                    f" {parameter!r}"
                )
                yield Fault(message, function=function, consequences=CUT_FAILS)
            first.setdefault(parameter, name)


def _parameter_of(name: str) -> str:
    """Return what TensorFlow makes of the name of an argument, whether it can be the name of a
    parameter or not.
    """
    swapped = "".join(c if c.isalnum() else "_" for c in name)
    return swapped if not swapped or swapped[0].isalpha() else f"arg_{swapped}"


def _parameters(graph: Graph) -> Iterator[tuple[str, str | None, int, list[str]]]:
    """(what takes them, function, number of positional ones, names) of the parameters of each
    function that Python makes.
    """
    if graph.is_cut:
        for key, signature in sorted(graph.proto.signature_def.items()):
            names: list[str] = []
            for argument, info in sorted(signature.inputs.items()):
                names += _names(argument, info)
            yield f"signature {key!r}", None, 0, names
        return
    for name, function in sorted(graph.objects.concrete_functions.items()):
        both = function.canonicalized_input_signature.tuple_value.values
        if len(both) == 2:
            yield (
                f"function {name!r}",
                name,
                len(both[0].tuple_value.values),
                sorted(both[1].dict_value.fields),
            )


def _names(name: str, info: schema.TensorInfo) -> list[str]:
    """The parameters that an input of a cut signature becomes."""
    kind, slots = slots_of(info)
    return [name] if kind == "dense" else [f"{name}_{slot.part}" for slot in slots]


@graph_rule(
    "SMC527",
    "writer-version",
    Severity.WARNING,
    summary="The TensorFlow version that the model says it was written by is not a version.",
    why=(
        "TensorFlow's Python loaders parse it (InvalidVersion): tf.compat.v1.saved_model.load"
        " fails, and tf.saved_model.load too if the graph has no objects. Servers do not look"
        " at it."
    ),
    fix="Write a version such as 1.15.0 into meta_info_def.tensorflow_version, or nothing.",
)
def writer_version(model: Model, graph: Graph) -> Iterator[Fault]:
    text = graph.proto.meta_info_def.tensorflow_version
    if not text or _PLAIN_VERSION.fullmatch(text):
        return
    from packaging.version import (
        InvalidVersion,
        Version,
    )  # costs more than the rule, for the few versions that need it

    try:
        Version(text)
    except InvalidVersion:
        yield Fault(
            f"tensorflow_version is {text!r}", severity=None if graph.is_cut else Severity.INFO
        )


@graph_rule(
    "SMC528",
    "type-not-registered",
    Severity.WARNING,
    summary=(
        "A function takes or gives a composite tensor of a type that TensorFlow alone does not"
        " know."
    ),
    why=(
        "tf.saved_model.load fails ('has not been registered', 'is not supported by this version of"
        " TensorFlow') unless the package of the type is imported first. Servers do not notice."
    ),
    fix=(
        "Import the package first (tensorflow_probability for names with tfp), or export functions"
        " of plain tensors."
    ),
)
def type_not_registered(model: Model, graph: Graph) -> Iterator[Fault]:
    if graph.is_cut:
        return
    first: dict[str, str] = {}
    for where, value in _structures(graph.objects):
        for spec in _type_specs(value):
            number, name = spec.type_spec_class, spec.type_spec_class_name
            if number not in _KNOWN or (number == _REGISTERED and not name.startswith(_BUILT_IN)):
                first.setdefault(name, where)
    for name, where in first.items():
        yield Fault(f"{where} has the type {name!r}", function=where)


def _type_specs(value: schema.StructuredValue) -> Iterator[schema.TypeSpecProto]:
    """The type specs in a structure, and those inside of type specs."""
    pending = [value]
    while pending:
        for part in nested_values(pending.pop()):
            if part.WhichOneof("kind") == "type_spec_value":
                yield part.type_spec_value
                pending.append(part.type_spec_value.type_state)


def _structures(objects: schema.SavedObjectGraph) -> Iterator[tuple[str, schema.StructuredValue]]:
    """(function, structure) of every structure that the loader decodes."""
    for name, function in sorted(objects.concrete_functions.items()):
        yield name, function.canonicalized_input_signature
        yield name, function.output_signature
    for node in objects.nodes:
        kind = node.WhichOneof("kind")
        if kind in ("function", "bare_concrete_function"):
            item: Any = getattr(node, kind)
            for value in (item.function_spec.fullargspec, item.function_spec.input_signature):
                yield next(iter(traces(node)), "a function without traces"), value


@graph_rule(
    "SMC529",
    "newest-release-lacks",
    Severity.ERROR,
    summary=(
        "A TensorFlow of the target lacks an op, an attr, a value or a kernel that loading the"
        " graph needs."
    ),
    why=(
        "tf.saved_model.load of that release fails; others may load the model (`savedmodel-compat"
        " compat`). Without --target the newest release of the op history is asked."
    ),
    fix=(
        "Load it in a release that has everything (`savedmodel-compat compat MODEL`), or export"
        " again with a newer one."
    ),
)
def newest_release_lacks(model: Model, graph: Graph) -> Iterator[Fault]:
    """Ops that no release has are left to SMC603, Python functions to SMC604; attrs that it does
    not know it passes over.

    What no release accepts is looked for in the main graph of a model with objects too: sessions
    and servers import that.
    """
    table = history()
    walk = Walk(graph.proto, table, graph)
    imported, running = walk.python_load()

    def part(imported: Sequence[UseKey], run: Sequence[UseKey]) -> Part:
        return walk.part(
            *("load", imported, run),
            excuse=_passed_over,
            releases=model.releases,
            checks_versions=not graph.has_objects,  # the loader of objects does not look at them
            most=None,
        )

    loading, session = part(imported, running), part(walk.start, ())
    for index in sorted(model.releases, reverse=True):
        nowhere = [lack for lack in session.lacks[index] if _is_refused_everywhere(lack)]
        for lack in dict.fromkeys([*loading.lacks[index], *nowhere]):
            if lack.kind == "unknown_op" and table.op(lack.op) is None:
                continue
            help_ = contrib.replacement(lack.op, "contrib/") if lack.kind == "unknown_op" else None
            said = f"TensorFlow {table.releases[index].name} lacks {lack.what}"
            words = [said, advice.existence(table, lack.members), loading.where(lack)]
            yield Fault(
                ", ".join(filter(None, words)), fix=help_.text if help_ and help_.text else None
            )


def _passed_over(*_: object) -> bool:
    return True


def _is_refused_everywhere(lack: Lack) -> bool:
    """Return whether no release imports such a node, whatever else it has."""
    return (
        lack.kind in ("changed_inputs", "attr_value", "unknown_dtype", "missing_attr")
        and not lack.members
    )
