"""This project's own implementation: ``reference_impl.load`` and ``reference_impl.save``.

Python 3.6 syntax.

The loaded object is asked in the same way as that of ``tf.saved_model.load``.
"""

from . import producing, protocol, tf2_worker

IMPORTS = ("tensorflow", "reference_impl")
CONSUMER = {
    "place": 5,
    "summary": "reference_impl.load of this project",
    "capabilities": ("describe", "functions", "resave", "tags", "threads", "variables"),
    "loader": "reference",
    "saver": "reference",
    "reproducible": True,
}


class ReferenceWorker(tf2_worker.TF2Worker):
    """As :class:`TF2Worker`, with another load and another save."""

    name = "reference"

    def __init__(self):
        super(ReferenceWorker, self).__init__()
        import reference_impl
        from reference_impl.errors import SavedModelError, UnknownSignatureError

        self.reference = reference_impl
        self.refusals = self.refusals + (SavedModelError,)
        self.missing = self.missing + (UnknownSignatureError,)

    def produce(self, case, directory, scratch):
        producing.produce(case, directory, scratch, self.reference.save, self.options)

    def options(self, case):
        """Return options that only this implementation can write; every reader has to cope with
        them.
        """
        asked = getattr(case, "REFERENCE_OPTIONS", None)
        return (
            None
            if asked is None
            else self.reference.SaveOptions(**dict(getattr(case, "SAVE_OPTIONS", {}), **asked))
        )

    def load(self, directory, tags):
        return tf2_worker.Model(self.reference.load(directory, tags), directory)

    def resave(self, model, directory, tags):
        self.reference.save(
            model.root, directory, signatures=tf2_worker.public(model.root.signatures)
        )
        return ["serve"]


def main():
    protocol.serve(ReferenceWorker)
