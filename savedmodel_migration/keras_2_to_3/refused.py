"""Why a layer cannot be rebuilt, where it is, and what would help."""

from __future__ import annotations

CUSTOM_OBJECTS = "name its class: --custom-objects MODULE:NAME"
NO_CONFIGURATION = "the file holds no configuration of its layers"
# No file tells which of the two it was: tf.saved_model.save of a Keras model writes the same but
# for this file.
NO_METADATA = (
    "keras_metadata.pb is missing, or was never written: model.save writes it, tf.saved_model.save"
    " and model.export do not. Without it the configuration of the layers is not known"
)
OWN_CODE = "a model with Python code of its own"
RESTORE_METADATA = (
    "if model.save of TF 2.5 to 2.15 or tf_keras made it, put keras_metadata.pb back beside"
    " saved_model.pb; else nothing was lost: use the model by its functions and signatures, or save"
    " it again with model.save where it was made"
)
TRUST_LAMBDA = "read its Python code, then add --trust-lambda"


class Refused(Exception):
    """A layer that cannot be rebuilt: why, its class and name (``LSTM 'lstm_1'``), its path in the
    object graph, what helps.
    """

    def __init__(self, reason: str, layer: str = "", path: str = "", fix: str = "") -> None:
        super().__init__(reason)
        self.reason, self.layer, self.path, self.fix = reason, layer, path, fix

    def __str__(self) -> str:
        where = f" ({self.path})" if self.path else ""
        return f"layer {self.layer}{where}: {self.reason}" if self.layer else self.reason

    def at(self, layer: str, path: str) -> Refused:
        """Return this refusal with a place, unless it has one."""
        if not self.layer:
            self.layer, self.path = layer, path
        return self
