"""The function library of an export.

FunctionDefs are copied: those of traced functions out of the eager runtime, those of loaded
functions out of the file they were read from. Each gets a name in this export, made of its own name
and a number in the order of the walk, so that names depend only on the object. References to it are
renamed too. Two libraries may have functions of the same name.

RFC: FN-05, FN-17, FMT-03, FMT-14, COMPAT-04
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Optional, Union

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import SaveError
from reference_impl.format import schema
from reference_impl.format.names import (
    CUSTOM_GRADIENT,
    GRADIENT_NOT_SAVED,
    IMPLEMENTS,
    NO_GRADIENT_BECAUSE,
    base_name,
    is_generated_gradient,
)
from reference_impl.functions.gradients import REFUSED
from reference_impl.functions.library import FunctionLibrary, original_name, registered_name
from reference_impl.functions.names import ExportName, FileName, LiveName
from reference_impl.graph.closure import reachable
from reference_impl.graph.function_builder import remove_nodes
from reference_impl.graph.node_attributes import argument_shape, text_of
from reference_impl.graph.references import (
    function_attributes,
    function_values,
    named_by,
    nodes_of,
)
from reference_impl.saving.gradient_sites import GradientSites, Site
from reference_impl.saving.process_numbers import remove_process_numbers, without_load

_PREFIX = "__inference_"
_TEXT_REFERENCES = (
    "forward_function_name",
    "backward_function_name",
)  # attributes of a FunctionDef that name other functions
# Attributes that TensorFlow before 2.16 does not know and that do not affect the meaning of a node
# (COMPAT-04).
_TOO_NEW = {"VarHandleOp": ("debug_name",)}
# Ops without a result or effect on values that TensorFlow before 2.6 does not know: reading without
# a copy (COMPAT-04).
_HINTS = ("DisableCopyOnRead",)

Source = Optional[FunctionLibrary]  # None: the eager runtime
# The name of a function in its source: a library has file names, the runtime has live names.
SourceName = Union[FileName, LiveName]
Origin = tuple[Source, SourceName]


class ExportLibrary:
    """Collects functions and everything that they refer to."""

    def __init__(self) -> None:
        self.definitions: dict[ExportName, Any] = {}  # the FunctionDefs
        # Custom gradients: op type in this export -> source, and op type there.
        self.gradients: dict[ExportName, Origin] = {}
        self.sites = GradientSites()
        self._names: dict[Origin, ExportName] = {}
        self._op_types: dict[Origin, ExportName] = {}
        self._sources: dict[ExportName, Source] = {}
        self._shared: dict[Origin, ExportName] = {}

    def add(self, source: Source, name: SourceName, traced: Optional[Any] = None) -> ExportName:
        """Add a function and its closure, and return its name in this export.

        `traced` is the concrete function, if it is in the eager runtime. Its graph says which of
        the custom gradients that its nodes name belong to this process; without it, generated names
        are not followed.

        Raises SaveError if there is no such function.
        """
        if traced is not None:
            self.sites.visit(traced)
        self._complete([self._claim(source, name)])
        return self._names[_function_origin(source, name)]

    def derive(self, definition: schema.FunctionDef, hint: str) -> ExportName:
        """Add a FunctionDef derived from a function of the eager runtime, with the runtime's names.
        Return its name in this export.
        """
        name = self._put(definition, hint)
        self._complete(reversed(list(self._rename(None, definition, name))))
        return name

    def write(self, definition: schema.FunctionDef, hint: str) -> ExportName:
        """Add a new function whose references are names of this export already. Return its name."""
        name = self._put(definition, hint)
        definition.signature.name = name
        add_input_shapes(definition)
        return name

    def _put(self, definition: schema.FunctionDef, hint: str) -> ExportName:
        name = ExportName(f"{_PREFIX}{hint}_{len(self._names)}")
        # A function that a save makes: the runtime has none of this name.
        self._names[None, LiveName(name)] = name
        self.definitions[name], self._sources[name] = definition, None
        return name

    def _complete(self, claimed: Iterable[tuple[Origin, ExportName]]) -> None:
        """Add functions that already have a name, and everything that they refer to."""
        pending = list(claimed)
        while pending:
            origin, new = pending.pop()
            if new not in self.definitions:
                definition, source = self._fetch(origin), origin[0]
                self.definitions[new], self._sources[new] = definition, source
                pending += reversed(list(self._rename(source, definition, new)))

    def sorted(self) -> list[Any]:
        """Return the FunctionDefs sorted by name."""
        return [self.definitions[name] for name in sorted(self.definitions)]

    def find(self, source: Source, name: SourceName) -> Optional[ExportName]:
        """Return the name of a function in this export, or None if the export does not have it."""
        return self._names.get(_function_origin(source, name))

    def site_of_gradient(self, op_type: ExportName) -> Optional[Site]:
        """Return an operation of this process that has the custom gradient with this op type in the
        export, or None.
        """
        traced = {
            exported: LiveName(name)
            for (source, name), exported in self._names.items()
            if source is None
        }
        found = self.sites.find(self.gradients[op_type][1], traced.values())
        if found is not None:
            return found
        # Graphs are searched for the op that tf.custom_gradient makes; a program may give a
        # gradient to any op.
        for exported, name in traced.items():
            for node in self.definitions[exported].node_def if exported in self.definitions else ():
                if text_of(node.attr, CUSTOM_GRADIENT) == op_type:
                    return self.sites.site(name, node.name)
        return None

    def file_aliases(self) -> dict[str, list[ExportName]]:
        """Return the aliases in the files of loaded functions, each with the functions of this
        export that have it.
        """
        sources = dict.fromkeys(source for source, _ in self._names if source is not None)
        found: dict[str, list[ExportName]] = {}
        for source in sources:
            for name, alias in sorted(source.aliases.items()):
                found.setdefault(alias, []).extend(filter(None, [self._names.get((source, name))]))
        return found

    def made_here(self, name: ExportName) -> bool:
        """Return whether a function of the export comes from this process, not from a loaded
        model.
        """
        return self._sources[name] is None

    def _claim(self, source: Source, name: str) -> tuple[Origin, ExportName]:
        """Return where a function comes from, and its name in this export.

        This is the only place where a live name or a file name becomes an export name.
        """
        key = _function_origin(source, name)
        if key not in self._names:
            self._names[key] = ExportName(f"{_PREFIX}{base_name(key[1])}_{len(self._names)}")
        return key, self._names[key]

    def _fetch(self, origin: Origin) -> schema.FunctionDef:
        """Return a copy of a FunctionDef. Raises SaveError if the runtime does not have it."""
        source, name = origin
        if source is None:
            definition = api.function_definition(name)
            if definition is None:
                raise SaveError("the runtime has no such function", node=name)
            return definition
        return schema.copy_of(source.get(FileName(name)))

    def _rename(
        self, source: Source, definition: schema.FunctionDef, name: ExportName
    ) -> Iterator[tuple[Origin, ExportName]]:
        """Rename a copied FunctionDef and its references; yield the functions that it refers to."""
        original, definition.signature.name = definition.signature.name, name
        if source is None:
            remove_process_numbers(definition)
        add_input_shapes(definition)
        if hints := {node.name for node in definition.node_def if node.op in _HINTS}:
            remove_nodes(definition, hints)
        for node in definition.node_def:
            node.ClearField("experimental_debug_info")
            if self._is_function(source, node.op):
                found = self._claim(source, node.op)
                node.op = found[1]
                yield found
            for value in function_attributes(node.attr):
                yield from self._rename_values(source, value)
            if CUSTOM_GRADIENT in node.attr:
                self._rename_gradient(source, original, node)
            strip_defaults(node)
        for key in _TEXT_REFERENCES:
            if key in definition.attr and self._is_function(source, text_of(definition.attr, key)):
                found = self._claim(source, text_of(definition.attr, key))
                definition.attr[key].s = found[1].encode()
                yield found
        if IMPLEMENTS in definition.attr:
            found_here = (
                self._live_implementations if source is None else source.index.implementations
            )
            for other in found_here.get(definition.attr[IMPLEMENTS].s, ()):
                yield self._claim(source, other)

    def _rename_gradient(self, source: Source, function: str, node: schema.NodeDef) -> None:
        """Give a node the name that its custom gradient has in this export.

        `function` has the name that it has in `source`.
        """
        gradient = text_of(node.attr, CUSTOM_GRADIENT)
        if gradient == REFUSED:
            del node.attr[CUSTOM_GRADIENT]
        elif gradient == GRADIENT_NOT_SAVED:
            return
        elif self._is_meant(source, function, gradient):
            node.attr[CUSTOM_GRADIENT].s = self._op_type(source, gradient).encode()
        else:
            # The name has a number of another process, which must not be looked up in this one.
            _refuse_gradient(
                node,
                f"the file that was loaded names the custom gradient {gradient!r} and does not"
                " have it",
            )

    def _is_meant(self, source: Source, function: str, gradient: str) -> bool:
        """Return whether the name of a custom gradient in a function can be followed."""
        if source is None:
            return self.sites.is_meant(LiveName(function), gradient)
        return gradient in source.index.gradients or not is_generated_gradient(gradient)

    @functools.cached_property
    def _live_implementations(self) -> dict[bytes, list[str]]:
        return api.implementations()

    def _rename_values(
        self, source: Source, value: schema.AttrValue
    ) -> Iterator[tuple[Origin, ExportName]]:
        for function in function_values(value):
            if function.name and (source is None or function.name in source):
                found = self._claim(source, function.name)
                function.name = found[1]
                yield found

    def _is_function(self, source: Source, name: str) -> bool:
        if source is not None:
            return name in source
        return api.op_def(name) is None and api.function_definition(name) is not None

    def _op_type(self, source: Source, op_type: str) -> ExportName:
        """Return the name of a custom gradient's op type in this export."""
        key = _origin(source, op_type)
        if key not in self._op_types:
            self._op_types[key] = ExportName(f"CustomGradient-{len(self._op_types)}")
            self.gradients[self._op_types[key]] = key
        return self._op_types[key]

    def keep_op_types(
        self, lost: Collection[ExportName], refused: Mapping[ExportName, str]
    ) -> dict[ExportName, ExportName]:
        """Restore the original names of custom gradients that the export lacks, since a program may
        have registered these names.

        Return the current op types of the other gradients; one that had the name of a lost gradient
        is renamed. `refused` maps the op type of a gradient that must not be looked up to the
        reason; its nodes get both.
        """
        names = {op_type: ExportName(self.gradients[op_type][1]) for op_type in lost}
        taken = set(names.values())
        names.update(dict.fromkeys(refused, ExportName(GRADIENT_NOT_SAVED)))
        free = (
            name
            for number in itertools.count(len(self.gradients))
            if (name := ExportName(f"CustomGradient-{number}")) not in taken
        )
        kept = {
            op_type: next(free) if op_type in taken else op_type
            for op_type in self.gradients
            if op_type not in names
        }
        names.update(kept)
        if any(old != new for old, new in names.items()):
            for definition in self.definitions.values():
                for node in definition.node_def:
                    if CUSTOM_GRADIENT in node.attr:
                        old = ExportName(text_of(node.attr, CUSTOM_GRADIENT))
                        if old in refused:
                            _refuse_gradient(node, refused[old])
                        else:
                            node.attr[CUSTOM_GRADIENT].s = names.get(old, old).encode()
        return kept

    def share(self, creator: ExportName, name: str) -> None:
        """Set the name from which the shared name of the resource that the function `creator` makes
        is derived.

        TensorFlow makes shared names from the author's paths, or from random or running numbers.
        Resources that shared a name still do.

        RFC: RES-14, RP-06
        """
        for function in self.closure(creator):
            for node in self.definitions[function].node_def:
                if shared := text_of(node.attr, "shared_name"):
                    key = _origin(self._sources[function], shared)
                    self._shared.setdefault(
                        key,
                        ExportName(
                            name
                            if name not in self._shared.values()
                            else f"{name}_{len(self._shared)}"
                        ),
                    )

    def apply_shared_names(self) -> None:
        """Write the names that `share` has chosen into all functions; others lose the numbers of
        the load by TensorFlow.
        """
        nodes = nodes_of(self.definitions.values())
        found = {text_of(node.attr, "shared_name") for node in nodes}
        for function, definition in self.definitions.items():
            for node in definition.node_def:
                if shared := text_of(node.attr, "shared_name"):
                    key = _origin(self._sources[function], shared)
                    if key not in self._shared and (plain := without_load(key[1])) != key[1]:
                        taken = {*self._shared.values(), *found}
                        self._shared[key] = ExportName(
                            f"{plain}_{len(self._shared)}" if plain in taken else plain
                        )
                    node.attr["shared_name"].s = self._shared.get(key, key[1]).encode()

    def closure(self, name: ExportName) -> list[ExportName]:
        """Return a function and all functions of the export that it calls, in the order of
        discovery.
        """
        return list(reachable([name], self._called))

    def _called(self, name: ExportName) -> Iterator[ExportName]:
        named = itertools.chain.from_iterable(map(named_by, self.definitions[name].node_def))
        return (ExportName(other) for other in named if other in self.definitions)


def _function_origin(source: Source, name: str) -> Origin:
    """Return where a function comes from: a live name of a loaded function is followed to its
    library.
    """
    if source is not None:
        return source, FileName(name)
    return registered_name(LiveName(name)) or (None, LiveName(name))


def _origin(source: Source, name: str) -> Origin:
    """Return where a shared resource or a gradient comes from, as `_function_origin` does."""
    if source is not None:
        return source, FileName(name)
    return original_name(LiveName(name)) or (None, LiveName(name))


def _refuse_gradient(node: schema.NodeDef, reason: str) -> None:
    """Write into a node that its custom gradient is not in the export, so that no reader uses the
    standard gradient of its op.
    """
    node.attr[CUSTOM_GRADIENT].s = GRADIENT_NOT_SAVED.encode()
    node.attr[NO_GRADIENT_BECAUSE].s = reason.encode()


def strip_defaults(node: schema.NodeDef) -> None:
    """Leave out attributes that equal the op's default, so that older readers need not know them.

    RFC: COMPAT-04
    """
    for key in _TOO_NEW.get(node.op, ()):
        node.attr.pop(key, None)
    op_def = api.op_def(node.op)
    for attr in op_def.attr if op_def is not None else ():
        if (
            attr.HasField("default_value")
            and attr.name in node.attr
            and node.attr[attr.name] == attr.default_value
        ):
            del node.attr[attr.name]


def add_input_shapes(definition: schema.FunctionDef) -> None:
    """Set the shapes of all arguments in one attribute; TensorFlow reads a handle without a shape
    as a tensor of unknown rank.
    """
    if "_input_shapes" in definition.attr:
        return
    shapes = definition.attr["_input_shapes"].list
    shapes.SetInParent()
    for index, argument in enumerate(definition.signature.input_arg):
        noted = argument_shape(definition, index)
        if noted is not None:
            shapes.shape.add().CopyFrom(noted)
        else:
            shapes.shape.add(
                unknown_rank=argument.type not in (schema.DT_RESOURCE, schema.DT_VARIANT)
            )


def is_function(obj: object) -> bool:
    return isinstance(obj, (api.Function, api.ConcreteFunction))


def eager_tensor(value: object) -> bool:
    """Return whether a value is an eager tensor, whose numbers a file can hold as a constant.

    Not by `tf.is_tensor`: it is true of whatever can stand for a tensor (a
    `tfp.util.TransformedVariable`, any class with `is_tensor_like`), which may be an object with
    variables of its own.
    """
    return isinstance(value, tf.Tensor) and hasattr(value, "numpy")
