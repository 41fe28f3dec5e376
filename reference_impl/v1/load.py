"""Load a TF 1.x MetaGraph: make its state, run its restore and init functions once, make its
signatures.

Reference variables become real variables: they can be trained, and are saved again with their
values.

RFC: V1-01, V1-02, V1-03, V1-08, V1-09, V1-10, V1-12, V1-13, V1-17
"""

from __future__ import annotations

import contextlib
import functools
import logging
import re
from collections.abc import Collection, Mapping
from typing import Any, Optional, Union

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.drop_in import graph_mode
from reference_impl.errors import (
    MissingFileError,
    SavedModelError,
    UnsupportedModelError,
    V1CheckpointError,
)
from reference_impl.format import schema
from reference_impl.format.bundle.reader import BundleReader
from reference_impl.format.container.layout import VARIABLES, Layout
from reference_impl.format.names import CREATE, INITIALIZE, SIGNATURES_CHILD
from reference_impl.functions import graph_versions, specs
from reference_impl.functions.devices import checked_device
from reference_impl.functions.library import FunctionLibrary
from reference_impl.functions.names import FileName
from reference_impl.functions.op_attributes import rules_of
from reference_impl.functions.registered_function import RegisteredFunction
from reference_impl.functions.steps import tell_library
from reference_impl.functions.tensors import Values
from reference_impl.functions.unknown_ops import (
    UnknownOpError,
    nodes_needing_unknown_ops,
    why_not_found,
)
from reference_impl.graph import damage
from reference_impl.graph.edges import Edge, parse_input
from reference_impl.graph.restore_plan import restore_plan
from reference_impl.kinds import user_object
from reference_impl.kinds.asset import Assets
from reference_impl.kinds.resource import LoadedResource
from reference_impl.kinds.root import add_function_aliases, provenance
from reference_impl.kinds.signature_map import SignatureMap, tell_signatures
from reference_impl.load_options import LoadOptions
from reference_impl.safety import machine_ops
from reference_impl.safety.effects import LOAD, Start
from reference_impl.safety.path_origins import ASSET, COMPUTED_PATH, GIVEN_PATH, Origin
from reference_impl.tracing import Watch
from reference_impl.v1 import steps, tables
from reference_impl.v1.extract import Extracted, static_shape
from reference_impl.v1.initialization import Initialization
from reference_impl.v1.plain_restore import plain_restores
from reference_impl.v1.program import Program, Variable, check_operations, feeds_of, tensor_of
from reference_impl.v1.pruning import Feeds, Fetches, composite_spec
from reference_impl.v1.root import Initializer, UnfedSignature, UnusableSignature, V1Root
from reference_impl.v1.selection import (
    Part,
    fillers,
    part_of_init,
    part_of_restore,
    resources_needing,
)
from reference_impl.v1.signatures import Output, Signature

_log = logging.getLogger(__name__)


def load_meta_graph(
    directory: Layout,
    meta_graph: schema.MetaGraphDef,
    options: LoadOptions,
    watch: Optional[Watch] = None,
) -> V1Root:
    """Return the root object of a MetaGraph that has no object graph.

    Raises SavedModelError, or tf.errors.OpError if the restore or the init function fails. The
    graph may exclude this release.
    """
    refused = graph_versions.refusal(meta_graph.graph_def.versions)
    if refused:
        raise UnsupportedModelError(refused, file=str(directory.file), node="graph_def.versions")
    return Loader(directory, meta_graph, options, watch).load()


def find_damage(meta_graph: schema.MetaGraphDef, file: str) -> damage.Damage:
    """Return the nodes that break the rules of their ops in this TensorFlow.

    Raises SavedModelError: one of them is a placeholder, which becomes an argument of a function
    wherever it is fed.
    """
    found = damage.find(meta_graph.graph_def, rules_of, file)
    for node in meta_graph.graph_def.node if found.nodes else ():
        if node.op.startswith("Placeholder") and node.name in found.nodes:
            raise found.nodes[node.name]
    return found


class Loader:
    def __init__(
        self,
        directory: Layout,
        meta_graph: schema.MetaGraphDef,
        options: LoadOptions,
        watch: Optional[Watch] = None,
    ):
        self.directory, self.watch = directory, watch
        self.meta_graph = meta_graph
        self.file = str(directory.file)
        self.program = Program(
            meta_graph, self.file, api.op_def, find_damage(meta_graph, self.file)
        )
        self.options = options
        aliases = meta_graph.meta_info_def.function_aliases
        self.library = FunctionLibrary(self.program.graph.graph_def.library, self.file, aliases)
        self.library.watch = watch
        if watch is not None:
            steps.tell_program(watch, self.program)
            tell_library(watch, self.library)
        self.part = None if options.only is None else Part(self.program, options.only)
        self.assets = Assets(directory, meta_graph)
        self.state: dict[str, Any] = {}  # hoisted node -> variable, resource or asset
        self.read_keys: dict[int, str] = {}  # id of a variable -> the key of its unchanged value

    def load(self) -> V1Root:
        root = type("V1Root", user_object.bases(V1Root, self.options), {})()
        self.make_assets(root)
        made = [
            self.make_variable(variable)
            for variable in self.program.variables
            if self.wants(variable.name)
        ]
        self.values = Initialization(made)
        resources = {
            name: self.make_resource(name) for name in self.program.resources if self.wants(name)
        }
        self.state.update(resources)
        if self.watch is not None:
            steps.tell_state(self.watch, self.program, self.state)
        for name, resource in resources.items():
            tables.attach(resource, name, self.program, self.function)
        for statement in self.program.false_statements:
            _log.warning("%s: %s (V1-01)", self.file, statement)
        self.check_machine_ops()
        self.run_restore()
        with self.assets.needed():
            self.run_init()
        self.fill_iterators()
        valueless = [variable.name for variable in made if not self.has_value(variable)]
        if self.watch is not None:
            ran = self.init_function is not None
            steps.tell_initialised(self.watch, self.file, ran, self.state, valueless)
        root.variables = [variable for variable in made if self.has_value(variable)]
        vars(root)["uninitialized_variables"] = tuple(valueless)
        self.values.finish()
        root.resources = list(resources.values())
        vars(root)["_loader"] = self
        keys = self.program.signatures if self.part is None else self.part.keys
        vars(root)[SIGNATURES_CHILD] = SignatureMap(
            {key: self.signature(self.program.signatures[key]) for key in keys}
        )
        if self.watch is not None:
            tell_signatures(self.watch, self.file, vars(root)[SIGNATURES_CHILD], "V1-01")
        if self.options.load_function_aliases:
            self.refuse_aliases()
            add_function_aliases(root, {}, lambda _: None, [])
        vars(root).update(provenance(self.directory, self.meta_graph))
        return root

    def refuse_aliases(self) -> None:
        """Raise UnsupportedModelError if the file has aliases, since only an object graph says
        which functions they mean.
        """
        aliases = sorted(set(self.meta_graph.meta_info_def.function_aliases.values()))
        if aliases:
            reason = (
                f"load_function_aliases: {', '.join(aliases)} cannot be told from other functions"
                " without an object graph"
            )
            raise UnsupportedModelError(
                f"{reason}. Load without the option",
                file=self.file,
                node="function_aliases",
                clause="V1-13",
            )

    # State

    def wants(self, name: str) -> bool:
        """Return whether a variable or resource belongs to the loaded part of the model."""
        return self.part is None or name in self.part.state

    def make_assets(self, root: V1Root) -> None:
        found = [self.assets.make(asset) for asset in self.assets.definitions]
        self.state.update(
            (parse_input(asset.tensor).source, made)
            for asset, made in zip(self.assets.definitions, found)
        )
        root.asset_paths = list(dict.fromkeys(found))

    def make_variable(self, variable: Variable) -> tf.Variable:
        shape, dtype = specs.shape_of(variable.shape), specs.tf_dtype(variable.dtype)
        device = (
            self.program.graph.nodes[variable.name].device
            if self.options.keep_variable_devices
            else ""
        )
        checked_device(device, self.file, variable.name)
        with tf.device(device) if device else contextlib.nullcontext():
            make = api.variable_of_handle if self.library.eager else api.UninitializedVariable
            made: tf.Variable = make(
                shape=shape, dtype=dtype, trainable=variable.trainable, name=variable.name
            )
        self.state[variable.name] = made
        return made

    def make_resource(self, name: str) -> LoadedResource:
        resource = LoadedResource(
            device="CPU" if "HashTable" in self.program.graph.nodes[name].op else ""
        )
        create = self.program.create_function(name)
        resource.functions[CREATE] = self.function(create, {}, tf.TensorSpec([], tf.resource))
        return resource

    def has_value(self, variable: tf.Variable) -> bool:
        """Return whether the checkpoint or the init op gives a variable a value.

        In graph mode nothing has run yet.
        """
        if not self.library.eager:
            return any(variable is other for other in self.values.initialized)
        return bool(variable.is_initialized())

    def run_restore(self) -> None:
        """Run the SaverDef's restore op on the checkpoint of the model; without a SaverDef restore
        the variables by name.
        """
        restore = self.restore_function
        if self.watch is not None:
            steps.tell_checkpoint(self.watch, self.directory, self.options.skip_checkpoint)
        if self.options.skip_checkpoint or (restore is None and not self.program.variables):
            return
        if not self.directory.root.names(VARIABLES):
            if restore is not None and restore.owners and not self.options.allow_partial_checkpoint:
                raise MissingFileError(
                    "there is no checkpoint to restore the variables from",
                    file=self.directory.checkpoint_prefix,
                    clause="V1-08",
                )
            return
        prefix = self.directory.checkpoint_prefix
        # A malicious index can make the restoring kernel abort the process or allocate gigabytes.
        read: list[tf.Variable] = []
        with contextlib.suppress(V1CheckpointError), BundleReader(prefix) as reader:
            reader.check_places()
            if self.library.eager:
                read = self.read_plain(reader)
        self.values.by_restoring(
            lambda: self.restore(tf.constant(str(prefix)), read), self.restored
        )
        if self.watch is not None:
            variables = {
                name: made for name, made in self.state.items() if isinstance(made, tf.Variable)
            }
            steps.tell_restored(
                self.watch,
                self.directory,
                variables,
                self.restored,
                self.read_keys,
                self.absent,
            )
        if not self.library.eager:
            self.note_restored_tables(tf.constant(str(prefix)))

    def read_plain(self, reader: BundleReader) -> list[tf.Variable]:
        """Assign the variables whose values are restored unchanged from the checkpoint, and return
        these variables.
        """
        if self.restore_function is None:
            found = [
                (variable, item.key) for variable, item in self.restored_by_name if not item.slice
            ]
        else:
            plain = plain_restores(self.library.get(self.restore_function.saved_name))
            found = [
                (self.restore_function.owners[argument - 1], key) for argument, key in plain.items()
            ]
        read, values = [], Values(lambda: reader, self.options)
        try:
            for variable, key in found:
                entry = (
                    reader.entry(key) if key in reader else None
                )  # if not, the restore op reports the error
                fits = entry is not None and entry.dtype.number == variable.dtype.as_datatype_enum
                if (
                    entry is not None
                    and fits
                    and variable.shape.rank is not None
                    and variable.shape.as_list() == [*entry.shape]
                ):
                    values.assign(variable, key)
                    read.append(variable)
                    self.read_keys[id(variable)] = key
            values.finish()
        finally:
            values.close()
        return read

    def restore(self, prefix: tf.Tensor, read: Collection[tf.Variable] = ()) -> None:
        """Restore the variables except those already `read`.

        In graph mode, make the operations that restore them.
        """
        done = {id(variable) for variable in read}
        if self.restore_function is not None:
            rest = [owner for owner in self.restore_function.owners if id(owner) not in done]
            if done and rest:
                missing = {id(owner) for owner in rest}
                names = {name for name, made in self.state.items() if id(made) in missing}
                self.restore_part(names, prefix)
            elif not done:
                self.restore_function(prefix=prefix)
            return
        # Modules of TensorFlow Hub's first format do not have a saver.
        for variable, item in self.restored_by_name:
            if id(variable) in done:
                continue
            restored = tf.raw_ops.RestoreV2(
                prefix=prefix,
                tensor_names=[item.key],
                shape_and_slices=[item.slice],
                dtypes=[variable.dtype],
            )
            variable.assign(restored[0])

    def note_restored_tables(self, prefix: tf.Tensor) -> None:
        """Make sessions that initialise tables restore the tables whose content the Saver saved."""
        with graph_mode.noted_as_initializers():
            self.restore_part({name for name in self.program.resources if self.wants(name)}, prefix)

    def restore_part(self, state: Collection[str], prefix: tf.Tensor) -> None:
        """Run the part of the restore op that acts on the given state, if any."""
        extracted = part_of_restore(self.program, state)
        if extracted is not None:
            self.function(extracted, {"prefix": tf.TensorSpec([], tf.string)}, {})(prefix=prefix)

    @property
    def restored(self) -> list[tf.Variable]:
        """The variables that `restore` gives a value."""
        if self.restore_function is None:
            return [variable for variable, _ in self.restored_by_name]
        return [owner for owner in self.restore_function.owners if isinstance(owner, tf.Variable)]

    @functools.cached_property
    def restored_by_name(self) -> list[tuple[tf.Variable, Any]]:
        wanted = [variable.name for variable in self.program.variables if self.wants(variable.name)]
        return [(self.state[name], self.present[name]) for name in wanted if name in self.present]

    @functools.cached_property
    def present(self) -> dict[str, Any]:
        """Node of a variable -> position of its value in the checkpoint, without the variables that
        are `absent`.
        """
        return {
            item.node: item
            for item in restore_plan(self.meta_graph, self.file)
            if item.key not in self.absent
        }

    @functools.cached_property
    def absent(self) -> frozenset[str]:
        """Keys of variables that the checkpoint lacks, or has with another dtype, which no restore
        op takes.

        Empty unless ``allow_partial_checkpoint`` is set.
        """
        if not self.options.allow_partial_checkpoint or not self.directory.root.names(VARIABLES):
            return frozenset()
        with (
            contextlib.suppress(V1CheckpointError),
            BundleReader(self.directory.checkpoint_prefix) as reader,
        ):
            plan = restore_plan(self.meta_graph, self.file)
            found = {
                item.key
                for item in plan
                if item.key not in reader or reader.entry(item.key).dtype.name != item.dtype
            }
            if found:
                _log.warning(
                    "%s: left without a value, the checkpoint has none of its dtype: %s",
                    self.file,
                    ", ".join(sorted(found)),
                )
            return frozenset(found)
        return frozenset()

    @functools.cached_property
    def restore_function(self) -> Optional[RegisteredFunction]:
        restore = (self.part or self.program).restore_function
        if restore is not None and self.absent:
            held = {self.program.handle(Edge(node)).source for node in self.present}
            restore = part_of_restore(self.program, {name for name in held if self.wants(name)})
            nodes = restore.function.node_def if restore is not None else ()
            calls = [node.name for node in nodes if self.library.index.called(node)]
            if calls:
                reason = (
                    "allow_partial_checkpoint: a function restores all or nothing, and"
                    f" {min(self.absent)} is absent"
                )
                raise UnsupportedModelError(reason, file=self.file, node=calls[0], clause="V1-08")
        return (
            None
            if restore is None
            else self.function(restore, {"prefix": tf.TensorSpec([], tf.string)}, {})
        )

    def run_init(self) -> None:
        init = self.init_function
        given = (
            [owner for owner in init.owners if isinstance(owner, tf.Variable)]
            if init is not None
            else []
        )
        self.values.by_init_op(lambda: None if init is None else init(), given)

    @functools.cached_property
    def init_function(self) -> Optional[RegisteredFunction]:
        init = (self.part or self.program).init_function
        if init is None:
            return None
        made = self.function(init, {}, {})
        unknown = nodes_needing_unknown_ops(
            self.library, self.library.get(made.saved_name).node_def, made.saved_name
        )
        for name in init.captures:
            if isinstance(resource := self.state[name], LoadedResource):
                error = why_not_found(self.library, resource.functions[CREATE].saved_name)
                unknown.update({name: error} if error is not None else {})
        return (
            self.known_part_of_init(unknown)
            if unknown and unknown.keys() <= fillers(self.program)
            else made
        )

    def known_part_of_init(
        self, unknown: Mapping[str, UnknownOpError]
    ) -> Optional[RegisteredFunction]:
        """Return the init op without the `unknown` nodes, which need ops that this TensorFlow lacks
        to make or fill resources.

        The users of these resources get the error.

        RFC: DR-05
        """
        found = resources_needing(self.program, unknown)
        for name, node in found.items():
            self.leave_unfilled(name, unknown[node])
        rest = part_of_init(
            self.program,
            [name for name in self.program.hoisted if self.wants(name) and name not in found],
        )
        return None if rest is None else self.function(rest, {}, {})

    def leave_unfilled(self, name: str, error: UnknownOpError) -> None:
        """Give the users of a resource the error, and warn of it."""
        made = self.state.get(name)
        if isinstance(made, LoadedResource):
            made.unfilled = UnknownOpError(
                f"it is not filled: {error.reason}", file=self.file, node=name
            )
            _log.warning("%s", made.unfilled)

    def iterators(self) -> dict[str, LoadedResource]:
        """Return the iterators that no init op fills."""
        return {name: self.state[name] for name in self.program.fillers if name in self.state}

    def fill_iterators(self) -> None:
        """Make the datasets of iterators.

        A session does so on first use, so a failure does not fail the load.
        """
        for name, iterator in self.iterators().items():
            try:
                with graph_mode.noted_as_initializers():
                    iterator.initialize()
            except UnknownOpError as error:
                self.leave_unfilled(name, error)
            except tf.errors.OpError as error:
                iterator.fails = f"the iterator {name} cannot be filled: {error.message}"
                _log.warning("%s: %s", self.file, iterator.fails)

    @functools.cached_property
    def initializer(self) -> Initializer:
        return Initializer(self.init_function)

    def check_machine_ops(self) -> None:
        """Check the ops that loading runs: in the restore function, the init function, and the
        functions that fill iterators.
        """
        assets = {
            id(self.state[parse_input(asset.tensor).source]): frozenset(
                {Origin(ASSET, asset.filename)}
            )
            for asset in self.assets.definitions
        }
        starts = []
        filling = [
            (f"iterator {name}", iterator.functions[INITIALIZE])
            for name, iterator in self.iterators().items()
        ]
        for what, made in (
            ("restore op", self.restore_function),
            ("init op", self.init_function),
            *filling,
        ):
            if made is not None:
                given = len(self.library.get(made.saved_name).signature.input_arg) - len(
                    made.owners
                )
                captured = [assets.get(id(owner), COMPUTED_PATH) for owner in made.owners]
                arguments = (GIVEN_PATH,) * given + tuple(captured)
                starts.append(
                    Start(
                        what,
                        LOAD,
                        function=made.saved_name,
                        arguments=arguments,
                        checkpoint=what == "restore op",
                    )
                )
        machine_ops.check(
            self.options.machine_ops,
            self.directory,
            self.meta_graph,
            schema.SavedObjectGraph(),
            self.library.index,
            starts,
        )

    # Functions

    def function(
        self,
        extracted: Extracted,
        inputs: Any,
        outputs: Any,
        cls: type[RegisteredFunction] = RegisteredFunction,
        structured: Any = None,
    ) -> RegisteredFunction:
        """Return a live function over the state.

        `inputs`, in the order of its arguments, are a mapping of named tensors or a tuple of
        positional nests. `structured` is its structured input signature, if different.
        """
        name = self.add(extracted)
        structured = structured or (
            (inputs, {}) if isinstance(inputs, tuple) else ((), dict(inputs))
        )
        made: RegisteredFunction = cls(self.library, name, lambda: (structured, outputs))
        made.of_graph, made.placeholders = True, extracted.fed
        if not isinstance(inputs, tuple):
            made.set_flat_arguments(list(inputs), len(inputs))
        left_out = [node for node in extracted.captures if node not in self.state]
        if left_out:
            reason = f"needs {', '.join(left_out)}, which LoadOptions(only=...) left out"
            raise UnsupportedModelError(reason, file=self.file, node=name, clause="DR-03")
        made.capture([self.state[node] for node in extracted.captures])
        return made

    def add(self, extracted: Extracted) -> FileName:
        """Add the FunctionDef to the library; return its name there."""
        extracted.function.signature.name = "v1_" + re.sub(
            r"[^A-Za-z0-9_]", "_", extracted.function.signature.name
        )
        for inner in extracted.functions:  # their names are free, since the program chose them
            self.library.add(inner)
        return self.library.add(extracted.function)

    def signature(self, signature: Signature) -> Union[RegisteredFunction, UnusableSignature]:
        try:
            extracted, unfed = self.program.saved_signature(signature.key)
            made = self.callable_signature(
                signature, extracted, RegisteredFunction if unfed is None else UnfedSignature
            )
            if unfed is not None:
                made.__dict__["reason"] = unfed
            return made
        except SavedModelError as error:
            unusable = UnusableSignature(error)
            for item in signature.inputs:
                with contextlib.suppress(SavedModelError):  # it has no dtype
                    unusable.structured_input_signature[1][item.name] = _spec(
                        item.dtype, item.shape, item.name
                    )
            for output in signature.outputs:
                with contextlib.suppress(SavedModelError):
                    unusable.structured_outputs[output.key] = self.output_spec(
                        output, output.info.dtype
                    )
            return unusable

    def callable_signature(
        self,
        signature: Signature,
        extracted: Extracted,
        cls: type[RegisteredFunction] = RegisteredFunction,
    ) -> RegisteredFunction:
        inputs = {item.name: _spec(item.dtype, item.shape, item.name) for item in signature.inputs}
        # The graph knows the dtypes. The SignatureDef has a copy, which may be missing.
        dtypes_of = dict(
            zip(
                extracted.results,
                (argument.type for argument in extracted.function.signature.output_arg),
            )
        )
        outputs = {
            output.key: self.output_spec(output, dtypes_of[f"{output.key}/0"])
            for output in signature.outputs
        }
        made = self.function(extracted, inputs, outputs, cls)
        made.set_flat_arguments(list(inputs), len(inputs), signature.positional)
        made.signature_def = self.meta_graph.signature_def[signature.key]
        return made

    def output_spec(self, output: Output, dtype: int) -> Any:
        if output.kind == "dense":
            return _spec(dtype, output.info.tensor_shape, output.key)
        return composite_spec(output, self.file)

    def prune(self, feeds: Feeds, fetches: object, name: str) -> RegisteredFunction:
        cut = feeds_of(self.program, feeds.named)
        wanted = Fetches(fetches)
        check_operations(self.program, wanted.targets)
        tensors = {
            str(index): tensor_of(self.program, name)[0]
            for index, name in enumerate(wanted.tensors)
        }
        extracted = self.program.function(name, cut, tensors, wanted.targets)
        arguments = extracted.function.signature.output_arg
        specs_of = [
            tf.TensorSpec(
                _shape(static_shape(self.program.graph, ref)), tf.dtypes.as_dtype(argument.type)
            )
            for ref, argument in zip(tensors.values(), arguments)
        ]
        inputs = {feed.name: _spec(feed.dtype, feed.shape, feed.name) for feed in cut}
        made = self.function(
            extracted, inputs, wanted.outputs(specs_of), structured=feeds.structure
        )
        made.set_flat_arguments(feeds.keywords, feeds.positional)
        return made


def _spec(dtype: int, shape: Optional[Any], name: str) -> tf.TensorSpec:
    return tf.TensorSpec(_shape(shape), specs.tf_dtype(dtype % 100, node=name), name)


def _shape(shape: Optional[Any]) -> tf.TensorShape:
    return tf.TensorShape(None) if shape is None else specs.shape_of(shape)
