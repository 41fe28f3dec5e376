"""The state of one load of an object graph, which readers use: the file and the objects made so
far.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Optional

import tensorflow as tf

from reference_impl.drop_in import keras_identity
from reference_impl.errors import SavedModelError
from reference_impl.format import schema
from reference_impl.format.container.layout import Layout
from reference_impl.format.values import tensor_proto
from reference_impl.functions import specs
from reference_impl.functions.checkpoint import Checkpoint
from reference_impl.functions.library import FunctionLibrary
from reference_impl.functions.names import FileName
from reference_impl.load_options import LoadOptions
from reference_impl.tracing import Watch


class Origin:
    """The file of a load, from which the classes of its objects make further objects.

    An Origin holds messages and classes but no loaded objects, so a class does not keep variables
    alive. `graph` is the object graph that was loaded; a part has empty nodes. `extension` is the
    Extension message of the file, or None. `construct` fills an object that was made by calling the
    class of a loaded object: ``construct(origin, number, object, args, kwargs)``.
    """

    def __init__(
        self,
        directory: Layout,
        meta_graph: schema.MetaGraphDef,
        graph: schema.SavedObjectGraph,
        options: LoadOptions,
        extension: Optional[schema.Extension],
        construct: Callable[..., None],
    ):
        self.directory, self.meta_graph, self.graph = directory, meta_graph, graph
        self.options, self.extension, self.construct = options, extension, construct
        self.classes: dict[int, type] = {}  # of generic objects


class LoadContext:
    """The state of one load, which every reader in `reference_impl.kinds` gets.

    The numbers in the graph have been checked. `watch` is None unless somebody watches the load.

    `whole` is the object graph of the whole model, `graph` that of the loaded part. Its nodes have
    the numbers of `whole`; nodes that are left out are empty.
    """

    assets: Any  # a `reference_impl.kinds.asset.Assets`
    origin: Origin

    def __init__(
        self,
        directory: Layout,
        meta_graph: schema.MetaGraphDef,
        options: LoadOptions,
        graph: schema.SavedObjectGraph,
        watch: Optional[Watch] = None,
    ):
        self.directory, self.meta_graph, self.options = directory, meta_graph, options
        self.file = str(directory.file)  # for messages
        self.watch = watch
        self.whole = self.graph = graph
        self.library = FunctionLibrary(
            meta_graph.graph_def.library, self.file, meta_graph.meta_info_def.function_aliases
        )
        self.library.watch = watch
        self.checkpoint = Checkpoint(directory, graph, options, watch)
        self.objects: list[Any] = [None] * len(graph.nodes)  # made so far
        self.kinds: list[Any] = [None] * len(graph.nodes)  # each a `reference_impl.kinds.kind.Kind`
        self.functions: dict[FileName, Any] = {}  # made so far
        # Python signatures read so far: by is_method, FullArgSpec
        self.python_signatures: dict[tuple[bool, bytes], inspect.Signature] = {}
        self.extra_bytes = 0  # bytes by which the tensors made so far are larger than in the file

    def has_saver(self, number: int) -> bool:
        """Return whether a registered saver wrote the state of an object, which thus has no value
        of its own in the checkpoint.
        """
        return bool(self.graph.nodes[number].registered_saver)

    def plain_state_keys(self, number: int) -> dict[str, str]:
        """Return attribute -> checkpoint key of the values that the checkpoint has for an object;
        empty if the values are not read.
        """
        if self.options.skip_checkpoint or not self.directory.has_checkpoint:
            return {}
        return self.checkpoint.keys.get(number, {}) if tf.executing_eagerly() else {}

    @property
    def is_complete(self) -> bool:
        """True unless only a part is loaded."""
        return self.graph is self.whole

    def tensor(self, proto: schema.TensorProto, node: str) -> tf.Tensor:
        """Return the tensor of a TensorProto in the MetaGraph.

        Errors come from `specs.tensor_to_tf`, and name `node`.

        Raises LimitError also if all tensors together claim much more memory than space in the
        file.
        """
        try:
            self.count(tensor_proto.extra_bytes(proto))
            return specs.tensor_to_tf(proto)
        except SavedModelError as error:
            error.file, error.node = self.file, node
            raise

    def count(self, extra: int) -> None:
        """Record that a tensor is larger than in the file.

        Raises LimitError if all tensors together grow too much.
        """
        self.extra_bytes += extra
        specs.check_extra_bytes(self.extra_bytes)

    def path(self, number: int) -> str:
        """Return the path of a node from the root, for messages."""
        return self.checkpoint.paths.from_root(number)

    def label(self, number: int) -> str:
        """Return the number and the path of a node, for the steps of a load."""
        return f"nodes[{number}] {self.path(number)}"

    def name(self, number: int) -> str:
        """Return the last name on the path of a node, for messages."""
        return (self.checkpoint.paths.names(number) or ("function",))[-1]

    def left_out(self, number: int) -> frozenset[str]:
        """Return the names of a node's children that are not loaded."""
        if self.is_complete:
            return frozenset()
        kept = {child.local_name for child in self.graph.nodes[number].children}
        return frozenset(child.local_name for child in self.whole.nodes[number].children) - kept

    def children(self, number: int) -> dict[str, Any]:
        """Return the objects of a node's children by name."""
        return {
            child.local_name: self.objects[child.node_id]
            for child in self.graph.nodes[number].children
        }

    @functools.cached_property
    def graph_nodes(self) -> dict[str, Any]:
        """The nodes of the main graph by name."""
        return {node.name: node for node in self.meta_graph.graph_def.node}

    @functools.cached_property
    def keras_metadata(self) -> dict[int, Any]:
        """The descriptions of layers of Keras 2, by number of node."""
        return keras_identity.described(self.directory)
