"""One module for each kind of SavedObject: its reader, its live class, and its writer.

    variable, constant, asset, resource, captured_tensor
    function, concrete_function         `tf.function` objects, and their traces
                                        (``bare_concrete_function``)
    user_object, optimizer              everything else; an optimizer is a user object with slots
    signature_map                       the immutable map under ``.signatures``
    root                                the attributes that every loaded root has

A reader is a function ``read(load, number, node)``; `load` holds the state of a load.

    load, checkpoint, tensors           the input of readers: the file, the values, the objects made
                                        so far
    library, export_library, traces     FunctionDefs of a load and of an export, and the traces that
                                        are exported
    binding                             Python signatures
    patterns, flat_arguments            from the arguments of a call to the trace that fits, and its
                                        tensors
    specs                               TypeSpecs and literals in messages
    captures                            the tensors of captured objects
    rebuild, gradients, unknown_ops     a traced graph of a FunctionDef, for uses that need a graph
    containers                          loaded objects as parts of larger models
    steps                               what a watched load tells of functions and the checkpoint
    keras_identity, graph_mode          data kept for Keras 2, and for sessions of TF 1.x
"""
