"""TensorFlow Serving's messages, wire-compatible declarations in `proto/`, in the pool of
`reference_impl.format.schema`.

Their tensors and signatures are that schema's `TensorProto` and `SignatureDef`, and its `parse`,
`parse_text` and `serialize` take them. Made when first asked for; compiled by `python -m
reference_impl.format.schema.build FOLDER`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reference_impl.format.schema import _pool

# Names are looked up in `tensorflow.serving` first, so a future `tensorflow.Metric` cannot shadow
# them.
_NAMES = _pool.declare(Path(__file__).parent, ("tensorflow.serving", "tensorflow"))
__all__ = sorted(_NAMES.all())


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    value = _NAMES.lookup(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
