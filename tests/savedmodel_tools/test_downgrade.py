"""``savedmodel-compat downgrade``: what is rewritten, what is refused, and the proof in the older
release.
"""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner
from model_edits import edited, fixture

from reference_impl.format import schema
from reference_impl.format.container import layout
from reference_impl.format.values.tensor_proto import decode
from savedmodel_compat.cli import main
from savedmodel_tools.downgrade import attrs, replace, rewrite
from savedmodel_tools.skew.history import history

OLD = "1.15"


def run(model, out, *arguments):
    return CliRunner().invoke(main, ["downgrade", *map(str, (model, "--out", out, *arguments))])


def needs_old():
    from compat_matrix.runtimes.places import NotInstalled
    from compat_matrix.runtimes.resolve import resolve

    try:
        resolve(OLD)
    except NotInstalled as error:
        pytest.skip(f"the proof needs another runtime: {error}")


def modernize(message):
    """Write into a model what a release of today writes and 1.15 does not read."""
    graph = message.meta_graphs[0].graph_def
    for node in graph.node:
        if node.op == "VarHandleOp":
            node.attr["debug_name"].s = b"scale"
            node.attr["allowed_devices"].list.SetInParent()
    for function in graph.library.function:
        for node in [node for node in function.node_def if node.op == "ReadVariableOp"]:
            idle = function.node_def.add(
                name=f"{node.name}/DisableCopyOnRead", op="DisableCopyOnRead", input=[node.input[0]]
            )
            node.input.append(f"^{idle.name}")
            function.signature.control_output.append(idle.name)
            function.control_ret[idle.name] = idle.name


def graphs(path):
    return list(layout.read(path).saved_model.meta_graphs)


def test_what_no_answer_depends_on_goes_and_nothing_else(tmp_path):
    modern, out = (
        edited(fixture("module_functions"), tmp_path / "modern", modernize),
        tmp_path / "new" / "old",
    )
    (modern / "assets.extra").mkdir()
    (modern / "assets.extra" / "note.txt").write_text("kept")
    before = {path: path.read_bytes() for path in modern.rglob("*") if path.is_file()}
    done = run(modern, out, "--target", OLD, "--no-proof", "--json")
    assert done.exit_code == 0, done.output
    assert graphs(out) == graphs(fixture("module_functions"))
    for path, data in before.items():
        assert path.read_bytes() == data
        if path.name != "saved_model.pb":
            assert (out / path.relative_to(modern)).read_bytes() == data
    found = json.loads(done.output)
    assert (found["schema"], found["target"]) == (1, OLD)
    (line,) = found["models"]
    assert line["output"] == str(out) and line["proof"]["status"] == "UNPROVED"
    assert {(change["kind"], change["op"]) for change in line["changes"]} == {
        ("drop_attr", "VarHandleOp"),
        ("drop_node", "DisableCopyOnRead"),
    }
    assert list(tmp_path.glob("new/.*")) == []


def test_what_is_lacking_is_refused_by_name_and_nothing_is_written(tmp_path):
    def random(message):
        modernize(message)
        function = message.meta_graphs[0].graph_def.library.function[0]
        function.node_def.add(name="draw", op="StatelessRandomGetKeyCounter", input=["seed"]).attr[
            "Tseed"
        ].type = schema.DT_INT32

    model = edited(fixture("module_functions"), tmp_path / "m", random)
    done = run(model, tmp_path / "out", "--target", OLD)
    assert done.exit_code == 1
    assert "'StatelessRandomGetKeyCounter'" in done.output and "node 'draw'" in done.output
    assert "dropped" not in done.output, "nothing was"
    assert not (tmp_path / "out").exists()
    assert run(model, tmp_path / "out", "--target", "2.12", "--no-proof").exit_code == 0


def test_loss_through_one_loader_alone_is_said(tmp_path):
    def content(message):
        message.meta_graphs[0].object_graph_def.nodes[0].saveable_objects["table"].save_function = 1

    model = edited(fixture("module_functions"), tmp_path / "m", content)
    done = run(model, tmp_path / "out", "--target", OLD)
    assert (
        done.exit_code == 1
        and "content of tables" in done.output
        and "--for session --for c++" in done.output
    )
    done = run(
        model, tmp_path / "out", "--target", OLD, "--for", "session", "--for", "c++", "--no-proof"
    )
    assert done.exit_code == 0, done.output


def test_a_tree_is_mirrored_and_existing_places_are_refused(tmp_path):
    for name in ("a", "b/1"):
        edited(fixture("half_plus_two"), tmp_path / "zoo" / name, lambda message: None)
    done = run(tmp_path / "zoo", tmp_path / "out", "--target", OLD, "--no-proof")
    assert done.exit_code == 0 and done.output.endswith("2 models: 2 UNPROVED\n"), done.output
    assert {
        path.parent.relative_to(tmp_path / "out").as_posix()
        for path in (tmp_path / "out").rglob("saved_model.pb")
    } == {
        "a",
        "b/1",
    }
    assert (
        run(tmp_path / "zoo" / "a", tmp_path / "out" / "a", "--target", OLD, "--no-proof").exit_code
        == 64
    )
    assert (
        run(
            tmp_path / "zoo" / "a", tmp_path / "zoo" / "a" / "inside", "--target", OLD, "--no-proof"
        ).exit_code
        == 64
    )
    assert run(tmp_path / "zoo", tmp_path / "x", "--target", ">=1.15").exit_code == 64


def test_attrs_with_a_meaning_stay():
    table, node = history(), schema.NodeDef(op="TensorListSetItem")
    node.attr["resize_if_index_out_of_bounds"].b = True
    assert (
        list(attrs.fit(node, table.index(OLD), table)) == []
        and node.attr["resize_if_index_out_of_bounds"].b
    )
    node.attr["resize_if_index_out_of_bounds"].b = False
    (change,) = attrs.fit(node, table.index(OLD), table)
    assert change.kind == "drop_attr" and not node.attr


def test_a_default_that_the_release_does_not_have_is_written_out():
    table, node = history(), schema.NodeDef(op="RaggedTensorToVariant")
    (change,) = attrs.fit(node, table.index("2.0"), table)
    assert change.kind == "add_attr" and node.attr["Tsplits"].type == schema.DT_INT64
    assert (
        list(attrs.fit(schema.NodeDef(op="RaggedTensorToVariant"), table.index("2.1"), table)) == []
    )


def test_who_waited_for_a_removed_node_waits_for_what_it_waited_for():
    graph = schema.GraphDef()
    graph.node.add(name="a", op="NoOp")
    graph.node.add(name="i", op="Idle", input=["v", "^a"])
    graph.node.add(name="j", op="Idle", input=["v", "^i", "^j"])
    graph.node.add(name="z", op="Use", input=["w", "^j"])
    rewrite.remove(graph.node, {"i", "j"}, None)  # v is no node: an argument
    assert [(node.name, list(node.input)) for node in graph.node] == [("a", []), ("z", ["w", "^a"])]


def _parse(function=None, shape=(-1,), ragged=False):
    nodes = (
        (function or schema.GraphDef()).node_def if function is not None else schema.GraphDef().node
    )
    for name, keys in (
        ("names", []),
        ("sparse", [b"s"]),
        ("dense", [b"d", b"e"]),
        ("ragged", [b"r"] if ragged else []),
    ):
        tensor = nodes.add(name=name, op="Const").attr["value"].tensor
        tensor.dtype = schema.DT_STRING
        tensor.tensor_shape.dim.add(size=len(keys))
        tensor.string_val.extend(keys)
    placeholder = nodes.add(name="text", op="Placeholder")
    for size in shape:
        placeholder.attr["shape"].shape.dim.add(size=size)
    if shape == ():
        placeholder.attr["shape"].shape.SetInParent()
    node = nodes.add(
        name="parse",
        op="ParseExampleV2",
        input=["text", "names", "sparse", "dense", "ragged", "d0", "d1", "^text"],
    )
    node.attr["num_sparse"].i = 1
    node.attr["sparse_types"].list.type.append(schema.DT_INT64)
    node.attr["Tdense"].list.type.extend([schema.DT_FLOAT] * 2)
    node.attr["ragged_value_types"].list.type.extend([schema.DT_INT64] * ragged)
    return node, replace.Scope(nodes, function)


def test_parse_example():
    table = history()
    node, scope = _parse()
    change, needed = replace.replace(node, scope, table.index(OLD), table)
    assert change.kind == "replace_op" and not needed and node.op == "ParseExample"
    names = ["parse/sparse_key_0", "parse/dense_key_0", "parse/dense_key_1"]
    assert list(node.input) == ["text", "names", *names, "d0", "d1", "^text"]
    assert [decode(scope.by_name[name].attr["value"].tensor).item() for name in names] == [
        b"s",
        b"d",
        b"e",
    ]
    assert (node.attr["Nsparse"].i, node.attr["Ndense"].i) == (
        1,
        2,
    ) and "num_sparse" not in node.attr


@pytest.mark.parametrize("arguments", [{"shape": ()}, {"shape": (2, 2)}, {"ragged": True}])
def test_parse_example_that_has_no_older_form(arguments):
    table = history()
    node, scope = _parse(**arguments)
    change, needed = replace.replace(node, scope, table.index(OLD), table)
    assert change is None and "ParseExample where" in needed and node.op == "ParseExampleV2"


def test_batch_mat_mul_of_one_dtype():
    table, index = history(), history().index("2.4")
    node = schema.NodeDef(name="m", op="BatchMatMulV3")
    for name in ("Ta", "Tb", "Tout"):
        node.attr[name].type = schema.DT_FLOAT
    mixed = schema.NodeDef()
    mixed.CopyFrom(node)
    mixed.attr["Tout"].type = schema.DT_INT32
    scope = replace.Scope(schema.GraphDef(node=[node]).node, None)
    assert (
        replace.replace(node, scope, index, table)[0]
        and node.op == "BatchMatMulV2"
        and sorted(node.attr) == ["T"]
    )
    assert replace.replace(mixed, scope, index, table)[0] is None and mixed.op == "BatchMatMulV3"


def test_batch_norm_whose_last_output_is_used():
    table, index = history(), history().index("1.13")
    for output, op in (("n:4", "FusedBatchNormV2"), ("n:5", "FusedBatchNormV3")):
        graph = schema.GraphDef()
        node = graph.node.add(name="n", op="FusedBatchNormV3")
        graph.node.add(name="u", op="Identity", input=[output])
        replace.replace(node, replace.Scope(graph.node, None), index, table)
        assert node.op == op


@pytest.mark.tensorflow
def test_today_s_export_is_proved_in_an_older_release(tmp_path):
    import tensorflow as tf

    needs_old()

    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable([2.0, 3.0])

        @tf.function(input_signature=[tf.TensorSpec([None, 2])])
        def __call__(self, x):
            return {"y": x * self.w}

    tf.saved_model.save(Model(), str(tmp_path / "today"))
    done = run(tmp_path / "today", tmp_path / "old", "--target", OLD)
    assert done.exit_code == 0, done.output
    assert done.output.rstrip().endswith("PROVED") and "tf2 of 1.15" in done.output


@pytest.mark.tensorflow
def test_a_tree_is_proved_by_one_worker_and_a_crash_costs_one_model(tmp_path, monkeypatch):
    import dataclasses
    import os
    import signal

    from compat_matrix.checks.kinds import values
    from compat_matrix.runtimes import resolve
    from compat_matrix.runtimes.runtime import local_runtime

    for name in "abc":
        edited(fixture("half_plus_two"), tmp_path / "zoo" / name, lambda message: None)
    ask_all, workers = values.ask_all, []

    def dying(context, loaded, tags, answers):
        workers.append((context.worker, context.worker.generation))
        if context.artifact.model.parent.name == "b" and context.worker.runtime.name == "tf2.20":
            os.kill(context.worker._process.pid, signal.SIGKILL)
        return ask_all(context, loaded, tags, answers)

    def old(release):  # the local TensorFlow stands in for another one
        return dataclasses.replace(local_runtime(), name=f"tf{release}")

    monkeypatch.setattr(values, "ask_all", dying)
    monkeypatch.setattr(resolve, "resolve", old)
    done = run(tmp_path / "zoo", tmp_path / "out", "--target", "2.20", "--for", "c++", "--json")
    assert done.exit_code == 1, done.output
    proofs = {line["source"][-1]: line["proof"] for line in json.loads(done.output)["models"]}
    assert {name: proof["status"] for name, proof in proofs.items()} == {
        "a": "PROVED",
        "b": "FAILED",
        "c": "PROVED",
    }
    assert "SIGKILL" in proofs["b"]["why"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["a", "c"]
    there = [generation for worker, generation in workers if worker.runtime.name == "tf2.20"]
    assert there == [1, 1, 2, 3], "a, b, b once more in a fresh process, c"


def test_several_processes_say_what_one_says(tmp_path):
    for name in "abc":
        edited(fixture("half_plus_two"), tmp_path / "zoo" / name, lambda message: None)
    (tmp_path / "zoo" / "b" / "saved_model.pb").write_bytes(b"\xff" * 100)
    for out, more in (("dry", ["--dry-run"]), ("out", ["--no-proof"])):
        one, several = [
            run(
                tmp_path / "zoo",
                tmp_path / out / str(jobs),
                "--target",
                OLD,
                "--jobs",
                jobs,
                "--json",
                *more,
            )
            for jobs in (1, 2)
        ]
        assert (one.exit_code, several.exit_code) == (1, 1), several.output
        assert several.stdout.replace(f"{out}/2", f"{out}/1") == one.stdout
        assert several.stderr == one.stderr and "zoo/b" in one.stderr
    assert sorted(path.name for path in (tmp_path / "out" / "2").iterdir()) == ["a", "c"]


@pytest.mark.parametrize("taken", ["a", "c"])
def test_a_defect_of_the_machine_decides_the_exit_code_wherever_it_comes(taken, tmp_path):
    for name in "abc":
        edited(fixture("half_plus_two"), tmp_path / "zoo" / name, lambda message: None)
    (tmp_path / "zoo" / "b" / "saved_model.pb").write_bytes(b"\xff" * 100)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / taken).write_text("mine")
    assert run(tmp_path / "zoo", tmp_path / "out", "--target", OLD, "--no-proof").exit_code == 4


@pytest.mark.tensorflow
def test_each_process_proves_with_workers_of_its_own_and_leaves_nothing(tmp_path, monkeypatch):
    needs_old()
    for name in "abc":
        edited(fixture("half_plus_two"), tmp_path / "zoo" / name, lambda message: None)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    line = f"downgrade zoo --out out --target {OLD} --for c++ --jobs 2 --json"
    command = [sys.executable, "-m", "savedmodel_compat", *line.split()]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    told = [line["proof"]["status"] for line in json.loads(done.stdout)["models"]]
    assert (done.returncode, told) == (0, ["PROVED"] * 3), done.stderr
    assert [
        path.name for path in temporary.iterdir() if path.name.startswith("savedmodel-compat-")
    ] == []


@pytest.mark.tensorflow
def test_links_out_of_the_model_are_followed_and_keep_it_from_being_proved(tmp_path, monkeypatch):
    import dataclasses

    from compat_matrix.runtimes import resolve
    from compat_matrix.runtimes.runtime import local_runtime

    monkeypatch.setattr(
        resolve, "resolve", lambda release: dataclasses.replace(local_runtime(), name="old")
    )
    model = edited(fixture("half_plus_two"), tmp_path / "m", lambda message: None)
    (tmp_path / "note.txt").write_text("kept")
    (model / "assets.extra").mkdir()
    (model / "assets.extra" / "note.txt").symlink_to(tmp_path / "note.txt")
    done = run(model, tmp_path / "out", "--target", "2.20", "--follow-links")
    assert done.exit_code == 3, done.output
    assert "UNPROVED: note.txt " in done.output
    assert (tmp_path / "out" / "assets.extra" / "note.txt").read_text() == "kept"


@pytest.mark.tensorflow
def test_a_model_with_a_state_is_proved_by_our_requests_and_by_recorded_ones(tmp_path, monkeypatch):
    import dataclasses

    import tensorflow as tf

    from compat_matrix.runtimes import resolve
    from compat_matrix.runtimes.runtime import local_runtime
    from savedmodel_common import tensors

    class Counter(tf.Module):
        def __init__(self):
            super().__init__()
            self.count = tf.Variable(0.0)

        @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
        def __call__(self, step):
            return {"count": self.count.assign_add(step + 1)}

    tf.saved_model.save(Counter(), str(tmp_path / "m"))
    monkeypatch.setattr(
        resolve, "resolve", lambda release: dataclasses.replace(local_runtime(), name="old")
    )
    arguments = (tmp_path / "m", tmp_path / "out", "--target", "2.20", "--for", "c++")
    done = run(*arguments)
    assert done.exit_code == 0 and "1 answers as recorded" in done.output, (
        done.output
    )  # a state is not chance
    requests = []
    for number, total in enumerate((3.0, 6.0)):
        tensors.save(tmp_path / f"{number}.in.npz", {"step": tensors.from_numpy(np.float32(2))})
        tensors.save(
            tmp_path / f"{number}.out.npz", {"count": tensors.from_numpy(np.float32(total))}
        )
        names = {"inputs": f"{number}.in.npz", "outputs": f"{number}.out.npz"}
        asked = {
            "id": str(number),
            "kind": "signature",
            "tags": ["serve"],
            "signature": "serving_default",
        }
        requests.append({**asked, **names})
    io = tmp_path / "io"
    io.mkdir()
    (io / "io.json").write_text(json.dumps({"schema": 1, "stateful": True, "requests": requests}))
    for path in tmp_path.glob("*.npz"):
        path.rename(io / path.name)
    shutil.rmtree(tmp_path / "out")
    done = run(*arguments, "--requests", io)
    assert done.exit_code == 0 and "2 answers as recorded" in done.output, done.output
    (io / "io.json").write_text("{}")
    done = run(tmp_path / "m", tmp_path / "other", "--target", "2.20", "--requests", io)
    assert (
        done.exit_code == 4
        and "not of schema 1" in done.output
        and not (tmp_path / "other").exists()
    )
    assert (
        run(tmp_path, tmp_path / "zoo", "--target", "2.20", "--requests", io).exit_code == 64
    )  # two models


@pytest.mark.tensorflow
def test_a_runtime_that_does_not_start_proves_nothing_and_disproves_nothing(tmp_path, monkeypatch):
    import dataclasses

    from compat_matrix.runtimes import resolve
    from compat_matrix.runtimes.runtime import local_runtime

    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho no interpreter >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(
        resolve,
        "resolve",
        lambda release: dataclasses.replace(local_runtime(), name="old", python=broken),
    )
    done = run(fixture("half_plus_two"), tmp_path / "out", "--target", "2.20", "--for", "c++")
    assert done.exit_code == 3 and "UNPROVED: " in done.output, done.output
    assert "not asked: c_api of" in done.output and "does not start" in done.output
    assert (tmp_path / "out" / "saved_model.pb").is_file()


def test_without_the_runtime_it_is_unproved_and_says_what_would_help(tmp_path, monkeypatch):
    monkeypatch.setenv("SAVEDMODEL_COMPAT_HOME", str(tmp_path / "home"))
    done = run(fixture("half_plus_two"), tmp_path / "out", "--target", OLD)
    assert done.exit_code == 3, done.output
    assert "UNPROVED: " in done.output and "runtimes install tf1.15" in done.output
    assert (tmp_path / "out" / "saved_model.pb").is_file()


@pytest.mark.tensorflow
def test_the_tensorflow_that_is_here_proves_its_own_release(tmp_path, monkeypatch):
    from compat_matrix.runtimes.runtime import local_runtime

    monkeypatch.setenv("SAVEDMODEL_COMPAT_HOME", str(tmp_path / "home"))  # nothing is installed
    release = ".".join(local_runtime().tensorflow_version.split(".")[:2])
    done = run(fixture("half_plus_two"), tmp_path / "out", "--target", release, "--for", "c++")
    assert done.exit_code == 0 and "PROVED" in done.output and "UNPROVED" not in done.output, (
        done.output
    )


@pytest.mark.tensorflow
def test_a_loader_that_was_named_and_not_asked_leaves_it_unproved(tmp_path, monkeypatch):
    """The others answer, but nobody asked the loader that the user is about."""
    from dataclasses import replace

    from compat_matrix.exports import release_proof as prove
    from compat_matrix.runtimes import resolve
    from compat_matrix.runtimes.runtime import local_runtime

    lacking = replace(local_runtime(), lacks={"v1_session": "not in this test"})
    monkeypatch.setattr(resolve, "resolve", lambda spec: lacking)
    for words, code in ((("--for", "session,c++"), 3), ((), 0)):
        done = run(fixture("half_plus_two"), tmp_path / f"out{code}", "--target", "2.21", *words)
        assert done.exit_code == code, done.output
        assert "this test" in done.output
        assert ("UNPROVED: " in done.output and "v1_session" in done.output) is bool(words)
    assert prove.READER_OF["session"] == "v1_session"
