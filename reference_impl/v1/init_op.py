"""Run what a session runs after the restore: the init op, and what fills iterators.

RFC: V1-08, V1-10, DR-05
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Optional

import tensorflow as tf

from reference_impl.drop_in import graph_mode
from reference_impl.format.names import CREATE
from reference_impl.functions.registered_function import RegisteredFunction
from reference_impl.functions.unknown_ops import (
    UnknownOpError,
    nodes_needing_unknown_ops,
    why_not_found,
)
from reference_impl.kinds.resource import LoadedResource
from reference_impl.v1.initialization import Initialization
from reference_impl.v1.live_program import LiveProgram
from reference_impl.v1.reading.selection import fillers, part_of_init, resources_needing

_log = logging.getLogger(__name__)


def make_init_function(live: LiveProgram) -> Optional[RegisteredFunction]:
    """Return the init op as a function, or None without one.

    If only resources need ops that this TensorFlow lacks, those are left unfilled, with a warning.
    """
    init = (live.part or live.program).init_function
    if init is None:
        return None
    made = live.function(init, {}, {})
    unknown = nodes_needing_unknown_ops(
        live.library, live.library.get(made.saved_name).node_def, made.saved_name
    )
    for name in init.captures:
        if isinstance(resource := live.state[name], LoadedResource):
            error = why_not_found(live.library, resource.functions[CREATE].saved_name)
            if error is not None:
                unknown[name] = error
    if unknown and unknown.keys() <= fillers(live.program):
        return _known_part(live, unknown)
    return made


def _known_part(
    live: LiveProgram, unknown: Mapping[str, UnknownOpError]
) -> Optional[RegisteredFunction]:
    """Return the init op without the `unknown` nodes, which need ops that this TensorFlow lacks to
    make or fill resources.

    The users of these resources get the error.
    """
    unfilled = resources_needing(live.program, unknown)
    for name, node in unfilled.items():
        _leave_unfilled(live, name, unknown[node])
    known = [name for name in live.program.hoisted if live.wants(name) and name not in unfilled]
    rest = part_of_init(live.program, known)
    return None if rest is None else live.function(rest, {}, {})


def _leave_unfilled(live: LiveProgram, name: str, error: UnknownOpError) -> None:
    """Give the users of a resource the error, and warn of it."""
    made = live.state.get(name)
    if isinstance(made, LoadedResource):
        reason = f"it is not filled: {error.reason}"
        made.unfilled = UnknownOpError(reason, file=live.file, node=name)
        _log.warning("%s", made.unfilled)


def run_init(live: LiveProgram, init: Optional[RegisteredFunction], values: Initialization) -> None:
    """Run the init op, if there is one."""
    owners = [] if init is None else init.owners
    given = [owner for owner in owners if isinstance(owner, tf.Variable)]
    with live.assets.needed():
        values.by_init_op(lambda: None if init is None else init(), given)


def iterators(live: LiveProgram) -> dict[str, LoadedResource]:
    """Return the iterators that no init op fills."""
    return {name: live.state[name] for name in live.program.fillers if name in live.state}


def fill_iterators(live: LiveProgram) -> None:
    """Make the datasets of iterators.

    A session does so on first use, so a failure does not fail the load.
    """
    for name, iterator in iterators(live).items():
        try:
            with graph_mode.initializer_ops():
                iterator.initialize()
        except UnknownOpError as error:
            _leave_unfilled(live, name, error)
        except tf.errors.OpError as error:
            iterator.fails = f"the iterator {name} cannot be filled: {error.message}"
            _log.warning("%s: %s", live.file, iterator.fails)
