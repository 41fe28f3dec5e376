"""A function and its names, from the file to a call.

    library            the FunctionDefs of a model, under names of this process
    load_context       what one load shares: the file, its library, its values, the options
    checkpoint         the values of variables, by the paths of objects; `tensors` copies them
    concrete_function  one trace: registered at its first call, rebuilt in a graph
    binding            the arguments of a call, matched with the traces
    flat_arguments     the same for calls by position or by the names in the file
    patterns           which arguments a trace accepts; `specs` their TensorSpecs
    captures           the tensors that a trace uses beside its arguments; `captured_tensor` is one
    rebuild            a FunctionDef as operations of the graph that is being traced
    gradients          custom gradients, by the names of the file
    unknown_ops        functions whose ops no library registers
    devices            names of devices in the file
    steps              what a watched load tells of functions and the checkpoint
    graph_versions     the releases of TensorFlow that a graph is meant for

The life of a function::

    file     FunctionDef "__inference_f_7"        a name of the file
               | registered at the first call (library)
    process  "__inference_f_7__load1"             a name of this process (concrete_function)
               | rebuilt under a tape, or in another function (rebuild)
    graph    an ordinary concrete function of TensorFlow
               | written by a save (reference_impl.saving.export_library)
    export   FunctionDef "__inference_f_12"       a name of the export
"""
