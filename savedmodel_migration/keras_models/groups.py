"""The layers of the table in groups, as Keras' documentation has them.

Needs neither Keras nor TensorFlow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from savedmodel_migration.keras_models import layers, whole

GROUPS = (
    ("Dense, embedding, activations, shapes", layers._plain),
    ("Convolution", layers._convolution),
    ("Pooling", layers._pooling),
    ("Normalization", layers._normalization),
    ("Recurrent", layers._recurrent),
    ("Attention", layers._attention),
    ("Merging", layers._merging),
    ("Preprocessing of numbers, strings and images", layers._preprocessing),
    ("Operations between layers", layers._operations),
)
WHOLE = "Whole models"


def by_group(models: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, list[Any]]]]:
    """Yield the title of each group, and the rows of ``models`` by layer; an operation or a whole
    model is a row of its own.
    """
    for title, made in GROUPS:
        found: dict[str, list[Any]] = {}
        for layer, variants in made().items():
            for variant, *_ in variants:
                name = f"{layer}/{variant}"
                if name in models:
                    found.setdefault(variant if layer == "operations" else layer, []).append(
                        models[name]
                    )
        yield title, found
    yield WHOLE, {name: [models[name]] for name in whole.WHOLE if name in models}
