"""Load a TF 1.x MetaGraph: read its program, make its state, run its restore op and its init op
once, make its signatures.

Reference variables become real variables: they can be trained, and are saved again with their
values.

RFC: V1-01, V1-02, V1-03, V1-08, V1-09, V1-10, V1-12, V1-13, V1-17
"""

from __future__ import annotations

import logging
from typing import Optional

import tensorflow as tf

from reference_impl import safety
from reference_impl.errors import UnsupportedModelError
from reference_impl.format import schema
from reference_impl.format.container.layout import Layout
from reference_impl.format.names import INITIALIZE, SIGNATURES_CHILD
from reference_impl.functions import graph_versions
from reference_impl.functions.registered_function import RegisteredFunction
from reference_impl.functions.steps import tell_library
from reference_impl.graph.edges import parse_input
from reference_impl.kinds import user_object
from reference_impl.kinds.signature_map import tell_signatures
from reference_impl.load_options import LoadOptions
from reference_impl.loaded_model import add_function_aliases, provenance
from reference_impl.tracing import Watch
from reference_impl.v1 import init_op, state, steps
from reference_impl.v1.initialization import Initialization
from reference_impl.v1.live_program import LiveProgram
from reference_impl.v1.live_signatures import make_signatures
from reference_impl.v1.restore import Restore
from reference_impl.v1.root import Loaded, V1Root

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
        raise UnsupportedModelError(
            refused, file=str(directory.file), node="graph_def.versions", rule="SM-HIST-2"
        )
    live = LiveProgram(directory, meta_graph, options)
    live.library.watch = watch
    if watch is not None:
        steps.tell_program(watch, live.program)
        tell_library(watch, live.library)
    live.choose_part()
    root: V1Root = type("V1Root", user_object.bases(V1Root, options), {})()
    _load_state(live, root, watch)
    _add_signatures(live, root, watch)
    root.__dict__.update(provenance(directory, meta_graph))
    return root


def _load_state(live: LiveProgram, root: V1Root, watch: Optional[Watch]) -> None:
    """Make the state and give it its values."""
    root.asset_paths = state.make_assets(live)
    variables = state.make_variables(live)
    values = Initialization(variables)
    resources = state.make_resources(live)
    if watch is not None:
        steps.tell_state(watch, live.program, live.state)
    state.attach_table_functions(live, resources)
    for statement in live.program.false_statements:
        _log.warning("%s: %s (V1-01)", live.file, statement)
    restore, init = Restore(live), init_op.make_init_function(live)
    _check_machine_ops(live, restore.function, init)
    _restore(live, restore, values, watch)
    init_op.run_init(live, init, values)
    init_op.fill_iterators(live)
    valueless = [item.name for item in variables if not _has_value(live, item, values)]
    if watch is not None:
        steps.tell_initialised(watch, live.file, init is not None, live.state, valueless)
    root.variables = [item for item in variables if _has_value(live, item, values)]
    values.finish()
    root.resources = list(resources.values())
    root.__dict__["_loaded"] = Loaded(live, restore, init)
    root.__dict__["uninitialized_variables"] = tuple(valueless)


def _restore(
    live: LiveProgram, restore: Restore, values: Initialization, watch: Optional[Watch]
) -> None:
    """Restore the checkpoint of the model."""
    if watch is not None:
        steps.tell_checkpoint(watch, live.directory, live.options.skip_checkpoint)
    if not restore.load(values):
        return
    if watch is not None:
        variables = {
            name: made for name, made in live.state.items() if isinstance(made, tf.Variable)
        }
        steps.tell_restored(
            watch, live.directory, variables, restore.variables, restore.read_keys, restore.absent
        )
    if not live.library.eager:
        restore.note_tables()


def _has_value(live: LiveProgram, variable: tf.Variable, values: Initialization) -> bool:
    """Return whether the checkpoint or the init op gives a variable a value.

    In graph mode nothing has run yet.
    """
    if not live.library.eager:
        return any(variable is other for other in values.initialized)
    return bool(variable.is_initialized())


def _add_signatures(live: LiveProgram, root: V1Root, watch: Optional[Watch]) -> None:
    root.__dict__[SIGNATURES_CHILD] = make_signatures(live)
    if watch is not None:
        tell_signatures(watch, live.file, root.__dict__[SIGNATURES_CHILD], "V1-01")
    if live.options.load_function_aliases:
        _refuse_aliases(live)
        add_function_aliases(root, {}, lambda _: None, [])


def _refuse_aliases(live: LiveProgram) -> None:
    """Raise UnsupportedModelError if the file has aliases, since only an object graph says which
    functions they mean.
    """
    aliases = sorted(set(live.meta_graph.meta_info_def.function_aliases.values()))
    if aliases:
        reason = (
            f"load_function_aliases: {', '.join(aliases)} cannot be told apart from other functions"
            " without an object graph"
        )
        raise UnsupportedModelError(
            f"{reason}. Load without the option",
            file=live.file,
            node="function_aliases",
            clause="V1-13",
        )


def _check_machine_ops(
    live: LiveProgram,
    restore: Optional[RegisteredFunction],
    init: Optional[RegisteredFunction],
) -> None:
    """Check the ops that loading runs: in the restore function, the init function, and the
    functions that fill iterators.
    """
    running = {"restore op": restore, "init op": init}
    for name, iterator in init_op.iterators(live).items():
        running[f"iterator {name}"] = iterator.functions[INITIALIZE]
    safety.may_run(
        live.options.machine_ops,
        live.directory,
        live.meta_graph,
        live.library.index,
        functions=[
            _running(live, what, made) for what, made in running.items() if made is not None
        ],
    )


def _running(live: LiveProgram, what: str, made: RegisteredFunction) -> safety.Running:
    """Describe a function that the load runs: which of its arguments are paths of assets."""
    assets = {
        id(live.state[parse_input(asset.tensor).source]): asset.filename
        for asset in live.assets.definitions
    }
    arguments = len(live.library.get(made.saved_name).signature.input_arg)
    return safety.Running(
        what,
        made.saved_name,
        given=arguments - len(made.owners),
        captured=[assets.get(id(owner)) for owner in made.owners],
        restores=what == "restore op",
    )
