"""The messages of an export: one MetaGraph in a SavedModel.

RFC: FMT-01, FMT-02, FMT-05, FMT-06, FMT-08, FMT-11, FMT-14, COMPAT-04
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import AliasError
from reference_impl.format import schema
from reference_impl.format.names import INIT_SIGNATURE, MAIN_OP, OPTIMIZER
from reference_impl.functions.names import ExportName
from reference_impl.graph.references import names_in, names_in_graph
from reference_impl.kinds import asset, constant, optimizer
from reference_impl.saving import traces
from reference_impl.saving.checks.functions import check_namespaces, strip_debug_ops
from reference_impl.saving.graph import MainGraph
from reference_impl.saving.options import SaveOptions
from reference_impl.saving.output_inference import (
    InferredSpec,
    infer_output_specs,
    record_output_specs,
)
from reference_impl.saving.plan import SavePlan
from reference_impl.saving.traces import is_function

_log = logging.getLogger(__name__)


def saved_model(plan: SavePlan, options: SaveOptions) -> schema.SavedModel:
    """Return the message of an export, which has one MetaGraph. Raises SaveError."""
    return _Builder(plan, options).build()


class _Builder:
    def __init__(self, plan: SavePlan, options: SaveOptions):
        self._plan, self._contents, self._options = plan, plan.contents, options
        self.devices, self.expand = options.devices, options.expand
        self._tree, self._functions = plan.contents.tree, plan.contents.functions
        self._graph = MainGraph(self._tree, self._functions)
        self._assets: dict[int, int] = {}  # number of a node -> index of the asset
        self._constants: dict[int, str] = {}  # number of a node -> its Const node
        self._message = schema.SavedModel(saved_model_schema_version=1)
        # in place: a message takes several times its size on disk
        self._out = self._message.meta_graphs.add()

    def build(self) -> schema.SavedModel:
        out = self._out
        self._add_state()
        for name, described in self._functions.described.items():
            out.object_graph_def.concrete_functions[name].CopyFrom(described)
        called = self._add_signatures()
        inferred = self._inferred(called)
        self._add_init()
        if self._contents.saver is not None:
            out.saver_def.CopyFrom(self._graph.add_saver(self._contents.saver))
        out.graph_def.CopyFrom(self._graph.finish())
        self._add_objects()
        for addition in self._contents.additions:
            addition.write(out, self._tree.nodes)
        self._add_aliases()
        self._add_functions()
        record_output_specs(out, called, inferred)
        if self._options.namespaces is not None:
            check_namespaces(out.graph_def, self._options.namespaces)
        if self._options.strip_debug_ops:
            strip_debug_ops(out.graph_def)
        self._add_info()
        return self._message

    def _add_functions(self) -> None:
        """Add the functions, and the custom gradients by op type."""
        library = self._out.graph_def.library
        library.function.extend(self._functions.library.sorted())
        for op_type, name in sorted(self._functions.gradients.items()):
            library.registered_gradients.add(gradient_func=name, registered_op_type=op_type)

    # The main graph

    def _add_state(self) -> None:
        """Add variables, assets and constants."""
        # As TensorFlow: of variables of one name the last one has it without a number.
        for number, saved in reversed(list(self._contents.checkpoint.variables.items())):
            parts = saved.parts[: None if self.expand else 1]
            self._graph.add_variable(number, parts, saved.name, self.devices)
        for node in self._tree.nodes:
            if node.kind is asset.KIND:
                self._assets[node.number] = len(self._out.asset_file_def)
                name = self._plan.assets.names[node.number]
                asset.write_file(
                    self._out.asset_file_def.add(), name, self._graph.add_asset(node.number)
                )
            elif node.kind is constant.KIND:
                self._constants[node.number] = self._graph.add_constant(node.number, node.object)

    def _add_signatures(self) -> dict[ExportName, schema.SignatureDef]:
        """Add the signatures; return name of a function -> the SignatureDef that calls it."""
        called: dict[ExportName, schema.SignatureDef] = {}
        for key, signature in sorted(self._contents.signatures.items()):
            number = self._tree.number(signature)
            added = self._graph.add_signature(key, signature, number)
            self._out.signature_def[key].CopyFrom(added)
            called[self._functions.name(number)] = self._out.signature_def[key]
        return called

    def _inferred(self, called: Mapping[ExportName, schema.SignatureDef]) -> list[InferredSpec]:
        """Return the shapes of outputs that the main graph tells."""
        of_graphs = {
            self._functions.name(self._tree.number(signature))
            for signature in self._contents.signatures.values()
            if getattr(signature.target, "of_graph", False)
        }
        return infer_output_specs(called, self._graph.graph_def, self._functions.library, of_graphs)

    def _add_init(self) -> None:
        """Add the op that initialises the model."""
        init = self._graph.add_init()
        self._out.collection_def[MAIN_OP].node_list.value.append(init)
        info = self._out.signature_def[INIT_SIGNATURE].outputs[INIT_SIGNATURE]
        info.name = init
        info.tensor_shape.unknown_rank = True

    # The object graph

    def _add_objects(self) -> None:
        out = self._out.object_graph_def
        for node in self._tree.nodes:
            saved = out.nodes.add()
            for name, child in node.children.items():
                saved.children.add(node_id=child, local_name=name)
            node.kind.write(self, node, saved)
            for state in self._contents.states.get(node.number, ()):
                if state.save is None:
                    continue  # in the checkpoint alone
                pair = saved.saveable_objects[state.name]
                pair.save_function = self._tree.number(state.save)
                pair.restore_function = self._tree.number(state.restore)
        for slot in self._contents.slots:
            if slot.listed:
                continue  # children of their optimizer; the extension says that they are slots
            # The only type known to every shipped reader whose objects can have slots (V1-18).
            out.nodes[slot.optimizer].user_object.identifier = OPTIMIZER
            optimizer.write_slot(out.nodes, slot)

    # What kinds need (`reference_impl.kinds.kind.Export`)

    def function_name(self, number: int) -> str:
        return self._functions.name(number)

    def write_trace(self, number: int, out: schema.SavedBareConcreteFunction) -> None:
        function = self._functions.by_number[number]
        traces.write_bare(out, function.trace, function.name, self._tree.nodes[number].path)

    def asset_index(self, number: int) -> int:
        return self._assets[number]

    def constant_operation(self, number: int) -> str:
        return self._constants[number]

    # What the file says of itself

    def _add_aliases(self) -> None:
        """Add the aliases of functions' traces, including traces that only signatures or other
        functions call.

        Loaded functions keep the aliases of their file, except those that the caller replaces.
        """
        aliases = self._out.meta_info_def.function_aliases
        for alias, names in self._functions.library.file_aliases().items():
            if alias not in self._options.function_aliases:
                aliases.update(dict.fromkeys(names, alias))
                if not names:
                    _log.warning(
                        "the function alias %r is left out, since the export does not have its"
                        " function",
                        alias,
                    )
        for alias, given in sorted(self._options.function_aliases.items()):
            for aliased in given if isinstance(given, Iterable) else [given]:
                found = (
                    self._tree.walk.traces(aliased)
                    if isinstance(aliased, api.Function)
                    else [aliased]
                )
                names = [
                    name
                    for trace in found
                    if (name := self._functions.name_of(trace, self._tree)) is not None
                ]
                if not names:
                    self._refuse_alias(alias, aliased)
                aliases.update(dict.fromkeys(names, alias))

    def _refuse_alias(self, alias: str, aliased: object) -> None:
        """Report what has no function in the export.

        Without ``strict``, a function is left out with a warning.
        """
        node = f"function_aliases[{alias!r}]"
        if not is_function(aliased):
            reason = (
                f"Unsupported type {type(aliased).__name__}: give a tf.function, a concrete"
                " function, or a list of these"
            )
            raise AliasError(reason, node=node)
        reason = (
            f"the function {getattr(aliased, 'name', aliased)!r} is not among the functions that"
            " are saved"
        )
        self._tree.report_loss(AliasError(reason, node=node), "saved without an alias")

    def _add_info(self) -> None:
        """Add the tags, the versions, and the definitions of the ops in the file."""
        info = self._out.meta_info_def
        info.tags.extend(self._options.tags)
        info.tensorflow_version, info.tensorflow_git_version = (
            tf.version.VERSION,
            tf.version.GIT_VERSION,
        )
        info.stripped_default_attrs = True
        library, graph = self._functions.library, self._out.graph_def
        # Stripping changes ops of the functions.
        stripped = self._options.strip_debug_ops
        named = names_in_graph(graph) if stripped else library.mentioned.union(names_in(graph.node))
        # Names of functions of the export are not ops.
        for _, definition in sorted(api.op_defs(named - library.definitions.keys()).items()):
            info.stripped_op_list.op.add().CopyFrom(definition)
