"""Save objects as a SavedModel directory.

The stages (`stages`, run by `save`). Each makes one value, which no later stage changes:

    walk        the objects to which the root leads, with their children
    signatures  the functions that are signatures
    tree        the objects with their numbers
    contents    the state of all objects, and all functions
    plan        the checked contents, and the asset files
    messages    the SavedModel message
    files       the directory of the export

The modules of each stage:

    walk        walk; children, general_traces, losses
    signatures  signatures; signature_function, signature_inputs, signature_outputs
    tree        tree, node; hooks (other participants of a save: `reference_impl.extension`)
    contents    contents; saveable_state, captures, checkpoint_layout, saver_functions; functions
                (below); hook_context (what hooks may read and add)
    plan        plan; assets; checks/ refuses saves that would lose something
    messages    meta_graph; graph (the main graph), output_inference
    files       files; checkpoint, values, debug_info

The functions of an export:

    traces               a concrete function, described for an export; traced_graphs, traced_shapes
    tree_functions       adds the functions of the tree; signature_wrapper, cached_reads, replicas
    export_library       the FunctionDefs, under names of the export; function_sources tells where
                         they come from, process_numbers and node_defaults the parts left out,
                         shared_names which names resources get
    exported_gradients   adds custom gradients; gradients, gradient_names, gradient_sites
    closed_library,      the same after all functions were added
    exported_functions
    options              `SaveOptions`

`reference_impl.kinds` has the writer of each kind of object. No tf.Graph is built and no Python
function runs again: the MetaGraph is assembled from messages of `reference_impl.format.schema`.
Traced and loaded functions are copied; the few new ones (wrappers, the saver's two functions) are
written node by node. So a save is deterministic, and its cost is proportional to the output.
"""
