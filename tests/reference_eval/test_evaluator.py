"""The evaluator alone: state, options, limits, errors. No TensorFlow is imported."""

import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import reference_eval
from reference_eval import registry, sizes

FIXTURES = Path(__file__).parents[2] / "fixtures_v1"


@pytest.fixture
def half():
    return reference_eval.load(FIXTURES / "half_plus_two" / "model", "serve")


def test_no_tensorflow_is_imported():
    program = (
        "import sys, reference_eval\n"
        f"model = reference_eval.load({str(FIXTURES / 'while_loop' / 'model')!r})\n"
        "model.signatures['serving_default']\n"
        "assert not {'tensorflow', 'keras'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_a_model_keeps_its_state():
    model = reference_eval.load(FIXTURES / "stateful_counter" / "model")
    before = model.signatures["get_counter"]()["output"]
    model.signatures["incr_counter"]()
    assert model.signatures["get_counter"]()["output"] == before + 1


def test_every_node_is_traced():
    lines = []
    model = reference_eval.load(FIXTURES / "half_plus_two" / "model", "serve", trace=lines.append)
    lines.clear()
    model.signatures["serving_default"](x=np.float32([[2]]))
    assert any("(Mul) -> float32[1, 1] [1.0]" in line for line in lines)


def test_double_precision_is_kept_throughout():
    path = FIXTURES / "dynamic_rnn" / "model"
    given = {"x": np.ones([2, 5, 3]), "length": np.int64([5, 2])}
    single = reference_eval.load(path).signatures["serving_default"](**given)["h"]
    double = reference_eval.load(path, precision=np.float64).signatures["serving_default"](**given)
    assert (single.dtype, double["h"].dtype) == (np.float32, np.float64)
    np.testing.assert_allclose(single, double["h"], rtol=1e-5)
    assert np.any(double["h"] != double["h"].astype(np.float32))


def test_a_new_op_is_used():
    def resample(data, warp):
        return data[:, 0, :]

    added = registry.described(["Resampler", "Addons>Resampler"], resample)
    model = reference_eval.load(FIXTURES / "contrib_op" / "model", new_ops=[added])
    call = model.signatures["serving_default"]
    given = {
        name: np.zeros([2 if size == -1 else size for size in shape or [1, 1, 1, 2]], dtype)
        for name, (dtype, shape) in call.inputs.items()
    }
    with pytest.raises(reference_eval.EvaluationError) as error:
        reference_eval.load(FIXTURES / "contrib_op" / "model").signatures["serving_default"](
            **given
        )
    assert isinstance(error.value, reference_eval.UnknownOpError)
    assert call(**given)


def test_an_error_names_file_function_node_and_op():
    model = reference_eval.load(FIXTURES / "py_func" / "model")
    call = model.signatures["serving_default"]
    given = {name: np.zeros([1], dtype) for name, (dtype, _) in call.inputs.items()}
    with pytest.raises(reference_eval.RefusedOpError) as error:
        call(**given)
    assert error.value.file.endswith("saved_model.pb")
    assert error.value.node == (
        "function 'signature_serving_default', node 'callback' (PyFuncStateless)"
    )


@pytest.mark.parametrize(
    "given", [{}, {"x": [1.0], "y": [1.0]}, {"x": np.zeros([1, 1, 1], np.float32)}]
)
def test_inputs_that_do_not_fit_are_refused(given):
    model = reference_eval.load(FIXTURES / "shapes" / "model")
    with pytest.raises(reference_eval.EvaluationError):
        model.signatures["serving_default"](**given)


@pytest.mark.parametrize("limit, value", [("STEPS", 3), ("DEPTH", 0), ("LIVE_BYTES", 1)])
def test_limits_are_named(monkeypatch, limit, value):
    model = reference_eval.load(FIXTURES / "while_loop" / "model")
    call = model.signatures["serving_default"]
    given = {
        name: np.ones([2 if size == -1 else size for size in shape or []], dtype)
        for name, (dtype, shape) in call.inputs.items()
    }
    monkeypatch.setattr(sizes, limit, value)
    with pytest.raises(reference_eval.EvaluationLimitError) as error:
        call(**given)
    assert error.value.limit == limit


@pytest.mark.parametrize(
    "op, inputs",
    [
        ("Fill", [np.int64([2**40]), np.float32(0)]),
        ("Range", [np.int64(0), np.int64(2**60), np.int64(1)]),
        ("Tile", [np.zeros(2**10), np.int64([2**40])]),
        ("BroadcastTo", [np.zeros(1), np.int64([2**40])]),
        ("OneHot", [np.zeros(2**10, np.int32), np.int32(2**30), np.float32(1), np.float32(0)]),
        ("PadV2", [np.zeros(1), np.int64([[0, 2**40]]), np.float64(0)]),
    ],
)
def test_nothing_large_is_allocated(op, inputs):
    evaluate = registry.known()[op].evaluate
    with pytest.raises(reference_eval.EvaluationLimitError) as error:
        evaluate(*[np.asarray(value) for value in inputs])
    assert error.value.limit == "TENSOR_BYTES"


def test_the_names_of_signatures_are_those_of_the_model(half):
    assert "serving_default" in half.signatures
    assert "missing" not in half.signatures
    with pytest.raises(KeyError):
        half.signatures["missing"]


def test_each_op_has_one_file_that_states_dtypes_and_accuracy():
    modules = {sys.modules[found.evaluate.__module__] for found in registry.known().values()}
    silent = [
        module.__name__
        for module in modules
        if "\nDtypes: " not in module.__doc__ or "\nAccuracy: " not in module.__doc__
    ]
    assert silent == []


def test_every_op_in_the_modules_is_found_by_the_names_of_its_decorator():
    folder = Path(registry.__file__).with_name("ops")
    defined = []
    for path in folder.glob("*.py"):
        module = importlib.import_module(f"reference_eval.ops.{path.stem}")
        ops = [value for value in vars(module).values() if isinstance(value, registry.Op)]
        defined += [
            name
            for found in ops
            for name in found.names
            if found.evaluate.__module__ == module.__name__
        ]
    assert sorted(defined) == sorted(registry.known())
    assert all(name in found.names for name, found in registry.known().items())


def test_a_node_is_watched_with_its_results():
    seen = []
    model = reference_eval.load(FIXTURES / "half_plus_two" / "model", "serve", watch=seen.append)
    seen.clear()
    answer = model.signatures["serving_default"](x=np.float32([[2]]))["y"]
    (product,) = [ran for ran in seen if ran.op == "Mul"]
    assert np.array_equal(product.values[0], [[1]])
    assert sorted(value.item() for value in product.inputs) == [0.5, 2]
    assert np.array_equal(seen[-1].values[0], answer)
    assert seen[-1].function == "signature_serving_default"


def test_the_parts_of_sparse_and_composite_inputs_are_called_like_those_of_outputs():
    sparse = reference_eval.load(FIXTURES / "sparse_io" / "model").signatures["serving_default"]
    assert {"a/indices", "a/values", "a/dense_shape"} <= set(sparse.inputs)
    ragged = reference_eval.load(FIXTURES / "ragged_io" / "model").signatures["serving_default"]
    assert "r/component_0" in ragged.inputs


def test_an_input_with_a_default_may_be_left_out(tmp_path):
    from reference_impl.format import schema

    saved = schema.SavedModel.FromString(
        (FIXTURES / "half_plus_two" / "model" / "saved_model.pb").read_bytes()
    )
    (graph,) = saved.meta_graphs
    default = graph.signature_def["serving_default"].defaults["x"]
    default.dtype = schema.DT_FLOAT
    default.tensor_shape.dim.add(size=1)
    default.tensor_shape.dim.add(size=1)
    default.float_val.append(6)
    copy = tmp_path / "model"
    shutil.copytree(FIXTURES / "half_plus_two" / "model", copy)
    (copy / "saved_model.pb").write_bytes(schema.serialize(saved))
    call = reference_eval.load(copy).signatures["serving_default"]
    assert call()["y"] == [[5]]
    assert call(x=np.float32([[2]]))["y"] == [[3]]


def test_strings_of_a_table_are_bytes():
    call = reference_eval.load(FIXTURES / "index_table_oov" / "model").signatures["decode"]
    (name,) = call.inputs
    (words,) = call(**{name: np.int64([[0]])}).values()
    assert all(type(word) is bytes for word in words.ravel())


@pytest.mark.parametrize("make, kind", [(os.mkdir, "directory"), (os.mkfifo, "pipe")])
def test_an_asset_that_is_not_a_file_is_named(tmp_path, make, kind):
    """To open a pipe would mean to wait for its other end."""
    copy = tmp_path / "model"
    shutil.copytree(FIXTURES / "index_table_oov" / "model", copy)
    (asset,) = (copy / "assets").iterdir()
    asset.unlink()
    make(asset)
    model = reference_eval.load(copy)
    assert any(str(asset) in failure and kind in failure for failure in model.failures)


def test_an_asset_that_is_missing_is_named_once(tmp_path):
    copy = tmp_path / "model"
    shutil.copytree(FIXTURES / "index_table_oov" / "model", copy)
    (asset,) = (copy / "assets").iterdir()
    asset.unlink()
    (failure,) = reference_eval.load(copy).failures
    assert failure.count(str(asset)) == 1
    assert failure.endswith("no such file")


def test_an_asset_over_the_limit_is_refused_not_cut(monkeypatch):
    monkeypatch.setattr(sizes, "TENSOR_BYTES", 10)
    model = reference_eval.load(FIXTURES / "index_table_oov" / "model")
    assert any("10 bytes" in failure for failure in model.failures)


def test_padding_is_limited_before_it_is_made():
    with pytest.raises(reference_eval.EvaluationLimitError) as error:
        registry.known()["MaxPool"].evaluate(
            np.zeros([1, 2, 2, 1], np.float32),
            ksize=[1, 1, 1, 1],
            strides=[1, 1, 1, 1],
            padding=b"EXPLICIT",
            explicit_paddings=[0, 0, 2**30, 0, 2**30, 0, 0, 0],
        )
    assert error.value.limit == "TENSOR_BYTES"


@pytest.mark.parametrize("op", ["WriteFile", "PrintV2", "EagerPyFunc", "Multinomial"])
def test_ops_that_act_on_the_machine_or_draw_are_refused(op):
    assert registry.refusal(op)
    assert op not in registry.known()


def test_an_op_of_a_program_is_known_to_the_load_that_got_it_alone():
    @registry.op("MyOp")
    def my_op(value):
        return value

    assert my_op(3) == 3
    assert my_op.names == ("MyOp",)
    assert "MyOp" not in registry.known()
