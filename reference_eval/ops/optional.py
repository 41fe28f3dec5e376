"""OptionalFromValue, GetValue, HasValue, None: a value that may be absent.

Dtypes: every.
Accuracy: exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op
from reference_eval.state import OptionalValue


@op("OptionalFromValue")
def optional_from_value(components: list[Any]) -> OptionalValue:
    return OptionalValue(tuple(components))


@op("OptionalNone")
def optional_none() -> OptionalValue:
    return OptionalValue(None)


@op("OptionalHasValue")
def optional_has_value(optional: OptionalValue) -> Array:
    return np.asarray(optional.components is not None)


@op("OptionalGetValue")
def optional_get_value(optional: OptionalValue) -> list[Any]:
    if optional.components is None:
        raise ValueError("The given optional does not have a value.")
    return list(optional.components)
