"""TypeSpecs: look up their classes by name, and serialise their state."""

from __future__ import annotations

from typing import Any, Optional

import tensorflow as tf

from reference_impl.tensorflow_api.lookup import private

# The state of a TypeSpec is serialised by `_serialize` and `_deserialize` of its class (2.4-2.21).
# The registry of class names has no public lookup (framework.type_spec_registry in 2.12-2.21).
VariableSpec = private("tensorflow.python.ops.resource_variable_ops:VariableSpec")
BoundedTensorSpec = private("tensorflow.python.framework.tensor_spec:BoundedTensorSpec")
RowPartitionSpec = private("tensorflow.python.ops.ragged.row_partition:RowPartitionSpec")
PerReplicaSpec = private("tensorflow.python.distribute.values:PerReplicaSpec")
ExtensionTypeSpec = private("tensorflow.python.framework.extension_type:ExtensionTypeSpec")
# Replaces an extension type whose package is not imported; the public API makes only types with
# declared fields. In 2.12-2.21.
AnonymousExtensionTypeSpec = private(
    "tensorflow.python.framework.extension_type:AnonymousExtensionTypeSpec"
)
_lookup_type_spec = private("tensorflow.python.framework.type_spec_registry:lookup")
_type_spec_name = private("tensorflow.python.framework.type_spec_registry:get_name")


def registered_type_spec(name: str) -> Optional[Any]:
    """Return the TypeSpec class that is registered under a name, or None."""
    try:
        return _lookup_type_spec(name)
    except ValueError:
        return None


def type_spec_name(cls: type) -> Optional[str]:
    """Return the name under which a TypeSpec class is registered, or None."""
    try:
        return _type_spec_name(cls)
    except ValueError:
        return None


def deserialize_type_spec(cls: Any, state: Any) -> tf.TypeSpec:
    return cls._deserialize(state)


def serialize_type_spec(spec: tf.TypeSpec) -> Any:
    return spec._serialize()
