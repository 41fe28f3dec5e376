"""Why a layer cannot be rebuilt, where it is, and what would help."""

from __future__ import annotations

CUSTOM_OBJECTS = "name its class: --custom-objects MODULE:NAME"
NO_CONFIGURATION = "the file holds no configuration of its layers"
NO_METADATA = "keras_metadata.pb is missing: it has the configuration of the layers, without which they are not known"
OWN_CODE = "a model with Python code of its own"
RESTORE_METADATA = "put keras_metadata.pb back beside saved_model.pb: TF 2.5 to 2.15 and tf_keras write it with each model"
TRUST_LAMBDA = "read its Python code, then add --trust-lambda"


class Refused(Exception):
    """A layer that cannot be rebuilt: why, its class and name (``LSTM 'lstm_1'``), its path in the object graph, what helps."""

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
