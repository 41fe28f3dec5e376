"""Ops that act on the machine: which they are, when `inspect` says that they run, and what `load`
does about those at load.
"""

import contextlib
import json
import re
import warnings

import fresh_tensorflow
import model_edits as edits
import pytest

from property_tests.attacks import effects as attacks
from property_tests.attacks import forge
from reference_impl.format import schema
from reference_impl.safety.op_effects import OP_EFFECTS, UNKNOWN, known_ops, op_effect
from reference_impl.views.model import inspect
from savedmodel_tools.skew.history import history

CASES = sorted(path.parent.name for path in edits.FIXTURES.glob("*/model"))


# Names of inputs and attributes that may hold a path, and the ops that have such a name for
# something else.
PLACE = re.compile(
    r".*(file|path|prefix|pattern|address|dir|uri|url|source_name|endpoint|output_stream|hostport).*"
)
NO_PLACES = re.compile(
    r"(Bigtable|Cudnn|Static|)\w*(Dataset|RNN\w*|Regex\w*)|RiscSort|DTensorShardedPrefix"
)


def found(folder):
    return [effect for graph in inspect(folder).meta_graphs for effect in graph.effects]


def test_the_names_of_ops_are_those_of_the_history():
    assert known_ops() == set(history().names)
    assert set(OP_EFFECTS) <= known_ops()
    assert {op_effect("MatMul"), op_effect("Assert")} == {None}
    assert op_effect("Zero>LaunchMissiles").kind == UNKNOWN


def test_the_place_of_a_path_is_an_input_or_an_attribute_of_the_op():
    table = history()
    placed = {name: effect for name, effect in OP_EFFECTS.items() if effect.place is not None}
    assert placed
    for name, effect in placed.items():
        op = table.op(name).definition(table.op(name).members[-1])
        if isinstance(effect.place, str):
            assert effect.place in table.op(name).attr_names, name
        else:
            for place in effect.place if isinstance(effect.place, tuple) else (effect.place,):
                given, kind = inputs_of(op)[place]
                assert kind in ("string", "T", "Ref(string)") and PLACE.fullmatch(given), name


def inputs_of(op):
    """Return name and type of each input."""
    return [
        item.strip().partition(": ")[::2]
        for item in op.signature.partition("->")[0].split(", ")
        if item.strip()
    ]


def test_every_input_or_attribute_with_the_name_of_a_path_is_in_the_table():
    """Found in the op history, so that an op of a new release cannot be forgotten; for ops with
    several paths each counts.
    """
    table, missing = history(), []
    for name in table.names:
        op = table.op(name).definition(table.op(name).members[-1])
        inputs = [
            number
            for number, (given, kind) in enumerate(inputs_of(op))
            if "string" in kind and PLACE.fullmatch(given)
        ]
        texts = [
            attr.name
            for attr in op.attrs
            if attr.type in ("string", "list(string)") and PLACE.fullmatch(attr.name)
        ]
        if name in OP_EFFECTS:
            place = OP_EFFECTS[name].place
            forgotten = (
                set(inputs) - set(place if isinstance(place, tuple) else (place,))
                if len(inputs) > 1
                else ()
            )
        else:
            forgotten = () if NO_PLACES.fullmatch(name) else [*inputs, *texts]
        missing += [(name, each) for each in forgotten]
    assert missing == []


def test_genuine_models_of_tf_1_do_nothing_else():
    """Tables are filled from assets in a dozen of them, and checkpoints restored; a path that is no
    asset is told.
    """
    acting = {
        case: [(item.op, item.at_load, item.at_call) for item in found(edits.fixture(case))]
        for case in CASES
    }
    table = "InitializeTableFromTextFileV2"
    assert {case: effects for case, effects in acting.items() if effects} == {
        "py_func": [("PyFuncStateless", (), ("signature serving_default",))],
        "queue_leftovers": [("TextLineReaderV2", (), ())],
        "untracked_vocabulary": [
            (table, ("init op NoOp",), ()),
            (table, ("_initialize of table",), ()),
        ],
    }


def test_who_runs_it(tmp_path):
    attacks.write_in_initializer(tmp_path / "model")
    effects = found(tmp_path / "model")
    assert {(item.op, item.kind, item.node, item.count) for item in effects} == {
        ("WriteFile", "writes files", "evil", 1)
    }
    assert {item.paths for item in effects} == {(str(tmp_path / "outside" / "done"),)}
    by = {name for item in effects for name in item.at_load if "init op" not in name}
    assert by == {"_initialize of ids", "_initialize of weights", "_initialize of words"}
    assert not any(item.at_call for item in effects)


def test_a_path_is_followed_through_calls(tmp_path):
    attacks.write_in_nested_calls(tmp_path / "model")
    (effect,) = found(tmp_path / "model")
    assert (effect.function, effect.at_load) == ("level_2", ("init op evil",))
    assert effect.paths == (str(tmp_path / "outside" / "done"),)


@pytest.mark.parametrize(
    ("attack", "function", "by"),
    [
        ("write_in_twin", "twin", "init op evil"),
        ("write_in_gradient", "slope", "init op evil"),
        ("write_when_collected", "", "_destroy_resource of ids"),
        ("write_behind_damage", "", "_initialize of ids"),
    ],
)
def test_what_tensorflow_chooses_by_itself_runs_at_load(tmp_path, attack, function, by):
    from savedmodel_tools.verify.run import verify

    getattr(attacks, attack)(tmp_path / "model")
    acting = [item for item in found(tmp_path / "model") if by in item.at_load]
    assert acting and all(function in item.function and item.op == "WriteFile" for item in acting)
    assert "SMC601" in {
        finding.rule
        for finding in verify(tmp_path / "model").findings
        if finding.severity.word == "error"
    }


def test_an_op_of_the_table_is_not_hidden_by_a_function_of_its_name(tmp_path):
    message = forge.model()
    graph = message.meta_graphs[0]
    forge.function(graph, "WriteFile")
    forge.node_of(
        graph.graph_def,
        "evil",
        "WriteFile",
        forge.constant(graph.graph_def, "name", b"/tmp/x"),
        "name",
    )
    graph.signature_def["__saved_model_init_op"].outputs["__saved_model_init_op"].name = "evil"
    assert [item.at_load for item in found(forge.write(tmp_path / "model", message))] == [
        ("init op evil",)
    ]


@pytest.mark.tensorflow
@pytest.mark.parametrize("attack", ["write_in_twin", "write_in_gradient", "write_when_collected"])
def test_tensorflow_does_choose_them(tmp_path, attack):
    """What the attacks rest on: TensorFlow's own loader writes the file.

    In a process of its own, which may die of it.
    """
    getattr(attacks, attack)(tmp_path / "model")
    code = (
        "import sys, tensorflow as tf\n"
        "if sys.argv[2] == 'v1':\n"
        "    with tf.Graph().as_default(), tf.compat.v1.Session() as session:\n"
        "        tf.compat.v1.saved_model.load(session, ['serve'], sys.argv[1])\n"
        "else:\n"
        "    loaded = tf.saved_model.load(sys.argv[1]); del loaded; import gc; gc.collect()\n"
    )
    loader = "v2" if attack == "write_when_collected" else "v1"
    fresh_tensorflow.run(code, tmp_path / "model", loader)
    assert (tmp_path / "outside" / "done").read_bytes() == b"written by a model"


def test_what_the_caller_names(tmp_path):
    """A signature that reads the file that a request names, and one of its own."""
    message = forge.model()
    graph = message.meta_graphs[0]
    forge.node_of(graph.graph_def, "request", "Placeholder")
    forge.node_of(graph.graph_def, "x", "ReadFile", "request")
    forge.node_of(
        graph.graph_def, "y", "ReadFile", forge.constant(graph.graph_def, "own", b"/etc/hosts")
    )
    forge.signature(graph, "theirs", "x:0", schema.DT_STRING)
    forge.signature(graph, "ours", "y:0", schema.DT_STRING)
    (effect,) = found(forge.write(tmp_path / "model", message))
    assert (effect.count, effect.paths) == (2, ("(what the caller gives)", "/etc/hosts"))
    assert (effect.at_load, effect.at_call) == ((), ("signature ours", "signature theirs"))


@pytest.mark.parametrize("path, acts", [(b"", False), (b"/tmp/cache", True)])
def test_an_op_that_is_given_no_file_does_nothing(tmp_path, path, acts):
    message = forge.model()
    graph = message.meta_graphs[0]
    forge.node_of(graph.graph_def, "data", "RangeDataset")
    forge.node_of(
        graph.graph_def, "x", "CacheDataset", "data", forge.constant(graph.graph_def, "file", path)
    )
    forge.signature(graph)
    assert bool(found(forge.write(tmp_path / "model", message))) == acts


def test_functions_beyond_counting_are_left_open(tmp_path, monkeypatch):
    monkeypatch.setattr("reference_impl.safety.effects.limits.EFFECT_STEPS", 3)
    attacks.write_in_nested_calls(tmp_path / "model")
    (effect,) = found(tmp_path / "model")
    assert (effect.at_load, effect.at_call) == (None, None)


def test_inspect_shows_when(tmp_path, capsys):
    from savedmodel_compat.cli import main

    attacks.write_in_nested_calls(tmp_path / "model")
    with pytest.raises(SystemExit):
        main(["inspect", "--only", "effects", str(tmp_path / "model")])
    assert "at load  WriteFile  writes a file" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["inspect", "--json", str(tmp_path / "model")])
    (effect,) = json.loads(capsys.readouterr().out)["meta_graphs"][0]["effects"]
    assert (effect["op"], effect["kind"], effect["at_load"]) == (
        "WriteFile",
        "writes files",
        ["init op evil"],
    )


ACTING = [
    "write_at_init",
    "write_in_initializer",
    "write_in_nested_calls",
    "write_in_twin",
    "write_in_gradient",
    "write_when_collected",
    "read_behind_asset",
    "restore_elsewhere",
]


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    "attack", [*ACTING, "read_by_attribute", "foreign_op_at_init", "python_function"]
)
def test_load_refuses_before_anything_has_run(tmp_path, attack):
    import reference_impl
    from reference_impl.errors import MachineOpError
    from reference_impl.load_options import LoadOptions

    getattr(attacks, attack)(tmp_path / "model")
    with pytest.raises(MachineOpError, match=r"loading this model .*machine_ops='warn'"):
        reference_impl.load(tmp_path / "model", options=LoadOptions(machine_ops="refuse"))
    assert not (tmp_path / "outside" / "done").exists()


@pytest.mark.tensorflow
@pytest.mark.parametrize("attack", ACTING)
def test_load_warns_once(tmp_path, attack):
    import reference_impl
    from reference_impl.load_options import LoadOptions
    from reference_impl.safety.machine_ops import MachineOpWarning

    getattr(attacks, attack)(tmp_path / "model")
    node = "restore" if attack == "restore_elsewhere" else "evil"
    with pytest.warns(
        MachineOpWarning, match=rf"op '.*node '{node}'.*machine_ops='refuse'"
    ) as caught:
        reference_impl.load(tmp_path / "model")
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reference_impl.load(tmp_path / "model", options=LoadOptions(machine_ops="allow"))


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    "case", ["legacy_init_op", "estimator_custom", "same_basename_assets", "mutable_hash_table"]
)
def test_genuine_models_load_with_refuse(case):
    import reference_impl
    from reference_impl.load_options import LoadOptions

    assert reference_impl.load(
        edits.fixture(case), options=LoadOptions(machine_ops="refuse")
    ).signatures


@pytest.mark.tensorflow
def test_a_load_that_runs_too_much_to_follow_is_not_silent(monkeypatch):
    import reference_impl
    from reference_impl import LoadOptions
    from reference_impl.errors import MachineOpError
    from reference_impl.safety.machine_ops import MachineOpWarning

    monkeypatch.setattr("reference_impl.safety.effects.limits.EFFECT_STEPS", 0)
    model = edits.fixture("while_loop")
    with pytest.warns(MachineOpWarning, match="too many"):
        reference_impl.load(model)
    with pytest.raises(MachineOpError, match="too many"):
        reference_impl.load(model, options=LoadOptions(machine_ops="refuse"))
    with warnings.catch_warnings():
        warnings.simplefilter("error", MachineOpWarning)
        reference_impl.load(model, options=LoadOptions(machine_ops="allow"))


@pytest.mark.tensorflow
def test_a_part_is_judged_by_what_it_runs(tmp_path):
    """Without the table nothing writes."""
    import reference_impl
    from reference_impl.errors import MachineOpError
    from reference_impl.load_options import LoadOptions

    attacks.write_in_initializer(tmp_path / "model")
    message = schema.parse(schema.SavedModel, (tmp_path / "model" / "saved_model.pb").read_bytes())
    forge.variable(message.meta_graphs[0], "alone")
    forge.write(tmp_path / "model", message)
    for only, refused in (("alone", False), ("words", True)):
        options = LoadOptions(only=only, machine_ops="refuse", skip_checkpoint=True)
        with pytest.raises(MachineOpError) if refused else contextlib.nullcontext():
            reference_impl.load(tmp_path / "model", options=options)


@pytest.mark.tensorflow
def test_another_choice_is_an_error():
    from reference_impl.load_options import LoadOptions

    with pytest.raises(ValueError, match="not 'perhaps'"):
        LoadOptions(machine_ops="perhaps")
