"""The canonical form of small models made by hand: sharing, recursion, wrappers, references,
values.
"""

import shutil

import model_edits as edits
import neutral_edits
import numpy as np
import pytest

from reference_impl.format import schema
from savedmodel_tools.canonical.form import canonical
from savedmodel_tools.canonical.values import tensor


def call(nodes, name, callee, *inputs):
    made = nodes.add(name=name, op="PartitionedCall")
    made.attr["f"].func.name = callee
    made.input.extend(inputs)
    return made


def test_two_random_numbers_are_not_one_used_twice(tmp_path):
    def twice(graph):
        for name in ("a", "b"):
            graph.graph_def.node.add(name=f"random_{name}", op="RandomStandardNormal")
        graph.graph_def.node.add(name="sum", op="AddV2", input=["random_a", "random_b"])
        graph.signature_def["s"].outputs["y"].name = "sum:0"

    def once(graph):
        graph.graph_def.node.add(name="random_a", op="RandomStandardNormal")
        graph.graph_def.node.add(name="random_b", op="RandomStandardNormal")  # unused
        graph.graph_def.node.add(name="sum", op="AddV2", input=["random_a", "random_a"])
        graph.signature_def["s"].outputs["y"].name = "sum:0"

    for objects in (False, True):

        def with_objects(build, objects=objects):
            def made(graph):
                build(graph)
                if objects:
                    graph.object_graph_def.nodes.add().user_object.identifier = (
                        "_generic_user_object"
                    )

            return made

        assert (
            edits.built(tmp_path / "1", with_objects(twice)).hash
            != edits.built(tmp_path / "2", with_objects(once)).hash
        )
        shutil.rmtree(tmp_path / "1")
        shutil.rmtree(tmp_path / "2")


def test_nodes_without_order_are_told_apart_by_their_surroundings(tmp_path):
    """Equal nodes that nobody asks for: which of them is connected how must not depend on the order
    in the file.
    """

    def build(order):
        def made(graph):
            graph.object_graph_def.nodes.add().user_object.identifier = "_generic_user_object"
            nodes = {
                "c1": ("Const", []),
                "c2": ("Const", []),
                "used": ("Neg", ["c1"]),
                "s1": ("Side", ["c1"]),
                "s2": ("Side", ["c2"]),
                "x": ("Other", ["c2"]),
            }
            for name in order:
                op, inputs = nodes[name]
                graph.graph_def.node.add(name=name, op=op, input=inputs)
            graph.signature_def["s"].outputs["y"].name = "used:0"

        return made

    first = edits.built(tmp_path / "a", build(["c1", "c2", "used", "s1", "s2", "x"]))
    second = edits.built(tmp_path / "b", build(["x", "s2", "s1", "used", "c2", "c1"]))
    assert first.hash == second.hash


def recursive(names, constants):
    """Functions that call each other in a circle, each with a constant of its own."""

    def made(graph):
        for position, name in enumerate(names):
            function = graph.graph_def.library.function.add()
            function.signature.name = name
            function.node_def.add(name="c", op="Const").attr["value"].tensor.CopyFrom(
                schema.TensorProto(dtype=schema.DT_INT64, int64_val=[constants[position]])
            )
            call(function.node_def, "next", names[(position + 1) % len(names)])
        call(graph.graph_def.node, "start", names[0])
        graph.signature_def["s"].outputs["y"].name = "start:0"

    return made


def test_functions_that_call_each_other(tmp_path):
    plain = edits.built(tmp_path / "plain", recursive(["f", "g", "h"], [1, 2, 3]))
    assert (
        edits.built(tmp_path / "renamed", recursive(["h_77", "a", "g"], [1, 2, 3])).hash
        == plain.hash
    )
    assert edits.built(tmp_path / "other", recursive(["f", "g", "h"], [1, 2, 4])).hash != plain.hash
    assert (
        edits.built(tmp_path / "turned", recursive(["f", "g", "h"], [1, 3, 2])).hash != plain.hash
    )
    assert (
        edits.built(tmp_path / "shifted", recursive(["f", "g", "h"], [2, 3, 1])).hash != plain.hash
    )
    assert (
        edits.built(tmp_path / "self", recursive(["f"], [1])).hash
        != edits.built(tmp_path / "pair", recursive(["f", "g"], [1, 1])).hash
    )


def test_in_which_order_functions_of_a_circle_are_called(tmp_path):
    """First g, then h with its result, is not first h; the order of the nodes in the file is
    none.
    """

    def build(first, second, turned=False):
        def made(graph):
            for name, op in (("f", "A"), ("g", "B"), ("h", "C")):
                function = graph.graph_def.library.function.add()
                function.signature.name = name
                function.node_def.add(name="own", op=op)
                calls = (
                    [("one", first, "own:y:0"), ("two", second, "one:output:0")]
                    if name == "f"
                    else [("back", "f", "own:y:0")]
                )
                for number, callee, source in reversed(calls) if turned else calls:
                    call(function.node_def, number, callee, source)

        return made

    plain = edits.built(tmp_path / "plain", build("g", "h"))
    assert edits.built(tmp_path / "turned", build("g", "h", turned=True)).hash == plain.hash
    assert edits.built(tmp_path / "other", build("h", "g")).hash != plain.hash


def test_large_circles_end(tmp_path):
    """Circles of functions, of nodes and of objects: linear work, no recursion."""

    def made(graph):
        count = 3000
        recursive([f"f{number}" for number in range(count)], range(count))(graph)
        for number in range(count):
            graph.graph_def.node.add(
                name=f"n{number}",
                op="Merge",
                input=[f"n{(number + 1) % count}", f"n{number * 7 % count}"],
            )
            child = graph.object_graph_def.nodes.add().children.add()
            child.node_id, child.local_name = (number + 1) % count, "next"

    first = edits.built(tmp_path / "a", made)
    shuffled = edits.edited(
        tmp_path / "a", tmp_path / "b", neutral_edits.neutral(neutral_edits.shuffle_functions)
    )
    assert first.hash == canonical(shuffled).hash


def wrapped(layers, constant=False, residue=b""):
    """A function inside so many functions that pass everything on."""

    def made(graph):
        library = graph.graph_def.library
        core = library.function.add()
        core.signature.name = "__inference_core_1"
        core.signature.input_arg.add(name="x", type=schema.DT_FLOAT)
        core.signature.output_arg.add(name="y", type=schema.DT_FLOAT)
        core.node_def.add(name="neg", op="Neg", input=["x"])
        core.ret["y"] = "neg:y:0"
        for layer in range(layers):
            wrapper = library.function.add()
            wrapper.signature.name = f"__inference_wrapper_{layer + 2}"
            wrapper.signature.input_arg.add(name=f"arg_{layer}", type=schema.DT_FLOAT)
            wrapper.signature.output_arg.add(name="identity", type=schema.DT_FLOAT)
            made = call(
                wrapper.node_def,
                "PartitionedCall",
                library.function[layer].signature.name,
                f"arg_{layer}",
            )
            made.attr["config"].s = residue if layer == layers - 1 else b""
            if constant:
                wrapper.node_def.add(name="Const", op="Const").attr["value"].tensor.int_val.append(
                    1
                )
            source = "Const:output:0" if constant else "PartitionedCall:output:0"
            wrapper.node_def.add(name="Identity", op="Identity", input=[source])
            wrapper.ret["identity"] = "Identity:output:0"
        graph.graph_def.node.add(name="x", op="Placeholder")
        call(graph.graph_def.node, "call", library.function[-1].signature.name, "x")
        graph.signature_def["s"].outputs["y"].name = "call:0"

    return made


@pytest.mark.parametrize("constant", [False, True])
def test_wrappers_of_wrappers(constant, tmp_path):
    """Saving what was loaded adds a layer each time: from the second on the model is the same."""
    hashes = [
        edits.built(tmp_path / str(layers), wrapped(layers, constant)).hash for layers in (1, 2, 5)
    ]
    assert len(set(hashes)) == 1
    assert edits.built(tmp_path / "none", wrapped(0)).hash not in hashes
    assert edits.built(tmp_path / "odd", wrapped(3, constant, b"other")).hash not in hashes
    assert edits.built(tmp_path / "mixed", wrapped(2, not constant)).hash not in hashes


def test_which_tables_share_their_contents(tmp_path):
    """Generated names do not count, but that two nodes have the same one does."""

    def build(*names):
        def made(graph):
            for number, name in enumerate(names):
                function = graph.graph_def.library.function.add()
                function.signature.name = f"f{number}"
                function.signature.output_arg.add(name=f"y{number}", type=schema.DT_RESOURCE)
                function.node_def.add(name="table", op="HashTableV2").attr["shared_name"].s = name
                function.node_def.add(
                    name=f"n{number}", op=f"Op{number}"
                )  # so that no two functions are equal
                function.ret[f"y{number}"] = "table:table_handle:0"

        return made

    same = edits.built(tmp_path / "same", build(b"table_3", b"table_3"))
    apart = edits.built(tmp_path / "apart", build(b"table_3", b"table_4"))
    assert same.hash != apart.hash
    assert edits.built(tmp_path / "same again", build(b"table_8", b"table_8")).hash == same.hash
    assert edits.built(tmp_path / "apart again", build(b"table_9", b"table_1")).hash == apart.hash
    assert edits.built(tmp_path / "named", build(b"x", b"x")).hash != same.hash


# Values


def proto(dtype, shape=(), **lists):
    made = schema.TensorProto(dtype=getattr(schema, f"DT_{dtype}"), **lists)
    for size in shape:
        made.tensor_shape.dim.add(size=size)
    return made


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (proto("FLOAT", [4], float_val=[1, 2]), proto("FLOAT", [4], float_val=[1, 2, 2, 2])),
        (
            proto("FLOAT", [2], float_val=[1, 2]),
            proto("FLOAT", [2], tensor_content=np.float32([1, 2]).tobytes()),
        ),
        (proto("FLOAT", [2]), proto("FLOAT", [2], tensor_content=bytes(8))),
        (
            proto("HALF", [2], half_val=[15360, 0]),
            proto("HALF", [2], tensor_content=np.float16([1, 0]).tobytes()),
        ),
        (
            proto("INT8", [3], int_val=[-1, 2, 2]),
            proto("INT8", [3], tensor_content=np.int8([-1, 2, 2]).tobytes()),
        ),
        (
            proto("UINT16", [1], int_val=[65535]),
            proto("UINT16", [1], tensor_content=np.uint16([65535]).tobytes()),
        ),
        (proto("BOOL", [2], bool_val=[True]), proto("BOOL", [2], tensor_content=b"\1\1")),
        (
            proto("COMPLEX64", [], scomplex_val=[1, 2]),
            proto("COMPLEX64", [], tensor_content=np.complex64(1 + 2j).tobytes()),
        ),
        (proto("INT64", [2], int64_val=[5]), proto("INT64", [2], int64_val=[5, 5])),
        (
            proto("STRING", [3], string_val=[b"a", b""]),
            proto("STRING", [3], string_val=[b"a", b"", b""]),
        ),
        (proto("STRING", [], string_val=[b""]), proto("STRING", [])),
        (
            proto("FLOAT8_E5M2", [2], float8_val=b"\1\2"),
            proto("FLOAT8_E5M2", [2], tensor_content=b"\1\2"),
        ),
    ],
)
def test_two_ways_to_write_a_tensor(one, other):
    assert tensor(one) == tensor(other)


def test_different_tensors():
    tensors = [
        proto("FLOAT", [2], float_val=[1, 2]),
        proto("FLOAT", [2], float_val=[1, 1]),
        proto("FLOAT", [1, 2], float_val=[1, 2]),
        proto("FLOAT", [3], float_val=[1, 2]),
        proto("FLOAT", [], float_val=[0.0]),
        proto("FLOAT", [], float_val=[-0.0]),
        proto("DOUBLE", [2], double_val=[1, 2]),
        proto("INT32", [2], int_val=[1, 2]),
        proto("INT32", [2], int_val=[1, 2**31 - 1]),
        proto("STRING", [2], string_val=[b"a", b"b"]),
        proto("STRING", [2], string_val=[b"ab", b""]),
        proto("STRING", [2], string_val=[b"", b"ab"]),
        proto("FLOAT", [4]),
        proto("FLOAT", [4], tensor_content=bytes(8)),  # too short
        proto("FLOAT", [2], tensor_content=bytes(7)),
        proto("FLOAT", [10**15], float_val=[3]),  # a huge shape costs nothing
        proto("RESOURCE", []),
        schema.TensorProto(dtype=77),
    ]
    assert len({tensor(item) for item in tensors}) == len(tensors)


def test_order_of_assets(tmp_path):
    """Objects refer to assets by number; the order of the files is nobody's concern."""

    def build(order, ids):
        def made(graph):
            for name in order:
                graph.asset_file_def.add(filename=name).tensor_info.name = f"{name[0]}:0"
                graph.graph_def.node.add(name=name[0], op="Placeholder")
            root = graph.object_graph_def.nodes.add()
            for number, child in zip(ids, ("first", "second")):
                root.children.add(node_id=len(graph.object_graph_def.nodes), local_name=child)
                graph.object_graph_def.nodes.add().asset.asset_file_def_index = number
            root.user_object.identifier = "_generic_user_object"

        return made

    first = edits.built(tmp_path / "1", build(["a.txt", "b.txt"], [0, 1]))
    assert edits.built(tmp_path / "2", build(["b.txt", "a.txt"], [1, 0])).hash == first.hash
    assert edits.built(tmp_path / "3", build(["b.txt", "a.txt"], [0, 1])).hash != first.hash
