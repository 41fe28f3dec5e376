"""Corners of the canonical form and its differences that mutation testing found untested
(docs/evidence/mutation.md).
"""

import model_edits as edits
from test_canonical_changes import function_op

from property_tests.attacks import forge
from reference_impl.format.container import layout
from savedmodel_tools.canonical.form import canonical


def graph(*strings, op="Neg", shape=2):
    """A MetaGraph with a constant of strings, another one, and a node whose input nobody makes."""
    message = forge.model()
    made = message.meta_graphs[0]
    for name in ("a", "b"):
        forge.constant(made.graph_def, name, b"x")
    forge.node_of(made.graph_def, "c", op, "gone")
    forge.signature(made, output="c:0")
    tensor = made.graph_def.node[0].attr["value"].tensor
    tensor.string_val[:] = strings or [b"x"]
    tensor.tensor_shape.dim.add(size=shape)
    return message


def hash_of(folder, message):
    return canonical(forge.write(folder, message)).hash


def test_the_last_string_of_a_constant_may_stand_for_those_behind_it(tmp_path):
    one, two, other = [(b"a",), (b"a", b"a"), (b"a", b"b")]
    hashes = [
        hash_of(tmp_path / str(number), graph(*strings))
        for number, strings in enumerate((one, two, other))
    ]
    assert hashes[0] == hashes[1] != hashes[2]


def test_strings_written_as_content_count(tmp_path):
    """TensorFlow reads strings from ``tensor_content`` too: their lengths, then their
    characters.
    """

    def as_content(message, content):
        tensor = message.meta_graphs[0].graph_def.node[0].attr["value"].tensor
        tensor.ClearField("string_val")
        tensor.tensor_content = content
        return message

    contents = (b"\1\1aa", b"\1\1ab")
    hashes = [
        hash_of(tmp_path / str(number), as_content(graph(), content))
        for number, content in enumerate(contents)
    ]
    assert hashes[0] != hashes[1]
    assert hashes[1] == hash_of(tmp_path / "listed", graph(b"a", b"b"))


def test_a_node_with_a_dangling_input_is_still_what_it_is(tmp_path):
    assert hash_of(tmp_path / "neg", graph()) != hash_of(tmp_path / "abs", graph(op="Abs"))


def test_what_a_saver_saves_counts(tmp_path):
    def edit(message):
        saver = message.meta_graphs[0].saver_def
        saver.save_tensor_name = "Const:0"

    assert edits.changed("half_plus_two", tmp_path, edit) == {"graph"}


def test_a_change_in_a_function_is_told_once_and_by_its_place(tmp_path):
    edits.changed("module_functions", tmp_path, function_op)
    told = edits.differences(edits.form("module_functions"), canonical(tmp_path / "edited"))
    assert [line for line in told if line.startswith("functions")] == [
        "functions: multiply: 7 nodes: 1 changed (mul (Mul): op: Mul → AddV2)",
    ]


def test_one_of_two_equal_nodes_of_a_function_is_missed(tmp_path):
    def add(*names):
        message = forge.model()
        body = forge.function(message.meta_graphs[0], "f")
        for name in sorted(set(names)):
            forge.constant(body, name, b"x")
        forge.node_of(body, "y", "Add", *(f"{name}:output:0" for name in names))
        return canonical(forge.write(tmp_path / "".join(names), message))

    assert edits.differences(add("a", "b"), add("a", "a"))[0].startswith(
        "functions: f: 3 nodes: 1 removed, 1 changed (b (Const): removed, "
    )


def test_a_captured_tensor_of_a_function_that_is_not_there(tmp_path):
    def objects(other):
        message = forge.model()
        made = message.meta_graphs[0]
        forge.constant(forge.function(made, "f"), "a", b"x")
        forge.variable(made, "v")
        nodes = made.object_graph_def.nodes
        for name in ("f", other):
            nodes[0].children.add(node_id=len(nodes), local_name=f"captured_{len(nodes)}")
            captured = nodes.add().captured_tensor
            captured.name, captured.concrete_function = "a:output:0", name
        return canonical(forge.write(tmp_path / other, message))

    assert objects("gone").hash != objects("f").hash


def test_every_slot_of_one_name_counts(tmp_path):
    def nodes(message):
        found = message.meta_graphs[0].object_graph_def.nodes
        return [found[slot.slot_variable_node_id] for node in found for slot in node.slot_variables]

    count = len(nodes(layout.read(edits.fixture("keras_compiled_save")).saved_model))
    assert count > 1
    for number in range(count):
        edit = lambda message, number=number: nodes(message)[number].variable.shape.dim.add(size=7)  # noqa: E731
        assert edits.changed("keras_compiled_save", tmp_path / str(number), edit) == {"objects"}
