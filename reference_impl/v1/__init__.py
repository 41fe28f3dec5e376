"""SavedModels of TF 1.x: a MetaGraph without objects becomes functions over variables, resources and assets (V1-01..V1-18).

`program` works out on the protos alone what is what; `load` makes it live. Only the latter needs TensorFlow.
"""

from __future__ import annotations

from typing import Any

__all__ = ["load_meta_graph"]


def __getattr__(name: str) -> Any:
    if name != "load_meta_graph":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from reference_impl.v1.load import load_meta_graph

    return load_meta_graph
