"""One module for each kind of SavedObject: its reader and its live class.

    variable, constant, asset  values
    resource                   tables and other resources, with their functions
    function                   `tf.function` objects; their traces are in `reference_impl.functions`
    user_object                everything else; an `optimizer` is a user object with slots
    signature_map              the immutable map under ``.signatures``
    root                       the attributes that every loaded root has
    containers                 loaded objects as parts of larger models
    hidden_children            children whose names Python or TensorFlow would call
    object_state               the state of objects that are not variables
    registered_savers          state that a saver registered by the program wrote

A reader is a function ``read(load, number, node)``; `load` is a
`reference_impl.functions.load_context.Load`.
"""
