"""The paths that ops get at load: known only where everything that they are computed from is, and
never trusted otherwise.
"""

import hashlib
import warnings

import pytest

from property_tests.attacks import effects, forge, paths_of_ops
from reference_impl.format import schema
from reference_impl.views.model import inspect
from savedmodel_tools.verify.findings import Severity
from savedmodel_tools.verify.run import verify

RESTORING = [
    "write_by_separator",
    "write_by_joined_dots",
    "write_in_second_round",
    "move_another_checkpoint",
    "write_given_checkpoint",
]
WRITING = [*RESTORING, "write_own_asset", "print_to_file"]


def found(folder):
    return [effect for graph in inspect(folder).meta_graphs for effect in graph.effects]


def files(folder):
    return {
        path: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize("attack", WRITING)
def test_a_write_at_load_is_an_error(tmp_path, attack):
    getattr(paths_of_ops, attack)(tmp_path / "model")
    (effect,) = found(tmp_path / "model")
    assert (effect.kind, effect.when) == ("writes files", "at load")
    errors = [
        finding.rule
        for finding in verify(tmp_path / "model").findings
        if finding.severity == Severity.ERROR
    ]
    assert errors == ["SMC601"]


@pytest.mark.tensorflow
@pytest.mark.parametrize("attack", WRITING)
def test_load_refuses_it_before_anything_has_run(tmp_path, attack):
    import reference_impl
    from reference_impl.errors import MachineOpError
    from reference_impl.load_options import LoadOptions

    getattr(paths_of_ops, attack)(tmp_path / "model")
    before = files(tmp_path)
    with pytest.raises(MachineOpError, match="loading this model"):
        reference_impl.load(tmp_path / "model", options=LoadOptions(machine_ops="refuse"))
    assert files(tmp_path) == before


@pytest.mark.tensorflow
@pytest.mark.parametrize("attack", [*RESTORING, "write_own_asset"])
def test_a_load_never_writes_on_the_model(tmp_path, attack):
    """Unless it is allowed: then it shows that the attack is one."""
    import reference_impl
    from reference_impl.errors import MachineOpError
    from reference_impl.load_options import LoadOptions

    getattr(paths_of_ops, attack)(tmp_path / "model")
    before = files(tmp_path)
    with pytest.raises(MachineOpError, match="the model itself"):
        reference_impl.load(tmp_path / "model")
    assert files(tmp_path) == before
    reference_impl.load(tmp_path / "model", options=LoadOptions(machine_ops="allow"))
    assert files(tmp_path) != before


@pytest.mark.tensorflow
def test_a_literal_path_may_lead_to_the_model_too(tmp_path, monkeypatch):
    import reference_impl
    from reference_impl.errors import MachineOpError

    effects.write_at_init(tmp_path / "model")
    message = schema.parse(schema.SavedModel, (tmp_path / "model" / "saved_model.pb").read_bytes())
    (name,) = [node for node in message.meta_graphs[0].graph_def.node if node.name == "evil_name"]
    name.attr["value"].tensor.string_val[0] = b"model/../model/assets.extra"
    forge.write(tmp_path / "model", message)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MachineOpError, match="the model itself"):
        reference_impl.load("model")


def test_an_asset_is_not_believed_where_nobody_feeds_it(tmp_path):
    paths_of_ops.read_unfed_asset(tmp_path / "model")
    (effect,) = found(tmp_path / "model")
    assert effect.at_call == ("signature serving_default",)
    assert effect.paths == ("assets/words.txt", str(tmp_path / "outside" / "secret"))
    assert "SMC602" in {finding.rule for finding in verify(tmp_path / "model").findings}


def reading(tmp_path, *inputs, **attributes):
    """Return the paths that ReadFile gets in a signature: of the node "path" with these inputs.

    None: nothing is found.
    """
    message = forge.model()
    graph = message.meta_graphs[0]
    graph.asset_file_def.add(filename="words.txt").tensor_info.name = "asset:0"
    for name, op in (("asset", "Placeholder"), ("request", "Placeholder")):
        forge.node_of(graph.graph_def, name, op)
    for name, text in (("literal", b"/etc/hosts"), ("nothing", b"")):
        forge.constant(graph.graph_def, name, text)
    op, *inputs = inputs
    node = forge.node_of(graph.graph_def, "path", op, *inputs)
    for name, value in attributes.items():
        node.attr[name].s = value
    forge.node_of(graph.graph_def, "x", "ReadFile", "path:1" if op == "IdentityN" else "path")
    forge.signature(graph, "serving_default", "x:0", schema.DT_STRING)
    (effect,) = found(forge.write(tmp_path / "model", message)) or [None]
    return effect and effect.paths


@pytest.mark.parametrize(
    ("inputs", "paths"),
    [
        (("Identity", "asset"), None),
        (("IdentityN", "asset", "literal"), ("/etc/hosts",)),
        (("IdentityN", "literal", "asset"), None),
        (("StringJoin", "asset", "request"), ("assets/words.txt", "(computed)")),
        (("StringJoin", "asset", "nothing"), ("assets/words.txt", "")),
        (("StringLower", "asset"), ("(computed)",)),
        (("Substr", "asset"), ("(computed)",)),
    ],
)
def test_the_origin_of_a_path(tmp_path, inputs, paths):
    assert reading(tmp_path, *inputs) == paths


def test_a_tensor_that_a_signature_feeds_is_given_whatever_computes_it(tmp_path):
    message = forge.model()
    graph = message.meta_graphs[0]
    forge.constant(graph.graph_def, "file", b"")
    node = forge.node_of(graph.graph_def, "x", "DebugIdentity", "file")
    node.attr["debug_urls"].list.s.extend([b""] * 9 + [b"file:///tmp/x"])
    forge.node_of(graph.graph_def, "y", "CacheDataset", "x", "file")
    made = forge.signature(graph, "serving_default", "y:0")
    made.inputs["file"].name = "file:0"
    effects = {
        effect.op: effect.paths for effect in found(forge.write(tmp_path / "model", message))
    }
    assert effects == {
        "CacheDataset": ("(what the caller gives)",),
        "DebugIdentity": ("(more than is looked at)",),
    }


@pytest.mark.parametrize("kept", [True, False])
def test_the_arguments_of_a_loop_are_those_of_every_round(tmp_path, kept):
    """A loop that restores is harmless only if its path stays the same."""
    paths_of_ops.write_in_second_round(tmp_path / "model")
    message = schema.parse(schema.SavedModel, (tmp_path / "model" / "saved_model.pb").read_bytes())
    (body,) = [
        item
        for item in message.meta_graphs[0].graph_def.library.function
        if item.signature.name == "body"
    ]
    (node,) = [item for item in body.node_def if item.name == "evil"]
    node.op = "RestoreV2"
    del node.input[3:]
    if kept:
        forge.node_of(body, "same", "Identity", "path")
        body.ret["next_path"] = "same:output:0"
    effects = found(forge.write(tmp_path / "model", message))
    assert [effect.paths for effect in effects] == ([] if kept else [("(computed)",)])


@pytest.mark.parametrize(("aliased", "paths"), [(False, None), (True, ("(computed)",))])
def test_a_variable_with_several_handles_is_not_followed(tmp_path, aliased, paths):
    message = forge.model()
    graph = message.meta_graphs[0]
    graph.asset_file_def.add(filename="words.txt").tensor_info.name = (
        forge.constant(graph.graph_def, "asset", b"words.txt") + ":0"
    )
    forge.node_of(graph.graph_def, "one", "VarHandleOp").attr["shared_name"].s = b"v"
    forge.node_of(graph.graph_def, "fill", "AssignVariableOp", "one", "asset")
    forge.node_of(graph.graph_def, "read", "ReadVariableOp", "one", "^fill")
    if aliased:
        forge.node_of(graph.graph_def, "other", "VarHandleOp").attr["shared_name"].s = b"v"
        forge.constant(graph.graph_def, "literal", b"/etc/hosts")
        forge.node_of(graph.graph_def, "overwrite", "AssignVariableOp", "other", "literal", "^fill")
    forge.node_of(graph.graph_def, "evil", "ReadFile", "read")
    graph.signature_def["__saved_model_init_op"].outputs["__saved_model_init_op"].name = "evil"
    (effect,) = found(forge.write(tmp_path / "model", message)) or [None]
    assert (effect and effect.paths) == paths


NINTH = [b"file:///nowhere/%d" % number for number in range(8)]
INIT = "__saved_model_init_op"


def sends_to(folder, *urls):
    """A model whose init op sends a tensor to these places."""
    message = forge.model()
    graph = message.meta_graphs[0]
    node = forge.node_of(
        graph.graph_def, "evil", "DebugIdentity", forge.constant(graph.graph_def, "text", b"evil")
    )
    node.attr["T"].type, node.attr["tensor_name"].s = schema.DT_STRING, b"text:0"
    node.attr["debug_urls"].list.s.extend(urls)
    graph.signature_def[INIT].outputs[INIT].name = "evil"
    return forge.write(folder, message)


def merges(folder, names):
    """A model whose init op moves checkpoints of these names."""
    message = forge.model()
    graph = message.meta_graphs[0]
    forge.constant(graph.graph_def, "to", b"/nowhere/to")
    forge.constant(graph.graph_def, "names", b"")
    tensor = graph.graph_def.node[-1].attr["value"].tensor
    tensor.string_val[:] = names
    tensor.tensor_shape.dim.add(size=len(names))
    forge.node_of(graph.graph_def, "evil", "MergeV2Checkpoints", "names", "to").attr[
        "delete_old_dirs"
    ].b = True
    graph.signature_def[INIT].outputs[INIT].name = "evil"
    return forge.write(folder, message)


def joins(folder, *texts):
    """A model whose init op writes to a path that is joined from texts."""
    message = forge.model()
    graph = message.meta_graphs[0]
    parts = [
        forge.constant(graph.graph_def, f"part_{number}", text) for number, text in enumerate(texts)
    ]
    forge.node_of(graph.graph_def, "path", "StringJoin", *parts).attr["N"].i = len(texts)
    forge.node_of(
        graph.graph_def,
        "evil",
        "WriteFile",
        "path",
        forge.constant(graph.graph_def, "content", b"evil"),
    )
    graph.signature_def[INIT].outputs[INIT].name = "evil"
    return forge.write(folder, message)


def refused(folder):
    """Why a load that only warns of other effects refuses a model; None if it does not."""
    import reference_impl
    from reference_impl.errors import MachineOpError

    try:
        with warnings.catch_warnings(record=True):
            reference_impl.load(folder)
    except MachineOpError as error:
        return error.reason
    except Exception:  # TensorFlow's, of paths that lead nowhere: it was run
        return None
    return None


@pytest.mark.tensorflow
def test_a_path_behind_those_that_are_looked_at_may_lead_to_the_model(tmp_path):
    sends_to(tmp_path / "nine", *NINTH, b"file://" + bytes(tmp_path / "nine" / "assets.extra"))
    (effect,) = found(tmp_path / "nine")
    assert "(more than is looked at)" in effect.paths
    assert "the model itself" in str(refused(tmp_path / "nine"))
    assert not (tmp_path / "nine" / "assets.extra").exists()
    merges(tmp_path / "names", [b"/nowhere/%d" % number for number in range(9)])
    assert "the model itself" in str(refused(tmp_path / "names"))


@pytest.mark.tensorflow
def test_the_parts_of_a_joined_path_may_lead_to_the_model(tmp_path):
    own = bytes(tmp_path / "model")
    assert "the model itself" in str(
        refused(joins(tmp_path / "model", own[:-3], own[-3:], b"/evil"))
    )
    assert not (tmp_path / "model" / "evil").exists()
    assert "the model itself" in str(
        refused(joins(tmp_path / "up", b"/nowhere/", b"/../..", bytes(tmp_path / "up")))
    )
    assert refused(joins(tmp_path / "other", bytes(tmp_path / "elsewhere"), b"/evil")) is None


@pytest.mark.parametrize("op", ["SaveV2", "WriteFile"])
def test_a_write_that_is_not_reached_within_the_limit_is_not_clean(tmp_path, op, monkeypatch):
    """A million nodes are followed, here a thousand. The signatures need more."""
    monkeypatch.setattr("reference_impl.safety.effects.limits.EFFECT_STEPS", 1000)
    message = forge.seed("table_static")
    graph = message.meta_graphs[0]
    waits = [
        f"^{name}"
        for name in (
            graph.graph_def.node.add(name=f"n{number}", op="NoOp").name for number in range(60)
        )
    ]
    forge.node_of(graph.graph_def, "many", "NoOp", *waits)
    del graph.signature_def[INIT]
    graph.collection_def.clear()
    for number in range(20):
        graph.signature_def[f"again_{number}"].outputs["y"].name = "many:0"
    for made in graph.graph_def.library.function:
        if any(node.op == "LookupTableImportV2" for node in made.node_def):
            paths_of_ops._save(made, forge.constant(made, "path", b"/nowhere/x") + ":output:0")
            made.node_def[-1].op = op
            made.control_ret["evil"] = "evil"
            made.signature.control_output.append("evil")
    forge.write(tmp_path / "model", message)
    assert (op, "evil") in [
        (effect.op, effect.node) for effect in found(tmp_path / "model") if effect.at_load is None
    ]
    errors = [
        finding.rule
        for finding in verify(tmp_path / "model").findings
        if finding.severity == Severity.ERROR
    ]
    assert "SMC601" in errors
