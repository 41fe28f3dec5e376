"""Read and write the bytes of a SavedModel, without TensorFlow.

This package stands alone: it needs NumPy and protobuf, and nothing of the other rooms of
`reference_impl`. The README beside this file describes the format on one screen.

    >>> from reference_impl import format
    >>> model = format.read("fixtures_v1/module_functions/model")
    >>> [sorted(tags) for tags in model.tag_sets]
    [['serve']]
    >>> meta_graph = model.meta_graph("serve")
    >>> meta_graph.signature_def["lookup"].inputs["words"].name
    'lookup_words:0'
    >>> [asset.filename for asset in model.assets(meta_graph)]
    ['vocabulary.txt']
    >>> with model.open_checkpoint() as checkpoint:
    ...     checkpoint.keys()[-1], checkpoint.read("parts/0/.ATTRIBUTES/VARIABLE_VALUE").tolist()
    ('scale/.ATTRIBUTES/VARIABLE_VALUE', [1.0, 2.0])

Names of this package:

    read, Layout, Asset         a directory, its MetaGraphs and assets
    LayoutWriter                writes a directory
    BundleReader, BundleWriter  a checkpoint: tensors by key
    decode_tensor, encode_tensor         TensorProto and NumPy array
    decode_structure, encode_structure   StructuredValue and Python value

Rooms and modules:

    container/  the directory: saved_model.pb, .pbtxt or the split .cpb; variables/, assets/,
                fingerprint.pb; staged writing
    bundle/     the tensor bundle in variables/: the index, the data shards, partitioned tensors,
                checksums
    values/     dtypes, TensorProto and StructuredValue
    schema/     the messages of the format: our `.proto` files and the classes made from them
    wire        the untyped wire format of messages: variable-length integers and fields
    names       names that the format reserves, and the parts of generated names
    limits      every limit on reading a SavedModel
    errors      the errors about bytes; `error_text` has the texts inside their messages
    extension   the message that `reference_impl.extension` stores in a MetaGraph
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reference_impl.format.bundle.reader import BundleReader
    from reference_impl.format.bundle.writer import BundleWriter
    from reference_impl.format.container.layout import Asset, Layout, read
    from reference_impl.format.container.writer import LayoutWriter
    from reference_impl.format.values.structure import decode as decode_structure
    from reference_impl.format.values.structure import encode as encode_structure
    from reference_impl.format.values.tensor_proto import decode as decode_tensor
    from reference_impl.format.values.tensor_proto import encode as encode_tensor

__all__ = [
    "Asset",
    "BundleReader",
    "BundleWriter",
    "Layout",
    "LayoutWriter",
    "decode_structure",
    "decode_tensor",
    "encode_structure",
    "encode_tensor",
    "read",
]

# Public name -> the module and the name there.
_HOMES = {
    "Asset": ("container.layout", "Asset"),
    "BundleReader": ("bundle.reader", "BundleReader"),
    "BundleWriter": ("bundle.writer", "BundleWriter"),
    "Layout": ("container.layout", "Layout"),
    "LayoutWriter": ("container.writer", "LayoutWriter"),
    "decode_structure": ("values.structure", "decode"),
    "decode_tensor": ("values.tensor_proto", "decode"),
    "encode_structure": ("values.structure", "encode"),
    "encode_tensor": ("values.tensor_proto", "encode"),
    "read": ("container.layout", "read"),
}

_MODULES = ("errors", "limits", "names", "schema")


# Modules are imported at their first use: the errors alone must not bring NumPy and protobuf. Type
# checkers take the names from the imports above.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        import importlib

        if name in _MODULES:
            return importlib.import_module(f"{__name__}.{name}")
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module, attribute = _HOMES[name]
        return getattr(importlib.import_module(f"{__name__}.{module}"), attribute)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__, *_MODULES])
