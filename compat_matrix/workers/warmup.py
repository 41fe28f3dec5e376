"""Requests for TensorFlow Serving to warm up with: ``assets.extra/tf_serving_warmup_requests``, a
TFRecord of PredictionLog.

Python 3.6 syntax. A server answers them before it calls a model available, and refuses the model if
it cannot. Serving's own protos are not installed beside every TensorFlow, so the few messages are
written field by field; tensors are TensorFlow's.

A record is ``("predict", signature, {input: array})``, ``("classify", signature, examples)``, or
the same with "regress", or ``("multi_inference", [(method, signature), ...], examples)``;
``examples`` are serialized tf.Examples, ``method`` is "classify" or "regress".
"""

import os

from .tensor_wire import field

FOLDER, FILE = "assets.extra", "tf_serving_warmup_requests"
# Fields of PredictionLog; each log has its request in field 1.
_LOGS = {"classify": 2, "regress": 3, "multi_inference": 4, "predict": 6}


def write(tf, path, records, model):
    """Write ``records`` to the file ``path`` for a model of that name (which the server does not
    look at).
    """
    writer = getattr(tf.io, "TFRecordWriter", None) if hasattr(tf, "io") else None
    with (writer or tf.python_io.TFRecordWriter)(path) as stream:
        for record in records:
            stream.write(prediction_log(tf, record, model))


def put(tf, directory, records, model):
    """Write ``records`` where a server looks for them in the SavedModel ``directory``."""
    folder = os.path.join(directory, FOLDER)
    if not os.path.isdir(folder):
        os.makedirs(folder)
    write(tf, os.path.join(folder, FILE), records, model)


def prediction_log(tf, record, model):
    """A serialized PredictionLog. Raises KeyError for a kind of record that there is none of."""
    kind, asked, given = record
    number = _LOGS[kind]
    if kind == "predict":
        request = field(1, _model_spec(model, asked))
        for name in sorted(given):
            request += field(2, field(1, name.encode("utf-8")) + field(2, _tensor(tf, given[name])))
    elif kind == "multi_inference":
        request = b"".join(
            field(
                1,
                field(1, _model_spec(model, signature))
                + field(2, b"tensorflow/serving/" + method.encode("ascii")),
            )
            for method, signature in asked
        ) + field(2, _example_list(given))
    else:
        request = field(1, _model_spec(model, asked)) + field(2, _example_list(given))
    return field(number, field(1, request))


def _tensor(tf, value):
    make = (
        tf.make_tensor_proto
        if hasattr(tf, "make_tensor_proto")
        else tf.contrib.util.make_tensor_proto
    )  # 1.4 to 1.8
    return make(value).SerializeToString()


def _model_spec(model, signature):
    return field(1, model.encode("utf-8")) + field(3, signature.encode("utf-8"))


def _example_list(examples):
    return field(1, b"".join(field(1, example) for example in examples))
