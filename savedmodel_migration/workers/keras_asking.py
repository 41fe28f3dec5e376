"""Ask a Keras model: inputs by number, outputs and weights into tensor files. Python 3.6 syntax."""

import importlib
import sys

import numpy as np
from savedmodel_compat_workers import nests, protocol

from savedmodel_common import tensors as tensor_file


def custom_objects(texts, paths):
    """``{NAME: object}`` of what the user wrote as ``MODULE:NAME``; modules are also looked for in
    ``paths``, last of all.
    """
    sys.path.extend(path for path in paths if path not in sys.path)
    return dict(_named(text) for text in texts)


def _named(text):
    module, _, name = text.partition(":")
    found = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return name.rpartition(".")[2], found


def fresh(keras):
    """Free all models, and let errors of Keras have their own messages.

    Keras would make others of them: the name of the layer, the message in bold, the arguments of
    the call.
    """
    keras.utils.clear_session(free_memory=True)
    keras.config.disable_traceback_filtering()  # a session forgets it


def structure(keras, model):
    """The inputs of a model, nested as it takes them."""
    return model.inputs[0] if isinstance(model, keras.Sequential) else model.input


def inputs_of(tf, keras, model, path):
    """Inputs of a model out of a file, where they are numbered in the order of the model's
    inputs.
    """
    given, wanted = tensor_file.load(path), structure(keras, model)
    found = [nests.to_tf(tf, given[str(at)]) for at in range(len(given))]
    sparse = [getattr(item, "sparse", False) for item in keras.tree.flatten(wanted)]
    found = [
        tf.sparse.from_dense(item) if is_sparse else item for item, is_sparse in zip(found, sparse)
    ]
    return keras.tree.pack_sequence_as(wanted, found)


def save_answer(tf, keras, answer, path):
    """Write the outputs of a model, numbered."""
    _save(tf, [(str(at), item) for at, item in enumerate(keras.tree.flatten(answer))], path)


def differing(tf, keras, one, other):
    """The numbers of the outputs in which two answers differ."""
    pairs = zip(_flat_bytes(tf, keras, one), _flat_bytes(tf, keras, other))
    return {number for number, (first, second) in enumerate(pairs) if first != second}


def _flat_bytes(tf, keras, answer):
    return [_bytes(tf, item) for item in keras.tree.flatten(answer)]


def _bytes(tf, item):
    array = np.asarray(tf.convert_to_tensor(item).numpy())
    return array.tolist() if array.dtype == object else array.tobytes()


def save_weights(tf, model, path):
    """Write the weights of a model, numbered. Returns their paths."""
    _save(tf, [(str(at), item.value) for at, item in enumerate(model.weights)], path)
    return [item.path for item in model.weights]


def _save(tf, items, path):
    tensor_file.save(
        path,
        protocol.named(
            [(name, nests.from_tf(tf, tf.convert_to_tensor(item))) for name, item in items]
        ),
    )
