"""Load a SavedModel directory as live objects.

Graphs are built only on demand.

    loader          the story: checked object graph -> objects -> children -> captures -> filled and
                    initialised resources
    selection       the part that ``LoadOptions(only=...)`` asks for
    hooks           what else may take part in a load: `reference_impl.extension`
    registered_savers  state that a saver registered by the program wrote
    steps           what a watched load tells of objects, children and captures

`reference_impl.kinds` makes the object of each kind of node; `reference_impl.extension` reads our
additions to TensorFlow's format.

The shipped loader imports all functions into Python graphs at once. Most functions of a loaded
model are never called, and most calls need no Python graph. Registering a FunctionDef takes
microseconds, building graphs takes seconds, and one unknown op would make the whole model unusable.
Therefore functions are registered when they are first called, and rebuilt when a tape, an outer
trace or a reader of ``.graph`` needs a graph.

A function holds its captures and the library. A root holds its children. A library holds
FunctionDefs and the captures of custom gradients. Nothing holds a root: a function of a deleted
root still works and keeps only the objects that it needs alive. A resource's own functions refer to
the resource weakly. So the only reference cycles belong to the model itself, and deleting the
last user of a model frees it at once.

RFC: RES-01
"""
