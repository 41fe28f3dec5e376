"""Describe the objects of a model, apart from their answers: variables, functions, gradients.

Python 3.6 syntax.

The same functions describe an original object after it was saved and what a loader made of the
file, so that the two can be compared. Both are walked along the object graph of the file; only
public attributes are asked where a release has them.
"""

import collections
import contextlib
import inspect

import numpy as np

from savedmodel_common import tensors as tensor_file

from . import nests, protocol

KEY_STEP = "."
# Objects below these belong to TensorFlow: a trace of a loaded model that is saved again, the
# functions that make a table.
LEAVES = ("function", "bare_concrete_function", "resource")
SIGNATURES = (
    "signatures"  # the map that a save adds to the root; the check of the signatures asks for them
)


def describe(tf, root, directory, tags):
    """``{"variables": {path: facts}, "functions": {path: facts}, "naming": "path" | "name"}`` of a
    live object.

    A MetaGraph of TF 1.x has no object graph: its variables are named by the graph (``naming`` is
    ``name``).
    """
    found = walk(root, object_graph(directory, tags))
    return {
        "naming": "path" if found else "name",
        "variables": {
            place: dict(variable(tf, value), node=node)
            for place, node, value in variables(tf, root, directory, tags)
        },
        "functions": dict(_functions(tf, found)),
    }


def variables(tf, root, directory, tags):
    """``[(path, node id, variable)]``; of a MetaGraph of TF 1.x its name in place of the path, and
    no node id.
    """
    found = walk(root, object_graph(directory, tags))
    if not found:
        return [(one.name.split(":")[0], None, one) for one in getattr(root, "variables", ())]
    plain = [(path, number, plain_variable(tf, value)) for path, number, value in found]
    return [item for item in plain if item[2] is not None]


def plain_variable(tf, value):
    """A variable, that of a Keras 3 variable, or None for anything else."""
    if not isinstance(value, tf.Variable) and type(value).__module__.startswith("keras."):
        value = getattr(value, "value", None)
    return value if isinstance(value, tf.Variable) else None


def object_graph(directory, tags):
    """The SavedObjectGraph of the MetaGraph with these tags; None where there is none."""
    from tensorflow.python.saved_model import loader_impl

    for graph in loader_impl.parse_saved_model(directory).meta_graphs:
        if set(graph.meta_info_def.tags) == set(tags) and graph.object_graph_def.nodes:
            return graph.object_graph_def
    return None


def walk(root, graph):
    """``[(path, node id, live object)]`` of the nodes that the loaded object has as well, nearest
    first.
    """
    if graph is None:
        return []
    found, seen, queue = [], {0}, collections.deque([("", 0, root)])
    while queue:
        path, number, value = queue.popleft()
        found.append((path, number, value))
        if graph.nodes[number].WhichOneof("kind") in LEAVES:
            continue
        for child in graph.nodes[number].children:
            if (path, child.local_name) == ("", SIGNATURES):
                continue
            # A child that is missing is missing from the description: the harness says so.
            with contextlib.suppress(AttributeError, IndexError, KeyError):
                if child.node_id not in seen:
                    below = nests.child(value, child.local_name)
                    seen.add(child.node_id)
                    queue.append(
                        (path + KEY_STEP * bool(path) + child.local_name, child.node_id, below)
                    )
    return found


def variable(tf, value):
    """Describe a variable: name, dtype, shape, trainable, synchronization, aggregation."""
    dims = tf.TensorShape(value.shape)
    return {
        "name": value.name.split(":")[0],
        "dtype": value.dtype.base_dtype.name,
        "shape": None if dims.rank is None else dims.as_list(),
        "trainable": bool(value.trainable),
        "synchronization": _enum(getattr(value, "synchronization", None)),
        "aggregation": _enum(getattr(value, "aggregation", None)),
    }


def _enum(value):
    return getattr(value, "name", None)


def _functions(tf, found):
    for path, number, value in found:
        listed = traces(value)
        if listed is not None:
            texts = sorted(
                "{} -> {}".format(_inputs(tf, trace), spec_text(tf, trace.structured_outputs))
                for trace in listed
            )
            yield (
                path,
                {"node": number, "arguments": arguments(tf, value), "traces": sorted(set(texts))},
            )


def traces(value):
    """The concrete functions of a function, itself if it is one; None for anything else."""
    if hasattr(value, "structured_outputs"):
        return [value]
    if not callable(value):
        return None
    if hasattr(value, "concrete_functions"):
        return value.concrete_functions
    listed = getattr(
        value, "_list_all_concrete_functions_for_serialization", None
    )  # 2.0 to 2.21; nothing public lists them
    return listed() if listed else None


def _inputs(tf, trace):
    given = trace.structured_input_signature
    return "?" if given is None else "({})".format(", ".join(spec_text(tf, side) for side in given))


def arguments(tf, function):
    """The parameters as Python writes them, ``x, scale=2.0, *, negate=False``; None where a release
    does not say.
    """
    if hasattr(function, "structured_outputs"):
        return None
    if hasattr(function, "__signature__"):  # 2.13 and later
        parameters = list(inspect.signature(function).parameters.values())
    else:
        spec = getattr(function, "function_spec", None) or getattr(function, "_function_spec", None)
        if not hasattr(spec, "fullargspec"):
            return None
        parameters = list(_parameters(spec.fullargspec))
    out, keyword_only = [], False
    for one in parameters[1:] if parameters and parameters[0].name == "self" else parameters:
        keyword_only = keyword_only or one.kind == one.VAR_POSITIONAL
        if one.kind == one.KEYWORD_ONLY and not keyword_only:
            out.append("*")
            keyword_only = True
        stars = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
        default = "" if one.default is one.empty else "=" + spec_text(tf, one.default)
        out.append(stars + one.name + default)
    return ", ".join(out)


def _parameters(spec):
    """The parameters of a FullArgSpec."""
    kinds, empty = inspect.Parameter, inspect.Parameter.empty
    defaults = [empty] * (len(spec.args) - len(spec.defaults or ())) + list(spec.defaults or ())
    for name, default in zip(spec.args, defaults):
        yield kinds(name, kinds.POSITIONAL_OR_KEYWORD, default=default)
    if spec.varargs:
        yield kinds(spec.varargs, kinds.VAR_POSITIONAL)
    for name in spec.kwonlyargs or ():
        yield kinds(name, kinds.KEYWORD_ONLY, default=(spec.kwonlydefaults or {}).get(name, empty))
    if spec.varkw:
        yield kinds(spec.varkw, kinds.VAR_KEYWORD)


def spec_text(tf, value):
    """A structure of specs, tensors and Python values as text: ``(float32[?,2], {'a': 2.0})``.

    Names are left out.
    """
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return repr(value)
    if isinstance(value, tf.DType):
        return "tf." + value.name
    if isinstance(value, tf.TensorShape):
        return "shape" + _dims(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        fields = [
            "{}={}".format(name, spec_text(tf, getattr(value, name))) for name in value._fields
        ]
        return "{}({})".format(type(value).__name__, ", ".join(fields))
    if isinstance(value, tuple):
        return "({})".format(", ".join([spec_text(tf, item) for item in value]))
    if isinstance(value, list):
        return "[{}]".format(", ".join([spec_text(tf, item) for item in value]))
    if isinstance(value, collections.abc.Mapping):
        items = sorted((repr(key), spec_text(tf, value[key])) for key in value)
        return "{{{}}}".format(", ".join("{}: {}".format(*item) for item in items))
    return _tensor_text(tf, value)


def _tensor_text(tf, value):
    kinds = (
        (tf.SparseTensor, tf.SparseTensorSpec, "sparse "),
        (tf.RaggedTensor, tf.RaggedTensorSpec, "ragged "),
    )
    for tensor, spec, word in kinds:
        if isinstance(value, (tensor, spec)):
            shape = (
                getattr(value, "shape", None)
                if isinstance(value, tensor)
                else getattr(value, "_shape", None)
            )
            dtype = (
                value.dtype if isinstance(value, tensor) else value._dtype
            )  # no public attribute before 2.3
            return word + dtype.name + _dims(tf.TensorShape(shape))
    if hasattr(value, "dtype") and hasattr(value, "shape") and not isinstance(value, tf.Variable):
        return value.dtype.name + _dims(tf.TensorShape(value.shape))
    return type(value).__name__


def _dims(shape):
    sizes = (
        ["..."]
        if shape.rank is None
        else ["?" if size is None else str(size) for size in shape.as_list()]
    )
    return "[{}]".format(",".join(sizes))


def gradients(tf, model, path, args, kwargs, inputs, directory, tags):
    """``{name: Tensor}``: the gradients of a function with respect to its float arguments and the
    variables it trains.

    An argument is named by its place among the tensors of the call (``argument 0``), a variable by
    its path (``variable v``). Inputs that do not affect the result have no gradient and are left
    out. Integers and strings are not differentiated.
    """
    function = nests.resolve(model, path)
    positional, keyword = nests.decode_call(tf, args, kwargs, inputs)
    given = tf.nest.flatten([positional, keyword], expand_composites=True)
    sources = collections.OrderedDict(
        ("argument {}".format(i), x) for i, x in enumerate(given) if _differentiable(tf, x)
    )
    with tf.GradientTape() as tape:
        tape.watch(list(sources.values()))
        result = function(*positional, **keyword)
    # The tape watched what is trainable; a variable it does not know has no gradient.
    watched = {id(one) for one in tape.watched_variables()}
    for place, _, value in variables(tf, model, directory, tags):
        for one in (value, *_replicas(value)):
            if id(one) in watched:
                sources.setdefault("variable " + place, one)
    targets = [x for x in tf.nest.flatten(result, expand_composites=True) if _differentiable(tf, x)]
    if not targets or not sources:
        return protocol.named([])
    found = tape.gradient(targets, list(sources.values()))
    pairs = [
        (name, tf.convert_to_tensor(one)) for name, one in zip(sources, found) if one is not None
    ]
    return protocol.named([(name, nests.from_tf(tf, one)) for name, one in pairs])


def _replicas(variable):
    """The variables that a distributed one stands for."""
    values = getattr(variable, "values", ())
    return values if isinstance(values, tuple) else ()


def _differentiable(tf, value):
    return isinstance(value, tf.Tensor) and (value.dtype.is_floating or value.dtype.is_complex)


def change(tf, root, directory, tags):
    """Change every variable's value by one bit; return how many changed.

    Variables that cannot be assigned keep their values.
    """
    changed = 0
    for _, _, value in variables(tf, root, directory, tags):
        with contextlib.suppress(
            TypeError, ValueError, NotImplementedError, AttributeError, tf.errors.OpError
        ):
            value.assign(nests.to_tf(tf, altered(nests.from_tf(tf, value))))
            changed += 1
    return changed


def altered(tensor):
    """Another tensor of the same dtype and shape: one bit of each element differs, a string has a
    word more.
    """
    array = np.array(tensor.array)
    if tensor.dtype == "string":
        words = [b"changed " + word for word in array.ravel().tolist()]
        array = np.array(words + [None], object)[:-1].reshape(array.shape)
    elif tensor.dtype == "bool":
        array = np.logical_not(array)
    elif array.size:
        bits = array.reshape(-1).view(np.uint8)
        bits[:: array.itemsize] ^= (
            1  # the lowest bit of each: little-endian machines only, as TensorFlow itself
        )
    return tensor_file.Tensor(tensor.dtype, array)
