"""The canonical form of functions: what they refer to counts, by which name does not."""

import model_edits as edits
import pytest
from made_graphs import call, function

from reference_impl.format import schema


def test_order_of_results(hashes):
    def build(first, second):
        def made(graph):
            body = function(graph, "f", ["x"], {"a": first, "b": second})
            body.node_def.add(name="neg", op="Neg", input=["x"])
            body.node_def.add(name="exp", op="Exp", input=["x"])

        return made

    assert (
        len(
            hashes(
                build("neg:y:0", "exp:y:0"),
                build("exp:y:0", "neg:y:0"),
                build("neg:y:0", "neg:y:1"),
            )
        )
        == 3
    )


def test_type_of_a_result(hashes):
    def build(kind):
        def made(graph):
            body = function(graph, "f", ["x"], {"a": "neg:y:0"})
            body.node_def.add(name="neg", op="Neg", input=["x"])
            body.signature.output_arg[0].type = kind

        return made

    assert len(hashes(build(schema.DT_FLOAT), build(schema.DT_INT32))) == 2


def test_side_effects(hashes):
    """Which nodes run because of control_ret counts, not under which keys."""

    def build(*effects):
        def made(graph):
            body = function(graph, "f")
            for name in ("print", "write"):
                body.node_def.add(name=name, op=name.title())
            for key, name in effects:
                body.control_ret[key] = name

        return made

    assert (
        len(
            hashes(
                build(),
                build(("k", "print")),
                build(("k", "write")),
                build(("k", "print"), ("l", "write")),
            )
        )
        == 4
    )
    assert (
        len(hashes(build(("k", "print"), ("l", "write")), build(("l", "print"), ("z", "write"))))
        == 1
    )


def test_resource_arguments_that_are_one(hashes):
    def build(*ids):
        def made(graph):
            body = function(graph, "f", [f"x{number}" for number in range(len(ids))])
            for number, item in enumerate(ids):
                body.resource_arg_unique_id[number] = item

        return made

    assert len(hashes(build(1, 2, 1), build(1, 1, 2), build(1, 2, 3))) == 3
    assert len(hashes(build(1, 2, 1), build(7, 3, 7))) == 1


def test_attributes_of_a_polymorphic_function(hashes):
    def build(name):
        return lambda graph: function(graph, "f").signature.attr.add(name=name, type="type")

    assert len(hashes(build("T"), build("U"))) == 2


def test_calls_by_op_type_name_outputs_as_the_function_does(hashes):
    def build(used, outputs=("a", "b")):
        def made(graph):
            callee = function(graph, "Pair", ["x"], {outputs[0]: "neg:y:0", outputs[1]: "exp:y:0"})
            callee.node_def.add(name="neg", op="Neg", input=["x"])
            callee.node_def.add(name="exp", op="Exp", input=["x"])
            caller = function(graph, "g", ["x"], {"z": "sin:y:0"})
            caller.node_def.add(name="pair", op="Pair", input=["x"])
            caller.node_def.add(name="sin", op="Sin", input=[f"pair:{outputs[used]}:0"])

        return made

    assert len(hashes(build(0), build(1))) == 2
    assert len(hashes(build(0), build(0, "pq"))) == 1


def test_custom_gradients(hashes):
    def build(first, second, kinds=("CustomGradient-1", "CustomGradient-2")):
        def made(graph):
            for name, op in (("g1", "Neg"), ("g2", "Exp")):
                function(graph, name).node_def.add(name="n", op=op)
            library = graph.graph_def.library
            library.registered_gradients.add(registered_op_type=kinds[0], gradient_func=first)
            library.registered_gradients.add(registered_op_type=kinds[1], gradient_func=second)
            body = function(graph, "f")
            for name, kind in zip(("IdentityN", "Identity"), kinds):
                body.node_def.add(name=name, op=name).attr["_gradient_op_type"].s = kind.encode()

        return made

    assert len(hashes(build("g1", "g2"), build("g2", "g1"), build("g1", "g1"))) == 3
    assert (
        len(hashes(build("g1", "g2"), build("g1", "g2", ("CustomGradient-77", "CustomGradient-5"))))
        == 1
    )


def test_aliases_of_functions(hashes):
    def build(**aliases):
        def made(graph):
            for name in ("Neg", "Exp"):
                function(graph, f"__inference_{name}_1").node_def.add(name="n", op=name)
            for alias, name in aliases.items():
                graph.meta_info_def.function_aliases[f"__inference_{name}_1"] = alias

        return made

    assert (
        len(
            hashes(build(), build(a="Neg"), build(b="Neg"), build(a="Exp"), build(a="Neg", b="Exp"))
        )
        == 5
    )


def test_a_far_function_of_a_circle(tmp_path):
    """A change too many calls away to be seen step by step still changes everything that leads
    there.
    """

    def build(constant, count=60):
        def made(graph):
            for number in range(count):
                body = function(graph, f"f{number}")
                value = constant if number == count // 2 else 0
                body.node_def.add(name="c", op="Const").attr["value"].tensor.CopyFrom(
                    schema.TensorProto(dtype=schema.DT_INT64, int64_val=[value])
                )
                call(body.node_def, "next", f"f{(number + 1) % count}")
            call(graph.graph_def.node, "start", "f0")
            graph.signature_def["s"].outputs["y"].name = "start:0"

        return made

    one, other = edits.built(tmp_path / "a", build(1)), edits.built(tmp_path / "b", build(2))
    assert one.sections["graph"] != other.sections["graph"]


def swapping(layers, results):
    """Functions around functions that turn arguments (or results) round: no mere wrappers, each one
    matters.
    """

    def made(graph):
        core = function(graph, "core", ["a", "b"], {"p": "sub:z:0", "q": "exp:y:0"})
        core.node_def.add(name="sub", op="Sub", input=["a", "b"])
        core.node_def.add(name="exp", op="Exp", input=["b"])
        previous = "core"
        for layer in range(layers):
            turned = (
                {"p": "call:output:1", "q": "call:output:0"}
                if results
                else {"p": "call:output:0", "q": "call:output:1"}
            )
            around = function(graph, f"layer{layer}", ["a", "b"], turned)
            call(around.node_def, "call", previous, *(["a", "b"] if results else ["b", "a"]))
            previous = around.signature.name
        call(graph.graph_def.node, "start", previous)
        graph.signature_def["s"].outputs["y"].name = "start:0"

    return made


@pytest.mark.parametrize("results", [False, True])
def test_functions_that_turn_something_round(hashes, results):
    assert len(hashes(*[swapping(layers, results) for layers in range(4)])) == 4
