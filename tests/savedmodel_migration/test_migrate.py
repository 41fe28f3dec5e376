"""``migrate``, end to end: real TF 1 models, the command, one warm worker; what it makes is asked
by TensorFlow.
"""

from __future__ import annotations

import collections
import csv
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from compat_matrix.checks import answers
from compat_matrix.checks.kinds import values
from compat_matrix.runtimes import isolation, worker
from compat_matrix.runtimes.process import Crashed
from compat_matrix.runtimes.runtime import local_runtime
from compat_matrix.runtimes.worker import ReplyError, WorkerDied
from reference_impl.format import schema
from reference_impl.graph.edges import parse_input
from savedmodel_common import staging
from savedmodel_common.compare import Mismatch
from savedmodel_common.exit_codes import ExitCode
from savedmodel_compat import cli
from savedmodel_migration.migrate import migrator, proof, records
from savedmodel_migration.migrate.records import Status
from savedmodel_migration.workers import MIGRATION

FIXTURES = Path(__file__).parents[2] / "fixtures_v1"
CASES = (
    "contrib_op",
    "empty_tags",
    "escaped_names",
    "half_plus_two",
    "hash_table_v2",
    "keras_functional_save",
    "table_no_init",
)


def migrate(*arguments):
    return CliRunner().invoke(cli.main, ["migrate", *map(str, arguments)])


def edited(folder, edit):
    """half_plus_two with each of its MetaGraphs edited."""
    shutil.copytree(FIXTURES / "half_plus_two", folder)
    path = folder / "model/saved_model.pb"
    found = schema.parse(schema.SavedModel, path.read_bytes())
    for graph in found.meta_graphs:
        edit(graph)
    path.write_bytes(found.SerializeToString())


def wait_for(graph, node):
    """The answers of all signatures wait for a node."""
    answers = {
        parse_input(info.name).source
        for item in graph.signature_def.values()
        for info in item.outputs.values()
    }
    for other in graph.graph_def.node:
        if other.name in answers:
            other.input.append("^" + node)


def deadly(graph):
    """The answers wait for the op Abort."""
    graph.graph_def.node.add(name="abort", op="Abort").attr["error_msg"].s = b"aborted on purpose"
    wait_for(graph, "abort")


def silent(graph):
    """The answers wait for an assertion that always fails."""
    never = graph.graph_def.node.add(name="never", op="Const")
    never.attr["dtype"].type = never.attr["value"].tensor.dtype = schema.DT_BOOL
    never.attr["value"].tensor.tensor_shape.SetInParent()
    never.attr["value"].tensor.bool_val.append(False)
    check = graph.graph_def.node.add(name="check", op="Assert", input=["never", "never"])
    check.attr["T"].list.type.append(schema.DT_BOOL)
    wait_for(graph, "check")


@pytest.fixture(scope="module")
def zoo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("zoo")
    for case in CASES:
        shutil.copytree(FIXTURES / case, folder / case)
    edited(folder / "silent", silent)
    edited(folder / "unsigned", lambda graph: graph.signature_def.clear())
    shutil.copytree(FIXTURES / "keras_functional_save", folder / "no_variables")
    shutil.rmtree(folder / "no_variables/model/variables")
    (folder / "broken").mkdir()
    (folder / "broken" / "saved_model.pb").write_bytes(
        (FIXTURES / "half_plus_two/model/saved_model.pb").read_bytes()[:500]
    )
    return folder


@pytest.fixture(scope="module")
def synced():
    """Inodes of what this process has waited for the disk to have."""
    found, fsync = set(), os.fsync

    def noted(handle):
        found.add(os.fstat(handle).st_ino)
        fsync(handle)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", noted)
        yield found


@pytest.fixture(scope="module")
def done(zoo, synced, tmp_path_factory):
    """(result, output folder) of one run."""
    out = tmp_path_factory.mktemp("out")
    before = {path: path.read_bytes() for path in zoo.rglob("*") if path.is_file()}
    result = migrate(zoo, "--out", out, "--json")
    assert {path: path.read_bytes() for path in zoo.rglob("*") if path.is_file()} == before, (
        "the source is only read"
    )
    return result, out


def test_the_plan_says_what_each_model_is_and_makes_nothing(zoo, tmp_path):
    result = migrate(zoo, "--dry-run", "--out", tmp_path / "out")
    lines = dict(line.split(": ", 2)[1::-1] for line in result.stdout.splitlines())
    names = {Path(name).relative_to(zoo).parts[0]: action for name, action in lines.items()}
    assert names == {
        "broken": "refuse",
        "contrib_op": "convert",
        "empty_tags": "convert into 2, one for each set of tags",
        "escaped_names": "convert",
        "half_plus_two": "convert",
        "hash_table_v2": "convert",
        "keras_functional_save": "copy",
        "no_variables": "copy",
        "silent": "convert",
        "table_no_init": "convert",
        "unsigned": "convert",
    }
    assert result.exit_code == ExitCode.UNEXPECTED
    assert not (tmp_path / "out").exists()


@pytest.mark.tensorflow
def test_models_are_migrated_proved_and_the_others_named(done):
    result, out = done
    found = json.loads(result.stdout)
    statuses = {model["relative"].split("/")[0]: model["status"] for model in found["models"]}
    assert statuses == {
        "broken": "refused",
        "contrib_op": "refused",
        "empty_tags": "migrated",
        "escaped_names": "migrated",
        "half_plus_two": "migrated",
        "hash_table_v2": "migrated",
        "keras_functional_save": "copied",
        "no_variables": "refused",
        "silent": "unproved",
        "table_no_init": "migrated",
        "unsigned": "refused",
    }
    assert result.exit_code == ExitCode.UNEXPECTED
    assert found["totals"]["migrated"] == 5
    assert sorted(path.name for path in (out / "models").iterdir()) == sorted(
        set(CASES) - {"contrib_op"}
    )
    half = next(model for model in found["models"] if model["relative"].startswith("half"))[
        "parts"
    ][0]
    states = {item["what"]: item["state"] for item in half["verdicts"]}
    assert {
        what: states[what] for what in states if what.startswith(("answers", "gradients"))
    } == dict.fromkeys(
        ("answers, reference", "answers, tf2", "gradients, tf2", "answers, c_api"), "equal"
    )
    assert states["weights"] == states["signatures"] == states["next generation"] == "equal"
    assert sorted(half["names"]) == ["a", "b"]
    tables = next(model for model in found["models"] if model["relative"].startswith("hash_table"))[
        "parts"
    ][0]["verdicts"]
    assert [(item["state"], item["detail"]) for item in tables if item["what"] == "tables"] == [
        ("equal", "2 compared")
    ]
    words = {
        model["relative"].split("/")[0]: (model["reason"], model["fix"])
        for model in found["models"]
    }
    assert "'Resampler'" in words["contrib_op"][0]
    assert "Addons>Resampler" in words["contrib_op"][1]
    assert "SMC201" in found["models"][[*words].index("no_variables")]["parts"][0]["notes"][0]
    assert "variables.index " in words["no_variables"][0]
    assert "assertion failed" in words["silent"][0]
    assert "io/io.json" in words["silent"][1]
    assert "no signature" in words["unsigned"][0]
    assert all(fix for reason, fix in words.values() if reason), (
        "each has something that can be done"
    )


@pytest.mark.tensorflow
def test_what_is_in_the_output_is_on_the_disk(done, synced):
    models = [path for model in (done[1] / "models").iterdir() for path in model.rglob("*")]
    assert len(models) > 30
    assert [path for path in models if path.stat().st_ino not in synced] == []


@pytest.mark.tensorflow
def test_what_is_made_is_a_savedmodel_of_tf_2(done):
    import tensorflow as tf

    _, out = done
    loaded = tf.saved_model.load(str(out / "models/half_plus_two/model"))
    assert loaded.signatures["serving_default"](x=tf.constant([[4.0]]))["y"].numpy().tolist() == [
        [4.0]
    ]
    assert len(loaded.variables) == 2
    several = json.loads((out / "models/empty_tags/model/manifest.json").read_text())["models"]
    assert sorted(map(tuple, (entry["tags"] for entry in several))) == [(), ("my tag é",)]
    for entry in several:
        assert tf.saved_model.load(str(out / "models/empty_tags/model" / entry["path"])).signatures


@pytest.mark.tensorflow
def test_reports_agree(done):
    result, out = done
    assert (out / "report.json").read_text() == result.stdout
    rows = list(csv.DictReader((out / "report.csv").read_text().splitlines()))
    assert [row["status"] for row in rows] == [
        model["status"] for model in json.loads(result.stdout)["models"]
    ]
    page = (out / "report.html").read_text()
    assert "6 of 11 models" in page
    assert "Addons&gt;Resampler" in page
    assert not (out / ".work").exists()


@pytest.mark.tensorflow
def test_paths_may_be_relative(zoo, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert (
        migrate(os.path.relpath(zoo / "half_plus_two"), "--out", "out").exit_code
        == ExitCode.AS_EXPECTED
    )
    assert (tmp_path / "out/models/model/saved_model.pb").exists()


@pytest.mark.tensorflow
@pytest.mark.parametrize("inputs", ["../../0.in.npz", 7])
def test_requests_that_lead_out_or_are_none_are_named_and_not_asked(tmp_path, inputs):
    shutil.copytree(FIXTURES / "half_plus_two", tmp_path / "zoo")
    io = tmp_path / "zoo/io/io.json"
    text = json.loads(io.read_text())
    text["requests"][0]["inputs"] = inputs
    io.write_text(json.dumps(text))
    (model,) = json.loads(migrate(tmp_path / "zoo", "--out", tmp_path / "out", "--json").stdout)[
        "models"
    ]
    assert model["status"] == "migrated"
    assert [
        note
        for note in model["parts"][0]["notes"]
        if "io.json" in note and "cannot be used" in note
    ]


@pytest.mark.tensorflow
def test_a_second_run_does_only_what_changed(done, zoo, tmp_path):
    _, out = done
    again, other = tmp_path / "out", tmp_path / "zoo"
    shutil.copytree(out, again)
    shutil.copytree(zoo, other)
    record = again / "records/half_plus_two/model.json"
    text = json.loads(record.read_text())
    text["seconds"] = 123.0
    record.write_text(json.dumps(text))
    shutil.rmtree(again / "models/hash_table_v2")  # its record is no proof any more
    shutil.rmtree(other / "contrib_op")
    assert migrate(other, "--out", again).exit_code == ExitCode.UNEXPECTED
    assert records.load(record).seconds == 123.0, "what is done is not done again"
    assert (again / "models/hash_table_v2/model/saved_model.pb").exists()


@pytest.mark.tensorflow
def test_a_result_that_was_replaced_by_hand_is_made_again(tmp_path):
    """A record that says "migrated" is about the model that was proved, not about its place."""
    zoo, out = tmp_path / "zoo", tmp_path / "out"
    shutil.copytree(FIXTURES / "half_plus_two", zoo / "half_plus_two")
    assert migrate(zoo, "--out", out).exit_code == ExitCode.AS_EXPECTED
    (model,) = (out / "models").rglob("saved_model.pb")
    proved = model.read_bytes()
    model.write_bytes((FIXTURES / "simple_save/model/saved_model.pb").read_bytes())
    assert migrate(zoo, "--out", out).exit_code == ExitCode.AS_EXPECTED
    assert model.read_bytes() == proved


@pytest.mark.tensorflow
def test_a_killed_run_goes_on_and_leaves_only_whole_models(zoo, tmp_path):
    out = tmp_path / "out"
    command = [sys.executable, "-m", "savedmodel_compat", "migrate", str(zoo), "--out", str(out)]
    process = subprocess.Popen(
        command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while not list((out / "records").rglob("*.json")):
        assert process.poll() is None, "it ended before it was killed"
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert migrate(zoo, "--out", out).exit_code == ExitCode.UNEXPECTED
    assert len(list((out / "records").rglob("*.json"))) == len(list(zoo.iterdir()))
    assert not (out / ".work").exists()


@pytest.mark.tensorflow
def test_a_model_that_kills_its_worker_costs_itself_only(zoo, tmp_path):
    """Its op ends the process in every loader; the ones before and after are migrated by a worker
    each.
    """
    other = tmp_path / "zoo"
    shutil.copytree(FIXTURES / "half_plus_two", other / "a")
    edited(other / "b", deadly)
    shutil.copytree(FIXTURES / "half_plus_two", other / "c")
    result = migrate(other, "--out", tmp_path / "out", "--json")
    found = {
        model["relative"].split("/")[0]: model for model in json.loads(result.stdout)["models"]
    }
    assert {name: model["status"] for name, model in found.items()} == {
        "a": "migrated",
        "b": "crashed",
        "c": "migrated",
    }
    assert "SIGABRT" in found["b"]["reason"]
    assert "ends the process" in found["b"]["fix"]
    assert not (tmp_path / "out/models/b").exists()


@pytest.mark.tensorflow
def test_what_differs_does_not_get_into_the_output(tmp_path, monkeypatch):
    """What was there goes: it is no proved form of this source."""
    (tmp_path / "out/models/model").mkdir(parents=True)

    def one_that_differs(expected, got, tolerance):
        return [Mismatch("value", "y", "is another")]

    monkeypatch.setattr(answers, "compare_named", one_that_differs)
    result = migrate(FIXTURES / "half_plus_two", "--out", tmp_path / "out", "--json")
    (model,) = json.loads(result.stdout)["models"]
    assert (model["status"], result.exit_code) == ("differs", ExitCode.UNEXPECTED)
    assert "y: is another" in model["reason"]
    assert not (tmp_path / "out/models/model").exists()


@pytest.mark.tensorflow
def test_an_output_left_to_chance_is_asked_once_more_without_it(tmp_path, monkeypatch):
    """The old model answered the same twice; the new one does not answer that, in every reader."""
    left = "metrics/error/value"
    compared = answers.compare_named

    def one_that_differs(expected, got, tolerance):
        chance = [Mismatch("value", left, "is another")] if left in expected else []
        return [*chance, *compared(expected, got, tolerance)]

    def one_that_does_not(expected, got, tolerance):
        return [item for item in compared(expected, got, tolerance) if item.where != left]

    monkeypatch.setattr(answers, "compare_named", one_that_differs)
    monkeypatch.setattr(proof, "compare_named", one_that_does_not)
    result = migrate(FIXTURES / "estimator_all_modes", "--out", tmp_path / "out", "--json")
    (model,) = json.loads(result.stdout)["models"]
    assert (model["status"], result.exit_code) == ("migrated", 0), model
    notes = [note for part in model["parts"] for note in part["notes"] if repr(left) in note]
    assert len(notes) == 1 and "to chance" in notes[0]


@pytest.mark.tensorflow
def test_a_process_that_dies_of_the_new_model_costs_that_model_only(tmp_path, monkeypatch):
    for name in "ab":
        shutil.copytree(FIXTURES / "half_plus_two" / "model", tmp_path / "zoo" / name)
    ask_all, died = values.ask_all, []

    def dying(context, loaded, tags, answered):
        if context.consumer.name == "tf2" and not died:
            died.append(context.worker._process.pid)
            os.kill(died[0], signal.SIGKILL)
        return ask_all(context, loaded, tags, answered)

    monkeypatch.setattr(values, "ask_all", dying)
    result = migrate(tmp_path / "zoo", "--out", tmp_path / "out", "--json")
    found = {model["relative"]: model for model in json.loads(result.stdout)["models"]}
    assert {name: model["status"] for name, model in found.items()} == {
        "a": "crashed",
        "b": "migrated",
    }
    assert (
        "tf2@" in found["a"]["reason"] and "SIGKILL" in found["a"]["reason"] and found["a"]["fix"]
    )
    assert not (tmp_path / "out/models/a").exists()


@pytest.mark.parametrize(
    ("generations", "state"),
    [
        (("a", "a"), "equal"),
        (("a", "A"), "equal"),  # other bytes, the same canonical form
        (("a", "b", "B"), "equal"),  # the first save derived something
        (("a", "b", "c"), "differs"),
    ],
)
def test_a_model_that_is_saved_again_is_the_same_or_becomes_so(tmp_path, generations, state):
    folders = [tmp_path / name for name in ("new", "again", "and again")]
    given = dict(zip(folders, generations))

    class Asked:
        def ask(self, op, **fields):
            if op == "convert":
                write(Path(fields["target"]))
            return {"hash": (Path(fields["dir"]) / "saved_model.pb").read_text().lower()}

    def write(folder):
        folder.mkdir()
        (folder / "saved_model.pb").write_text(given[folder])

    for folder in folders[:2]:
        write(folder)
    assert migrator._fixed_point(Asked(), *folders[:2], ["serve"]).state == state
    assert folders[2].exists() is (len(generations) == 3)


@pytest.mark.tensorflow
def test_every_entry_of_every_kind_of_table_is_seen():
    """With other dtypes TensorFlow ends the process; a table without a value, or none, is left
    out.
    """
    import tensorflow as tf

    from compat_matrix.workers import table_contents

    lookup = tf.lookup.experimental
    types = [
        (key, value) for key in ("int64", "string") for value in ("float32", "int64", "string")
    ]

    def seen(table):
        return [
            text.rpartition(" ")[0]
            for _, _, text in table_contents.of_resources(tf, [table], types)
        ]

    rows = lookup.MutableHashTable(tf.string, tf.float32, [0.0, 1.0])
    dense = lookup.DenseHashTable(
        tf.int64, tf.float32, default_value=[0.0, 0.0], empty_key=-1, deleted_key=-2
    )
    assert seen(rows) == []
    before = []
    for table, key in ((rows, tf.constant(["x"])), (dense, tf.constant([7], tf.int64))):
        table.insert(key, [[1.0, 2.0]])
        before.append(table_contents.of_resources(tf, [table], types))
        assert seen(table) == [f"{key.dtype.name} -> float32, 1 entries"]
        table.insert(key, [[1.0, 3.0]])
        assert seen(table) and table_contents.of_resources(tf, [table], types) not in before
    initializer = tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([1, 2], tf.int64))
    assert seen(tf.lookup.StaticHashTable(initializer, 0)) == ["string -> int64, 2 entries"]
    assert (
        seen(collections.namedtuple("Resource", "resource_handle")(tf.Variable(1.0).handle)) == []
    )


@pytest.mark.tensorflow
def test_a_disk_that_does_not_take_it_is_said_and_nothing_gets_into_the_output(
    tmp_path, monkeypatch
):
    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    result = migrate(FIXTURES / "keras_functional_save", "--out", tmp_path / "out", "--json")
    model = json.loads(result.stdout)["models"][0]
    assert result.exit_code == ExitCode.HARNESS_ERROR
    assert (model["status"], "No space left" in model["reason"]) == ("failed", True)
    assert not list((tmp_path / "out/models").rglob("saved_model.pb"))


@pytest.mark.tensorflow
def test_a_disk_that_fails_is_no_fault_of_the_model(tmp_path, monkeypatch):
    def full(source, target):
        raise OSError("No space left on device")

    monkeypatch.setattr(staging, "place", full)
    result = migrate(FIXTURES / "keras_functional_save", "--out", tmp_path / "out", "--json")
    (model,) = json.loads(result.stdout)["models"]
    assert (model["status"], result.exit_code) == ("failed", ExitCode.HARNESS_ERROR)


@pytest.mark.skipif(
    not isolation.without_network(), reason="this platform gives no process another network"
)
def test_models_are_run_without_a_network():
    words = worker.command(local_runtime(), MIGRATION)
    assert tuple(words[: len(isolation.without_network())]) == isolation.without_network()
    code = (
        "import socket; socket.create_connection(('127.0.0.1', int(__import__('sys').argv[1])), 5)"
    )
    with socket.create_server(("127.0.0.1", 0)) as server:
        for prefix, wanted in (((), 0), (isolation.without_network(), 1)):
            command = [*prefix, sys.executable, "-c", code, str(server.getsockname()[1])]
            assert subprocess.run(command, capture_output=True, check=False).returncode == wanted


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    "error",
    [
        ReplyError(
            "convert",
            {"status": "error", "error_class": "ResourceExhaustedError", "message": "OOM"},
            "",
        ),
        WorkerDied("convert", Crashed("SIGKILL", "killed"), ""),
        MemoryError(),
    ],
)
def test_a_model_that_memory_is_too_small_for_is_told_so_and_tried_again(
    tmp_path, monkeypatch, error
):
    def no_memory(*arguments):
        raise error

    monkeypatch.setattr(migrator, "Asker", no_memory)
    result = migrate(FIXTURES / "half_plus_two", "--out", tmp_path / "out", "--json")
    (model,) = json.loads(result.stdout)["models"]
    assert model["status"] == "crashed"
    assert "memory ran out" in model["fix"]
    assert Status.CRASHED.transient


@pytest.mark.tensorflow
def test_a_signature_without_dtypes_and_a_model_without_a_schema_version_are_migrated(tmp_path):
    """SavedModels by hand leave both out; TensorFlow loads them."""

    def forget_dtypes(graph):
        for signature in graph.signature_def.values():
            for info in signature.outputs.values():
                info.ClearField("dtype")

    edited(tmp_path / "zoo/by_hand", forget_dtypes)
    path = tmp_path / "zoo/by_hand/model/saved_model.pb"
    message = schema.parse(schema.SavedModel, path.read_bytes())
    message.ClearField("saved_model_schema_version")
    path.write_bytes(message.SerializeToString())
    done = migrate(tmp_path / "zoo", "--out", tmp_path / "out")
    (model,) = json.loads((tmp_path / "out/report.json").read_text())["models"]
    assert done.exit_code == 0 and model["status"] == Status.MIGRATED, (
        model["status"],
        model["reason"],
    )


@pytest.mark.tensorflow
def test_a_later_schema_version_is_refused_with_a_way_out(tmp_path):
    shutil.copytree(FIXTURES / "half_plus_two", tmp_path / "zoo/later")
    path = tmp_path / "zoo/later/model/saved_model.pb"
    message = schema.parse(schema.SavedModel, path.read_bytes())
    message.saved_model_schema_version = 2
    path.write_bytes(message.SerializeToString())
    assert migrate(tmp_path / "zoo", "--out", tmp_path / "out").exit_code == 1
    (model,) = json.loads((tmp_path / "out/report.json").read_text())["models"]
    assert (
        model["status"] == Status.REFUSED
        and "is 2, not 1" in model["reason"]
        and "version 1" in model["fix"]
    )


@pytest.mark.tensorflow
def test_a_signature_with_an_empty_name_keeps_it(tmp_path):
    shutil.copytree(FIXTURES / "odd_names", tmp_path / "zoo/odd_names")
    assert migrate(tmp_path / "zoo", "--out", tmp_path / "out").exit_code == 0
    (model,) = json.loads((tmp_path / "out/report.json").read_text())["models"]
    assert "" in model["parts"][0]["asked"] and model["status"] == Status.MIGRATED
