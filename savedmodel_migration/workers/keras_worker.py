"""Everything a migration to Keras 3 asks of a Keras: rebuild a model, ask the old and the new one.

Python 3.6 syntax.

It runs in the environment of the harness only, which has Keras 3.
"""

import os
import sys

import keras_asking
from savedmodel_compat_workers import protocol

IMPORTS = ("tensorflow",)


class KerasWorker(protocol.Worker):
    """``rebuild``, ``wrap``, ``answers``, ``unlike``, ``prove`` and ``forget``; one model at a
    time.
    """

    name = "keras"
    capabilities = ("rebuild",)

    def __init__(self):
        super(KerasWorker, self).__init__()
        os.environ["KERAS_BACKEND"] = "tensorflow"
        sys.modules["tf_keras"] = (
            None  # the old model is what its file says, whatever can revive it
        )
        import tensorflow as tf

        import reference_impl
        from reference_impl.errors import SavedModelError
        from savedmodel_migration.keras_2_to_3.refused import Refused

        self.tf, self.reference, self.refused = tf, reference_impl, Refused
        self.refusals = self.refusals + (SavedModelError,)
        self.old = self.new = self.ask_old = self.found = None
        self.start = []

    def versions(self):
        return dict(super(KerasWorker, self).versions(), tensorflow=self.tf.__version__)

    def op_rebuild(self, request):
        """Rebuild ``dir`` and save it as ``target``.

        Says ``refused`` if that cannot be done, with place and reason.

        With a folder ``cuts``, layers that cannot be rebuilt are cut out of the SavedModel;
        ``wrapped`` says which and why. ``unlike``: layers to make of their graph, as `op_unlike`
        names them; ``cut``: the paths of those to cut out.
        """
        from savedmodel_compat.keras.endpoint import Endpoint
        from savedmodel_migration.keras_2_to_3 import wrap
        from savedmodel_migration.keras_2_to_3.building.cuts import Cuts
        from savedmodel_migration.keras_2_to_3.loaded import Loaded
        from savedmodel_migration.keras_2_to_3.prove import pairs_of
        from savedmodel_migration.keras_2_to_3.reading.saved import NotKeras, at
        from savedmodel_migration.keras_2_to_3.rebuild import rebuild

        self.op_forget({})
        try:
            custom = keras_asking.custom_objects(request["custom_objects"], request["paths"])
            old = Loaded(self.tf, self.reference, request["dir"])
            cuts = Cuts(old.model, request["cuts"]) if request.get("cuts") else None
            unlike = {item["path"]: self.refused(**item) for item in request.get("unlike", ())}
            found = rebuild(
                request["dir"],
                custom,
                request["trust_lambda"],
                old.rows,
                cuts,
                unlike,
                request.get("cut", ()),
            )
        except self.refused as error:
            return {
                "refused": {
                    "reason": str(error),
                    "layer": error.layer,
                    "path": error.path,
                    "fix": error.fix,
                }
            }
        except NotKeras as error:
            return {"refused": {"reason": str(error), "layer": "", "path": "", "fix": ""}}
        found.model.save(request["target"])
        self.new, self.endpoint, self.found = found.model, "", found
        self.old = old.model()
        keywords = (
            {"training": False}
            if not callable(self.old) or Endpoint(self.old).takes_training
            else {}
        )
        self.ask_old = lambda nest: self.old(nest, **keywords)
        self.pairs = pairs_of(self.old, self.new, found.variables)
        for names in found.lost_states:
            state = at(self.old, names)
            state.assign(self.tf.zeros_like(state))
        self.start = self._state()
        layers = {label: list(texts) for label, texts in found.applied.items()}
        notes = list(found.notes) + ([wrap.NOTE] if found.wrapped else [])
        wrapped = [{"reason": str(error), "fix": error.fix} for error in found.wrapped]
        return dict(self._described(found, layers, notes, found.half), wrapped=wrapped)

    def op_wrap(self, request):
        """Wrap the MetaGraph ``tags`` of ``dir`` in a layer, and save the model as ``target``, or
        say ``refused``.

        ``sound``: the model loads, but no functional model can take its inputs. ``signature``: the
        one that the layer calls, "" for another function; ``outputs``: its outputs in the order of
        their numbers.
        """
        from savedmodel_migration.keras_2_to_3 import wrap
        from savedmodel_migration.keras_2_to_3.building.compiling import compile_wrapped
        from savedmodel_migration.keras_2_to_3.building.objects import original

        self.op_forget({})
        try:
            self.old = self.reference.load(request["dir"], request["tags"])
            found = wrap.wrap(request["dir"], self.old, request["tags"])
            custom = keras_asking.custom_objects(request["custom_objects"], request["paths"])
            notes = compile_wrapped(found.model, request["dir"], self.old, found.pairs, custom) + [
                wrap.NOTE
            ]
            found.model.save(request["target"])
        except (
            self.refused,
            TypeError,
            ValueError,
            self.tf.errors.OpError,
        ) + self.refusals as error:
            return {
                "refused": {
                    "reason": str(original(error)),
                    "sound": isinstance(error, self.refused),
                }
            }
        self.new, self.endpoint, self.pairs = found.model, found.endpoint.name, found.pairs
        self.ask_old = lambda nest: found.endpoint(nest, False, {})[0]
        self.start = self._state()
        outputs = (
            sorted(found.endpoint.function.structured_outputs)
            if found.endpoint.is_signature
            else []
        )
        signature = self.endpoint if found.endpoint.is_signature else ""
        return dict(self._described(found, {}, notes, False), signature=signature, outputs=outputs)

    def _described(self, found, layers, notes, half):
        import keras

        inputs = keras.tree.flatten(keras_asking.structure(keras, self.new))
        specs = [
            {"dtype": keras.backend.standardize_dtype(item.dtype), "shape": list(item.shape)}
            for item in inputs
        ]
        return {
            "inputs": specs,
            "layers": layers,
            "names": dict(found.names),
            "notes": list(notes),
            "tree": found.tree,
            "half": half,
        }

    def _state(self):
        """Variables that do not train, and whole numbers, with their values: an answer may change
        them, as of a stateful RNN.
        """
        from savedmodel_compat.keras.endpoint import variables_of
        from savedmodel_compat.keras.layer import holds_numbers
        from savedmodel_migration.keras_2_to_3.prove import changeable

        held = [(item, trains) for item, trains in variables_of(self.old) if holds_numbers(item)]
        old = [item for item, trains in held if not trains or not item.dtype.is_floating]
        return [(item, item.numpy()) for item in old + changeable(self.new)]

    def _start_again(self):
        for item, value in self.start:
            item.assign(value)

    def op_answers(self, request):
        """Save the answers of the old and the new model to ``inputs``, numbered in the order of the
        model's inputs.

        ``failed``: the error of the new model, where the old one answers. ``random``: the numbers
        of the outputs that change when the old model is asked ``repeat`` more times, its variables
        as in the file.
        """
        import keras

        from savedmodel_migration.keras_2_to_3.building.objects import original

        self._start_again()
        nest = keras_asking.inputs_of(self.tf, keras, self.new, request["inputs"])
        old = self.ask_old(nest)
        keras_asking.save_answer(self.tf, keras, old, request["old"])
        changing = set()
        for _ in range(request.get("repeat", 0)):
            self._start_again()
            changing |= keras_asking.differing(self.tf, keras, old, self.ask_old(nest))
        self._start_again()
        try:
            answer = self.new(nest, training=False)
        except Exception as error:
            return {"failed": str(original(error))}
        keras_asking.save_answer(self.tf, keras, answer, request["new"])
        return {"random": sorted(changing)}

    def op_unlike(self, request):
        """Which layers of the model that was rebuilt of ``dir`` compute something else than those
        of the old one.
        """
        import keras

        from savedmodel_migration.keras_2_to_3.reading.saved import SavedKeras
        from savedmodel_migration.keras_2_to_3.unlike import unlike

        self._start_again()
        nest = keras_asking.inputs_of(self.tf, keras, self.new, request["inputs"])
        with SavedKeras(request["dir"]) as saved:
            found = unlike(saved, self.old, self.new, self.found.layers, self.found.followed, nest)
        return {"layers": list(map(_facts, found))}

    def op_weights(self, request):
        """Save the weights of the new model; the reply has their paths."""
        self._start_again()
        return {"paths": keras_asking.save_weights(self.tf, self.new, request["weights"])}

    def op_prove(self, request):
        """Verdicts on weights, gradients and a training step with ``inputs``, without the outputs
        ``left_out``.

        Both models are changed.
        """
        import keras

        from savedmodel_migration.keras_2_to_3.prove import prove

        self._start_again()
        nest = keras_asking.inputs_of(self.tf, keras, self.new, request["inputs"])
        found = prove(self.old, self.new, self.pairs, nest, self.endpoint, request["left_out"])
        return {"verdicts": [list(item) for item in found]}

    def op_forget(self, request):
        """Free what was rebuilt."""
        import keras

        self.old = self.new = self.ask_old = self.pairs = self.found = None
        self.start = []
        keras_asking.fresh(keras)
        return {}


def _facts(unlike):
    return {name: getattr(unlike, name) for name in ("reason", "layer", "path", "fix")}


def main():
    protocol.serve(KerasWorker)


if __name__ == "__main__":
    main()
