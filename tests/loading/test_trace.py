"""Watching a load: ``load(path, trace=...)`` tells each step."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from model_edits import fixture

import reference_impl
from reference_impl import tracing
from reference_impl.format.container import layout
from reference_impl.tracing import AT_ANY_TIME, STAGES, TOGETHER, Step

pytestmark = pytest.mark.tensorflow
PAGE = Path(__file__).parents[2] / "docs/format/watching.md"


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


@pytest.fixture(scope="module")
def model(tf, tmp_path_factory):
    """A variable, a list, a table with an asset, a table with content, a function."""
    folder = tmp_path_factory.mktemp("watched")
    (folder / "words.txt").write_text("a\nb\n", encoding="utf-8")
    lines, number = tf.lookup.TextFileIndex.WHOLE_LINE, tf.lookup.TextFileIndex.LINE_NUMBER
    words = tf.lookup.TextFileInitializer(
        str(folder / "words.txt"), tf.string, lines, tf.int64, number
    )
    root = tf.Module()
    root.v = tf.Variable([1.0, 2.0])
    root.parts = [tf.Variable(1), tf.Variable(2)]
    root.table = tf.lookup.StaticHashTable(words, -1)
    root.mutable = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, 0)
    root.mutable.insert("a", 1)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "x")])
    def f(x):
        found = root.table.lookup(x) + root.mutable.lookup(x)
        return {"y": tf.cast(found, tf.float32) * root.v[0]}

    root.f = f
    tf.saved_model.save(root, str(folder / "m"), signatures=f)
    return folder / "m"


def _steps(path, **options):
    found: list[Step] = []
    loaded = reference_impl.load(
        path, options=reference_impl.LoadOptions(**options), trace=found.append
    )
    return loaded, found


def _of(found, stage):
    return [step for step in found if step.stage == stage]


def _numbers(found):
    """Return the numbers of the nodes that the steps about objects name."""
    return [int(re.match(r"nodes\[(\d+)\] ", step.node)[1]) for step in _of(found, "object")]


def _in_order(found):
    """Return whether the stages follow each other as `STAGES` says."""
    order = list(STAGES)
    place = {name: order.index(TOGETHER[0] if name in TOGETHER else name) for name in order}
    places = [place[step.stage] for step in found if step.stage not in AT_ANY_TIME]
    return places == sorted(places)


def test_each_object_of_the_file_is_told_once(model):
    _, found = _steps(model)
    (meta_graph,) = layout.read(model).saved_model.meta_graphs
    count = len(meta_graph.object_graph_def.nodes)
    assert sorted(_numbers(found)) == list(range(count))
    functions = {function.signature.name for function in meta_graph.graph_def.library.function}
    assert {step.node for step in _of(found, "function")} == functions
    assert _in_order(found)
    assert {step.stage for step in found} == set(STAGES) - {"graph", "error", "rebuilt"}


def test_steps_name_file_node_result_and_rule(model):
    _, found = _steps(model)
    lines = [" ".join(str(step).split()) for step in found]
    kept = "/.ATTRIBUTES/"
    for line in (
        "meta graph saved_model.pb meta_graphs chosen: serve V1-04",
        "checkpoint variables/variables.index opened; values: 6, data files: 1 RP-08",
        f"value variables/variables.index nodes[1] root.v variable from v{kept}VARIABLE_VALUE"
        " float32[2] RP-08",
        f"state variables/variables.index nodes[4] root.mutable content from mutable{kept}"
        "table-keys string[1] RES-15",
        "initializer saved_model.pb nodes[3] root.table ran RP-09",
        "signature saved_model.pb serving_default (x: string[?]) -> (y: float32[...]) ATTR-01",
    ):
        assert line in lines
    assert any("asset words.txt" in line and "RES-07" in line for line in lines)
    assert any(re.search(r"root\.parts 0, 1 RP-01", line) for line in lines)


def test_a_function_is_registered_at_its_first_call_and_rebuilt_for_a_gradient(tf, model):
    loaded, found = _steps(model)
    ready = len(found)
    for _ in range(2):
        loaded.f(tf.constant(["a"]))
    (step,) = found[ready:]
    assert (step.stage, step.node[:14]) == ("registered", "__inference_f_")
    with tf.GradientTape() as tape:
        answer = loaded.f(tf.constant(["a"]))["y"]
    tape.gradient(answer, loaded.v)
    assert _of(found[ready:], "rebuilt")


def test_what_is_not_loaded_is_told(model):
    _, found = _steps(model, only="v", skip_checkpoint=True)
    out = [step for step in _of(found, "object") if "not loaded" in step.result]
    assert {step.rule for step in out} == {"DR-03"}
    assert len(out) == len(_numbers(found)) - 2  # the root and the variable
    assert sorted(_numbers(found)) == list(range(len(_numbers(found))))
    (step,) = _of(found, "value")
    assert step.result.endswith(": skip_checkpoint")
    assert _of(found, "checkpoint")[0].result == "not read: skip_checkpoint"


def test_a_variable_without_a_value_is_told(tf, tmp_path):
    root = tf.Module()
    root.v = tf.Variable(1.0)
    tf.saved_model.save(root, str(tmp_path / "m"))
    for file in (tmp_path / "m" / "variables").iterdir():
        file.unlink()
    _, found = _steps(tmp_path / "m", allow_partial_checkpoint=True)
    (step,) = _of(found, "value")
    assert "no such file" in step.result
    told: list[Step] = []
    with pytest.raises(reference_impl.MissingValueError):
        reference_impl.load(tmp_path / "m", trace=told.append)
    assert (told[-1].stage, told[-1].node) == ("error", "root.v")
    assert told[-1].result.startswith("MissingValueError: ")


def test_the_error_of_a_file_that_cannot_be_read_is_told(tmp_path):
    (tmp_path / "saved_model.pb").write_bytes(b"\x08\x01\x12")
    told: list[Step] = []
    with pytest.raises(reference_impl.SavedModelError):
        reference_impl.load(tmp_path, trace=told.append)
    (step,) = told
    assert (step.stage, step.file) == ("error", "saved_model.pb")


@pytest.mark.parametrize(
    "case", ["half_plus_two", "index_table_oov", "main_op", "one_shot_iterator", "hash_table_v2"]
)
def test_a_model_of_tf_1_is_told_in_the_same_order(tf, case):
    loaded, found = _steps(fixture(case))
    assert _in_order(found)
    objects = {step.node for step in _of(found, "object")}
    assert {variable.name.split(":")[0] for variable in loaded.variables} <= objects
    assert [step.node for step in _of(found, "signature")] == list(loaded.signatures)
    assert [step.rule for step in _of(found, "graph")][:1] == ["V1-10"]
    values = {step.node for step in _of(found, "value")}
    assert values <= objects


def test_values_inputs_and_outputs_of_tf_1(tf):
    _, found = _steps(fixture("half_plus_two"))
    assert [step.result for step in _of(found, "value")] == [
        "variable from a  float32[]",
        "variable from b  float32[]",
    ]
    assert _of(found, "signature")[-1].result == "(x: float32[?,1]) -> (y: float32[?,1])"


def test_an_op_without_its_library_is_told(tf):
    _, found = _steps(fixture("contrib_op"))
    told = {step.node: step.result for step in _of(found, "signature")}
    assert "Op type not registered 'Resampler'" in told["serving_default"]
    assert "cannot be called" not in told["mean"]


def _forge(path, change):
    """Change the SavedModel message of a model in place."""
    saved = layout.read(path).saved_model
    change(saved.meta_graphs[0])
    (path / "saved_model.pb").write_bytes(saved.SerializeToString())
    (path / "fingerprint.pb").unlink(missing_ok=True)
    return path


def test_a_function_with_an_unknown_op_is_told(model, tmp_path):
    def rename(meta_graph):
        for function in meta_graph.graph_def.library.function:
            if "_initializer_" in function.signature.name:
                for node in function.node_def:
                    if node.op == "InitializeTableFromTextFileV2":
                        node.op = "NobodyHasThisOp"

    path = _forge(shutil.copytree(model, tmp_path / "m"), rename)
    options = {"machine_ops": "allow"}
    _, found = _steps(path, **options)
    lacking = [step for step in _of(found, "function") if "lacks" in step.result]
    assert [(step.result, step.rule) for step in lacking] == [
        ("known; cannot be called: TensorFlow lacks NobodyHasThisOp", "DR-05")
    ]
    (table,) = [step for step in _of(found, "initializer") if "root.table" in step.node]
    assert "Op type not registered 'NobodyHasThisOp'" in table.result


def test_a_node_of_no_kind_is_the_last_step(model, tmp_path):
    def clear(meta_graph):
        meta_graph.object_graph_def.nodes[1].ClearField("variable")

    path = _forge(shutil.copytree(model, tmp_path / "m"), clear)
    told: list[Step] = []
    with pytest.raises(reference_impl.UnsupportedModelError):
        reference_impl.load(path, trace=told.append)
    assert (told[-1].stage, told[-1].node) == ("error", "root.v")
    assert "kind None" in told[-1].result


def test_a_load_into_a_graph_is_told(tf, model):
    with tf.Graph().as_default():
        _, found = _steps(model)
    assert _in_order(found)
    assert [step.result for step in _of(found, "initializer")] == ["waits for the session"] * 2
    with tf.Graph().as_default():
        _, found = _steps(fixture("half_plus_two"))
    assert _in_order(found)
    assert [step.result for step in _of(found, "value")] == [
        "variable float32[], by the restore op"
    ] * 2


def test_nothing_is_printed_without_a_watcher(model, capfd):
    loaded = reference_impl.load(model)
    assert loaded.f(["a"])["y"].numpy() == [1.0]
    assert "saved_model.pb" not in capfd.readouterr().out


def test_print_prints_a_line_for_each_step(model, capsys):
    _, found = _steps(model)
    kept = reference_impl.load(model, options=reference_impl.LoadOptions(trace=print))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(found)
    assert lines[0].startswith("file          saved_model.pb  read in ")
    del kept  # its tables are destroyed by functions that are registered then


def test_an_error_of_the_watcher_reaches_the_caller(model):
    class Enough(Exception):
        pass

    def refuse(step):
        raise Enough(step.stage)

    with pytest.raises(Enough, match=r"^file$"):
        reference_impl.load(model, trace=refuse)
    with pytest.raises(Enough, match=r"^file$"):
        reference_impl.load(fixture("half_plus_two"), trace=refuse)


def test_a_hostile_name_breaks_no_line(tf, tmp_path, capsys):
    name = "v\nobject  saved_model.pb\x1b[31m\u202e"
    root = tf.train.Checkpoint()
    setattr(root, name, tf.Variable(1.0))
    reference_impl.save(root, tmp_path / "m")
    _, found = _steps(tmp_path / "m")
    assert any(name in step.node for step in found)
    reference_impl.load(tmp_path / "m", trace=print)
    printed = capsys.readouterr().out
    assert len(printed.splitlines()) == len(found)
    assert printed.replace("\n", "").isprintable()
    assert "v\\nobject" in printed


def test_watching_changes_nothing(tf, model):
    loaded, _ = _steps(model)
    plain = reference_impl.load(model)
    assert loaded.f(["b"])["y"].numpy() == plain.f(["b"])["y"].numpy()
    assert plain._trackable_children().keys() == loaded._trackable_children().keys()


def test_the_page_has_the_stages_in_their_order():
    text = PAGE.read_text(encoding="utf-8").partition("\n## Watching a load\n")[2]
    rows = re.findall(r"^\| `([a-z ]+)` \| (.*) \|$", text.partition("\n## ")[0], re.MULTILINE)
    assert rows == list(STAGES.items())
    assert tracing.TOGETHER == ("checkpoint", "value", "object")
