"""One file for each kind of SavedObject: how it is read, filled and written.

    kind                    what a kind can do: the steps of a load and of a save; read this first
    registry                the list of kinds; adding a kind is one file and one line there

    variable, constant, asset  values
    resource                tables and other resources, with their functions
    function                `tf.function` objects; their traces are in `reference_impl.functions`
    bare_concrete_function  traces and signatures
    captured_tensor         tensors of another function, for custom gradients
    container               lists, dicts, tuples
    signature_map           the immutable map under ``.signatures``
    optimizer               user objects with slots
    user_object             everything else
    object_kind             kinds that a program adds

The message-only half, for readers without TensorFlow, is `reference_impl.graph.node_kinds`.
"""
