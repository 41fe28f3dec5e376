"""What a loader or a saver may lose, as edits of a SavedModel: the loader reads the edited model,
the saver has written it.

``LOSSES`` has them by name; ``apply`` edits a model in a folder. Nothing here needs TensorFlow.
"""

from property_tests.faults.losses import (
    checkpoint,
    computation,
    functions,
    objects,
    signatures,
    variables,
)
from property_tests.faults.losses.registry import LOSSES, apply

__all__ = [
    "LOSSES",
    "apply",
    "checkpoint",
    "computation",
    "functions",
    "objects",
    "signatures",
    "variables",
]
