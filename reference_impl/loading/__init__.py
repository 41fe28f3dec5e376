"""Loading: a SavedModel directory becomes live objects, without building a graph that nobody asked for.

    loader          nodes of the object graph -> objects -> attributes -> captures -> filled and initialised resources
    checkpoint      which key belongs to which object; variables are made with their values
    objects, variables, constants, assets, resources, signatures      one module per kind of node
    library         FunctionDefs under names of their own, handed to the runtime when first called
    concrete        one trace: called by name, or, when a tape, an outer trace or a reader of `.graph` needs it, rebuilt
    rebuild         FunctionDef -> traced graph, node by node, through public API
    polymorphic, binding, patterns      from a call's arguments to the trace that was made for them

Why not import all functions into Python graphs at once, as the shipped loader does: most of a model's functions are never
called by those who load it, and most calls need no Python graph. Registering FunctionDefs takes microseconds each; building
graphs takes seconds, and one op that is unknown here would spoil the whole model.

Who owns what: a function holds its captures and the library, a root its children, a library FunctionDefs and what custom
gradients capture. Nothing holds a root: a function of a temporary works because it has all it needs, and keeps nothing else
alive (RES-01). A resource's own functions refer to it weakly. So there is no cycle but those of the model itself, and deleting
the last user of a model frees it at once.
"""
