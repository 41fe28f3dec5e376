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

The stages use:

    options                   `SaveOptions`
    traces, captures          the traces that are exported, and the tensors that they capture
    export_library            the FunctionDefs of the export, under names of the export
    process_numbers           numbers of this process in those names, which are left out
    gradients                 custom gradients; `gradient_sites` says what their names mean
    shapes                    the shapes of results that no trace knows
    contents, values          the state of each object, and tensors in messages
    checkpoint, saver         the tensor bundle, and the functions of the saver
    graph, assets             the main graph of the export, and its files
    replicas, cached_reads    variables of distribution strategies, and reads in functions
    debug_info                the stack traces of operations
    optimizer_writer,         messages of `reference_impl.extension`
    initial_value_writer,
    update_rule_tracing
    checks/                   refusals of saves that would lose something

`reference_impl.kinds` has the writer of each kind of object. No tf.Graph is built and no Python
function runs again: the MetaGraph is assembled from messages of `reference_impl.format.schema`.
Traced and loaded functions are copied; the few new ones (wrappers, the saver's two functions) are
written node by node. So a save is deterministic, and its cost is proportional to the output.
"""
