"""The private symbols of TensorFlow and Keras that `reference_impl` uses.

No module outside this package imports from `tensorflow.python`. Each entry states why the public API is not enough, and which
releases have the symbol (read from the wheels of 2.12, 2.15, 2.18 and 2.21).
"""

from __future__ import annotations

from reference_impl.tensorflow_api.bases import (
    Module,
    Resource,
    RestoredConcreteFunction,
    RestoredFunction,
    SharedResource,
    unsearched,
)
from reference_impl.tensorflow_api.functions import (
    ConcreteFunction,
    Function,
    attributes_of_traces,
    call_flat,
    captured_as,
    creation_trace,
    flat_arguments,
    gradient_op_type,
    jit_compile,
    name_results,
    nested_graphs,
    saving_errors,
    set_loop_graphs,
    traces,
    untraced_copy,
    without_autograph,
)
from reference_impl.tensorflow_api.keras import (
    keras_identity,
    keras_metadata,
    keras_signature,
    keras_variable,
    report_parts,
    stand_in,
)
from reference_impl.tensorflow_api.messages import from_tf, to_tf
from reference_impl.tensorflow_api.optimizers import (
    is_optimizer,
    optimizer_slots,
    optimizer_twin,
    optimizer_variables,
    trained_variables,
)
from reference_impl.tensorflow_api.runtime import (
    call_registered,
    eager_mode,
    function_definition,
    gradient_function,
    implementations,
    make_known,
    may_record,
    op_def,
    register_function,
    remove_function,
)
from reference_impl.tensorflow_api.signatures import (
    is_unknown_argument,
    python_signature,
    signature_of_fullargspec,
    traced_arguments,
)
from reference_impl.tensorflow_api.trackables import (
    Asset,
    AutoTrackable,
    CapturableResource,
    CompositeTensor,
    ShardedVariable,
    Trackable,
    TrackableDict,
    TrackableList,
    TrackableTuple,
    content_factories,
    content_hooks,
    content_name,
    loaded_content,
    make_from_message,
    makes_itself,
    needed_before,
    own_message,
    resource_device,
    resource_handle,
    resource_of,
    track,
    trackable_children,
    tracks_attributes,
    wrap,
)
from reference_impl.tensorflow_api.type_specs import (
    AnonymousExtensionTypeSpec,
    ExtensionTypeSpec,
    VariableSpec,
    deserialize_type_spec,
    registered_type_spec,
    serialize_type_spec,
    type_spec_name,
)
from reference_impl.tensorflow_api.variables import (
    UninitializedVariable,
    as_first_replica,
    behind_handle,
    cached_variable,
    copy_handle_data,
    dtype_behind,
    is_only_device,
    is_variable,
    last_variable_creator,
    makes_variables_itself,
    replica_handle,
    set_initializer,
    unusable_handle,
    variable_accessed,
    variable_components,
    variable_of_handle,
    variable_without_value,
)
