"""`signatures` and `tags`: edits of protos, written to a new directory, the same for every reader.

Without TensorFlow.
"""

import json
import shutil

import pytest
from click.testing import CliRunner
from model_edits import FIXTURES, edited, fixture

import reference_impl
from reference_impl import errors
from reference_impl.format.bundle.reader import BundleReader
from reference_impl.format.container import layout
from savedmodel_compat.cli import main
from savedmodel_tools.canonical.form import canonical
from savedmodel_tools.edits import signatures
from savedmodel_tools.edits.proof import RefusedError
from savedmodel_tools.edits.run import edit


def invoke(*arguments, code=0):
    result = CliRunner().invoke(main, [str(item) for item in arguments])
    assert result.exit_code == code, result.output
    return result


def map_names(model, tracked=False):
    """What the object graph, or that of the checkpoint, calls the signatures."""
    graph = model.saved_model.meta_graphs[0].object_graph_def
    if tracked:
        with BundleReader(model.checkpoint_prefix) as reader:
            graph = reader.object_graph()
    (number,) = [
        child.node_id for child in graph.nodes[0].children if child.local_name == "signatures"
    ]
    return sorted(child.local_name for child in graph.nodes[number].children)


def keys(model, index=0):
    return sorted(model.saved_model.meta_graphs[index].signature_def)


def changed(one, other):
    before, after = canonical(one), canonical(other)
    return {name for name in before.sections if before.sections[name] != after.sections[name]}


def test_a_renamed_signature_has_one_name_in_all_places(tmp_path):
    done = edit(
        fixture("module_functions"),
        tmp_path / "out",
        lambda draft: signatures.rename(draft, "lookup", "find"),
    )
    model = layout.read(tmp_path / "out")
    assert [key for key in keys(model) if not key.startswith("__")] == ["find", "serving_default"]
    assert map_names(model) == ["find", "serving_default"]
    (change,) = done.changes
    assert done.before["objects"] == done.after["objects"]
    assert "lookup" in change and "find" in change
    # No function, weight, asset or collection is another one; "graph" has the names by which
    # signatures mean its tensors.
    assert changed(fixture("module_functions"), tmp_path / "out") <= {
        "signatures",
        "graph",
        "objects",
        "variables",
    }


def test_renaming_back_gives_the_same_model(tmp_path):
    edit(
        fixture("module_functions"),
        tmp_path / "there",
        lambda draft: signatures.rename(draft, "lookup", "find"),
    )
    edit(
        tmp_path / "there",
        tmp_path / "back",
        lambda draft: signatures.rename(draft, "find", "lookup"),
    )
    assert canonical(tmp_path / "back").hash == canonical(fixture("module_functions")).hash


def test_a_dropped_signature_takes_its_objects_along(tmp_path):
    edit(
        fixture("module_functions"),
        tmp_path / "out",
        lambda draft: signatures.drop(draft, ("lookup",)),
    )
    model, before = layout.read(tmp_path / "out"), layout.read(fixture("module_functions"))
    saved, old = (item.saved_model.meta_graphs[0].object_graph_def for item in (model, before))
    assert map_names(model) == ["serving_default"] and len(saved.nodes) < len(old.nodes)
    assert len(saved.concrete_functions) == len(old.concrete_functions) - 1
    assert changed(fixture("module_functions"), tmp_path / "out") <= {
        "signatures",
        "graph",
        "objects",
        "variables",
    }


def test_a_copy_is_the_same_function(tmp_path):
    edit(
        fixture("module_functions"),
        tmp_path / "out",
        lambda draft: signatures.copy(draft, "lookup", "again"),
    )
    graph = layout.read(tmp_path / "out").saved_model.meta_graphs[0]
    assert graph.signature_def["again"] == graph.signature_def["lookup"]
    assert len(graph.object_graph_def.nodes) == len(
        layout.read(fixture("module_functions")).meta_graph().object_graph_def.nodes
    )


def test_another_default(tmp_path):
    source = fixture("module_functions")
    with pytest.raises(RefusedError, match=r"default: .*--rename serving_default=KEY"):
        edit(source, tmp_path / "out", lambda draft: signatures.make_default(draft, "lookup"))
    edit(source, tmp_path / "out", lambda draft: signatures.make_default(draft, "lookup", "former"))
    graph = layout.read(tmp_path / "out").meta_graph()
    old = layout.read(source).meta_graph()
    assert (
        graph.signature_def["serving_default"]
        == graph.signature_def["lookup"]
        == old.signature_def["lookup"]
    )
    assert graph.signature_def["former"] == old.signature_def["serving_default"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            lambda draft: signatures.rename(draft, "nope", "x"),
            "there is no such signature; there are: lookup, serving_default",
        ),
        (
            lambda draft: signatures.rename(draft, "lookup", "serving_default"),
            "there is a signature of this key already",
        ),
        (
            lambda draft: signatures.rename(draft, "lookup", "__saved_model_init_op"),
            "reserved",
        ),
        (
            lambda draft: signatures.drop(draft, ("__saved_model_init_op",)),
            "names the ops that a loader runs first",
        ),
        (lambda draft: signatures.copy(draft, "lookup", "a\x1b[31m"), "cannot be a key"),
        (lambda draft: signatures.copy(draft, "lookup", ""), "cannot be a key"),
        (lambda draft: signatures.make_default(draft, "serving_default"), "the default already"),
    ],
)
def test_what_cannot_be_done_is_refused_and_leaves_nothing(tmp_path, change, reason):
    with pytest.raises(RefusedError, match=reason):
        edit(fixture("module_functions"), tmp_path / "out", change)
    assert list(tmp_path.iterdir()) == []


def test_with_several_meta_graphs_tags_choose(tmp_path):
    source = fixture("serve_and_train")
    with pytest.raises(errors.NoMetaGraphError, match="tags must choose"):
        edit(source, tmp_path / "out", lambda draft: signatures.rename(draft, "train", "fit"))
    edit(source, tmp_path / "out", lambda draft: signatures.rename(draft, "weights", "p", "train"))
    trained, served = (
        layout.read(tmp_path / "out").meta_graph("train"),
        layout.read(tmp_path / "out").meta_graph("serve"),
    )
    assert "p" in trained.signature_def and served == layout.read(source).meta_graph("serve")


def test_tags_are_set_and_stay_a_choice(tmp_path):
    source = fixture("serve_and_train")
    with pytest.raises(RefusedError, match=r"another MetaGraph has these tags"):
        edit(source, tmp_path / "out", lambda draft: signatures.set_tags(draft, "serve", "train"))
    edit(source, tmp_path / "out", lambda draft: signatures.set_tags(draft, "serve, gpu", "train"))
    assert set(layout.read(tmp_path / "out").tag_sets) == {
        frozenset({"serve"}),
        frozenset({"serve", "gpu"}),
    }
    edit(
        tmp_path / "out",
        tmp_path / "none",
        lambda draft: signatures.set_tags(draft, "", "serve,gpu"),
    )
    assert frozenset() in layout.read(tmp_path / "none").tag_sets


def test_files_that_do_not_change_are_the_same_files(tmp_path):
    shutil.copytree(fixture("hash_table_v2"), tmp_path / "model")
    (tmp_path / "model" / "README").write_text("mine")
    edit(
        tmp_path / "model",
        tmp_path / "out",
        lambda draft: signatures.rename(draft, "serving_default", "x"),
    )
    before, after = layout.read(tmp_path / "model"), layout.read(tmp_path / "out")
    assert before.names == after.names
    for name in set(before.names) - {"saved_model.pb"}:
        assert (tmp_path / "model" / name).read_bytes() == (tmp_path / "out" / name).read_bytes()
    shards = [name for name in after.names if ".data-" in name]
    assert all((tmp_path / "model" / name).samefile(tmp_path / "out" / name) for name in shards)


def test_text_stays_text_and_an_absent_schema_version_stays_absent(tmp_path):
    edit(fixture("pbtxt"), tmp_path / "out", lambda draft: signatures.set_tags(draft, "x"))
    assert layout.read(tmp_path / "out").file.suffix == ".pbtxt"
    shutil.copytree(fixture("half_plus_two"), tmp_path / "hub")
    edited(
        tmp_path / "hub",
        tmp_path / "hub0",
        lambda message: setattr(message, "saved_model_schema_version", 0),
    )
    edit(tmp_path / "hub0", tmp_path / "hub1", lambda draft: signatures.set_tags(draft, "x"))
    assert layout.read(tmp_path / "hub1").saved_model.saved_model_schema_version == 0


def test_the_output_is_a_new_directory_elsewhere(tmp_path):
    shutil.copytree(fixture("half_plus_two"), tmp_path / "model")
    for out, reason in (
        (tmp_path / "model", "the model itself"),
        (tmp_path / "model" / "x", "lie within it"),
    ):
        with pytest.raises(RefusedError, match=reason):
            edit(tmp_path / "model", out, lambda draft: signatures.set_tags(draft, "x"))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("mine")
    with pytest.raises(RefusedError, match="exists already"):
        edit(tmp_path / "model", tmp_path / "full", lambda draft: signatures.set_tags(draft, "x"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["full", "model"]


def test_damaged_weights_are_not_copied_in_silence(tmp_path):
    shutil.copytree(fixture("half_plus_two"), tmp_path / "model")
    (shard,) = (tmp_path / "model" / "variables").glob("*.data-*")
    data = bytearray(shard.read_bytes())
    data[0] ^= 1
    shard.write_bytes(data)
    with pytest.raises(errors.ChecksumError):
        edit(tmp_path / "model", tmp_path / "out", lambda draft: signatures.set_tags(draft, "x"))
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_objects_that_are_not_there_are_refused(tmp_path):
    def wrong(message):
        message.meta_graphs[0].object_graph_def.nodes[0].children[0].node_id = 10**6

    edited(fixture("module_functions"), tmp_path / "model", wrong)
    with pytest.raises(errors.MalformedError, match="refers to object 1000000 of"):
        edit(
            tmp_path / "model", tmp_path / "out", lambda draft: signatures.drop(draft, ("lookup",))
        )


def test_the_commands(tmp_path):
    model = fixture("module_functions")
    dry = invoke("edit", "signatures", model, "--drop", "lookup", "--dry-run").output
    assert "dry run" in dry and "objects 22 -> 21" in dry
    found = json.loads(
        invoke(
            *("edit", "signatures", model, "--rename", "lookup=find"),
            *("--out", tmp_path / "out", "--json"),
        ).output
    )
    (change,) = found["models"][0]["changes"]
    assert "lookup" in change and "find" in change and not found["dry_run"]
    assert (
        "is called"
        in invoke(
            "edit", "signatures", tmp_path / "out", "--rename", "find=lookup", "--dry-run"
        ).output
    )
    invoke("edit", "signatures", model, "--drop", "nope", "--dry-run", code=1)
    invoke("edit", "signatures", model, "--drop", "lookup", code=64)
    invoke("edit", "tags", model, "x", "--out", tmp_path / "o", "--dry-run")
    assert not (tmp_path / "o").exists()


def test_several_changes_of_one_edit_come_in_a_fixed_order(tmp_path):
    model, out = fixture("module_functions"), tmp_path / "out"
    words = ("--default", "look", "--copy", "lookup=look", "--input", "lookup:words=terms")
    invoke("edit", "signatures", model, *words, "--rename", "serving_default=old", "--out", out)
    found = reference_impl.inspect(out).meta_graphs[0].signatures
    assert {one.key: [item.name for item in one.inputs] for one in found} == {
        "look": ["terms"],
        "lookup": ["terms"],
        "old": ["x"],
        "serving_default": ["terms"],
    }


def test_a_key_with_a_colon_is_told_from_the_name_of_an_input(tmp_path):
    model, out = fixture("module_functions"), tmp_path / "out"
    invoke("edit", "signatures", model, "--rename", "lookup=a:b", "--out", out)
    text = invoke("edit", "signatures", out, "--input", "a:b:words=terms", "--dry-run").output
    assert "input words of" in text and "terms" in text


def test_inspect_tells_which_signatures_the_object_graph_lacks(tmp_path):
    def lose(message):
        nodes = message.meta_graphs[0].object_graph_def.nodes
        (held,) = [node for node in nodes if node.user_object.identifier == "signature_map"]
        (child,) = [child for child in held.children if child.local_name == "lookup"]
        held.children.remove(child)

    edited(fixture("module_functions"), tmp_path / "model", lose)
    found = reference_impl.inspect(tmp_path / "model").meta_graphs[0].signatures
    assert {one.key: one.loads for one in found} == {"lookup": False, "serving_default": True}
    text = invoke("inspect", "--only", "signatures", tmp_path / "model").output
    assert "tensorflow/serving/predict  (not in the" in text


def test_a_tree_goes_to_a_tree_and_a_refusal_costs_one_model(tmp_path):
    for case in ("half_plus_two", "train_tag_only"):
        shutil.copytree(fixture(case), tmp_path / "zoo" / case / "1")
    result = invoke(
        "edit",
        "signatures",
        tmp_path / "zoo",
        "--rename",
        "serving_default=x",
        "--out",
        tmp_path / "out",
        "--json",
        code=1,
    )
    one, other = json.loads(result.stdout)["models"]
    assert one["output"] == str(tmp_path / "out" / "half_plus_two" / "1") and "x" in keys(
        layout.read(one["output"])
    )
    assert other["error"]["class"] == "RefusedError"


def test_every_fixture_keeps_its_meaning(tmp_path):
    """Of models with one MetaGraph.

    In the canonical form of several, all that belongs to one is under its tags.
    """
    tag_sets = {
        path.parent: layout.read(path).tag_sets for path in sorted(FIXTURES.glob("*/model"))
    }
    cases = [case for case, found in tag_sets.items() if len(found) == 1]
    assert len(cases) > 50
    for case in cases[::10]:
        chosen = ",".join(sorted(tag_sets[case][0]))
        edit(
            case / "model",
            tmp_path / case.name,
            lambda draft, chosen=chosen: signatures.set_tags(draft, f"{chosen},more", chosen),
        )
        assert changed(case / "model", tmp_path / case.name) == {"meta"}
