"""Lambda: Python code in the file, as bytecode of the Python that saved it. It is run only if the user says so."""

from __future__ import annotations

from compat_matrix.keras_migration.refused import TRUST_LAMBDA, Refused
from compat_matrix.keras_migration.rules.rule import Layer, Rule

_DROPPED = ("function_type", "module", "output_shape_type", "output_shape_module", "mask")


def _translate(layer: Layer) -> None:
    if not layer.options.trust_lambda:
        raise Refused("Python code in the file", fix=TRUST_LAMBDA)
    if layer.config.get("function_type") != "lambda":
        raise Refused("a function of a module that the file does not hold: replace the layer")
    if layer.config.get("output_shape_type", "raw") != "raw":
        raise Refused("a function tells its output shape")
    for name in _DROPPED:
        layer.config.pop(name, None)


RULES = (Rule("Lambda", "2.0-2.15", _translate, ("Lambda",)),)
