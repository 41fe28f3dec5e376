"""One module for each kind of SavedObject: what is read, the live class, and what is written.

    variable, constant, asset, resource, user_object (with `containers`), function, concrete_function
    signature_map   the immutable map under ``.signatures``

The rest serves functions: `library` registers FunctionDefs with TensorFlow, `rebuild` makes a graph of one where only a graph
will do, `binding` and `patterns` find the trace that fits a call.
"""
