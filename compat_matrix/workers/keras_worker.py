"""Everything a migration to Keras 3 asks of a Keras: rebuild a model, ask the old and the new one. Python 3.6 syntax.

It runs in the environment of the harness only, which has Keras 3.
"""

import importlib
import os
import sys

from . import nests, protocol, table_contents
from . import tensors as tensor_file


class KerasWorker(protocol.Worker):
    """``rebuild``, ``wrap``, ``answers``, ``prove`` and ``forget``; one model at a time."""

    name = "keras"
    capabilities = ("rebuild",)

    def __init__(self):
        super(KerasWorker, self).__init__()
        os.environ["KERAS_BACKEND"] = "tensorflow"
        sys.modules["tf_keras"] = None  # the old model is what its file says, whatever can revive it
        import tensorflow as tf

        import reference_impl
        from compat_matrix.keras_migration.refused import Refused
        from reference_impl.errors import SavedModelError

        self.tf, self.reference, self.refused = tf, reference_impl, Refused
        self.refusals = self.refusals + (SavedModelError,)
        self.old = self.new = self.ask_old = None

    def versions(self):
        return dict(super(KerasWorker, self).versions(), tensorflow=self.tf.__version__)

    def op_rebuild(self, request):
        """Rebuild ``dir`` and save it as ``target``. Says ``refused`` if that cannot be done, with place and reason."""
        from compat_matrix.keras_migration.prove import pairs_of
        from compat_matrix.keras_migration.reading.saved import NotKeras
        from compat_matrix.keras_migration.rebuild import rebuild

        self.op_forget({})
        try:
            custom = dict(_named(text) for text in request["custom_objects"])
            found = rebuild(request["dir"], custom, request["trust_lambda"], Tables(self.tf, self.reference, request["dir"]))
        except self.refused as error:
            return {"refused": {"reason": str(error), "layer": error.layer, "path": error.path, "fix": error.fix}}
        except NotKeras as error:
            return {"refused": {"reason": str(error), "layer": "", "path": "", "fix": ""}}
        found.model.save(request["target"])
        self.new, self.custom, self.endpoint = found.model, custom, ""
        self.old = self.reference.load(request["dir"])
        self.ask_old = lambda nest: self.old(nest, training=False)
        self.pairs = pairs_of(self.old, self.new, found.names)
        layers = {label: list(texts) for label, texts in found.applied.items()}
        return self._described(found, layers, found.notes, found.half)

    def op_wrap(self, request):
        """Wrap the MetaGraph ``tags`` of ``dir`` in a layer, and save the model as ``target``, or say ``refused``."""
        from compat_matrix.keras_migration import wrap

        self.op_forget({})
        try:
            self.old = self.reference.load(request["dir"], request["tags"])
            found = wrap.wrap(request["dir"], self.old, request["tags"])
            found.model.save(request["target"])
        except (self.refused, TypeError, ValueError, self.tf.errors.OpError) + self.refusals as error:
            return {"refused": {"reason": str(error)}}
        self.new, self.custom, self.endpoint, self.pairs = found.model, {}, found.endpoint.name, found.pairs
        self.ask_old = lambda nest: found.endpoint(nest, False, {})[0]
        return self._described(found, {}, [wrap.NOTE], False)

    def _described(self, found, layers, notes, half):
        import keras

        specs = [{"dtype": keras.backend.standardize_dtype(item.dtype), "shape": list(item.shape)} for item in self._inputs()]
        return {
            "inputs": specs,
            "layers": layers,
            "names": dict(found.names),
            "notes": list(notes),
            "tree": found.tree,
            "half": half,
        }

    def op_answers(self, request):
        """What the old and the new model answer to ``inputs``, whose tensors are numbered in the order of the model's inputs."""
        import keras

        given = tensor_file.load(request["inputs"])
        flat = [nests.to_tf(self.tf, given[str(number)]) for number in range(len(given))]
        nest = keras.tree.pack_sequence_as(self._structure(), flat)
        self._save(self.ask_old(nest), request["old"])
        self._save(self.new(nest, training=False), request["new"])
        return {}

    def op_prove(self, request):
        """Verdicts on the file ``target``, weights, gradients and a training step with ``inputs``; both models are changed."""
        import keras

        from compat_matrix.keras_migration.prove import prove, prove_file

        given = tensor_file.load(request["inputs"])
        flat = [nests.to_tf(self.tf, given[str(number)]) for number in range(len(given))]
        nest = keras.tree.pack_sequence_as(self._structure(), flat)
        verdicts = [prove_file(self.new, request["target"], self.custom, nest)]
        return {"verdicts": [list(item) for item in verdicts + prove(self.old, self.new, self.pairs, nest, self.endpoint)]}

    def op_forget(self, request):
        """Free what was rebuilt."""
        import keras

        self.old = self.new = self.ask_old = self.pairs = None
        keras.utils.clear_session(free_memory=True)
        return {}

    def _structure(self):
        import keras

        model = self.new
        return model.inputs[0] if isinstance(model, keras.Sequential) else model.input

    def _inputs(self):
        import keras

        return keras.tree.flatten(self._structure())

    def _save(self, answer, path):
        import keras

        flat = keras.tree.flatten(answer)
        named = [(str(number), nests.from_tf(self.tf, self.tf.convert_to_tensor(item))) for number, item in enumerate(flat)]
        tensor_file.save(path, protocol.named(named))


class Tables(object):
    """Reads tables of a SavedModel, which is loaded when the first one is asked for."""

    def __init__(self, tf, reference, directory):
        self.tf, self.reference, self.directory = tf, reference, directory
        self.root = None

    def __call__(self, path, dtypes):
        """Keys and values of the table at ``path``, None where there is none with these dtypes."""
        if self.root is None:
            self.root = self.reference.load(self.directory)
        found = self.root
        for part in path.split("."):
            found = getattr(found, part, None)
        handle = getattr(found, "resource_handle", None)
        return None if handle is None else table_contents.rows_of(self.tf, handle, dtypes)


def _named(text):
    """``(NAME, object)`` of ``MODULE:NAME``, which the user wrote."""
    module, _, name = text.partition(":")
    found = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return name.rpartition(".")[2], found


def main():
    protocol.serve(KerasWorker)
