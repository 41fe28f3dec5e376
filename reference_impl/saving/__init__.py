"""Saving: objects become a SavedModel directory. `save` tells the story in stages:

    reach          the objects that can be reached from the root
    signatures     which functions are signatures, and their wrappers
    tree           the objects with their numbers
    collect        everything that the export consists of; the only stage in which objects join the tree
    freeze         names, checkpoint keys, and the checks of what was collected
    meta_graph     the MetaGraph
    directory      the SavedModel, the checkpoint and the files that go along

What `collect` asks:

    contents       the content of tables
    slots          the slot variables of optimizers
    captures       what the last arguments of functions stand for
    gradients      functions for custom gradients

What `freeze` asks: `size`, `dropped`, `hidden_state`, `python_calls` for losses; `checkpoint` for keys; `assets` for file names.

What `meta_graph` and `directory` ask:

    graph          the main graph: variables, tables, assets, calls
    saver          the functions that restore and save in a session
    checkpoint     the values
    shards         the data files of the checkpoint

Each kind of object writes itself, see `reference_impl.kinds`. No tf.Graph is built and no Python body is run again: the MetaGraph
is put together as messages of `reference_impl.format.schema`. Traced and loaded functions are copied; the few new ones (wrappers,
the saver's two functions) are written node by node. So a save is deterministic, and its cost grows with what is written.
"""
