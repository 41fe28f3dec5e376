"""Saving: objects become a SavedModel directory. Each stage takes what the stage before it returned:

    reach          the objects that can be reached from the root; functions that must be traced are traced
    signatures     which functions are signatures, and their wrappers
    tree           the objects with their numbers
    collect        everything that the export consists of; the only stage in which objects join the tree
    freeze         names, checkpoint keys, and the checks of what was collected
    meta_graph     the MetaGraph
    save           runs the stages; writes the SavedModel, the checkpoint and the files that go along

What `collect` asks:

    contents       the content of tables
    captures       what the last arguments of functions stand for
    gradients      functions for custom gradients

What `freeze` asks: `checks`, `dropped`, `hidden_state` for losses; `object_graph` for keys; `assets` for file names.

What `meta_graph` and `save` ask:

    graph          the main graph: variables, tables, assets, calls
    saver          the functions that restore and save in a session
    checkpoint     the values and their data files

Each kind of object writes itself, see `reference_impl.kinds`. No tf.Graph is built and no Python body is run again: the MetaGraph
is put together as messages of `reference_impl.format.schema`. Traced and loaded functions are copied; the few new ones (wrappers,
the saver's two functions) are written node by node. So a save is deterministic, and its cost grows with what is written.
"""
