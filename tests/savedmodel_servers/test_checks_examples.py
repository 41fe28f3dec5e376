"""What Classify, Regress and MultiInference must answer, from the recorded answers of real
fixtures. No TensorFlow, no server.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fixtures_v1
from compat_matrix.checks import oracle
from compat_matrix.requests.artifact import Artifact, read_artifact
from reference_impl.format.container import layout
from reference_impl.format.schema import SignatureDef
from savedmodel_common import tensors
from savedmodel_common.compare import Tolerance
from savedmodel_common.serving.messages import Example
from savedmodel_servers.checks import examples
from savedmodel_servers.client import Class

ROOT = Path(fixtures_v1.ROOT)
ROWS = np.array([b"", b""], dtype=object)


def asked(case: str) -> list[tuple[str, str, dict, dict]]:
    """``[(request, method, given, recorded)]`` of the signatures of a fixture that classify or
    regress.
    """
    artifact: Artifact = read_artifact(ROOT / case)
    out = []
    for request in artifact.requests:
        if request["kind"] == "signature":
            method = oracle.method_names(artifact.model, request["tags"])[request["signature"]]
            if method in examples.SPOKEN:
                sides = [
                    tensors.load(str(artifact.io / request[side])) for side in ("inputs", "outputs")
                ]
                out.append((request["id"], method, *sides))
    return out


def expected(case: str, request: str) -> examples.Result:
    ((_, method, given, recorded),) = [found for found in asked(case) if found[0] == request]
    return examples.expected(method, given, recorded)


def strings(*values: bytes, shape: tuple[int, ...] = (-1,)) -> tensors.Tensor:
    return tensors.Tensor("string", np.array(values, dtype=object).reshape(shape))


def floats(*values: float, shape: tuple[int, ...] = (-1,)) -> tensors.Tensor:
    return tensors.Tensor("float32", np.float32(values).reshape(shape))


def test_a_class_has_a_label_and_a_score():
    assert expected("half_plus_two", "classify_x_to_y-1") == [
        [Class("low", 3.5), Class("high", 4.5)],
        [Class("low", 1.5), Class("high", 2.5)],
    ]
    first, *_ = expected("classify_regress_kinds", "serving_default-0")
    assert [item.label for item in first] == ["big pizza", "größe pizza", "\x00 pizza"]


def test_labels_or_scores_may_be_absent():
    both, classes, scores = (
        expected("classify_regress_kinds", f"{key}-0")
        for key in ("serving_default", "classes", "scores")
    )
    assert classes == [[Class(item.label, 0.0) for item in row] for row in both]
    assert scores == [[Class("", item.score) for item in row] for row in both]


def test_a_vector_and_a_column_are_values():
    assert expected("classify_regress_kinds", "price-0") == [1.5, -0.25, 8.0]
    scores = expected("classify_regress_kinds", "scores-0")
    assert expected("classify_regress_kinds", "vector-0") == [row[0].score for row in scores]
    assert expected("classify_regress_kinds", "column-0") == [row[1].score for row in scores]


def test_every_fixture_that_classifies_or_regresses_can_be_asked_so():
    answered, refused = {}, set()
    for case in fixtures_v1.cases():
        for request, method, given, recorded in asked(case):
            try:
                answer = examples.expected(method, given, recorded)
            except examples.Refused:
                refused.add(case)
                continue
            assert len(answer) == len(given["inputs"].array), (case, request)
            assert not examples.differences(answer, answer)
            answered.setdefault(case, set()).add(examples.SPOKEN[method])
    assert refused == {"legacy_names"}, "its signature classifies numbers, not examples"
    assert len(answered) >= 6 and answered["half_plus_two"] == {"classify", "regress"}


@pytest.mark.parametrize(
    ("method", "given", "recorded", "reason"),
    [
        ("classify", {}, {}, "0 inputs"),
        ("classify", {"examples": strings(b"")}, {}, "called 'examples'"),
        ("classify", {"inputs": floats(1)}, {}, "float32"),
        ("classify", {"inputs": strings(b"", shape=(1, 1))}, {}, "vector of strings"),
        ("regress", {"inputs": strings()}, {"outputs": floats()}, "no example"),
        ("classify", {"inputs": strings(b"", b"#6\xff")}, {}, "string 1 of the input is not a serialised tf.Example"),
        # a message, of a field 15
        ("regress", {"inputs": strings(b"z\x03abc")}, {}, "string 0 of the input is not"),
        ("classify", None, {"labels": strings(b"a")}, "no output is called"),
        ("classify", None, {key: floats(1) for key in "abc"}, "3 outputs"),
        ("classify", None, {"scores": floats(1, 2)}, r"float32\[2\], not float32\[2, classes\]"),
        ("classify", None, {"scores": floats(1, 2, shape=(1, 2))}, r"float32\[1, 2\]"),
        ("classify", None, {"classes": floats(1, 2, shape=(2, 1))}, "not string"),
        (
            "classify", None, {"classes": strings(b"a", b"b", shape=(2, 1)), "scores": floats(1, 2, 3, 4, shape=(2, 2))},
            "1 and 2 classes",
        ),
        ("regress", None, {"values": floats(1, 2)}, "called 'values'"),
        ("regress", None, {"outputs": floats(1, 2, 3, 4, shape=(2, 2))}, r"float32\[2, 2\]"),
        ("regress", None, {"outputs": floats(1)}, r"float32\[1\]"),
        ("regress", None, {"outputs": tensors.from_numpy(np.array([1.0, 2.0]))}, "float64"),
        ("regress", None, {}, "0 outputs"),
    ],
)  # fmt: skip
def test_what_serving_refuses(method, given, recorded, reason):
    given = {"inputs": tensors.Tensor("string", ROWS)} if given is None else given
    with pytest.raises(examples.Refused, match=reason):
        examples.expected(f"tensorflow/serving/{method}", given, recorded)


@pytest.mark.parametrize("method", ["tensorflow/serving/predict", "my/classify", "classify"])
def test_only_the_methods_that_serving_knows_take_examples(method):
    with pytest.raises(
        ValueError, match="none of tensorflow/serving/classify, tensorflow/serving/regress"
    ):
        examples.expected(method, {}, {})
    signature = SignatureDef(method_name=method)
    signature.inputs["inputs"].name = "examples:0"
    assert examples.together({"one": signature, "other": signature}) == []


def test_differences():
    answer = [[Class("a", 1.0), Class("b", float("nan"))], [Class("c", -0.0), Class("d", 2.0)]]
    assert not examples.differences(
        answer, [[Class("a", 1.0), Class("b", float("nan"))], [Class("c", 0.0), Class("d", 2.0)]]
    )
    (label,) = examples.differences(answer, [answer[0], [Class("c", 0.0), Class("D", 2.0)]])
    assert (label.kind, label.where) == ("value", "classes")
    near = [answer[0], [Class("c", 0.0), Class("d", 2.0 + 2**-20)]]
    assert [item.where for item in examples.differences(answer, near)] == ["scores"]
    assert not examples.differences(answer, near, Tolerance(1e-6))
    assert "answers for 1 examples, expected 2" in str(examples.differences(answer, answer[:1])[0])
    assert "example 1: has 1 classes" in str(
        examples.differences(answer, [answer[0], answer[1][:1]])[0]
    )
    assert [item.kind for item in examples.differences([1.0, 2.0], [1.0, 2.5])] == ["value"]
    assert not examples.differences([0.0, float("nan")], [-0.0, float("nan")])


def test_what_examples_have_in_common_is_their_context():
    ((_, _, given, _),) = [
        found for found in asked("classify_regress_kinds") if found[0] == "vector-0"
    ]
    rows = examples.serialized(given)
    context, rest = examples.with_context(rows)
    assert list(Example.FromString(context).features.feature) == ["query"]
    for row, part in zip(rows, rest):
        assert "query" not in Example.FromString(part).features.feature
        assert Example.FromString(context + part) == Example.FromString(row), (
            "as Serving puts them together"
        )
    one, (nothing,) = examples.with_context(rows[:1])
    assert (
        Example.FromString(one) == Example.FromString(rows[0])
        and not Example.FromString(nothing).features.feature
    )
    mixed = [Example.FromString(row) for row in rows]
    mixed[1].features.feature["query"].bytes_list.value[0] = b"salad"
    assert examples.with_context([message.SerializeToString() for message in mixed]) is None
    assert examples.with_context([]) is None
    assert examples.with_context([b"\xff"]) is None


def test_what_one_request_of_multi_inference_may_ask():
    def found(case):
        (graph,) = layout.read(ROOT / case / "model").saved_model.meta_graphs
        return examples.together(graph.signature_def)

    assert found("half_plus_two") == [["classify_x_to_y", "regress_x_to_y"]]
    assert found("classify_regress_kinds") == [
        ["classes", "column", "price", "scores", "serving_default", "vector"]
    ]
    assert found("simple_save") == []
    apart = {key: SignatureDef(method_name="tensorflow/serving/regress") for key in ("a", "b")}
    for key, signature in apart.items():
        signature.inputs["inputs"].name = f"{key}_inputs:0"
    assert examples.together(apart) == []
