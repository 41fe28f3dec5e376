"""The settings with which `tf.function` traces a rebuilt function."""

from __future__ import annotations

import pytest

from reference_impl.format import schema

pytestmark = pytest.mark.tensorflow


def test_attributes_of_the_FunctionDef_are_those_of_the_traced_function(tf):
    from reference_impl.functions.function_settings import as_tf_function

    definition = schema.FunctionDef()
    definition.attr["_noinline"].b = True
    definition.attr["unknown_to_tf_function"].b = True
    traced = as_tf_function(definition, lambda: tf.constant(1.0)).get_concrete_function()
    attributes = traced.function_def.attr
    assert attributes["_noinline"].b and "unknown_to_tf_function" not in attributes


def test_jit_compile_is_taken_from_the_FunctionDef(tf):
    from reference_impl.functions.function_settings import as_tf_function

    definition = schema.FunctionDef()
    assert as_tf_function(definition, lambda: None)._jit_compile is None
    definition.attr["_XlaMustCompile"].b = True
    assert as_tf_function(definition, lambda: None)._jit_compile is True


def test_a_signature_has_the_names(tf):
    from reference_impl.functions.function_settings import signature_with

    assert str(signature_with(["x", "training"])) == "(x, training)"
