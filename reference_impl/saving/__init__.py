"""Save objects as a SavedModel directory.

Each stage takes the result of the previous stage:

    reach          the objects that can be reached from the root; functions that must be traced are
                   traced
    signatures     the functions that are signatures, and their wrappers
    tree           the objects with their numbers
    collect        the complete contents of the export; the only stage in which objects join the
                   tree
    freeze         names, checkpoint keys, and the checks of the collected contents
    meta_graph     the MetaGraph
    save           runs the stages; writes the SavedModel, the checkpoint and the asset files

`reference_impl.kinds` has the writer of each kind of object. No tf.Graph is built and no Python
function runs again: the MetaGraph is assembled from messages of `reference_impl.format.schema`.
Traced and loaded functions are copied; the few new ones (wrappers, the saver's two functions) are
written node by node. So a save is deterministic, and its cost is proportional to the output.
"""
