"""Shared by the scripts of consumers: signatures as in the file, and tensors in the form other
libraries use.

No TensorFlow is needed here; a script imports the library it is about. ``Entry``: name, tensor,
dtype, shape (None for an unknown rank, -1 for an unknown dimension). A composite input or output is
several entries.
"""

import collections
import itertools
import pathlib

import numpy as np
from savedmodel_compat_workers import protocol, signature_wire, tensors

DEFAULT = "serving_default"
_META_GRAPHS, _META_INFO, _TAGS = 2, 1, 4  # field numbers of saved_model.proto and meta_graph.proto


def signatures(directory, tags=None):
    """``{key: (inputs, outputs)}``, lists of ``Entry``, of the MetaGraph with exactly these tags;
    without tags of the first one.

    Raises OSError or ValueError for a path that is not a SavedModel, KeyError where no MetaGraph
    has the tags.
    """
    graphs = [
        value
        for number, value in signature_wire.fields(_serialized(directory))
        if number == _META_GRAPHS
    ]
    if not graphs:
        raise ValueError(f"{directory}: no MetaGraph")
    tagged = [(_tags(graph), graph) for graph in graphs]
    for found, graph in tagged:
        if tags is None or found == set(tags):
            return signature_wire.described(signature_wire.signature_defs(graph))
    raise KeyError(
        f"no MetaGraph has the tags {sorted(tags)}; there are"
        f" {[sorted(found) for found, _ in tagged]}"
    )


def _serialized(directory):
    path = pathlib.Path(directory, "saved_model.pb")
    as_text = path.with_suffix(".pbtxt")
    if path.exists() or not as_text.exists():
        return path.read_bytes()
    from google.protobuf import text_format
    from tensorflow.core.protobuf import saved_model_pb2

    return text_format.Parse(
        as_text.read_text(encoding="utf-8"), saved_model_pb2.SavedModel()
    ).SerializeToString()


def _tags(graph):
    infos = [value for number, value in signature_wire.fields(graph) if number == _META_INFO]
    fields = itertools.chain.from_iterable(map(signature_wire.fields, infos))
    return {value.decode("utf-8") for number, value in fields if number == _TAGS}


def fitting(known, key, inputs, complete=True):
    """The signature ``key`` of :func:`signatures`, when ``inputs`` are what it takes: names and
    dtypes.

    Raises KeyError, ValueError or TypeError: some libraries would take what does not fit, cast it
    and answer. ``complete``: no input may be missing; else that is for the library to say, which
    knows those that have a default.
    """
    names, _ = signature_wire.feed_names(known, key, inputs)
    missing = sorted(set(names) - set(inputs))
    if missing and complete:
        raise ValueError(f"the signature {key!r} needs the input {missing[0]!r}")
    for entry in known[key][0]:
        if entry.name in inputs and inputs[entry.name].dtype != entry.dtype:
            raise TypeError(
                f"the input {entry.name!r} is {entry.dtype}, given is {inputs[entry.name].dtype}"
            )
    return known[key]


def to_numpy(tensor):
    """A :class:`tensors.Tensor` as a NumPy array: bytes as objects, bfloat16 and its like as
    ml_dtypes has them.
    """
    array = np.asarray(tensor.array)
    if (
        tensor.dtype == "string"
        or tensor.dtype == array.dtype.name
        or tensor.dtype.startswith(("qint", "quint"))
    ):
        return array
    import ml_dtypes

    return array.view(getattr(ml_dtypes, tensor.dtype))


def named(result, entries, parts=None):
    """``{name: Tensor}`` of what a library gave back for the outputs ``entries``.

    A mapping has the names, a sequence is in the order of the entries (which are sorted by name),
    one value is the only output. ``parts`` takes one value apart: `nests.flatten_output` of
    TensorFlow's. Without it values are NumPy's, and an array of the integers that carry a dtype
    which NumPy lacks (uint8 for quint8) is of the dtype of its output. Raises ValueError where the
    numbers of values differ.
    """
    dtypes = {entry.name: entry.dtype for entry in entries}
    if not hasattr(result, "items"):
        values = list(result) if isinstance(result, (list, tuple)) else [result]
        if len(values) != len(entries):
            raise ValueError(f"{len(values)} values for the outputs {list(dtypes)}")
        result = dict(zip(dtypes, values))
    if parts is None:
        return protocol.named(
            (name, _tensor(np.asarray(value), dtypes.get(name)))
            for name, value in sorted(result.items())
        )
    pairs = (parts(name, value) for name, value in sorted(result.items()))
    return protocol.named(itertools.chain.from_iterable(pairs))


def _tensor(array, dtype):
    return tensors.from_numpy(
        array, dtype if tensors.CARRIERS.get(dtype) == array.dtype.name else None
    )


def dtype_name(dtype):
    """TensorFlow's name of a NumPy dtype."""
    kind = np.dtype(dtype)
    return "string" if kind.kind in "SUO" else kind.name


Model = collections.namedtuple("Model", ["directory", "tags", "signatures", "converted"])


class Converting(protocol.Worker):
    """A signature is converted when it is first asked for; the default one when the model is
    loaded.

    A program defines ``convert(model, key)``.
    """

    capabilities = ("tags",)

    def load(self, directory, tags):
        model = Model(directory, tags, signatures(directory, tags), {})
        default = DEFAULT if DEFAULT in model.signatures else next(iter(model.signatures), None)
        if default:
            self.converted(model, default)
        return model

    def converted(self, model, key):
        """Return the result of ``convert`` for a signature, made once."""
        if key not in model.converted:
            model.converted[key] = self.convert(model, key)
        return model.converted[key]

    def signatures(self, model):
        return signature_wire.describe(model.signatures)
