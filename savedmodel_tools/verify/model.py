"""The view of a model for the rules: a SavedModel and its MetaGraphs, each part read or computed
once, on first use.

All of it is untrusted: a node may name inputs, functions and objects that do not exist; every walk
is iterative.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Optional, TypeVar, Union

from reference_impl import errors
from reference_impl.format import extension, schema
from reference_impl.format.bundle.reader import BundleReader
from reference_impl.format.container import layout
from reference_impl.format.names import RESERVED_SIGNATURES
from reference_impl.graph.closure import reachable
from reference_impl.graph.edges import input_source, parse_input
from reference_impl.graph.graph_view import Reached
from reference_impl.graph.object_graph import Paths, checkpoint_keys
from reference_impl.graph.references import function_values
from reference_impl.graph.restore_plan import Restored, restore_plan
from reference_impl.graph.signature_tensors import init_ops, tensor_names
from reference_impl.safety.effect import Effect
from reference_impl.safety.effects import effects, signature_label
from savedmodel_tools.skew import arguments
from savedmodel_tools.skew.history import history
from savedmodel_tools.skew.locate import Leads
from savedmodel_tools.skew.protos import dtype_name, plain_value
from savedmodel_tools.skew.records import Op
from savedmodel_tools.verify.shapes import Shapes

if TYPE_CHECKING:
    from savedmodel_tools.warmup import Warmup

T = TypeVar("T")
Place = tuple[Optional[str], schema.NodeDef]  # function (None: the main graph), node of it


class Model:
    """One SavedModel directory.

    Args:
      found: the model as it was read.
      releases: numbers of the op history, for which the model is judged. Default: the newest
        release.
    """

    def __init__(self, found: layout.Layout, releases: Sequence[int] = ()):
        self.layout = found
        self._releases = tuple(releases)
        self.graphs = [Graph(self, graph) for graph in found.saved_model.meta_graphs]

    @functools.cached_property
    def releases(self) -> tuple[int, ...]:
        """The releases for which the model is judged."""
        return self._releases or (len(history().releases) - 1,)

    @functools.cached_property
    def reader(self) -> Optional[BundleReader]:
        """The checkpoint; None when there is none. Raises what `BundleReader` raises."""
        if not self.layout.has_checkpoint and not self.layout.root.exists(layout.CHECKPOINT):
            return None
        return BundleReader(self.layout.checkpoint_prefix)

    @functools.cached_property
    def entries(self) -> Optional[Mapping[str, Any]]:
        """The checkpoint's entries by key; None when there are none to be read (another rule says
        why).
        """
        return self._of_checkpoint(BundleReader.entries)

    @functools.cached_property
    def tracked(self) -> Optional[schema.TrackableObjectGraph]:
        """The object graph of the checkpoint; None when it has none or it cannot be read."""
        return self._of_checkpoint(BundleReader.object_graph)

    def _of_checkpoint(self, read: Callable[[BundleReader], T]) -> Optional[T]:
        try:
            return None if self.reader is None else read(self.reader)
        except errors.SavedModelError as error:
            if not errors.about_the_model(error):
                raise  # it tells of the machine: nothing is known of the model then
            return None

    @functools.cached_property
    def warmup(self) -> Optional[Warmup]:
        """The requests that a model server answers while it loads the model; None without.

        Raises what `warmup.read` raises.
        """
        if not self.layout.root.exists(layout.WARMUP_REQUESTS):
            return None
        from savedmodel_tools.warmup import read  # the messages of the server's API take a while

        return read(self.layout)

    def close(self) -> None:
        if isinstance(self.__dict__.get("reader"), BundleReader):
            self.__dict__["reader"].close()


def _newest_definition(name: str) -> Optional[Op]:
    """Return the definition of an op in the newest release that has it."""
    known = history().op(name)
    return known.definition(known.members[-1]) if known is not None else None


def _plain(node: schema.NodeDef, *kinds: str) -> dict[str, Any]:
    """Return the attrs of a node of these kinds, as the op history writes them."""
    return {
        key: plain_value(value)
        for key, value in node.attr.items()
        if value.WhichOneof("value") in kinds
    }


class Graph(Leads):
    """One MetaGraph."""

    def __init__(self, model: Model, proto: schema.MetaGraphDef):
        super().__init__(proto)
        # Thousands of signatures may name the same tensors.
        self._outputs: dict[str, Optional[arguments.Tensors]] = {}
        self._dtypes: dict[str, Optional[str]] = {}
        self.model = model
        self.tags = ", ".join(layout.tags_of(proto))
        self.objects = proto.object_graph_def
        self.has_objects = proto.HasField("object_graph_def")

    @property
    def is_cut(self) -> bool:
        """Whether ``tf.saved_model.load`` cuts functions out of the main graph instead of
        rebuilding the object graph.
        """
        return not self.has_objects or len(self.model.graphs) > 1

    @property
    def nodes(self) -> dict[str, schema.NodeDef]:
        """The nodes of the main graph by name."""
        return self.main.by_name

    @functools.cached_property
    def names(self) -> list[list[str]]:
        """For each body the names of its nodes."""
        return [nodes.names for nodes in self.indexes]

    @functools.cached_property
    def sources(self) -> list[list[list[str]]]:
        """For each body, for each of its nodes, the nodes and arguments that its inputs come
        from.
        """
        return [nodes.sources for nodes in self.indexes]

    @functools.cached_property
    def _with_functions(self) -> tuple[list[Place], list[Place]]:
        """The nodes with a function in an attribute, and those with a custom gradient: found in one
        pass, which takes a while.
        """
        naming, gradients = list[Place](), list[Place]()
        for (function, nodes), forms in zip(self.bodies, self.forms):
            if not any(form.functions or form.has_gradient for form in dict.fromkeys(forms)):
                continue
            for node, form in zip(nodes, forms):
                if form.functions:
                    naming.append((function, node))
                if form.has_gradient:
                    gradients.append((function, node))
        return naming, gradients

    @functools.cached_property
    def named(self) -> list[tuple[Optional[str], schema.NodeDef, list[str]]]:
        """(function or None, node, functions that its attributes name) of every node that names
        some, there or not.
        """
        return [
            (function, node, names)
            for function, node in self._with_functions[0]
            if (names := self._names_in_attributes(node))
        ]

    def _names_in_attributes(self, node: schema.NodeDef) -> list[str]:
        """Return the functions that the attributes of a node name."""
        values = itertools.chain.from_iterable(map(function_values, self.form(node).functions))
        return [item.name for item in values if item.name]

    @property
    def with_gradient(self) -> list[Place]:
        """The nodes with a custom gradient, (function or None, node)."""
        return self._with_functions[1]

    @functools.cached_property
    def gradient_functions(self) -> frozenset[str]:
        """The functions that only a custom gradient reaches, not a node of the main graph or a
        function of the object graph.
        """
        library = self.library

        def run_by(name: str) -> list[str]:
            referred = functools.partial(self.references, gradients=False)
            nodes = self.function_nodes[name].messages
            return list(itertools.chain.from_iterable(map(referred, nodes)))

        starts: list[str] = [
            name for name in library.gradients.values() if name in library.functions
        ]
        gradients = reachable(starts, run_by)
        roots = [name for name in library.functions if name not in gradients]
        for node in self.bodies[0].nodes:
            roots.extend(self.references(node, gradients=False))
        for item in self.objects.nodes:
            names = [
                *item.function.concrete_functions,
                item.bare_concrete_function.concrete_function_name,
            ]
            roots.extend(name for name in names if name in library.functions)
        others = reachable(roots, run_by)
        return frozenset(name for name in gradients if name not in others)

    @property
    def plan(self) -> list[Restored]:
        """Return the assignments of the restore op. Raises LimitError."""
        if isinstance(self._plan, errors.LimitError):
            raise self._plan.with_traceback(None)
        return self._plan

    @functools.cached_property
    def _plan(self) -> Union[list[Restored], errors.LimitError]:
        """Return the plan, or why there is none: where the limit ends it, looking again would take
        as long.
        """
        try:
            return restore_plan(self.proto, self.model.layout.file.name, self)
        except errors.LimitError as error:
            return error

    def between(self, fetched: Iterable[str], fed: Iterable[str]) -> dict[str, None]:
        """The nodes of the main graph that compute the ``fetched`` tensors when the ``fed`` ones
        are given. All outputs of a fed node count as given."""
        ends = {input_source(text) for text in fed}
        starts = [name for text in fetched if (name := input_source(text)) not in ends]
        return reachable(
            starts,
            lambda name: [source for source in self.main.waits.get(name, ()) if source not in ends],
        )

    def outputs_of(self, name: str) -> Optional[arguments.Tensors]:
        """Return the outputs of a node of the main graph; None when they are not known.

        Those of a function have no types.
        """
        if name not in self._outputs:
            self._outputs[name] = self._outputs_of(self.nodes[name])
        return self._outputs[name]

    def _outputs_of(self, node: schema.NodeDef) -> Optional[arguments.Tensors]:
        function = self.library.functions.get(node.op)
        if function is not None:
            plain = not any(
                item.number_attr or item.type_list_attr for item in function.signature.output_arg
            )
            return arguments.Tensors((("", len(function.signature.output_arg)),)) if plain else None
        op = _newest_definition(node.op)
        return None if op is None else arguments.outputs(op, _plain(node, "i", "list"))

    def dtype_of(self, text: str) -> Optional[str]:
        """Return the dtype of the tensor of the main graph that a signature names, of a reference
        that of its variable.

        None when it is not known.
        """
        if text not in self._dtypes:
            self._dtypes[text] = self._dtype_of(text)
        return self._dtypes[text]

    def _dtype_of(self, text: str) -> Optional[str]:
        edge = parse_input(text)
        node, number = self.nodes.get(edge.source), edge.number or 0
        outputs = None if node is None else self.outputs_of(edge.source)
        if node is None or outputs is None or number >= outputs.total:
            return None
        function = self.library.functions.get(node.op)
        if function is not None:
            stated = function.signature.output_arg[number].type
            return dtype_name(stated) if stated else None
        op = _newest_definition(node.op)
        return (
            None
            if op is None
            else arguments.dtype(op, outputs, number, _plain(node, "type", "list"))
        )

    @functools.cached_property
    def main_shapes(self) -> Shapes:
        """The shapes of the main graph, as TensorFlow infers them. Raises LimitError."""
        producer = self.proto.graph_def.versions.producer
        return Shapes(self.main, producer, forms=self.form)

    @functools.cached_property
    def signatures(self) -> dict[str, Reached]:
        """Signature -> what a call of it may execute.

        Of a graph too large for that all signatures together, as ``*``.
        """
        keys = [key for key in self.proto.signature_def if key not in RESERVED_SIGNATURES]
        if self.by_signature is None:
            outputs = (tensor_names(self.proto.signature_def[key].outputs) for key in keys)
            names = itertools.chain.from_iterable(outputs)
            return {"*": self.reached(map(input_source, names))}
        return {key: self.by_signature[key] for key in sorted(keys)}

    def parts(self, key: str) -> tuple[str, ...]:
        """Return the parts that a key of `signatures` stands for, as `compat` names them."""
        keys = (
            sorted(set(self.proto.signature_def) - set(RESERVED_SIGNATURES))
            if key == "*"
            else [key]
        )
        return tuple(map(signature_label, keys))

    @functools.cached_property
    def init_nodes(self) -> list[str]:
        """The nodes of the main graph that loaders run after restoring."""
        return [input_source(item.op) for item in init_ops(self.proto)]

    @functools.cached_property
    def at_init(self) -> Reached:
        """Return the ops that the initialisers execute."""
        return self.reached(self.init_nodes)

    @functools.cached_property
    def saved(self) -> schema.SavedObjectGraph:
        """The object graph, with what the extension adds if it can be read (a rule of its own says
        if not).
        """
        try:
            return extension.object_graph(self.proto, self.additional())
        except errors.SavedModelError:
            return self.objects

    def additional(self) -> Optional[schema.Extension]:
        """Return the extension: data that this project stores beyond TensorFlow's format.

        Raises MalformedError.
        """
        return extension.read(self.proto, self.model.layout.file.name)

    @functools.cached_property
    def paths(self) -> Paths:
        return Paths(self.saved.nodes)

    @functools.cached_property
    def keys(self) -> dict[int, dict[str, str]]:
        """Object -> {attribute: checkpoint key}, from the checkpoint's own object graph."""
        return {} if self.model.tracked is None else checkpoint_keys(self.saved, self.model.tracked)

    @functools.cached_property
    def effects(self) -> tuple[Effect, ...]:
        """Ops that act on the machine, and when."""
        assets = self.model.layout.asset_definitions(self.proto)
        return effects(self, self.saved, assets, self.paths)

    @functools.cached_property
    def used(self) -> Reached:
        """Return the functions that signatures and initialisers may execute, and those that objects
        name.
        """
        nodes = dict(self.at_init.nodes)
        functions = dict(self.at_init.functions)
        for reached in self.signatures.values():
            nodes.update(reached.nodes)
            functions.update(reached.functions)
        functions.update(reachable(self.objects.concrete_functions, self.calls))
        return Reached(nodes, functions)
