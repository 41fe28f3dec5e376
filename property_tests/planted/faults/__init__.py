"""What a loader or a saver may lose, as edits of a SavedModel: the loader reads the edited model,
the saver has written it.

``FAULTS`` has them by name; ``apply`` edits a model in a folder. Nothing here needs TensorFlow.
"""

from property_tests.planted.faults import (
    checkpoint,
    computation,
    functions,
    objects,
    signatures,
    variables,
)
from property_tests.planted.faults.registry import FAULTS, apply

__all__ = [
    "FAULTS",
    "apply",
    "checkpoint",
    "computation",
    "functions",
    "objects",
    "signatures",
    "variables",
]
