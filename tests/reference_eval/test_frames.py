"""Control flow of TF 1.x that is not rewritten to functions: Switch, Merge and the frames of loops.
No TensorFlow is imported.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from google.protobuf import text_format
from test_evaluated_fixtures import answer, differences

import reference_eval
from reference_eval import EvaluationError, EvaluationLimitError, registry, sizes
from reference_eval.executor import Executor, Run
from reference_eval.reading import OpTable, definition_of, schema
from reference_eval.state import Stack, TensorArray
from reference_impl.v1.reading import program
from savedmodel_common import tensors

FIXTURES = Path(__file__).parents[2] / "fixtures_v1"
WITH_FLOW = (
    "bidirectional_gru",
    "cond_case",
    "dynamic_rnn",
    "flow_gradients",
    "nested_loops",
    "tensor_array",
    "while_loop",
)
ATTRIBUTES = {
    "Enter": 'attr { key: "frame_name" value { s: "loop" } }',
    "Const": (
        'attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value" value { tensor {'
        " dtype: DT_FLOAT tensor_shape { } float_val: 10 } } }"
    ),
    "Merge": 'attr { key: "N" value { i: 2 } }',
}


@pytest.mark.parametrize("fixture", WITH_FLOW)
def test_a_session_s_answers_without_rewriting(monkeypatch, fixture):
    """The recorded answers follow from the graph as it is, too."""
    monkeypatch.setattr(program, "functionalise", lambda *_: [])
    monkeypatch.setattr(program, "functionalise_library", lambda *_: None)
    folder = FIXTURES / fixture / "io"
    requests = json.loads((folder / "io.json").read_text(encoding="utf-8"))["requests"]
    seen = set()
    model = reference_eval.load(
        folder.parent / "model", requests[0]["tags"], watch=lambda ran: seen.add(ran.op)
    )
    answered = [one for one in requests if one["kind"] == "signature" and one.get("outputs")]
    for request in answered:
        wanted = tensors.load(folder / request["outputs"])
        assert list(differences(answer(model, folder, request), wanted)) == []
    assert {"Switch", "Merge"} <= seen


# Small graphs
# --------------------------------------------------------------------------------------------------


def function(nodes, result):
    """Return a function of ``x`` and the condition ``p``: from ``name = Op(input, ...)``."""
    made = schema.FunctionDef()
    made.signature.name = "f"
    made.signature.input_arg.add(name="x", type=schema.DT_FLOAT)
    made.signature.input_arg.add(name="p", type=schema.DT_BOOL)
    made.signature.output_arg.add(name="y", type=schema.DT_FLOAT)
    made.ret["y"] = result
    for text in nodes:
        name, _, call = text.partition(" = ")
        op, _, inputs = call.rstrip(")").partition("(")
        node = made.node_def.add(name=name, op=op, input=[one for one in inputs.split(", ") if one])
        text_format.Parse(ATTRIBUTES.get(op, ""), node)
        if op not in ("Const", "LoopCond", "ControlTrigger", "NoOp"):
            node.attr["T"].type = schema.DT_FLOAT
    return made


def run(nodes, result, predicate=True, seen=None):
    """Evaluate a function for x = 1."""
    source = type("Source", (), {"functions": {}, "file": "saved_model.pb"})
    source.program = type("Program", (), {})
    source.program.ops = OpTable(schema.MetaGraphDef(), "saved_model.pb", definition_of)
    watch = None if seen is None else lambda ran: seen.append(ran.node)
    executor = Executor(source, registry.known(), watch)
    plan = executor._prepared(function(nodes, result))
    return Run(executor).function(plan, [np.asarray(1, np.float32), np.asarray(predicate)])[0]


BRANCHES = [
    "switch = Switch(x, p)",
    "left = Neg(switch:output_false:0)",
    "right = Square(switch:output_true:0)",
    "merge = Merge(left:y:0, right:y:0)",
]
LOOP = [
    "enter = Enter(x)",
    "merge = Merge(enter:output:0, next:output:0)",
    "ten = Const(^merge)",
    "less = Less(merge:output:0, ten:output:0)",
    "cond = LoopCond(less:z:0)",
    "switch = Switch(merge:output:0, cond:output:0)",
    "double = Add(switch:output_true:0, switch:output_true:0)",
    "next = NextIteration(double:z:0)",
    "exit = Exit(switch:output_false:0)",
]


@pytest.mark.parametrize("predicate", [True, False])
def test_only_the_taken_branch_runs(predicate):
    seen = []
    assert run(BRANCHES, "merge:output:0", predicate, seen) == (1 if predicate else -1)
    assert ("right" in seen, "left" in seen) == (predicate, not predicate)


def test_a_loop_runs_until_its_condition_is_false():
    assert run(LOOP, "exit:output:0") == 16


def test_a_loop_in_a_branch_that_is_not_taken_does_not_run():
    outside = ["branch = Switch(x, p)", "other = Identity(branch:output_false:0)"]
    inside = [text.replace("Enter(x)", "Enter(branch:output_true:0)") for text in LOOP]
    inside = [text.replace("merge", "turn").replace("switch", "way") for text in inside]
    nodes = [*outside, *inside, "merge = Merge(other:output:0, exit:output:0)"]
    assert run(nodes, "merge:output:0", True) == 16
    seen = []
    assert run(nodes, "merge:output:0", False, seen) == 1
    assert not {"turn", "exit"} & set(seen)


def test_a_trigger_runs_after_a_dead_node():
    nodes = [*BRANCHES, "trigger = ControlTrigger(^left, ^right)", "after = Neg(x, ^trigger)"]
    assert run(nodes, "after:y:0") == -1


def test_a_result_in_a_branch_that_was_not_taken_is_an_error():
    with pytest.raises(EvaluationError, match="'left:y:0'"):
        run(BRANCHES, "left:y:0", True)


@pytest.mark.parametrize("op", ["Exit", "NextIteration"])
def test_the_end_of_a_loop_outside_of_one_is_an_error(op):
    nodes = [f"end = {op}(x)", *BRANCHES]
    with pytest.raises(EvaluationError, match="'end'"):
        run(nodes, "end:output:0")


def test_a_loop_without_a_name_is_an_error(monkeypatch):
    monkeypatch.setitem(ATTRIBUTES, "Enter", "")
    with pytest.raises(EvaluationError, match="'enter'"):
        run(LOOP, "exit:output:0")


def test_a_loop_may_have_a_name_that_is_not_utf_8(monkeypatch):
    monkeypatch.setitem(ATTRIBUTES, "Enter", 'attr { key: "frame_name" value { s: "\\377" } }')
    assert run(LOOP, "exit:output:0") == 16


def test_a_loop_without_end_is_stopped(monkeypatch):
    monkeypatch.setattr(sizes, "STEPS", 1000)
    endless = [text.replace("Less(", "NotEqual(") for text in LOOP]
    with pytest.raises(EvaluationLimitError) as error:
        run(endless, "exit:output:0")
    assert error.value.limit == "STEPS"


def test_loops_that_enter_themselves_are_stopped():
    nodes = ["enter = Enter(merge:output:0)", "merge = Merge(x, enter:output:0)"]
    with pytest.raises(EvaluationLimitError) as error:
        run([*nodes, "last = Neg(merge:output:0)"], "last:y:0")
    assert error.value.limit == "DEPTH"


def test_values_on_their_way_count(monkeypatch):
    monkeypatch.setattr(sizes, "LIVE_BYTES", 3)
    with pytest.raises(EvaluationLimitError) as error:
        run(BRANCHES, "merge:output:0")
    assert error.value.limit == "LIVE_BYTES"


# Arrays and stacks
# --------------------------------------------------------------------------------------------------


class Held:
    """What an op sees of a run: it counts the bytes that are kept."""

    def __init__(self):
        self.nbytes = 0

    def hold(self, nbytes):
        self.nbytes += nbytes


FLOW, ROW = np.float32(0), np.float32([1, 2])


def evaluate(name, *inputs, **attributes):
    return registry.known()[name].evaluate(*inputs, **attributes)


def test_an_element_is_written_once():
    array, held = TensorArray(np.dtype(np.float32), None, [None, None]), Held()
    evaluate("TensorArrayWriteV3", array, np.int32(0), ROW, FLOW, call=held)
    with pytest.raises(ValueError, match="twice"):
        evaluate("TensorArrayWriteV3", array, np.int32(0), ROW, FLOW, call=held)
    with pytest.raises(IndexError):
        evaluate("TensorArrayWriteV3", array, np.int32(2), ROW, FLOW, call=held)
    with pytest.raises(TypeError):
        evaluate("TensorArrayWriteV3", array, np.int32(1), np.int32(1), FLOW, call=held)
    assert held.nbytes == 8


def test_an_array_that_clears_is_read_once():
    array, held = TensorArray(np.dtype(np.float32), None, [None], clears=True), Held()
    evaluate("TensorArrayWriteV3", array, np.int32(0), ROW, FLOW, call=held)
    read = registry.known()["TensorArrayReadV3"].evaluate
    read(array, np.int32(0), FLOW, dtype=array.dtype, call=held)
    with pytest.raises(ValueError, match="cleared"):
        read(array, np.int32(0), FLOW, dtype=array.dtype, call=held)
    assert held.nbytes == 0


def test_gradients_are_added_and_have_the_shapes_of_the_elements():
    array, held = TensorArray(np.dtype(np.float32), None, [None, None]), Held()
    evaluate("TensorArrayScatterV3", array, np.int32([0, 1]), np.stack([ROW, ROW]), FLOW, call=held)
    gradients, _ = evaluate("TensorArrayGradV3", array, FLOW, source=b"gradients")
    assert evaluate("TensorArrayGradV3", array, FLOW, source=b"gradients")[0] is gradients
    for _ in range(2):
        evaluate("TensorArrayWriteV3", gradients, np.int32(1), ROW, FLOW, call=held)
    rows = evaluate("TensorArrayGatherV3", gradients, np.int32([0, 1]), FLOW, call=held)
    assert rows.tolist() == [[0, 0], [2, 4]]
    assert evaluate("TensorArrayConcatV3", array, FLOW, call=held)[1].tolist() == [2, 2]


def test_a_stack_gives_its_last_value():
    stack, held = Stack(np.dtype(np.float32), 1), Held()
    evaluate("StackPushV2", stack, ROW, call=held)
    with pytest.raises(ValueError, match="overflowed"):
        evaluate("StackPushV2", stack, ROW, call=held)
    assert evaluate("StackPopV2", stack, call=held) is ROW
    assert held.nbytes == 0
    with pytest.raises(ValueError, match="empty"):
        evaluate("StackPopV2", stack, call=held)
