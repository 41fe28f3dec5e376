"""Steps that a watched load tells of a TF 1.x MetaGraph: its state, its values, its init op.

RFC: V1-03, V1-08, V1-10, V1-12
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import tensorflow as tf

from reference_impl.format.container.layout import VARIABLES, Layout
from reference_impl.functions.steps import type_text
from reference_impl.kinds.resource import LoadedResource
from reference_impl.tracing import Watch
from reference_impl.v1.reading.program import Program

_ONLY = "not loaded: LoadOptions(only=...) leaves it out"


def tell_program(watch: Watch, program: Program) -> None:
    """Tell which state and signatures were found in the graph."""
    found = {
        "variables": program.variables,
        "resources": program.resources,
        "assets": program.assets,
        "signatures": program.signatures,
    }
    counts = ", ".join(f"{name}: {len(items)}" for name, items in found.items())
    said = f"made into functions; {counts}"
    watch.tell("graph", program.file, "graph_def", said, "V1-10")
    for statement in program.false_statements:
        watch.tell("graph", program.file, "signature_def", statement, "V1-01")


def tell_state(watch: Watch, program: Program, state: Mapping[str, Any]) -> None:
    """Tell which object was made for each asset, variable and resource, by the name of its node."""
    for edge, filename in program.assets.items():
        said = f"asset {filename}, made as Asset"
        watch.tell("object", program.file, edge.source, said, "V1-12")
    for variable in program.variables:
        made = state.get(variable.name)
        said = "variable"
        if made is None:
            said += f", {_ONLY}"
        else:
            said += f" {type_text(made.dtype, made.shape)}, made as {type(made).__name__}"
        watch.tell("object", program.file, variable.name, said, "V1-03")
    for name in program.resources:
        op = program.graph.nodes[name].op
        said = f"resource {op}, " + (_ONLY if name not in state else "made as LoadedResource")
        watch.tell("object", program.file, name, said, "RP-04")


def tell_checkpoint(watch: Watch, directory: Layout, skipped: bool) -> None:
    """Tell whether the checkpoint is there and is read."""
    if skipped:
        said = "not read: skip_checkpoint"
    elif directory.root.names(VARIABLES):
        said = "found"
    else:
        said = "not there: the model has no variables/"
    watch.tell("checkpoint", f"{directory.checkpoint_prefix}.index", "", said, "V1-08")


def tell_restored(
    watch: Watch,
    directory: Layout,
    variables: Mapping[str, Any],
    restored: Collection[tf.Variable],
    keys: Mapping[int, str],
    absent: Collection[str],
) -> None:
    """Tell which variables got a value of the checkpoint, and which keys it lacks.

    `keys` has the keys of the variables that were read without the restore op, by id.
    """
    index = f"{directory.checkpoint_prefix}.index"
    given = {id(variable) for variable in restored}
    for name, variable in variables.items():
        if id(variable) in given:
            kind = type_text(variable.dtype, variable.shape)
            key = keys.get(id(variable))
            said = f"variable from {key}  {kind}" if key else f"variable {kind}, by the restore op"
            watch.tell("value", index, name, said, "V1-08")
    for key in sorted(absent):
        watch.tell("value", index, key, "not there with its dtype: no value", "V1-08")


def tell_initialised(
    watch: Watch,
    file: str,
    has_init: bool,
    state: Mapping[str, Any],
    valueless: Collection[str],
) -> None:
    """Tell whether the init op ran, and which state it left without a value or content."""
    how = "ran" if tf.executing_eagerly() else "waits for the session"
    said = how if has_init else "none: there is nothing to run"
    watch.tell("initializer", file, "init op", said, "V1-08")
    for name, made in state.items():
        if isinstance(made, LoadedResource) and made.unfilled is not None:
            watch.tell("initializer", file, name, made.unfilled.reason, made.unfilled.clause)
        elif isinstance(made, LoadedResource) and made.fails:
            watch.tell("initializer", file, name, made.fails, "V1-08")
    for name in valueless:
        said = "left without a value: neither the checkpoint nor the init op gives one"
        watch.tell("initializer", file, name, said, "V1-08")
