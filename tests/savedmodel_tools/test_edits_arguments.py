"""Inputs and outputs called otherwise: in the SignatureDef and in the function that loaders call.

Without TensorFlow.
"""

import json

import pytest
from click.testing import CliRunner
from model_edits import FIXTURES, edited, fixture
from renamed_arguments import all_names, rename_all

from reference_impl.format.container import layout
from reference_impl.format.names import RESERVED_SIGNATURES
from reference_impl.format.values import structure
from reference_impl.views.signatures import slots_of
from savedmodel_compat.cli import main
from savedmodel_tools.canonical.form import canonical
from savedmodel_tools.edits import signatures
from savedmodel_tools.edits.arguments import rename_arguments
from savedmodel_tools.edits.proof import RefusedError
from savedmodel_tools.edits.run import edit
from savedmodel_tools.verify.run import verify

KERAS = "keras_functional_save"  # price: float32, words: int64 -> kind, value: float32


def invoke(*arguments, code=0):
    result = CliRunner().invoke(main, [str(item) for item in arguments])
    assert result.exit_code == code, result.output
    return result


def renamed(source, out, key, inputs=None, outputs=None, tags=None):
    return edit(
        source, out, lambda draft: rename_arguments(draft, key, inputs or {}, outputs or {}, tags)
    )


def described(model, key):
    """What the object graph says of a signature: keywords, names of inputs, of outputs, of the
    function.
    """
    graph = layout.read(model).meta_graph()
    objects = graph.object_graph_def
    (holder,) = [
        child.node_id for child in objects.nodes[0].children if child.local_name == "signatures"
    ]
    (number,) = [
        child.node_id for child in objects.nodes[holder].children if child.local_name == key
    ]
    bare = objects.nodes[number].bare_concrete_function
    trace = objects.concrete_functions[bare.concrete_function_name]
    positional, named = structure.decode(trace.canonicalized_input_signature)
    assert positional == ()
    for specs in (named, structure.decode(trace.output_signature)):
        assert all(spec.name == name for name, spec in specs.items())
    spec = (
        dict(structure.decode(bare.function_spec.fullargspec).fields)
        if bare.HasField("function_spec")
        else {}
    )
    assert spec.get("kwonlyargs", []) in ([], list(bare.argument_keywords))
    return (
        list(bare.argument_keywords),
        sorted(structure.decode(trace.output_signature)),
        bare.concrete_function_name,
    )


def tensors_of(graph, key):
    item = graph.signature_def[key]
    return [
        {name: [slot.tensor for slot in slots_of(info)[1]] for name, info in side.items()}
        for side in (item.inputs, item.outputs)
    ]


def cases():
    return sorted(path.parent.parent.name for path in FIXTURES.glob("*/model/saved_model.pb*"))


@pytest.mark.parametrize("case", cases())
def test_each_signature_of_genuine_models_means_the_same_tensors_under_new_names(case, tmp_path):
    """All names change and their order turns round; back again the content is that of before."""
    source = fixture(case)
    names = all_names(source)
    rename_all(source, tmp_path / "out", names)
    for before, after in zip(
        layout.read(source).saved_model.meta_graphs,
        layout.read(tmp_path / "out").saved_model.meta_graphs,
    ):
        tags = ",".join(sorted(before.meta_info_def.tags))
        for key in set(before.signature_def) - set(RESERVED_SIGNATURES):
            old, new = tensors_of(before, key), tensors_of(after, key)
            assert new == [
                {pairs[name]: held for name, held in side.items()}
                for side, pairs in zip(old, names[tags, key])
            ]
        assert before.graph_def.node == after.graph_def.node
    if all(name.isidentifier() for inputs, _ in names.values() for name in inputs):
        rename_all(tmp_path / "out", tmp_path / "back", names, back=True)
        assert canonical(tmp_path / "back").hash == canonical(source).hash
    told = {finding.rule for finding in verify(tmp_path / "out").findings}
    assert told <= {finding.rule for finding in verify(source).findings}


def test_names_in_the_same_order_leave_the_function_as_it_is(tmp_path):
    done = renamed(
        fixture(KERAS), tmp_path / "out", "serving_default", {"price": "cost"}, {"kind": "label"}
    )
    renamed_input, renamed_output = done.changes
    assert "price" in renamed_input and "cost" in renamed_input
    assert "kind" in renamed_output and "label" in renamed_output
    keywords, outputs, name = described(tmp_path / "out", "serving_default")
    assert (keywords, outputs, name) == (
        ["cost", "words"],
        ["label", "value"],
        described(fixture(KERAS), "serving_default")[2],
    )
    functions = [
        layout.read(path).meta_graph().graph_def.library.function
        for path in (fixture(KERAS), tmp_path / "out")
    ]
    assert len(functions[0]) == len(functions[1])
    (function,) = [item for item in functions[1] if item.signature.name == name]
    assert [item.name for item in function.signature.input_arg][:2] == ["cost", "words"]
    assert function.arg_attr[0].attr["_user_specified_name"].s == b"cost"
    before, after = canonical(fixture(KERAS)), canonical(tmp_path / "out")
    assert {key for key in before.sections if before.sections[key] != after.sections[key]} == {
        "signatures",
        "graph",
        "objects",
    }


def test_names_in_another_order_are_those_of_a_copy_of_the_function(tmp_path):
    source, out = fixture(KERAS), tmp_path / "out"
    renamed(source, out, "serving_default", {"price": "zz"}, {"kind": "zz"})
    old, new = (described(path, "serving_default") for path in (source, out))
    assert old[:2] == (["price", "words"], ["kind", "value"]) and new[:2] == (
        ["words", "zz"],
        ["value", "zz"],
    )
    graphs = [layout.read(path).meta_graph() for path in (source, out)]
    libraries = [
        {item.signature.name: item for item in graph.graph_def.library.function} for graph in graphs
    ]
    assert libraries[1].keys() - libraries[0].keys() == {new[2]} and all(
        libraries[0][key] == libraries[1][key] for key in libraries[0]
    )
    assert (
        old[2] not in graphs[1].object_graph_def.concrete_functions
    )  # only the main graph calls it now
    one, other = libraries[0][old[2]], libraries[1][new[2]]
    assert [item.type for item in one.signature.input_arg[:2]] == [1, 9] and [
        item.type for item in other.signature.input_arg[:2]
    ] == [9, 1]
    assert [other.ret[item.name] for item in other.signature.output_arg] == [
        one.ret[item.name] for item in one.signature.output_arg
    ][::-1]
    shapes = [list(item.attr["_input_shapes"].list.shape) for item in (one, other)]
    assert shapes[1] == [shapes[0][1], shapes[0][0], *shapes[0][2:]]
    assert [other.arg_attr[n].attr["_user_specified_name"].s for n in (0, 1)] == [b"words", b"zz"]


def test_two_inputs_change_places(tmp_path):
    renamed(
        fixture(KERAS), tmp_path / "out", "serving_default", {"price": "words", "words": "price"}
    )
    one, other = (
        tensors_of(layout.read(path).meta_graph(), "serving_default")[0]
        for path in (fixture(KERAS), tmp_path / "out")
    )
    assert other == {"price": one["words"], "words": one["price"]}
    graph = layout.read(tmp_path / "out").meta_graph()
    (function,) = [
        item
        for item in graph.graph_def.library.function
        if item.signature.name == described(tmp_path / "out", "serving_default")[2]
    ]
    assert [item.type for item in function.signature.input_arg[:2]] == [9, 1]


def test_a_function_that_two_signatures_share_is_copied(tmp_path):
    def change(draft):
        signatures.copy(draft, "serving_default", "old")
        rename_arguments(draft, "serving_default", {"price": "cost"}, {})

    edit(fixture(KERAS), tmp_path / "out", change)
    assert described(tmp_path / "out", "old")[0] == ["price", "words"]
    assert described(tmp_path / "out", "serving_default")[0] == ["cost", "words"]
    assert sorted(layout.read(tmp_path / "out").meta_graph().signature_def["old"].inputs) == [
        "price",
        "words",
    ]
    again = signatures.drop
    edit(tmp_path / "out", tmp_path / "one", lambda draft: again(draft, ("old",)))
    assert described(tmp_path / "one", "serving_default")[0] == ["cost", "words"]


def test_a_default_goes_with_its_input(tmp_path):
    def add(message):
        message.meta_graphs[0].signature_def["serving_default"].defaults["price"].float_val.append(
            2.5
        )

    edited(fixture(KERAS), tmp_path / "model", add)
    renamed(tmp_path / "model", tmp_path / "out", "serving_default", {"price": "zz"})
    defaults = layout.read(tmp_path / "out").meta_graph().signature_def["serving_default"].defaults
    assert {name: list(value.float_val) for name, value in defaults.items()} == {"zz": [2.5]}


@pytest.mark.parametrize(
    ("inputs", "outputs", "reason"),
    [
        ({"nope": "x"}, {}, "there is no input 'nope'; there are: price, words"),
        ({}, {"nope": "x"}, "there is no output 'nope'; there are: kind, value"),
        ({"price": "words"}, {}, "an input is called 'words' already"),
        ({"price": "x", "words": "x"}, {}, "an input is called 'x' already, or would be"),
        ({}, {"kind": "value"}, "an output is called 'value' already"),
        ({"price": "price"}, {}, "an input is called 'price' already"),
        ({"price": "class"}, {}, "cannot be the name of an input"),
        ({"price": "a b"}, {}, "cannot be the name of an input"),
        ({"price": "2nd"}, {}, "cannot be the name of an input"),
        ({"price": "_x"}, {}, "cannot be the name of an input"),
        ({"price": "self"}, {}, "cannot be the name of an input"),
        ({}, {"kind": "a\x1b[31m"}, "cannot be the name of an output"),
        ({}, {"kind": ""}, "cannot be the name of an output"),
    ],
)
def test_names_that_cannot_be_are_refused(tmp_path, inputs, outputs, reason):
    with pytest.raises(RefusedError, match=reason):
        renamed(fixture(KERAS), tmp_path / "out", "serving_default", inputs, outputs)
    assert list(tmp_path.iterdir()) == []


def _bare(message):
    graph = message.meta_graphs[0].object_graph_def
    (holder,) = [
        child.node_id for child in graph.nodes[0].children if child.local_name == "signatures"
    ]
    return graph.nodes[graph.nodes[holder].children[0].node_id], graph


def _other_kind(message):
    node, _ = _bare(message)
    node.function.concrete_functions.append(node.bare_concrete_function.concrete_function_name)


def _other_keyword(message):
    _bare(message)[0].bare_concrete_function.argument_keywords[0] = "cost"


def _other_order(message):
    _bare(message)[0].bare_concrete_function.argument_keywords[:] = ["words", "price"]


def _no_trace(message):
    node, graph = _bare(message)
    del graph.concrete_functions[node.bare_concrete_function.concrete_function_name]


def _no_structure(message):
    node, graph = _bare(message)
    graph.concrete_functions[node.bare_concrete_function.concrete_function_name].ClearField(
        "canonicalized_input_signature"
    )


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (_other_kind, "has it as function"),
        (_other_keyword, "has no input 'price'"),
        (_other_order, "does not take its inputs in the order of their names"),
        (_no_trace, "is not there"),
        (_no_structure, "structure of its function's arguments"),
    ],
)
def test_an_object_graph_that_says_otherwise_is_refused(tmp_path, wrong, reason):
    edited(fixture(KERAS), tmp_path / "model", wrong)
    with pytest.raises(
        RefusedError, match=f"serving_default: the object graph contradicts it: .*{reason}"
    ):
        renamed(tmp_path / "model", tmp_path / "out", "serving_default", {"price": "zz"})


def test_a_mistake_of_the_edit_would_be_noticed(tmp_path, monkeypatch):
    """Tensors that are not put in the order of the new names would be taken for each other."""
    from savedmodel_tools.edits import callee

    monkeypatch.setattr(
        callee,
        "reorder",
        lambda function, *_: type(function).FromString(function.SerializeToString()),
    )
    with pytest.raises(RefusedError, match="signature would compute"):
        renamed(fixture(KERAS), tmp_path / "out", "serving_default", {}, {"kind": "zz"})


def test_with_several_meta_graphs_tags_choose(tmp_path):
    source = fixture("serve_and_train")
    key = next(
        key
        for key in layout.read(source).meta_graph("serve").signature_def
        if key not in RESERVED_SIGNATURES
    )
    (name, *_) = layout.read(source).meta_graph("serve").signature_def[key].outputs
    renamed(source, tmp_path / "out", key, {}, {name: "found"}, "serve")
    assert "found" in layout.read(tmp_path / "out").meta_graph("serve").signature_def[key].outputs
    assert layout.read(tmp_path / "out").meta_graph("train") == layout.read(source).meta_graph(
        "train"
    )


def test_the_command(tmp_path):
    model = fixture(KERAS)
    options = ("--input", "serving_default:price=cost", "--output", "serving_default:kind=label")
    text = invoke("edit", "signatures", model, *options, "--dry-run").output
    assert "price" in text and "cost" in text and "dry run" in text
    found = json.loads(
        invoke(
            "edit",
            "signatures",
            model,
            "--rename",
            "serving_default=score",
            *options,
            "--out",
            tmp_path / "out",
            "--json",
        ).output
    )
    assert found["models"][0]["changes"][-1].split()[-1] == "score"
    assert "in  cost: float32" in invoke("inspect", "--only", "signatures", tmp_path / "out").output
    for wrong in (
        (),
        ("--input", "serving_default:price"),
        ("--input", "price=a"),
        ("--input", "serving_default:=x"),
        ("--input", "serving_default:price="),
        ("--input", "serving_default:price=a", "--input", "serving_default:price=b"),
        ("--rename", "serving_default"),
    ):
        invoke("edit", "signatures", model, *wrong, "--dry-run", code=64)
    for absent in ("serving_default:nope=x", "serving_defalt:price=x"):
        invoke("edit", "signatures", model, "--input", absent, "--dry-run", code=1)


def test_an_old_name_may_have_an_equals_sign(tmp_path):
    def odd(message):
        inputs = message.meta_graphs[0].signature_def["serving_default"].inputs
        inputs["a=b"].CopyFrom(inputs["x"])
        del inputs["x"]

    edited(fixture("half_plus_two"), tmp_path / "model", odd)
    invoke(
        "edit",
        "signatures",
        tmp_path / "model",
        "--input",
        "serving_default:a=b=x",
        "--out",
        tmp_path / "out",
    )
    assert list(
        layout.read(tmp_path / "out").meta_graph().signature_def["serving_default"].inputs
    ) == ["x"]


def test_diff_tells_arguments_of_one_type_apart(tmp_path):
    """Both outputs are float32: the tensors say which is which, also under another key."""

    def change(draft):
        rename_arguments(draft, "serving_default", {"price": "cost"}, {"kind": "label"})
        signatures.rename(draft, "serving_default", "score")

    edit(fixture(KERAS), tmp_path / "out", change)
    text = invoke("diff", fixture(KERAS), tmp_path / "out", "--only", "signatures", code=1).output
    assert "serving_default: " in text and "score" in text
    assert "> input price: " in text and "> output kind: " in text
    assert "\n    +" not in text and "\n    -" not in text


def test_diff_and_contract_say_just_that(tmp_path):
    source, out = fixture(KERAS), tmp_path / "out"
    renamed(source, out, "serving_default", {"price": "cost"})
    text = invoke("diff", source, out, code=1).output
    assert "> input price: " in text and "functions  (" not in text
    invoke("contract", "write", source, "--out", tmp_path / "contract")
    told = invoke("contract", "check", out, tmp_path / "contract", code=1).output
    assert "'cost'" in told and "OUTPUT" not in told
