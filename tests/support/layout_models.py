"""Directories of SavedModels for the tests of the format layer."""

from pathlib import Path

from reference_impl.format import schema
from reference_impl.format.container import layout
from reference_impl.format.container.writer import LayoutWriter


def model(*tag_sets, version=1, weight=b"\0" * 8):
    """A SavedModel with a MetaGraph for each set of tags, each with one constant."""
    message = schema.SavedModel(saved_model_schema_version=version)
    for tags in tag_sets or [("serve",)]:
        graph = message.meta_graphs.add()
        graph.meta_info_def.tags.extend(tags)
        node = graph.graph_def.node.add(name="c", op="Const")
        node.attr["value"].tensor.tensor_content = weight
    return message


def put(directory, name, content):
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def save(directory, message=None):
    put(directory, "saved_model.pb", schema.serialize(message or model()))
    return directory


def write(directory, message, *, assets=None, checkpoint=None, replace=False, text=False):
    """A whole SavedModel: ``assets`` by file name (content or path), ``checkpoint`` is the prefix
    of a bundle to copy.
    """
    with LayoutWriter(directory, replace=replace) as out:
        if checkpoint is not None:
            for path in Path(checkpoint).parent.glob(f"{Path(checkpoint).name}.*"):
                out.part(layout.CHECKPOINT + path.name[len(Path(checkpoint).name) :], path)
        for name, source in (assets or {}).items():
            out.asset(name, source)
        out.saved_model(message, text=text)
