"""Answers of a live session, of live Python objects and of a reloaded export, and their comparison.

Python 3.6 syntax.
"""

import collections

import numpy as np

from savedmodel_common import tensors

from . import nests, signature_wire


class Differs(AssertionError):
    """The export, loaded back, does not answer as the live session did."""


def as_array(tf, value, dtype):
    """A NumPy array of the given TensorFlow dtype; strings become an object array, so that no
    trailing zero byte is lost.
    """
    if dtype == "string":
        return np.array(value, dtype=object)
    if isinstance(value, np.ndarray) and value.dtype == tf.as_dtype(dtype).as_numpy_dtype:
        return value
    return np.asarray(value).astype(tf.as_dtype(dtype).as_numpy_dtype)


def feeds(tf, signature_def, inputs):
    """Flatten a request's inputs to ``{npz name: (graph name, array, dtype)}``.

    Raises KeyError for unknown or missing keys.
    """
    if set(inputs) != set(signature_def.inputs):
        raise KeyError(
            "inputs {} asked, signature has {}".format(sorted(inputs), sorted(signature_def.inputs))
        )
    out = collections.OrderedDict()
    for key in sorted(inputs):
        value = inputs[key]
        parts = signature_wire.entries(key, signature_def.inputs[key].SerializeToString())
        if signature_def.inputs[key].WhichOneof("encoding") == "coo_sparse":
            indices, values, dense_shape = value
            value = [
                values,
                np.asarray(indices, np.int64).reshape(-1, len(dense_shape)),
                dense_shape,
            ]
        elif len(parts) == 1:
            value = [value]
        for entry, part in zip(parts, value):
            out[entry.name] = (entry.tensor, as_array(tf, part, entry.dtype), entry.dtype)
    return out


def answer_session(tf, sess, signature_def, inputs):
    """Answer one request in a session. Returns ``{npz name: Tensor}``."""
    _, parts = signature_wire.signature(signature_def.SerializeToString())
    feed = {graph_name: array for graph_name, array, _ in feeds(tf, signature_def, inputs).values()}
    values = sess.run([entry.tensor for entry in parts], feed)
    return collections.OrderedDict(
        (entry.name, to_tensor(value, entry.dtype)) for entry, value in zip(parts, values)
    )


def answer_function(tf, function, signature_def, inputs):
    """Answer one request with the Python function that was exported; it returns {output key:
    value}.
    """
    arrays = {name: array for name, (_, array, _) in feeds(tf, signature_def, inputs).items()}
    if tf.executing_eagerly():
        arrays = {name: tf.constant(array) for name, array in arrays.items()}
    result = function(**arrays)
    values = {
        key: value.numpy() if hasattr(value, "numpy") else value for key, value in result.items()
    }
    dtypes = {key: tf.as_dtype(info.dtype).name for key, info in signature_def.outputs.items()}
    return collections.OrderedDict(
        (key, to_tensor(values[key], dtypes[key])) for key in sorted(values)
    )


def to_tensor(value, dtype):
    """Wrap what a session returned.

    Quantized arrays are structured in NumPy; their bytes are carried as integers.
    """
    array = np.array(value, dtype=object) if dtype == "string" else np.asarray(value)
    return tensors.from_numpy(array, dtype)


def answer_object(tf, root, request):
    """Answer a function request on a Python object.

    Returns (given tensors, io.json members, recorded tensors).
    """
    given = collections.OrderedDict()
    entry = nests.encode_call(tf, request.args, request.kwargs, given)
    entry["structure"], recorded = nests.call_function(
        tf, root, request.path, entry["args"], entry["kwargs"], given
    )
    return given, entry, recorded


def assert_same(request, live, loaded):
    """Raise :class:`Differs` unless both have the same names, dtypes, shapes and bits (NaN equals
    NaN of the same bits).
    """
    if list(live) != list(loaded):
        raise Differs(
            "{}: live gave {}, loaded gave {}".format(request.id, list(live), list(loaded))
        )
    for name in live:
        a, b = live[name], loaded[name]
        same = a.dtype == b.dtype and a.array.shape == b.array.shape
        same = same and (
            a.array.tolist() == b.array.tolist()
            if a.dtype == "string"
            else a.array.tobytes() == b.array.tobytes()
        )
        if not same:
            raise Differs(
                "{}: output {} differs\nlive:   {!r}\nloaded: {!r}".format(request.id, name, a, b)
            )


def assert_all_asked(module, rec, signature_defs):
    """Every signature has a request or stands in UNASKED."""
    asked = {(frozenset(request.tags), request.signature) for request in rec.requests}
    for tags, signatures in signature_defs.items():
        for key in sorted(
            set(signatures)
            - set(signature_wire.INTERNAL_KEYS)
            - set(getattr(module, "UNASKED", {}))
        ):
            if (tags, key) not in asked:
                raise AssertionError("{}: signature {!r} is never asked".format(sorted(tags), key))


def answer_live(tf, rec, signature_defs):
    """Answers of the live sessions or functions in order, ``{request id: {npz name: Tensor}}``."""
    out = {}
    for request in rec.requests:
        source = rec.live_sources.get(frozenset(request.tags))
        signature_def = signature_defs[frozenset(request.tags)][request.signature]
        if hasattr(source, "run"):
            out[request.id] = answer_session(tf, source, signature_def, request.inputs)
        else:
            out[request.id] = answer_function(
                tf, source[request.signature], signature_def, request.inputs
            )
    return out


def check_loaded(tf, rec, model, live):
    """Load each MetaGraph with the v1 loader; raises :class:`Differs` when an answer is not the
    live one.
    """
    for tags in sorted({request.tags for request in rec.requests}):
        with tf.Graph().as_default(), rec.session() as sess:
            failure, meta_graph = None, None
            try:
                meta_graph = tf.saved_model.loader.load(sess, list(tags), model)
            except Exception as error:  # judged below against what the generator announced
                failure = error
            for request in rec.requests:
                if request.tags == tags:
                    answer = ask_loaded(tf, sess, meta_graph, failure, request)
                    if request.loaded_error is None:
                        assert_same(request, live[request.id], answer)


def ask_loaded(tf, sess, meta_graph, failure, request):
    """Ask the reloaded export.

    None where exactly the announced error came; raises any other error.
    """
    try:
        if failure is not None:
            raise failure
        answer = answer_session(
            tf, sess, meta_graph.signature_def[request.signature], request.inputs
        )
    except Exception as error:
        if request.loaded_error is None or request.loaded_error not in str(error):
            raise
        return None
    if request.loaded_error is not None:
        raise Differs(
            "{}: the reloaded export answers, but {!r} was announced".format(
                request.id, request.loaded_error
            )
        )
    return answer


def answer_functions(tf, rec, model):
    """Answer the function requests on the live object and on the export loaded with load_v2; both
    must agree.

    Returns ``{request id: (given tensors, io.json members, recorded tensors)}``.
    """
    loaded = rec.v2().saved_model.load(model) if rec.function_requests else None
    out = {}
    for request in rec.function_requests:
        live, again = (
            answer_object(tf, rec.live_object, request),
            answer_object(tf, loaded, request),
        )
        if live[1] != again[1]:
            raise Differs("{}: live gave {}, loaded gave {}".format(request.id, live[1], again[1]))
        assert_same(request, live[2], again[2])
        out[request.id] = live
    return out
