"""Cases built, answered and saved by a real TensorFlow; nests there and back."""

import json
from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compat_matrix.cases import CASES_DIR
from compat_matrix.workers import nests, producing, signature_wire
from savedmodel_common import tensors
from savedmodel_common.compare import EXACT, compare_named, compare_nests

pytestmark = pytest.mark.tensorflow

PRODUCED = (
    "rfc_embedding",
    "rfc_untraced_shape",
    "fn_namedtuples",
    "fn_result_containers",
    "fn_ragged",
    "fn_sparse",
    "var_bfloat16",
    "sig_shared_state",
    "sig_composite_outputs",
    "save_options_tags",
    "serving_methods",
    "warmup_requests",
    "fault_hang",
)


@pytest.fixture(scope="module")
def tf() -> Any:
    import tensorflow

    return tensorflow


@pytest.fixture(scope="module")
def artifacts(tf: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A handful of cases, produced once."""
    folder = tmp_path_factory.mktemp("produced")
    scratch = tmp_path_factory.mktemp("scratch")
    for name in PRODUCED:
        (folder / name).mkdir()
        producing.produce(
            str(CASES_DIR / f"{name}.py"), str(folder / name), str(scratch), tf.saved_model.save
        )
    assert list(scratch.iterdir()) == [], "what a builder wrote is gone after the save"
    return {name: folder / name for name in PRODUCED}


def _requests(artifact: Path) -> Any:
    return json.loads((artifact / "io" / "io.json").read_text(encoding="utf-8"))["requests"]


def _differences(tf: Any, root: Any, artifact: Path, request: Any) -> Any:
    """Ask a loaded model one request and compare with the recorded answer."""
    io = artifact / "io"
    given, expected = (
        tensors.load(str(io / request["inputs"])),
        tensors.load(str(io / request["outputs"])),
    )
    got: dict[str, tensors.Tensor] = {}
    if request["kind"] == "signature":
        answer = root.signatures[request["signature"]](
            **{key: nests.to_tf(tf, value) for key, value in given.items()}
        )
        for name, part in producing.named_outputs(answer):
            got.update(nests.flatten_output(tf, name, part))
        return compare_named(expected, got, EXACT)
    args = [nests.decode(tf, item, given) for item in request["args"]]
    kwargs = {key: nests.decode(tf, item, given) for key, item in request["kwargs"].items()}
    structure = nests.encode(tf, nests.resolve(root, request["path"])(*args, **kwargs), got, "o")
    return compare_nests(request["structure"], structure, expected, got, EXACT)


@pytest.mark.parametrize("name", PRODUCED)
def test_a_loaded_model_gives_the_recorded_answers(
    tf: Any, artifacts: dict[str, Path], name: str
) -> None:
    root = tf.saved_model.load(str(artifacts[name] / "model"))
    asked = [request for request in _requests(artifacts[name]) if request["outputs"]]
    assert asked or name == "rfc_untraced_shape"
    for request in asked:
        assert not _differences(tf, root, artifacts[name], request), request["id"]


def test_a_wrong_answer_is_noticed(tf: Any, artifacts: dict[str, Path]) -> None:
    root = tf.saved_model.load(str(artifacts["rfc_embedding"] / "model"))
    root.embeddings.assign_add(tf.ones_like(root.embeddings) * 2.0**-10)
    for request in _requests(artifacts["rfc_embedding"]):
        (difference,) = _differences(tf, root, artifacts["rfc_embedding"], request)
        assert difference.kind == "value"


def test_answers_do_not_touch_what_is_saved(tf: Any, artifacts: dict[str, Path]) -> None:
    """The requests of sig_shared_state count up and reset; the export holds the state before all of
    them.
    """
    root = tf.saved_model.load(str(artifacts["sig_shared_state"] / "model"))
    assert root.count.numpy() == 10


def test_requests_leave_no_trace_in_the_export(tf: Any, artifacts: dict[str, Path]) -> None:
    """The request of rfc_untraced_shape is a scalar; only the vector the builder traced may be
    called.
    """
    root = tf.saved_model.load(str(artifacts["rfc_untraced_shape"] / "model"))
    assert [
        spec.shape.as_list()
        for f in root.c_dep.concrete_functions
        for spec in f.structured_input_signature[0]
    ] == [[2]]


def test_unanswered_requests_have_no_outputs(artifacts: dict[str, Path]) -> None:
    outputs = {
        request["signature"]: request["outputs"] for request in _requests(artifacts["fault_hang"])
    }
    assert outputs == {"fine": "fine-0.out.npz", "hang": None}
    assert not (artifacts["fault_hang"] / "io" / "hang-0.out.npz").exists()


def test_save_options_reach_the_export(tf: Any, artifacts: dict[str, Path]) -> None:
    artifact = artifacts["save_options_tags"]
    assert [request["tags"] for request in _requests(artifact)] == [["serve", "second"]] * 2
    assert (artifact / "model" / "debug").is_dir()


def test_a_case_whose_save_fails_raises_it(tf: Any, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="untracked"):
        producing.produce(
            str(CASES_DIR / "refused_untracked_capture.py"),
            str(tmp_path / "out"),
            str(tmp_path),
            tf.saved_model.save,
        )


Point = namedtuple("Point", ["x", "y"])
VALUES = {
    "python": lambda tf: [None, True, -3, "größe", 0.5, float("inf"), (1, ()), {"b": [], "a": {}}],
    "namedtuple": lambda tf: Point((tf.constant(1),), Point(None, "t")),
    "numpy": lambda tf: {"x": np.float64(2.5), "y": np.arange(6, dtype=np.int16).reshape(2, 3), "z": np.bool_(True)},
    "strings": lambda tf: (tf.constant(b"a\x00"), tf.constant(["", "größe"]), tf.zeros([0, 2], tf.string)),
    "small floats": lambda tf: [
        tf.cast([1.5, -2.0], tf.bfloat16), tf.cast(0.5, tf.as_dtype("float8_e4m3fn")), tf.cast([[3]], tf.as_dtype("int4"))
    ],
    "quantised": lambda tf: tf.constant([-128, 127], tf.qint8),
    "complex": lambda tf: tf.constant([1 + 2j], tf.complex64),
    "variable": lambda tf: tf.Variable([1.0, 2.0]),
    "dtype and shape": lambda tf: (tf.bfloat16, tf.TensorShape([1, None]), tf.TensorShape(None), tf.TensorShape([])),
    "sparse": lambda tf: tf.SparseTensor([[0, 1]], ["w"], [2, 3]),
    "ragged": lambda tf: tf.ragged.constant([[[1, 2], []], [[3]]]),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_a_nest_comes_back_as_it_went(tf: Any, tmp_path: Path, name: str) -> None:
    out: dict[str, tensors.Tensor] = {}
    nest = nests.encode(tf, VALUES[name](tf), out, "n")
    tensors.save(str(tmp_path / "n.npz"), out)
    value = nests.decode(
        tf, json.loads(json.dumps(nest, allow_nan=False)), tensors.load(str(tmp_path / "n.npz"))
    )
    again: dict[str, tensors.Tensor] = {}
    assert nests.encode(tf, value, again, "n") == nest
    assert not compare_named(out, again, EXACT)


def test_a_decoded_nest_has_the_types_it_had(tf: Any) -> None:
    out: dict[str, tensors.Tensor] = {}
    value = [
        (1,),
        tf.constant(2.5),
        Point(tf.RaggedTensor.from_row_splits([1], [0, 1]), tf.int8),
        {"k": tf.constant(b"\x00")},
    ]
    back = nests.decode(tf, nests.encode(tf, value, out, "n"), out)
    assert isinstance(back[0], tuple) and back[1].numpy() == 2.5
    assert (
        type(back[2]).__name__ == "Point"
        and isinstance(back[2].x, tf.RaggedTensor)
        and back[2].y is tf.int8
    )
    assert back[3]["k"].numpy() == b"\x00"


def test_markers_of_a_case_become_tensors(tf: Any) -> None:
    out: dict[str, tensors.Tensor] = {}
    value = {
        "cast": {"$cast": ["bfloat16", np.float32([1.5])]},
        "quantised": {"$cast": ["quint8", np.float32([255])]},
        "sparse": {"$sparse": [np.int64([[0]]), np.float32([1]), np.int64([3])]},
        "ragged": {"$ragged": [np.float32([1, 2]), np.int64([0, 2])]},
    }
    back = nests.decode(tf, nests.encode(tf, value, out, "n"), out)
    assert back["cast"].dtype == tf.bfloat16 and float(back["cast"][0]) == 1.5
    assert back["quantised"].dtype == tf.quint8
    assert tf.sparse.to_dense(back["sparse"]).numpy().tolist() == [1, 0, 0]
    assert back["ragged"].to_list() == [[1, 2]]


def test_what_a_nest_cannot_carry_is_refused(tf: Any) -> None:
    for value in (object(), {"$unknown": 1}, tf.data.Dataset.range(1), {1, 2}):
        with pytest.raises(TypeError):
            nests.encode(tf, value, {}, "n")


def _records(model: Path) -> list[list[tuple[int, Any]]]:
    """The fields of every PredictionLog in the file of requests to warm up with, read without any
    proto of TensorFlow Serving.
    """
    import tensorflow as tf

    stored = tf.data.TFRecordDataset([str(model / "assets.extra" / "tf_serving_warmup_requests")])
    return [signature_wire.fields(record.numpy()) for record in stored]


def test_requests_to_warm_up_with_are_those_the_case_gives(
    tf: Any, artifacts: dict[str, Path]
) -> None:
    logs = _records(artifacts["warmup_requests"] / "model")
    assert [number for ((number, _),) in logs] == [
        6,
        6,
        3,
        2,
    ], "predict, predict, regress, classify"
    requests = [dict(signature_wire.fields(log)) for ((_, log),) in logs]
    assert all(list(request) == [1] for request in requests), "a request and no response"
    predict = signature_wire.fields(requests[0][1])
    assert [number for number, _ in predict] == [1, 2, 2]
    assert signature_wire.fields(predict[0][1]) == [
        (1, b"warmup_requests"),
        (3, b"serving_default"),
    ]
    given = {
        entry[1]: entry[2]
        for entry in (dict(signature_wire.fields(value)) for _, value in predict[1:])
    }
    assert list(given) == [b"label", b"x"]
    label = tf.make_tensor_proto(0.0)
    label.ParseFromString(given[b"label"])
    assert tf.make_ndarray(label) == np.array(b"\xff\x00", object)
    (_, example_list), *rest = signature_wire.fields(dict(signature_wire.fields(requests[2][1]))[2])
    examples = [
        tf.train.Example.FromString(value).features.feature
        for _, value in signature_wire.fields(example_list)
    ]
    assert not rest and [list(features["x"].float_list.value) for features in examples] == [
        [1, 2],
        [3, 4],
    ]


def test_a_case_edits_what_was_saved_and_its_answers_are_those_of_before(
    artifacts: dict[str, Path],
) -> None:
    from reference_impl.format.container import layout

    (graph,) = layout.read(artifacts["serving_methods"] / "model").saved_model.meta_graphs
    methods = {
        key: value.method_name
        for key, value in graph.signature_def.items()
        if not key.startswith("__")
    }
    assert methods == {
        key: f"tensorflow/serving/{'regress' if key in ('vector', 'column') else 'classify'}"
        for key in ("both", "classes", "scores", "vector", "column")
    }
    scores = tensors.load(str(artifacts["serving_methods"] / "io" / "both-1.out.npz"))["scores"]
    assert scores.array.tolist() == [[3.5, -1.0]]
