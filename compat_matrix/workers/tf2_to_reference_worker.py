"""``tf.saved_model.load``, then ``reference_impl.save`` of what it returned. Python 3.6 syntax."""

from . import protocol, reference_worker, tf2_worker

IMPORTS = ("tensorflow", "reference_impl")
CONSUMER = {
    "place": 7,
    "summary": "tf.saved_model.load, saved again by reference_impl.save",
    "capabilities": ("describe", "functions", "resave", "tags", "variables"),
    "checks": ("reexport",),
    "loader": "objects",
    "reproducible": True,
}


class TF2ToReferenceWorker(reference_worker.ReferenceWorker):
    """As :class:`ReferenceWorker`, with the load of TensorFlow."""

    name = "tf2_to_reference"
    load = tf2_worker.TF2Worker.load


def main():
    protocol.serve(TF2ToReferenceWorker)
