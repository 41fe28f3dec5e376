"""The canonical form of one MetaGraph: its own entries, and the parts of the graph that they
mean.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

from reference_impl import errors
from reference_impl.format import extension, schema
from reference_impl.format.container import layout
from reference_impl.graph.edges import parse_input
from reference_impl.graph.references import FunctionIndex
from reference_impl.views.signatures import slots_of
from savedmodel_tools.canonical.body import (
    Body,
    check_names,
    natural,
    plain_node_name,
)
from savedmodel_tools.canonical.extension import add_fields
from savedmodel_tools.canonical.functions import Functions
from savedmodel_tools.canonical.graph import digest
from savedmodel_tools.canonical.objects import (
    Fields,
    Objects,
    entries_hash,
    hashed,
)
from savedmodel_tools.canonical.values import tensor

GRAPH_SECTIONS = ("meta", "signatures", "graph", "functions", "objects", "collections")

# Collections of TF 1.x whose items are messages that name parts of the graph.
COLLECTION_MESSAGES = {
    **dict.fromkeys(
        (
            "variables",
            "trainable_variables",
            "local_variables",
            "model_variables",
            "metric_variables",
            "moving_average_variables",
        ),
        "VariableDef",
    ),
    "global_step": "VariableDef",
    "cond_context": "CondContextDef",
    "while_context": "WhileContextDef",
    "savers": "SaverDef",
    "queue_runners": "QueueRunnerDef",
}
_ANY_MESSAGES = {"tensorflow.AssetFileDef": "AssetFileDef"}


class Root(NamedTuple):
    """A reference from outside the graph to one of its tensors or nodes."""

    label: str
    text: str


def _place(root: Root) -> tuple[str, str]:
    return root.label, natural(root.text)


class CanonicalMetaGraph:
    """The canonical form of one MetaGraph.

    Attributes:
      definition: the MetaGraphDef.
      tags: the tags, sorted.
      sections: hash of each of GRAPH_SECTIONS; computed on first use, like the body, whose
        arrangement takes most of the time.
      entries: labelled fields of the sections that have them: meta, signatures, objects,
        collections.
      nodes: the nodes of the main graph, by name.
      body: the main graph.
      by_name: whether the names of its nodes are part of the form.
      ignored: node of the main graph -> attributes that do not count.
      functions: the functions.
      roots: references to tensors of the main graph, sorted by label.
      own_entries, own_roots: entries and roots without those of collections, which are read on
        first use.
      produced_by: TensorFlow version, git version, GraphDef producer.

    Raises:
      DuplicateKeyError: two nodes share a name.
    """

    def __init__(
        self,
        model: layout.Layout,
        graph: schema.MetaGraphDef,
        ignore_defaults: bool,
        known: dict[bytes, bytes],
    ):
        self.definition = graph
        info = graph.meta_info_def
        self.tags = layout.tags_of(graph)
        self.produced_by = (
            info.tensorflow_version,
            info.tensorflow_git_version,
            graph.graph_def.versions.producer,
        )
        definitions = model.asset_definitions(graph)
        names = [node.name for node in graph.graph_def.node]
        self.nodes = dict(zip(names, graph.graph_def.node))
        check_names(names, len(self.nodes))
        library = FunctionIndex(graph.graph_def.library)
        self.functions = Functions(
            library, info.stripped_op_list.op if ignore_defaults else (), known
        )
        self.extension = extension.read(graph, str(model.file))
        nodes = extension.object_graph(graph, self.extension)
        self.objects = Objects(nodes, self.functions, [item.filename for item in definitions])
        self.own_roots: list[Root] = []
        self.own_entries = {
            "meta": self._meta(),
            "signatures": self._signatures(),
            "objects": self.objects.entries(),
        }
        if self.extension is not None:
            add_fields(self.own_entries["objects"], self.extension, self.objects, self.functions)
        self.own_roots += [
            Root(f"asset {item.filename}", item.tensor_info.name) for item in definitions
        ]
        self._saver()
        for number in self.objects.labels.order:
            node = graph.object_graph_def.nodes[number]
            if node.HasField("constant"):
                self.own_roots.append(
                    Root(f"object {self.objects.labels[number]}", node.constant.operation)
                )
        self.own_roots.sort(key=_place)
        # In TF 1.x programs feed and fetch by name.
        self.by_name = not graph.HasField("object_graph_def")
        # An asset's tensor is fed with the path of the file where the model is loaded; the author's
        # path has no meaning.
        self.ignored = {
            parse_input(item.tensor_info.name).source: frozenset({"value"}) for item in definitions
        }

    @functools.cached_property
    def entries(self) -> dict[str, dict[str, Fields]]:
        return {**self.own_entries, "collections": self._collections[0]}

    @functools.cached_property
    def roots(self) -> list[Root]:
        return sorted([*self.own_roots, *self._collections[1]], key=_place)

    @functools.cached_property
    def sections(self) -> dict[str, str]:
        found = {name: entries_hash(entries) for name, entries in self.entries.items()}
        return {**found, "graph": self._graph_hash(), "functions": self.functions_hash}

    def _meta(self) -> dict[str, Fields]:
        info, versions = self.definition.meta_info_def, self.definition.graph_def.versions
        saver = self.definition.saver_def
        return {
            "tags": {"tags": ", ".join(self.tags)},
            "version": {
                "meta_graph_version": info.meta_graph_version,
                "any_info": hashed(schema.serialize(info.any_info)),
            },
            "consumers": {
                "min": str(versions.min_consumer),
                "bad": str(sorted(versions.bad_consumers)),
            },
            "generation": {"object graph": str(self.definition.HasField("object_graph_def"))},
            "saver": {
                "present": str(self.definition.HasField("saver_def")),
                "version": str(saver.version),
                "sharded": str(saver.sharded),
                "max_to_keep": str(saver.max_to_keep),
                "hours": str(saver.keep_checkpoint_every_n_hours),
            },
        }

    def _signatures(self) -> dict[str, Fields]:
        """Return the interface that a caller sees; the tensors behind it belong to the graph."""
        entries = {}
        for key, signature in self.definition.signature_def.items():
            fields: Fields = {"method name": signature.method_name}
            for direction, infos in (("input", signature.inputs), ("output", signature.outputs)):
                for name, info in infos.items():
                    kind, slots = slots_of(info)
                    fields[f"{direction} {name}"] = f"{kind} {_interface(info)}"
                    for slot in slots:
                        self.own_roots.append(
                            Root(
                                f"signature {key} {direction} {name} {slot.part}".rstrip(),
                                slot.tensor,
                            )
                        )
            for name, default in signature.defaults.items():
                fields[f"default {name}"] = tensor(default).hex()
            entries[key] = fields
        return entries

    def _saver(self) -> None:
        if self.definition.HasField("saver_def"):
            saver = self.definition.saver_def
            self.own_roots.append(Root("saver filename", saver.filename_tensor_name))
            self.own_roots.append(Root("saver save", saver.save_tensor_name))
            self.own_roots.append(Root("saver restore", saver.restore_op_name))

    @functools.cached_property
    def _collections(self) -> tuple[dict[str, Fields], list[Root]]:
        """Return the entries of collections, and the parts of the graph that they mean."""
        entries: dict[str, Fields] = {}
        roots: list[Root] = []
        for key in sorted(self.definition.collection_def):
            if key == extension.KEY and self.extension is not None:
                continue  # its content belongs to the objects
            collection = self.definition.collection_def[key]
            kind = collection.WhichOneof("kind") or "none"
            values = list(getattr(collection, kind).value) if kind != "none" else []
            fields: Fields = {"kind": kind}
            for position, value in enumerate(values):
                message = _collection_message(key, kind, value)
                label = f"collection {key} {position}"
                if message is not None:
                    fields[str(position)] = hashed(
                        repr(list(self._fields_of(message, label, roots))).encode()
                    )
                else:
                    fields[str(position)] = self._item(value, label, roots)
            entries[key] = fields
        return entries, roots

    def _item(self, value: Any, label: str, roots: list[Root]) -> str:
        if isinstance(value, str):
            return self._mentioned(value, label, roots)
        if isinstance(value, (bytes, int, float)):
            return repr(value) if len(repr(value)) < 80 else hashed(repr(value).encode())
        return hashed(schema.serialize(value))

    def _mentioned(self, text: str, label: str, roots: list[Root]) -> str:
        """Return a string that may name a node or tensor.

        If it does, the graph holds it under ``label`` and the name does not count.
        """
        name = text.removeprefix("^")
        if parse_input(name).source not in self.nodes:
            return plain_node_name(text)
        roots.append(Root(label, name))
        return "(node)"

    def _fields_of(self, message: Any, label: str, roots: list[Root]) -> Iterator[tuple[str, str]]:
        """Return all fields of a message that describes a part of the graph, in an order that does
        not depend on maps.
        """
        for field, value in message.ListFields():
            repeated = (
                field.label == field.LABEL_REPEATED
                if not hasattr(field, "is_repeated")
                else field.is_repeated
            )
            if field.message_type is not None and field.message_type.GetOptions().map_entry:
                items = [
                    (plain_node_name(str(key)), value[key])
                    for key in sorted(value, key=lambda key: natural(str(key)))
                ]
            else:
                items = (
                    [(str(position), item) for position, item in enumerate(value)]
                    if repeated
                    else [("", value)]
                )
            for position, item in items:
                where = f"{label} {field.name} {position}".rstrip()
                if hasattr(item, "ListFields"):
                    yield from self._fields_of(item, where, roots)
                elif isinstance(item, str):
                    yield f"{field.name} {position}", self._mentioned(item, where, roots)
                else:
                    yield f"{field.name} {position}", repr(item)

    @functools.cached_property
    def body(self) -> Body:
        body = Body(
            self.definition.graph_def.node,
            self.functions.values,
            keep_names=self.by_name,
            ignored=self.ignored,
        )
        body.arrange(
            [place[0] for root in self.roots if (place := body.resolve(root.text)) is not None]
        )
        return body

    def _graph_hash(self) -> str:
        roots = []
        for root in self.roots:
            place = self.body.resolve(root.text)
            where = (
                root.text.encode()
                if place is None
                else b"%d:%b" % (self.body.position[place[0]], place[1])
            )
            roots.append(digest(root.label.encode(), where))
        return digest(digest(*self.body.lines()), digest(*roots), digest(*self._shared())).hex()

    def _shared(self) -> list[bytes]:
        """Return which nodes, in which functions, share a resource under one name.

        The export may have generated the name.
        """
        groups: dict[str, list[bytes]] = {}
        owners = [(b"graph", self.body.shared())]
        owners += [
            (self.functions.hashes[name], shared) for name, shared in self.functions.shared.items()
        ]
        for owner, shared in owners:
            for name, places in shared.items():
                groups.setdefault(name, []).append(
                    digest(owner, *[b"%d" % place for place in places])
                )
        # Equal functions (two traces of one constructor) count once, so that unused copies do not
        # matter.
        return sorted([digest(*sorted(set(members))) for members in groups.values()])

    @functools.cached_property
    def functions_hash(self) -> str:
        values, library, info = (
            self.functions.values,
            self.functions.library,
            self.definition.meta_info_def,
        )
        aliases = [
            digest(alias.encode(), values.name(name))
            for name, alias in info.function_aliases.items()
        ]
        gradients = [values.name(name) for name in library.gradients.values()]
        return digest(
            digest(*sorted(set(self.functions.hashes.values()))),
            digest(*sorted(aliases)),
            digest(*sorted(set(gradients))),
        ).hex()


def _interface(info: schema.TensorInfo) -> str:
    """Return dtype, shape and type of a signature's argument, without the tensors."""
    parts = [str(info.dtype), schema.serialize(info.tensor_shape).hex()]
    if info.WhichOneof("encoding") == "composite_tensor":
        parts.append(hashed(schema.serialize(info.composite_tensor.type_spec)))
        parts += [_interface(component) for component in info.composite_tensor.components]
    return " ".join(parts)


def _collection_message(key: str, kind: str, value: Any) -> Any:
    """Return a collection's item as a message if its fields name nodes."""
    try:
        if kind == "bytes_list" and key in COLLECTION_MESSAGES:
            return schema.parse(getattr(schema, COLLECTION_MESSAGES[key]), value)
        if kind == "any_list" and value.type_url.rpartition("/")[2] in _ANY_MESSAGES:
            return schema.parse(
                getattr(schema, _ANY_MESSAGES[value.type_url.rpartition("/")[2]]), value.value
            )
    except errors.SavedModelError:
        return None  # other programs use these names for other things
    return None
