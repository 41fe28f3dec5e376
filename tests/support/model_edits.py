"""SavedModels for tests: fixtures, models made by hand, and copies whose protos an edit has been
at.
"""

from __future__ import annotations

import functools
import shutil
from pathlib import Path

import numpy as np

from reference_impl.format import schema
from reference_impl.format.bundle.reader import BundleReader
from reference_impl.format.bundle.writer import BundleWriter
from reference_impl.format.container import layout
from reference_impl.graph.argument_names import python_name
from reference_impl.graph.function_builder import select_arguments
from savedmodel_tools.canonical.form import canonical
from savedmodel_tools.comparison import form_changes

FIXTURES = Path(__file__).parents[2] / "fixtures_v1"


def fixture(case):
    """The model of a committed artifact."""
    path = FIXTURES / case / "model"
    assert path.is_dir(), f"no fixture {case}"
    return path


@functools.cache
def form(case):
    """The canonical form of a fixture, made once."""
    return canonical(fixture(case))


def changed(case, tmp_path, edit):
    """The sections whose hash an edit of a fixture's protos changes."""
    before, after = form(case), canonical(edited(fixture(case), tmp_path / "edited", edit))
    sections = {name for name, value in after.sections.items() if value != before.sections[name]}
    assert (
        bool(sections)
        == (after.hash != before.hash)
        == bool(differences(before, after))
        == bool(differences(after, before))
    )
    assert {change.section for change in form_changes(before, after)} - {"ops"} == sections
    return sections


def differences(first, second):
    """The changes of two canonical forms that make them different, a line for each."""
    return [str(change) for change in form_changes(first, second) if change.counts]


def built(folder, build):
    """The canonical form of a model of one MetaGraph, which ``build`` fills."""
    message, graph = new_model()
    build(graph)
    write(message, folder)
    return canonical(folder)


def edited(source, target, edit):
    """A copy of the model ``source`` in ``target`` whose SavedModel message ``edit`` has been
    at.
    """
    shutil.copytree(source, target)
    message = layout.read(target).saved_model
    edit(message)
    write(message, target)
    return target


def names_of_old_releases(source, target, key="serving_default"):
    """A copy whose signature has its inputs as TensorFlow before 2.12 wrote them: under their own
    names, and sorted by these.
    """

    def edit(message):
        (graph,) = message.meta_graphs
        objects = graph.object_graph_def
        (holder,) = [
            child.node_id for child in objects.nodes[0].children if child.local_name == "signatures"
        ]
        (number,) = [
            child.node_id for child in objects.nodes[holder].children if child.local_name == key
        ]
        bare = objects.nodes[number].bare_concrete_function
        function = next(
            f
            for f in graph.graph_def.library.function
            if f.signature.name == bare.concrete_function_name
        )
        keywords = list(bare.argument_keywords)
        order = sorted(range(len(keywords)), key=keywords.__getitem__)
        select_arguments(function, [*order, *range(len(order), len(function.signature.input_arg))])
        for node in graph.graph_def.node:
            if node.attr["f"].func.name == function.signature.name:
                node.input[: len(order)] = [node.input[place] for place in order]
        bare.argument_keywords[:] = [keywords[place] for place in order]
        bare.ClearField("function_spec")
        trace = objects.concrete_functions[function.signature.name]
        named = trace.canonicalized_input_signature.tuple_value.values[1].dict_value.fields
        for keyword in keywords:
            value = schema.serialize(named.pop(python_name(keyword)))
            named[keyword].ParseFromString(value)

    return edited(source, target, edit)


def write(message, folder):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "saved_model.pbtxt").unlink(missing_ok=True)
    (folder / "saved_model.pb").write_bytes(schema.serialize(message))
    return folder


def new_model(tags=("serve",)):
    """An empty SavedModel and its MetaGraph."""
    message = schema.SavedModel(saved_model_schema_version=1)
    graph = message.meta_graphs.add()
    graph.meta_info_def.tags.extend(tags)
    return message, graph


def copy_checkpoint(model, change, shards=1):
    """Write the checkpoint of ``model`` again, value by value, ``change(key, array)`` giving the
    arrays.
    """
    prefix = layout.read(model).checkpoint_prefix
    with BundleReader(prefix) as reader:
        values = {
            key: (np.array(reader.read(key)), entry.dtype.name)
            for key, entry in reader.entries().items()
        }
    shutil.rmtree(prefix.parent)
    with BundleWriter(prefix, shards) as writer:
        for number, (key, (array, dtype)) in enumerate(values.items()):
            item = change(key, array)
            if item is not None:
                writer.add(
                    key, item, dtype if item.dtype == array.dtype else None, shard=number % shards
                )


def bodies(graph):
    """The main graph's nodes, then those of every function."""
    return [
        graph.graph_def.node,
        *[function.node_def for function in graph.graph_def.library.function],
    ]


def node(message, op, number=0):
    """The node of an op in the first MetaGraph, functions included."""
    return [item for nodes in bodies(message.meta_graphs[0]) for item in nodes if item.op == op][
        number
    ]


def is_repeated(field):
    return (
        field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED
    )


def is_map(field):
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def messages(root):
    """A message and all messages in it."""
    stack = [root]
    while stack:
        message = stack.pop()
        yield message
        for field, value in message.ListFields():
            if is_map(field):
                stack.extend(value[key] for key in value if hasattr(value[key], "ListFields"))
            elif field.message_type is not None:
                stack.extend(value if is_repeated(field) else [value])
