"""``reference_impl.load``, then ``tf.saved_model.save`` of what it returned. Python 3.6 syntax."""

from . import protocol, reference_worker, tf2_worker

IMPORTS = ("tensorflow", "reference_impl")
CONSUMER = {
    "place": 6,
    "summary": "reference_impl.load, saved again by tf.saved_model.save",
    "capabilities": ("describe", "functions", "resave", "tags", "variables"),
    "checks": ("reexport",),
    "loader": "reference",
    "saver": "tensorflow",
}


class ReferenceToTF2Worker(reference_worker.ReferenceWorker):
    """As :class:`ReferenceWorker`, with the save of TensorFlow."""

    name = "reference_to_tf2"
    resave = tf2_worker.TF2Worker.resave


def main():
    protocol.serve(ReferenceToTF2Worker)
