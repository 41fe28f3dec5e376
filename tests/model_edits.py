"""SavedModels for tests: fixtures, models made by hand, and copies whose protos an edit has been at."""

from __future__ import annotations

import functools
import shutil
from pathlib import Path

import numpy as np

from reference_impl.format import layout, schema
from reference_impl.format.bundle import BundleReader
from reference_impl.format.bundle_writer import BundleWriter
from reference_impl.format.canonical import canonical

FIXTURES = Path(__file__).parents[1] / "fixtures_v1"


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
    assert bool(sections) == (after.hash != before.hash) == bool(before.diff(after)) == bool(after.diff(before))
    assert {difference.section for difference in before.diff(after)} == sections
    return sections


def built(folder, build):
    """The canonical form of a model of one MetaGraph, which ``build`` fills."""
    message, graph = new_model()
    build(graph)
    write(message, folder)
    return canonical(folder)


def edited(source, target, edit):
    """A copy of the model ``source`` in ``target`` whose SavedModel message ``edit`` has been at."""
    shutil.copytree(source, target)
    message = layout.read(target).saved_model
    edit(message)
    write(message, target)
    return target


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
    """Write the checkpoint of ``model`` again, value by value, ``change(key, array)`` giving the arrays."""
    prefix = layout.read(model).checkpoint_prefix
    with BundleReader(prefix) as reader:
        values = {key: (np.array(reader.read(key)), entry.dtype.name) for key, entry in reader.entries().items()}
    shutil.rmtree(prefix.parent)
    with BundleWriter(prefix, shards) as writer:
        for number, (key, (array, dtype)) in enumerate(values.items()):
            item = change(key, array)
            if item is not None:
                writer.add(key, item, dtype if item.dtype == array.dtype else None, shard=number % shards)


def bodies(graph):
    """The main graph's nodes, then those of every function."""
    return [graph.graph_def.node, *[function.node_def for function in graph.graph_def.library.function]]


def node(message, op, number=0):
    """The node of an op in the first MetaGraph, functions included."""
    return [item for nodes in bodies(message.meta_graphs[0]) for item in nodes if item.op == op][number]


def is_repeated(field):
    return field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED


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
