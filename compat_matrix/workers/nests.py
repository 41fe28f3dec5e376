"""Nests: arguments and results of functions as JSON plus named tensors
(docs/exporters/artifacts.md, section 3).

Python 3.6 syntax, standard library and NumPy; TensorFlow is handed in as ``tf``, since every worker
has its own. Producers and consumers both go through this file, so that what was recorded is what is
asked again.
"""

import collections
import collections.abc
import math

import numpy as np

from savedmodel_common import tensors as tensor_file

MAX_DEPTH = 100  # nests come from files; deeper ones are hostile


def from_tf(tf, value):
    """A dense TensorFlow tensor, variable or NumPy value as a :class:`tensors.Tensor`.

    Raises TypeError for what has no dense value (resource, variant, composite tensors).
    """
    if isinstance(value, (np.ndarray, np.generic)):
        return tensor_file.from_numpy(value)
    return tensor_file.from_numpy(value.numpy(), tf.as_dtype(value.dtype).name)


def to_tf(tf, tensor):
    """A :class:`tensors.Tensor` as a TensorFlow constant of the same dtype and shape."""
    dtype = tf.as_dtype(tensor.dtype)
    if tensor.dtype == "string":
        return tf.constant(tensor.array.tolist(), dtype, shape=tensor.array.shape)
    if tensor.dtype.startswith(("qint", "quint")):
        return tf.bitcast(tf.constant(tensor.array), dtype)
    # Order matters for 0-d arrays: a view needs a real ndarray, not a NumPy scalar.
    return tf.constant(np.asarray(tensor.array).view(dtype.as_numpy_dtype), dtype)


def encode(tf, value, out, prefix):
    """Turn a live value into a nest; its tensors are added to ``out`` as ``<prefix>0``,
    ``<prefix>1``, ...

    A case may also write what Python cannot say without TensorFlow as a marker with arrays in place
    of names: ``{"$dtype": "float32"}``, ``{"$ragged": [flat_values, row_splits]}``, ``{"$cast":
    ["bfloat16", array]}``, ... Raises TypeError, naming the type, for values the format cannot
    carry.
    """
    if isinstance(value, (np.ndarray, np.generic)):  # first: np.float64 is a float as well
        return {"$tensor": _add(from_tf(tf, value), out, prefix)}
    if value is None or isinstance(value, (bool, str, int)):
        return value
    if isinstance(value, float):
        return (
            value
            if math.isfinite(value)
            else {"$float": "nan" if math.isnan(value) else str(value)}
        )
    if isinstance(value, dict) and len(value) == 1 and str(next(iter(value))).startswith("$"):
        return _marker(tf, value, out, prefix)
    if isinstance(value, (tf.Tensor, tf.Variable)):
        return {"$tensor": _add(from_tf(tf, value), out, prefix)}
    if isinstance(value, tf.SparseTensor):
        return {
            "$sparse": _add_all(tf, [value.indices, value.values, value.dense_shape], out, prefix)
        }
    if isinstance(value, tf.RaggedTensor):
        return {
            "$ragged": _add_all(
                tf, [value.flat_values] + list(value.nested_row_splits), out, prefix
            )
        }
    if isinstance(value, tf.DType):
        return {"$dtype": value.name}
    if isinstance(value, tf.TensorShape):
        return {
            "$shape": None
            if value.rank is None
            else [None if d is None else int(d) for d in value.as_list()]
        }
    return _encode_container(tf, value, out, prefix)


def _encode_container(tf, value, out, prefix):
    if isinstance(value, tuple):
        fields = getattr(value, "_fields", None)
        if fields is not None:
            pairs = [[name, encode(tf, getattr(value, name), out, prefix)] for name in fields]
            return {"$namedtuple": [type(value).__name__, pairs]}
        return {"$tuple": [encode(tf, item, out, prefix) for item in value]}
    if isinstance(value, list):
        return [encode(tf, item, out, prefix) for item in value]
    if isinstance(value, collections.abc.Mapping):
        # Sorted: the wire format keeps no order, so none may be observed.
        return {
            "$dict": [
                [key, encode(tf, value[key], out, prefix)]
                for key in sorted(value, key=lambda k: (str(type(k)), k))
            ]
        }
    raise TypeError("a nest cannot carry a {}".format(type(value).__name__))


def _marker(tf, value, out, prefix):
    ((kind, content),) = value.items()
    if kind == "$cast":
        return {"$tensor": _add(_cast(tf, *content), out, prefix)}
    if kind in ("$sparse", "$ragged"):
        return {kind: _add_all(tf, content, out, prefix)}
    if kind == "$namedtuple":
        name, pairs = content
        return {kind: [name, [[key, encode(tf, item, out, prefix)] for key, item in pairs]]}
    if kind in ("$dtype", "$shape", "$float"):
        return value
    raise TypeError("a case cannot write the marker {!r}".format(kind))


def _cast(tf, dtype, array):
    if dtype.startswith(("qint", "quint")):  # no kernel casts to these
        return tensor_file.from_numpy(np.asarray(array).astype(tensor_file.CARRIERS[dtype]), dtype)
    return from_tf(tf, tf.cast(array, tf.as_dtype(dtype)))


def _add(tensor, out, prefix):
    name = "{}{}".format(prefix, len(out))
    out[name] = tensor
    return name


def _add_all(tf, values, out, prefix):
    return [_add(from_tf(tf, value), out, prefix) for value in values]


def decode(tf, nest, tensors, depth=0):
    """The live value a nest stands for; ``tensors`` maps names to :class:`tensors.Tensor`.

    Raises ValueError for an unknown marker, a name that is not in ``tensors``, or a nest deeper
    than ``MAX_DEPTH``.
    """
    if depth > MAX_DEPTH:
        raise ValueError("a nest deeper than {}".format(MAX_DEPTH))
    if isinstance(nest, list):
        return [decode(tf, item, tensors, depth + 1) for item in nest]
    if not isinstance(nest, dict):
        return nest
    if len(nest) != 1 or next(iter(nest)) not in _DECODERS:
        raise ValueError("not a nest: an object with the keys {}".format(sorted(nest)))
    ((kind, content),) = nest.items()
    return _DECODERS[kind](tf, content, tensors, depth + 1)


def _tensor(tf, name, tensors):
    if name not in tensors:
        raise ValueError("a nest names the tensor {!r}, which is not in its file".format(name))
    return to_tf(tf, tensors[name])


def _decode_namedtuple(tf, content, tensors, depth):
    name, pairs = content
    values = [decode(tf, item, tensors, depth) for _, item in pairs]
    return collections.namedtuple(name, [key for key, _ in pairs])(*values)


def _decode_sparse(tf, names, tensors, depth):
    return tf.SparseTensor(*[_tensor(tf, name, tensors) for name in names])


def _decode_ragged(tf, names, tensors, depth):
    flat, splits = names[0], names[1:]
    return tf.RaggedTensor.from_nested_row_splits(
        _tensor(tf, flat, tensors), [_tensor(tf, name, tensors) for name in splits]
    )


_DECODERS = {
    "$tensor": lambda tf, name, tensors, depth: _tensor(tf, name, tensors),
    "$tuple": lambda tf, items, tensors, depth: tuple(
        decode(tf, item, tensors, depth) for item in items
    ),
    "$dict": lambda tf, pairs, tensors, depth: {
        key: decode(tf, item, tensors, depth) for key, item in pairs
    },
    "$namedtuple": _decode_namedtuple,
    "$float": lambda tf, text, tensors, depth: float(text),
    "$dtype": lambda tf, name, tensors, depth: tf.as_dtype(name),
    "$shape": lambda tf, dims, tensors, depth: tf.TensorShape(dims),
    "$sparse": _decode_sparse,
    "$ragged": _decode_ragged,
}


def resolve(root, path):
    """The attribute of ``root`` at a dotted path; a step into a list or tuple is its index, into a
    mapping its key.

    Raises AttributeError that names the path and the step that is missing.
    """
    node = root
    for step in path.split("."):
        try:
            node = child(node, step)
        except (AttributeError, IndexError, KeyError):
            raise AttributeError("{!r}: a {} has no {!r}".format(path, type(node).__name__, step))
    return node


def child(node, name):
    """The child of a live object: an item of a list, an entry of a mapping, else an attribute."""
    if isinstance(node, (list, tuple)) and name.isdigit():
        return node[int(name)]
    if isinstance(node, collections.abc.Mapping):
        return node[name]
    return getattr(node, name)


def encode_call(tf, args, kwargs, out):
    """``{"args": [nest], "kwargs": {name: nest}}`` of a call; its tensors are added to ``out``
    (:func:`encode`).
    """
    return {
        "args": [encode(tf, item, out, "a") for item in args],
        "kwargs": {key: encode(tf, kwargs[key], out, "a") for key in sorted(kwargs)},
    }


def decode_call(tf, args, kwargs, tensors):
    """The live arguments of what :func:`encode_call` returned: ``(positional, by keyword)``."""
    return [decode(tf, item, tensors) for item in args], {
        key: decode(tf, item, tensors) for key, item in kwargs.items()
    }


def call_function(tf, root, path, args, kwargs, tensors):
    """Call the function at ``path`` of a live object; returns ``(structure nest, named
    tensors)``.
    """
    function = resolve(root, path)
    positional, keyword = decode_call(tf, args, kwargs, tensors)
    outputs = collections.OrderedDict()
    structure = encode(tf, function(*positional, **keyword), outputs, "o")
    return structure, outputs


def flatten_output(tf, key, value):
    """One signature output as ``[(name, Tensor)]``, named as the SignatureDef's readers name the
    parts of a composite.
    """
    if isinstance(value, tf.SparseTensor):
        parts = (
            ("values", value.values),
            ("indices", value.indices),
            ("dense_shape", value.dense_shape),
        )
        return [("{}/{}".format(key, part), from_tf(tf, tensor)) for part, tensor in parts]
    if isinstance(value, tf.RaggedTensor):
        parts = [value.flat_values] + list(value.nested_row_splits)
        return [
            ("{}/component_{}".format(key, i), from_tf(tf, tensor))
            for i, tensor in enumerate(parts)
        ]
    return [(key, from_tf(tf, tf.convert_to_tensor(value)))]
