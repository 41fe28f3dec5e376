"""Make the state of a program: its assets, variables and resources.

RFC: V1-03, V1-12, V1-17
"""

from __future__ import annotations

import contextlib

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.format.names import CREATE
from reference_impl.functions import specs
from reference_impl.functions.devices import checked_device
from reference_impl.graph.edges import parse_input
from reference_impl.kinds.resource import LoadedResource
from reference_impl.v1 import tables
from reference_impl.v1.live_program import LiveProgram
from reference_impl.v1.reading.program import Variable


def make_assets(live: LiveProgram) -> list[api.Asset]:
    """Make the assets; return each once."""
    found = []
    for asset in live.assets.definitions:
        made = live.assets.make(asset)
        live.state[parse_input(asset.tensor).source] = made
        found.append(made)
    return list(dict.fromkeys(found))


def make_variables(live: LiveProgram) -> list[tf.Variable]:
    """Make the variables without values; return those of the loaded part, in the order of the
    graph.
    """
    made = []
    for variable in live.program.variables:
        if live.wants(variable.name):
            live.state[variable.name] = _make_variable(live, variable)
            made.append(live.state[variable.name])
    return made


def _make_variable(live: LiveProgram, variable: Variable) -> tf.Variable:
    shape, dtype = specs.shape_of(variable.shape), specs.tf_dtype(variable.dtype)
    node = live.program.graph.nodes[variable.name]
    device = node.device if live.options.keep_variable_devices else ""
    checked_device(device, live.file, variable.name)
    make = api.variable_of_handle if live.library.eager else api.UninitializedVariable
    with tf.device(device) if device else contextlib.nullcontext():
        made: tf.Variable = make(
            shape=shape, dtype=dtype, trainable=variable.trainable, name=variable.name
        )
    return made


def make_resources(live: LiveProgram) -> dict[str, LoadedResource]:
    """Make the tables, iterators and queues of the loaded part, each with the function that creates
    it; return them by the names of their nodes.
    """
    made = {name: _make_resource(live, name) for name in live.program.resources if live.wants(name)}
    live.state.update(made)
    return made


def attach_table_functions(live: LiveProgram, resources: dict[str, LoadedResource]) -> None:
    """Attach to each resource what fills it, and to mutable tables what saves and restores them."""
    for name, resource in resources.items():
        tables.attach(resource, name, live.program, live.function)


def _make_resource(live: LiveProgram, name: str) -> LoadedResource:
    op = live.program.graph.nodes[name].op
    resource = LoadedResource(device="CPU" if "HashTable" in op else "")
    create = live.program.create_function(name)
    resource.functions[CREATE] = live.function(create, {}, tf.TensorSpec([], tf.resource))
    return resource
