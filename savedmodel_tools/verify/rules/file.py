"""The saved_model file itself: which one, how large, whether tags choose one MetaGraph, and what
was saved together with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from reference_impl.format.container import files, layout
from reference_impl.format.container.farmhash import fingerprint64
from reference_impl.format.container.fingerprint import object_graph_hash, program_hash
from reference_impl.graph.unique_names import repeated
from savedmodel_tools.verify.findings import (
    Fault,
    Severity,
    few,
    graph_rule,
    model_rule,
)

if TYPE_CHECKING:
    from savedmodel_tools.verify.model import Graph, Model

MESSAGE_BYTES = 2**31 - 1  # what protobuf can hold in one message
NEAR = 2**30  # half of it
FIRST = 3  # of the largest constants, named
MAX_HASHED = 2**24  # bytes: FarmHash in Python takes seconds for more


@model_rule(
    "SMC103",
    "several-files",
    Severity.WARNING,
    summary="More than one of saved_model.pb, .pbtxt and .cpb.",
    why=(
        "TensorFlow takes the .pb, other tools another one: the user and the reviewer of the model"
        " may see different ones."
    ),
    fix="Delete those that are not meant, or export into a fresh directory.",
)
def several_files(model: Model) -> Iterator[Fault]:
    if model.layout.alternatives:
        others = " and ".join(model.layout.alternatives)
        yield Fault(
            f"{model.layout.file.name} was looked at; beside it lies {others}",
            file=model.layout.alternatives[0],
        )


@model_rule(
    "SMC104",
    "same-tags",
    Severity.ERROR,
    summary="Several MetaGraphs have the same tags.",
    why=(
        "A loader gets tags, which must name one MetaGraph; some loaders take the first, some"
        " refuse."
    ),
    fix="Give each MetaGraph tags of its own.",
)
def same_tags(model: Model) -> Iterator[Fault]:
    for tags in repeated(graph.tags for graph in model.graphs):
        yield Fault(
            f"several MetaGraphs have the tags {tags or '(none)'}", file=model.layout.file.name
        )


@model_rule(
    "SMC105",
    "near-size-limit",
    Severity.WARNING,
    summary="The MetaGraphs take more than half of the 2 GB that one protobuf message may have.",
    why=(
        "Nothing can write or read a larger message: the next export, or a tool that adds"
        " something, fails."
    ),
    fix="Make large constants variables or assets; leave out training functions.",
)
def near_size_limit(model: Model) -> Iterator[Fault]:
    file = model.layout.file
    if file.suffix == ".pb" and file.stat().st_size < NEAR // 4:
        return  # no message is four times as large as its file, and measuring takes a while
    size = model.layout.saved_model.ByteSize()
    if size >= NEAR:
        severity = Severity.ERROR if size > MESSAGE_BYTES else None
        share = (
            f"{size:,} bytes of MetaGraphs, {size * 100 // MESSAGE_BYTES} % of the largest message"
        )
        yield Fault(f"{share}{_largest(model)}", file=model.layout.file.name, severity=severity)


def _largest(model: Model) -> str:
    sizes: list[tuple[int, str, str | None]] = []
    for graph in model.graphs:
        sizes += [
            (node.attr["value"].ByteSize(), node.name, function)
            for function, node in graph.of_op(("Const",))
            if "value" in node.attr
        ]
    top = sorted(sizes, key=lambda item: -item[0])[:FIRST]
    told = [
        f"{size:,} in {name!r}" + (f" of {function}" if function else "")
        for size, name, function in top
    ]
    return f"; largest constants: {', '.join(told)}" if told else ""


@model_rule(
    "SMC108",
    "special-file",
    Severity.ERROR,
    summary=(
        "There is a named pipe, a socket, a device or a circle of symbolic links, or a directory in"
        " place of a file."
    ),
    why=(
        "Its readers wait for ever, read without end, or fail: TensorFlow blocks on an asset that"
        " is a pipe. reference_impl and this program open regular files only."
    ),
    fix="Delete it; if it stands for an asset or a shard, copy that file again from the source.",
)
def special_file(model: Model) -> Iterator[Fault]:
    for name, what in model.layout.special_files().items():
        yield Fault(f"{name} is {what}", file=name)


@graph_rule(
    "SMC106",
    "no-serve-tag",
    Severity.INFO,
    summary="The tags do not name the MetaGraph for servers: none of them is `serve`.",
    why="Model servers and most tools ask for the tag `serve` by default.",
    fix="`savedmodel-compat edit tags` gives other tags; or tell the consumer which to ask for.",
)
def no_serve_tag(model: Model, graph: Graph) -> Iterator[Fault]:
    tags = set(graph.proto.meta_info_def.tags)
    served = any("serve" in other.proto.meta_info_def.tags for other in model.graphs)
    if not served and graph is model.graphs[0]:
        yield Fault(
            f"the tags are {', '.join(few(sorted(tags))) or 'none'}; no MetaGraph has `serve`"
        )


@model_rule(
    "SMC107",
    "fingerprint-disagrees",
    Severity.WARNING,
    summary="fingerprint.pb does not belong to the graph or the checkpoint beside it.",
    why=(
        "Parts of two exports lie together (a copy or overwrite that broke off), or somebody edited"
        " one. New weights in an old graph answer without an error. Programs that identify models"
        " by the fingerprint take it for another."
    ),
    fix=(
        "Copy or export the model again as a whole. After an edit on purpose: delete"
        " fingerprint.pb, no loader needs it."
    ),
)
def fingerprint_disagrees(model: Model) -> Iterator[Fault]:
    """The three hashes that every TensorFlow since 2.11 computes the same way; the others have
    changed between releases.
    """
    stored = model.layout.fingerprint
    if stored is None:
        return
    graph = model.layout.saved_model.meta_graphs[0]
    wrong, unknown = list[str](), list[str]()
    if stored.saved_object_graph_hash and stored.saved_object_graph_hash != object_graph_hash(
        graph.object_graph_def
    ):
        wrong.append("the functions of the object graph")
    if stored.graph_def_program_hash:
        if sum(node.ByteSize() for node in graph.graph_def.node) > MAX_HASHED:
            unknown.append("the main graph")
        elif program_hash(graph.graph_def) != stored.graph_def_program_hash:
            wrong.append("the main graph")
    index = f"{layout.CHECKPOINT}.index"
    if stored.checkpoint_hash and model.layout.has_checkpoint:
        if model.layout.root.size(index) > MAX_HASHED:
            unknown.append("the checkpoint's index")
        elif (
            fingerprint64(files.read(model.layout.root.path(index), "SAVED_MODEL_BYTES"))
            != stored.checkpoint_hash
        ):
            wrong.append("the checkpoint's index")
    if wrong:
        yield Fault(f"its hashes are not those of {' and '.join(wrong)}", file=layout.FINGERPRINT)
    if unknown:
        what = f"{' and '.join(unknown)} (more than {MAX_HASHED >> 20} MiB)"
        fix = "Nothing, if you trust that graph and checkpoint are of one export."
        yield Fault(f"it was not compared with {what}", file=layout.FINGERPRINT, fix=fix)
