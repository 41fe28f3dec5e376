"""TypeSpecs: classes by name, and the state that each takes apart and puts together."""

from __future__ import annotations

from typing import Any, Optional

import tensorflow as tf

from reference_impl.tensorflow_api.lookup import private

# TypeSpecs: a class takes apart and puts together its own state by _serialize and _deserialize (2.4-2.21); names of classes are
# in a registry without public lookup (framework.type_spec_registry since 2.12 or before).
VariableSpec = private("tensorflow.python.ops.resource_variable_ops:VariableSpec")
ExtensionTypeSpec = private("tensorflow.python.framework.extension_type:ExtensionTypeSpec")
# What stands for an extension type whose package is not imported; public API makes only types with declared fields. In 2.12-2.21.
AnonymousExtensionTypeSpec = private("tensorflow.python.framework.extension_type:AnonymousExtensionTypeSpec")
_lookup_type_spec = private("tensorflow.python.framework.type_spec_registry:lookup")
_type_spec_name = private("tensorflow.python.framework.type_spec_registry:get_name")


def registered_type_spec(name: str) -> Optional[Any]:
    """The TypeSpec class registered under a name, or None."""
    try:
        return _lookup_type_spec(name)
    except ValueError:
        return None


def type_spec_name(cls: type) -> Optional[str]:
    """The name under which a TypeSpec class is registered, or None."""
    try:
        return _type_spec_name(cls)
    except ValueError:
        return None


def deserialize_type_spec(cls: Any, state: Any) -> tf.TypeSpec:
    return cls._deserialize(state)


def serialize_type_spec(spec: tf.TypeSpec) -> Any:
    return spec._serialize()
