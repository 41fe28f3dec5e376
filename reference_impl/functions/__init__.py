"""A function and its names, from the file to a call and to an export.

The life of a function::

    file      FunctionDef "__inference_f_7"              FileName
                | `saved_functions` reads what the object graph says of it: arguments, captures
    process   RegisteredFunction                         "__inference_f_7__load1", a LiveName
                | the first call registers it (`registration`); TensorFlow's runtime runs it by name
                | `RegisteredFunction.rebuilt()`, the only way to a graph: under a tape, in another
                | function, or when a caller reads `.graph`, `.inputs`, `.function_def`, ...
              RebuiltFunction                            holds a concrete function of TensorFlow
                | a save describes the function as a Trace (reference_impl.saving.traces) and copies
                | the FunctionDef of the file (reference_impl.saving.export_library)
    export    FunctionDef "__inference_f_12"             ExportName

So a function has five forms: the FunctionDef with its SavedConcreteFunction; RegisteredFunction,
one trace; LoadedFunction (reference_impl.kinds.function), which chooses among traces;
RebuiltFunction; and the Trace of a save. A TF 1.x graph is cut into FunctionDefs first
(reference_impl.v1.extract); its functions then live like all others.

Names and FunctionDefs:

    names                FileName, LiveName, ExportName
    library              the FunctionDefs of a model by file name, and the live name of each
    registration         gives functions to TensorFlow's runtime
    runtime_copy         the copy that the runtime gets: with live names, and checked
    op_attributes        the attributes that TensorFlow declares for an op
    unknown_ops          functions whose ops no library registers
    graph_versions       the releases of TensorFlow that a graph is meant for
    devices              names of devices in the file

Functions that can be called:

    bound_function       a FunctionDef with its captures and calling convention
    registered_function  a bound function, called by name
    saved_functions      the registered functions of a load, from the messages of the file
    binding              the arguments of a call in their canonical form
    flat_arguments       the same for calls by position or by the names in the file
    patterns             which arguments a trace accepts; `specs` their TensorSpecs
    argument_keys        whether two traces take the same arguments
    captures             the tensors that a trace uses beside its arguments; `captured_tensor` is
                         one of another function

Functions with a graph:

    rebuilt_function     a bound function as a concrete function of TensorFlow
    rebuild              a FunctionDef as operations of the graph that is being traced
    argument_specs       the arguments of a FunctionDef as TensorSpecs
    function_settings    the settings with which `tf.function` traces it
    control_flow         handle data of branches and loops
    opaque_call          a call of a function that cannot be rebuilt
    gradients            custom gradients of operations; `model_gradients` makes their functions

The state of one load:

    load_context         the file, its library, its values, the options
    checkpoint           the values of variables, by the paths of objects; `tensors` copies them
    steps                what a watched load tells of functions and the checkpoint
"""
