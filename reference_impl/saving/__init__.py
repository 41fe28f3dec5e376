"""Objects to a SavedModel directory (FN-01..FN-17, SIG-*, FMT-01..FMT-14, API-04).

    tree         the trackable objects in the order of their numbers
    traces       what is to be known of a concrete function
    functions    FunctionDefs as they were traced or read, under names of this export
    captures     what the last arguments of functions stand for
    gradients    functions for custom gradients
    signatures   which functions are signatures, and their wrappers
    contents     the content of tables
    slots        the slot variables of optimizers
    graph        the main graph: variables, tables, assets, calls
    saver        the functions that restore and save in a session
    checkpoint   the values
    objects      objects as messages
    save         all of it, and the directory

No tf.Graph is built and no Python body is run again: the MetaGraph is put together as messages of `reference_impl.format.schema`.
What was traced is copied, what was loaded is copied, the little that is new (wrappers, the saver's two functions) is written node
by node. So a save is deterministic, and costs by the size of what is written.
"""
