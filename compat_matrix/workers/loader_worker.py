"""Shared by the workers on TensorFlow's C++ loader: signatures of the MetaGraphDef, tensors by
name. Python 3.6 syntax.
"""

from . import c_library, protocol, signature_wire


class LoaderWorker(protocol.Worker):
    """A program whose models have ``signatures`` (:func:`signature_wire.described`), ``run(feed,
    names)`` and ``close()``.
    """

    refusals = protocol.Worker.refusals + (c_library.Unimplemented,)

    def release(self, model):
        model.close()

    def signatures(self, model):
        return signature_wire.describe(model.signatures)

    def call_signature(self, model, key, inputs):
        names, produced = signature_wire.feed_names(model.signatures, key, inputs)
        # Two inputs may be one tensor; TensorFlow refuses to feed it twice.
        feed = {names[name]: tensor for name, tensor in inputs.items()}
        values = model.run(sorted(feed.items()), [entry.tensor for entry in produced])
        return protocol.named(zip((entry.name for entry in produced), values))

    def fetch(self, model, names):
        return protocol.named(zip(names, model.run([], names)))
