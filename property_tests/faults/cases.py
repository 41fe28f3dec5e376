"""Faults in the reference implementation, case by case: each must turn its case red.

A case that proves nothing else proves its answers.
"""

from __future__ import annotations

from compat_matrix.cases import title_and_rest
from property_tests.faults.declaring import Fault
from property_tests.faults.found_by.case_checks import ChecksOfCase
from property_tests.faults.losses import LOSSES
from property_tests.faults.planting import implementation
from property_tests.faults.programs.planted_worker import (
    ACCEPTS,
    OTHER_THREADS,
    SAVER,
    STALE,
    SWALLOWED,
    THIRD_CALL,
)

EXTRA = f"{SAVER}extra_assets"
CASES: dict[str, tuple[str, ...]] = {
    "asset_missing": (ACCEPTS,),
    "asset_same_name": ("assets",),
    "fault_abort": ("harmless",),
    "fault_hang": ("harmless",),
    "flow_autograph": ("branches",),
    "flow_branches": ("branches", "assignments"),
    "flow_map": ("arithmetic",),
    "flow_recurrent": ("arithmetic",),
    "flow_tensor_array": ("arithmetic",),
    "flow_while": ("arithmetic",),
    "fn_attributes": (f"{SAVER}function_attributes", "assignments"),
    "fn_closure_changed": ("arithmetic",),
    "fn_concrete_attribute": ("arithmetic", "signature_keys"),
    "fn_custom_gradient": ("custom_gradients", "standard_gradients"),
    "fn_defaults": ("defaults", "argument_names"),
    "fn_dtype_argument": ("traces",),
    "fn_flat": ("arithmetic",),
    "fn_float8_constants": ("content",),
    "fn_gradient_orders": ("custom_gradients", "standard_gradients", "assignments"),
    "fn_gradients": ("arithmetic",),
    "fn_jit_compile": (f"{SAVER}function_attributes",),
    "fn_literal_nan": ("literals",),
    "fn_literal_types": ("content",),
    "fn_literals": ("literals", "traces"),
    "fn_many": ("values", "traces"),
    "fn_namedtuples": ("namedtuples",),
    "fn_nested_calls": ("arithmetic",),
    "fn_partial": ("defaults",),
    "fn_polymorphic": ("traces",),
    "fn_python_values": ("traces",),
    "fn_ragged": ("composites",),
    "fn_relaxed_shapes": ("arithmetic",),
    "fn_result_containers": ("containers",),
    "fn_shape_argument": (ACCEPTS,),
    "fn_sparse": ("composites", "keys"),
    "fn_strings": ("attributes",),
    "fn_type_not_registered": ("arithmetic",),
    "fn_untraced": (ACCEPTS,),
    "fn_variable_argument": ("assignments",),
    "keras_export": ("values",),
    "keras_functional": ("values", "signature_keys"),
    "keras_in_module": ("values",),
    "keras_inputs": ("values", "signature_keys"),
    "keras_subclass": ("values",),
    "keras_trained": ("values", "trainable"),
    "op_dataset": ("values",),
    "op_dataset_captured": ("arithmetic",),
    "op_device": (f"{SAVER}devices",),
    "op_device_gpu": ("arithmetic",),
    "op_image": ("integers",),
    "op_kernel_missing": ("arithmetic",),
    "op_linear_algebra": ("values",),
    "op_numerics": ("arithmetic",),
    "op_parse_example": ("values",),
    "op_stateless_random": ("integers",),
    "op_transcendental": ("values",),
    "op_unknown_unreached": ("arithmetic",),
    "op_xla_call_module": ("module",),
    "optimizer_functional": ("values",),
    "optimizer_keras_slots": ("arithmetic",),
    "optimizer_v1_adam": ("slots",),
    "reexport_composed": ("children", "arithmetic"),
    "reexport_generations": ("assets", "values"),
    "refused_root": (ACCEPTS,),
    "refused_signature_output": (ACCEPTS,),
    "refused_signature_without_spec": (ACCEPTS,),
    "refused_signatures_attribute": (ACCEPTS,),
    "refused_untracked_capture": (ACCEPTS,),
    "resource_after_restore": ("initializers",),
    "rfc_embedding": ("assets", "signature_keys"),
    "rfc_embedding_list": ("listed_arguments",),
    "rfc_has_fns": ("arithmetic",),
    "rfc_has_python": ("traces",),
    "rfc_initialization_graph": ("values",),
    "rfc_methods": ("traces", "assignments"),
    "rfc_nested_arguments": ("containers",),
    "rfc_net2": ("arithmetic",),
    "rfc_python_attribute_absent": (ACCEPTS,),
    "rfc_python_method_absent": (ACCEPTS,),
    "rfc_python_numbers": ("traces",),
    "rfc_reexport_protos": ("values",),
    "rfc_reexport_signatures": ("signature_keys",),
    "rfc_table_resource": ("initializers", "assets"),
    "rfc_training_flag": ("traces",),
    "rfc_two_signatures": ("signature_keys", "values"),
    "rfc_untraced_shape": (ACCEPTS,),
    "save_options_tags": ("tags",),
    "serving_methods": (f"{SAVER}method_names",),
    "sig_batches": ("arithmetic",),
    "sig_bytes_alias": ("integers",),
    "sig_composite_outputs": ("integers",),
    "sig_defaults": (f"{SAVER}signature_defaults",),
    "sig_defaults_omitted": ("signature_keys",),
    "sig_dtypes": ("signature_keys",),
    "sig_each_dtype": ("signature_keys",),
    "sig_implicit_call": ("signature_keys",),
    "sig_implicit_none": ("arithmetic",),
    "sig_input_order": ("input_order",),
    "sig_keyword_names": ("input_order",),
    "sig_large_message": ("content",),
    "sig_nested_inputs": ("arithmetic",),
    "sig_no_inputs": ("values",),
    "sig_odd_names": ("signature_keys",),
    "sig_outputs": ("constants", "values", OTHER_THREADS, THIRD_CALL),
    "sig_refused_request": (SWALLOWED,),
    "sig_renamed_inputs": ("signature_keys",),
    "sig_reserved_names": ("values",),
    "sig_shared_state": ("assignments",),
    "sig_suppressed": ("arithmetic",),
    "sig_unused": ("values",),
    "state_batch_norm": ("assignments", "traces"),
    "state_generator": ("values",),
    "state_regularisation": ("children", "trainable"),
    "state_train_step": ("assignments", STALE),
    "strategy_mirrored": ("synchronization", "aggregation", "trainable"),
    "strategy_wrapped": ("values",),
    "table_dense": ("values",),
    "table_files": ("assets",),
    "table_made_in_trace": ("initializers",),
    "table_mutable": ("values",),
    "table_static": ("initializers",),
    "table_vocabulary": ("assets",),
    "tree_aliases_and_cycles": ("identities",),
    "tree_child_only": ("values",),
    "tree_containers": ("captures", "children"),
    "tree_deep": ("values", "children"),
    "tree_empty": (f"{SAVER}signature_made_up",),
    "tree_methods": ("children", "arithmetic"),
    "tree_odd_names": ("values", "children"),
    "tree_reserved_key": ("values",),
    "tree_tensors": ("content",),
    "tree_tuples": ("captures",),
    "tree_variable_root": ("values", STALE),
    "tree_variables_only": ("children", STALE),
    "unservable_missing_shard": (ACCEPTS,),
    "unservable_missing_value": (ACCEPTS,),
    "unservable_no_variables": (ACCEPTS,),
    "unservable_unknown_op": (ACCEPTS,),
    "var_attributes": ("trainable", "synchronization", "aggregation", "variable_names", STALE),
    "var_bfloat16": ("values",),
    "var_dtypes": ("values", STALE),
    "var_float8": ("values",),
    "var_int4": ("values",),
    "var_quantized": ("values",),
    "var_resized": ("open_shapes", "assignments"),
    "var_shapes": ("open_shapes",),
    "warmup_refused": (EXTRA,),
    "warmup_requests": (EXTRA,),
}
# What is planted in the process of the loader or saver itself, not in the model that it reads.
IN_THE_PROCESS = {
    ACCEPTS: "A loader or a saver accepts what it must refuse.",
    STALE: "A saver stores the values of its first save again.",
    SWALLOWED: "A call that fails answers with nothing instead of the error.",
    OTHER_THREADS: "Answers are wrong in threads other than the first.",
    THIRD_CALL: "The third call of a signature or function answers wrongly.",
}
# Planted for every commit, with the check that must be the first to find it.
GATE = {
    "var_attributes/trainable": "objects",
    "fn_custom_gradient/custom_gradients": "objects",
    "fn_custom_gradient/standard_gradients": "objects",
    "fn_gradient_orders/standard_gradients": "objects",
    "sig_outputs/other_threads": "values",
    "sig_outputs/third_call": "values",
    "sig_refused_request/swallowed_errors": "values",
    "tree_containers/captures": "objects",
    "fn_attributes/saver:function_attributes": "reexport",
    "var_attributes/stale_values": "reexport",
    "refused_root/accepts": "produce",
}


def what_is_lost(name: str) -> str:
    """Return the sentence about a fault of a loader or saver."""
    name = name.rpartition(":")[2]
    if name in IN_THE_PROCESS:
        return IN_THE_PROCESS[name]
    return title_and_rest(LOSSES[name].__doc__ or "")[0]


def fault_of(case: str, name: str) -> Fault:
    """Return the declaration of a fault that must turn a case red.

    Example:
      fault_of("tree_tuples", "captures").name == "tree_tuples/captures"
    """
    id_ = f"{case}/{name}"
    finder = ChecksOfCase(case, GATE.get(id_, ""))
    return Fault(id_, what_is_lost(name), implementation(name), finder, gate=id_ in GATE)


def _rows() -> tuple[Fault, ...]:
    rows = []
    for case, names in CASES.items():
        rows += [fault_of(case, name) for name in names]
    return tuple(rows)


ROWS = _rows()
