"""`diff` of models of many different things: the number of steps grows as the models do, never as
their square.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from reference_impl.format import schema
from savedmodel_tools.diff import diff

SIZES = 40, 80, 160


def function(graph, name, *ops, calls=()):
    made = graph.graph_def.library.function.add()
    made.signature.name = name
    made.signature.input_arg.add(name="x", type=schema.DT_FLOAT)
    made.signature.output_arg.add(name="y", type=schema.DT_FLOAT)
    for number, op in enumerate(ops):
        made.node_def.add(name=f"n{number}", op=op, input=[f"n{number - 1}:y:0" if number else "x"])
    for number, called in enumerate(calls):
        made.node_def.add(name=f"c{number}", op="PartitionedCall", input=["x"]).attr[
            "f"
        ].func.name = called
    made.ret["y"] = f"n{len(ops) - 1}:y:0"


def functions_of_one_name(graph, count, side):
    for number in range(count):
        function(graph, f"__inference_f_{number}", f"{side}{number}")


def functions_in_a_circle(graph, count, side):
    for number in range(count):
        function(
            graph,
            f"f{number}",
            f"{side}{number}",
            calls=(f"f{(number + 1) % count}", f"f{number * 7 % count}"),
        )


def branches_of_one_node(graph, count, side):
    functions = graph.graph_def.node.add(name="case", op="Case").attr["branches"].list.func
    for number in range(count):
        function(graph, f"branch_{number}", f"{side}{number}")
        functions.add(name=f"branch_{number}")


def traces_of_one_object(graph, count, side):
    objects = graph.object_graph_def
    objects.nodes.add().children.add(local_name="f", node_id=1)
    made = objects.nodes.add().function
    for number in range(count):
        function(graph, f"__inference_f_{number}", f"{side}{number}")
        made.concrete_functions.append(f"__inference_f_{number}")
        signature = objects.concrete_functions[
            f"__inference_f_{number}"
        ].canonicalized_input_signature
        signature.tuple_value.values.add().string_value = f"{side}{number}"


def captures_of_one_function(graph, count, side):
    function(graph, "big", *[f"{side}{number}" for number in range(count)])
    root = graph.object_graph_def.nodes.add()
    for number in range(count):
        root.children.add(local_name=f"captured{number}", node_id=number + 1)
        captured = graph.object_graph_def.nodes.add().captured_tensor
        captured.name, captured.concrete_function = f"n{number}:y:0", "big"


def nodes(graph, count, side):
    for number in range(count):
        inputs = [f"{side}/n_{number - 1}", f"^{side}/n_{number // 2}"] if number else []
        graph.graph_def.node.add(
            name=f"{side}/n_{number}",
            op=side if number % 5 == 0 else f"Op{number % 7}",
            input=inputs,
        )
    graph.signature_def["s"].outputs["y"].name = f"{side}/n_{count - 1}:0"


def results_of_one_function(graph, count, side):
    function(graph, "wide", "Op")
    function(graph, "user", side, *["Op"] * 2)
    wide, user = graph.graph_def.library.function
    user.node_def.add(name="call", op="wide", input=["x"])
    for number in range(count):
        wide.signature.output_arg.add(name=f"y{number}", type=schema.DT_FLOAT)
        wide.ret[f"y{number}"] = "n0:y:0"
        user.node_def.add(name=f"u{number}", op="Sin", input=[f"call:y{number}:0"])


def arguments_of_one_signature(graph, count, side):
    graph.graph_def.node.add(name="a", op="Placeholder")
    for number in range(count):
        info = graph.signature_def["s"].inputs[f"x{number}" if number % 2 else f"{side}{number}"]
        info.name = "a:0"
        info.tensor_shape.dim.add(size=number + 1000 * ord(side))


KINDS = (
    functions_of_one_name,
    functions_in_a_circle,
    branches_of_one_node,
    traces_of_one_object,
    captures_of_one_function,
    nodes,
    results_of_one_function,
    arguments_of_one_signature,
)


def pair(folder: Path, kind, count):
    paths = []
    for side in ("A", "B"):
        model = schema.SavedModel(saved_model_schema_version=1)
        model.meta_graphs.add().meta_info_def.tags.append("serve")
        kind(model.meta_graphs[0], count, side)
        paths.append(folder / f"{side}{count}")
        paths[-1].mkdir()
        (paths[-1] / "saved_model.pb").write_bytes(model.SerializeToString())
    return paths


def steps(paths) -> int:
    """Lines that are executed."""
    count = 0

    def line(frame, event, argument):
        nonlocal count
        count += 1
        return line

    before = sys.gettrace()
    sys.settrace(line)
    try:
        assert diff(*paths).verdict == "different"
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("kind", KINDS)
def test_steps_grow_as_the_models_do(kind, tmp_path):
    diff(*pair(tmp_path, kind, 3))  # what is imported and cached once
    found = [steps(pair(tmp_path, kind, count)) for count in SIZES]
    assert found[2] - found[1] < 1.03 * 2 * (found[1] - found[0])


def test_more_functions_than_are_kept_are_told_like_few(tmp_path, monkeypatch):
    """Beyond a number of nodes the bodies of functions that differ are made a second time, and
    nothing else is different.
    """
    from savedmodel_tools.comparison import functions

    paths = pair(tmp_path, functions_in_a_circle, 30)
    kept = diff(*paths).to_json()
    monkeypatch.setattr(functions, "_KEPT", 10)
    assert diff(*paths).to_json() == kept
