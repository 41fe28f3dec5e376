"""Assets: inside of the directory and there; nothing else of the author's disk is needed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from reference_impl import errors
from reference_impl.format import limits
from reference_impl.format.container import layout
from reference_impl.graph.edges import parse_input
from reference_impl.graph.node_defs import strings_of_constant
from savedmodel_tools.verify.findings import (
    Fault,
    Severity,
    few,
    graph_rule,
    model_rule,
)

if TYPE_CHECKING:
    from savedmodel_tools.verify.model import Graph, Model

_PATH = re.compile(
    rb"(?:/[^/\0\n]+){2,}/?|[A-Za-z]:[\\/][^\0\n]+|\\\\[^\\\0\n]+\\[^\0\n]+|(?:file|gs|s3|hdfs|viewfs|abfss?|cns)://?[^\0\n]+"
)
_MANY = 4  # strings: with more a constant is data, such as a vocabulary, not paths
# What is written in place of a path where there is none.
_NO_FILES = (b"/dev/null",)


@graph_rule(
    "SMC411",
    "asset-missing",
    Severity.ERROR,
    summary="A file that the graph reads is not in assets/.",
    why=(
        "Initialising fails: the vocabulary or table is not found. tf.saved_model.save leaves out a"
        " missing file in silence."
    ),
    fix="Copy the file into assets/ from the source, or export again where it exists.",
)
def asset_missing(model: Model, graph: Graph) -> Iterator[Fault]:
    for definition in model.layout.asset_definitions(graph.proto):
        name = f"{layout.ASSETS}/{definition.filename}"
        try:
            model.layout.asset_path(definition.filename)
            there = model.layout.root.exists(name)
        except errors.PathEscapeError:
            continue  # SMC412
        except errors.FileAccessError as error:
            if not errors.about_the_model(error):
                raise
            there, reason = False, f"is {error.reason}"
        else:
            reason = (
                "is a directory, not a regular file"
                if (model.layout.directory / name).is_dir()
                else "does not exist"
            )
        if not there:
            yield Fault(
                f"{name} {reason}",
                file=name,
                node=parse_input(definition.tensor_info.name).source or None,
            )


@graph_rule(
    "SMC412",
    "asset-outside",
    Severity.ERROR,
    summary="The name of an asset, or a link, leads out of the model's directory.",
    why=(
        "Loading opens whatever file is there on the machine that loads, and a re-save copies it"
        " into the new export."
    ),
    fix=(
        "Put the file into assets/ under a plain name; in a model from somebody else, do not"
        " load it."
    ),
)
def asset_outside(model: Model, graph: Graph) -> Iterator[Fault]:
    for definition in model.layout.asset_definitions(graph.proto):
        try:
            model.layout.asset_path(definition.filename)
        except errors.PathEscapeError as error:
            yield Fault(error.reason, node=parse_input(definition.tensor_info.name).source or None)


@graph_rule(
    "SMC413",
    "absolute-path",
    Severity.WARNING,
    summary="A constant holds an absolute path.",
    why=(
        "A file of the author's machine: the model works there and nowhere else, or reads what"
        " happens to be there."
    ),
    fix=(
        "Make the file an asset (tf.saved_model.Asset, or the assets collection in TF 1.x) and"
        " export again."
    ),
)
def absolute_path(model: Model, graph: Graph) -> Iterator[Fault]:
    fed = {
        parse_input(item.tensor_info.name).source
        for item in model.layout.asset_definitions(graph.proto)
    }
    for function, node in graph.of_op(("Const",)):
        texts = (
            [] if function is None and node.name in fed else strings_of_constant(node, _MANY + 1)
        )
        if len(texts) > _MANY:
            continue
        paths = [
            text
            for text in texts
            if len(text) <= limits.FILE_NAME_BYTES
            and _PATH.fullmatch(text)
            and text not in _NO_FILES
        ]
        if paths:
            told = ", ".join(few([path.decode("utf-8", "backslashreplace") for path in paths]))
            used = (
                node.name in graph.used.nodes
                if function is None
                else function in graph.used.functions
            )
            told += "" if used else "; nothing runs it"
            yield Fault(
                f"holds the path {told}",
                node.name,
                function,
                severity=None if used else Severity.INFO,
            )


@model_rule(
    "SMC414",
    "asset-unused",
    Severity.INFO,
    summary="A file in assets/ that no MetaGraph names.",
    why="It is copied with the model and never read; the exporter may have meant it to be.",
    fix="Delete it, or put what only people and programs of your own read into assets.extra/.",
)
def asset_unused(model: Model) -> Iterator[Fault]:
    used = set()
    for graph in model.graphs:
        used |= {item.filename for item in model.layout.asset_definitions(graph.proto)}
    unused = [name for name in model.layout.root.names(layout.ASSETS) if name not in used]
    if unused:
        yield Fault(
            f"no MetaGraph names {', '.join(few(unused))}", file=f"{layout.ASSETS}/{unused[0]}"
        )
