"""``contract``: what clients rely on, frozen and checked, rule by rule."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys

import model_edits
import numpy as np
import pytest
from click.testing import CliRunner

from reference_impl.format import schema
from reference_impl.format.values.tensor_proto import encode
from savedmodel_common import tensors
from savedmodel_common.tensors import CARRIERS, Tensor, from_numpy
from savedmodel_compat.cli import main
from savedmodel_tools.contract import file, values
from savedmodel_tools.contract.form import (
    Answers,
    Contract,
    Request,
    contract_of,
    parse_type,
)
from savedmodel_tools.contract.rules import BREAKING, RULES, compare


@pytest.fixture(scope="module")
def run():
    def run(*arguments):
        done = CliRunner().invoke(main, ["contract", *map(str, arguments)])
        assert done.exception is None or isinstance(done.exception, SystemExit)
        return done

    return run


def info(dtype, *shape):
    found = schema.TensorInfo(name="x:0", dtype=dtype)
    found.tensor_shape.SetInParent()
    for size in shape:
        found.tensor_shape.dim.add(size=size)
    return found


def build(message):
    """A signature with everything that a contract speaks of."""
    graph = message.meta_graphs[0]
    signature = graph.signature_def["serve"]
    signature.method_name = "tensorflow/serving/predict"
    signature.inputs["x"].CopyFrom(info(schema.DT_FLOAT, -1, 3))
    signature.inputs["scale"].CopyFrom(info(schema.DT_FLOAT))
    signature.defaults["scale"].CopyFrom(encode(np.float32(1)))
    signature.outputs["y"].CopyFrom(info(schema.DT_FLOAT, -1, 10))
    graph.signature_def["other"].CopyFrom(signature)
    nodes = graph.object_graph_def.nodes
    nodes.add().children.add(node_id=1, local_name="signatures")
    nodes.add().children.add(node_id=2, local_name="serve")
    nodes.add().bare_concrete_function.argument_keywords.extend(["x", "scale"])


def model(folder, *edits):
    message, _ = model_edits.new_model()
    for edit in (build, *edits):
        edit(message)
    return model_edits.write(message, folder)


def signature(message):
    return message.meta_graphs[0].signature_def["serve"]


def another_meta_graph(message):
    message.meta_graphs.add().meta_info_def.tags.append("gpu")


def retag(message):
    message.meta_graphs[0].meta_info_def.tags[:] = ["serve", "gpu"]


def drop(name):
    return lambda message: message.meta_graphs[0].signature_def.pop(name)


def put(side, name, dtype, *shape):
    return lambda message: getattr(signature(message), side)[name].CopyFrom(info(dtype, *shape))


def rename(side, old, new):
    def edit(message):
        side_map = getattr(signature(message), side)
        side_map[new].CopyFrom(side_map[old])
        del side_map[old]

    return edit


def default(name, value):
    return lambda message: signature(message).defaults[name].CopyFrom(encode(value))


def sparse(side, name):
    def edit(message):
        found = getattr(signature(message), side)[name]
        found.coo_sparse.values_tensor_name = "v:0"

    return edit


def reorder(message):
    message.meta_graphs[0].object_graph_def.nodes[2].bare_concrete_function.argument_keywords[:] = [
        "scale",
        "x",
    ]


FLOAT, INT = schema.DT_FLOAT, schema.DT_INT32
EDITS = {
    "META_GRAPH_REMOVED": [retag],
    "META_GRAPH_NOT_ALONE": [another_meta_graph],
    "SIGNATURE_REMOVED": [drop("other")],
    "METHOD_CHANGED": [
        lambda message: setattr(signature(message), "method_name", "tensorflow/serving/classify")
    ],
    "INPUT_REMOVED": [lambda message: signature(message).inputs.pop("x")],
    "INPUT_REQUIRED": [put("inputs", "z", FLOAT)],
    "INPUT_KIND_CHANGED": [sparse("inputs", "x")],
    "INPUT_DTYPE_CHANGED": [put("inputs", "x", INT, -1, 3)],
    "INPUT_SHAPE_NARROWED": [put("inputs", "x", FLOAT, 8, 3)],
    "INPUT_DEFAULT_REMOVED": [lambda message: signature(message).defaults.pop("scale")],
    "INPUT_DEFAULT_CHANGED": [default("scale", np.float32(2))],
    "INPUT_ORDER_CHANGED": [reorder],
    "OUTPUT_REMOVED": [lambda message: signature(message).outputs.pop("y")],
    "OUTPUT_KIND_CHANGED": [sparse("outputs", "y")],
    "OUTPUT_DTYPE_CHANGED": [put("outputs", "y", INT, -1, 10)],
    "OUTPUT_SHAPE_WIDENED": [put("outputs", "y", FLOAT, -1, -1)],
    "SIGNATURE_ADDED": [
        lambda message: message.meta_graphs[0].signature_def["new"].CopyFrom(signature(message))
    ],
    "INPUT_OPTIONAL_ADDED": [put("inputs", "z", FLOAT), default("z", np.float32(0))],
    "INPUT_SHAPE_WIDENED": [put("inputs", "x", FLOAT, -1, -1)],
    "INPUT_DEFAULT_ADDED": [default("x", np.zeros((1, 3), np.float32))],
    "OUTPUT_ADDED": [put("outputs", "z", FLOAT)],
    "OUTPUT_SHAPE_NARROWED": [put("outputs", "y", FLOAT, 4, 10)],
}


def test_the_documentation_lists_every_rule():
    text = (model_edits.FIXTURES.parent / "docs/zoo/client_contract.md").read_text(encoding="utf-8")
    for name, rule in RULES.items():
        assert f"| `{name}` | {rule.category} | {rule.why} |" in text


def test_there_is_an_edit_for_every_rule():
    assert EDITS.keys() == RULES.keys() - {"ANSWER_CHANGED", "ANSWER_FAILED", "META_GRAPH_ADDED"}


@pytest.mark.parametrize("rule", EDITS)
def test_each_change_is_one_finding_of_its_rule(rule, tmp_path, run):
    frozen = model(tmp_path / "m")
    assert run("write", frozen).exit_code == 0
    changed = model(tmp_path / "changed", *EDITS[rule])
    found = list(compare(contract_of(frozen), contract_of(changed)))
    assert [item.rule for item in found] == [rule]
    done = run("check", changed, tmp_path / "m.contract.json")
    breaking = RULES[rule].category == BREAKING
    assert (
        done.exit_code == (1 if breaking else 0)
        and rule in done.output
        and RULES[rule].category in done.output
    )
    if breaking:
        done = run("check", changed, tmp_path / "m.contract.json", "--allow", rule)
        assert done.exit_code == 0 and "allowed" in done.output


def test_a_meta_graph_more_breaks_nobody_where_there_were_two(tmp_path):
    def third(message):
        another_meta_graph(message)
        message.meta_graphs.add().meta_info_def.tags.append("tpu")

    two, three = (
        contract_of(model(tmp_path / name, edit))
        for name, edit in (("2", another_meta_graph), ("3", third))
    )
    assert [item.rule for item in compare(two, three)] == ["META_GRAPH_ADDED"]


def test_a_new_name_is_proposed(tmp_path, run):
    frozen = contract_of(model(tmp_path / "m"))
    renamed = contract_of(
        model(tmp_path / "n", rename("outputs", "y", "scores"), rename("inputs", "x", "images"))
    )
    found = {item.rule: item.message for item in compare(frozen, renamed)}
    assert "'scores'" in found["OUTPUT_REMOVED"] and "'images'" in found["INPUT_REMOVED"]


# The file


CONTRACTED = (
    "module_functions",
    "sparse_io",
    "ragged_io",
    "half_plus_two",
    "classify_regress_kinds",
)


def test_the_file_is_stable_and_reads_as_it_was_written(tmp_path):
    for case in CONTRACTED:
        found = contract_of(model_edits.fixture(case))
        file.write(tmp_path / "a.json", found)
        assert file.read(tmp_path / "a.json") == found
        file.write(tmp_path / "b.json", file.read(tmp_path / "a.json"))
        assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


@pytest.mark.parametrize(
    "text",
    [
        "float32[]",
        "float32[?,3]",
        "string[...]",
        "sparse int64[?,4]",
        "composite float32[?]; int64[?] = R(x)",
    ],
)
def test_types_are_text_and_back(text):
    assert str(parse_type(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "float32",
        "float32[",
        "float32[?,]",
        "float32[-1]",
        "float32[1] ",
        "Float[1]",
        "sparse",
        "composite x",
    ],
)
def test_text_that_is_no_type(text):
    with pytest.raises(ValueError, match="a type"):
        parse_type(text)


@pytest.mark.parametrize("dtype", [*CARRIERS, "string"])
def test_tensors_are_exact_in_json(dtype):
    if dtype == "string":
        tensor = from_numpy(np.array([b"a", b"\xff", "\u00e4".encode(), b""], object))
    elif dtype.startswith("complex"):
        tensor = from_numpy(np.array([0.1 + 2j, -0.0], dtype))
    else:
        bits = np.array([0, 1, 0, 1, 0, 1, 0, 1] * 2, np.uint8)
        tensor = Tensor(
            dtype, bits[: 2 * np.dtype(CARRIERS[dtype]).itemsize or 2].view(CARRIERS[dtype])[:2]
        )
    again = values.from_json(json.loads(json.dumps(values.to_json(tensor), allow_nan=False)))
    assert (
        again.dtype == tensor.dtype
        and again.array.tolist() == tensor.array.tolist()
        and again.array.dtype == tensor.array.dtype
    )


def test_numbers_that_are_none_are_kept():
    tensor = from_numpy(np.array([np.nan, np.inf, -np.inf, -0.0, 0.1], np.float32))
    found = values.from_json(
        json.loads(json.dumps(values.to_json(tensor), allow_nan=False))
    ).array.tolist()
    assert (
        math.isnan(found[0])
        and found[1:] == tensor.array.tolist()[1:]
        and math.copysign(1, found[3]) == -1
    )
    assert values.to_json(tensor)["values"][-1] == 0.1


def with_answers(path, size=1000):
    large = from_numpy(np.arange(size, dtype=np.float32))
    request = Request(("serve",), "serve", {"x": large}, {"y": from_numpy(np.float32([1, 2]))})
    file.write(path, Contract({("serve",): {}}, Answers((request,), 1e-3, 0.0, "why")))
    return request


def test_large_tensors_stand_in_a_file_of_their_own_known_by_its_hash(tmp_path):
    path = tmp_path / "m.contract.json"
    request = with_answers(path)
    (archive,) = tmp_path.glob("*.npz")
    assert (
        archive.name.startswith("m.contract-")
        and archive.name in path.read_text()
        and path.stat().st_size < 2000
    )
    assert (
        file.read(path).answers.requests[0].inputs["x"].array.tolist()
        == request.inputs["x"].array.tolist()
    )
    with_answers(path, 2000)
    (second,) = tmp_path.glob("*.npz")
    assert second.name != archive.name
    second.write_bytes(second.read_bytes() + b"x")
    with pytest.raises(file.ContractError, match="sha256"):
        file.read(path)
    assert file.read(path, answers=False).answers is None


@pytest.mark.parametrize("name", ["../m.npz", "/etc/passwd", "a/b.npz", "", "..", "missing.npz"])
def test_the_file_of_tensors_is_beside_the_contract(tmp_path, name):
    path = tmp_path / "m.contract.json"
    with_answers(path)
    document = json.loads(path.read_text())
    document["tensors"]["file"] = name
    path.write_text(json.dumps(document))
    with pytest.raises(file.ContractError):
        file.read(path)


BROKEN_TYPE = {
    "tags": [],
    "signatures": {"s": {"method": "", "inputs": {"x": "float[1"}, "outputs": {}}},
}


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "[]",
            "{}",
            '{"contract": 2, "meta_graphs": []}',
            '{"contract": 1}',
            '{"contract": 1, "meta_graphs": []}',
        ),
        '{"contract": 1, "meta_graphs": [{"tags": [1], "signatures": {}}]}',
        '{"contract": 1, "meta_graphs": [{"tags": []}], "x": 1}',
        json.dumps({"contract": 1, "meta_graphs": [BROKEN_TYPE]}),
        "[" * 10**5,
    ],
)
def test_a_file_that_is_no_contract_ends_with_2(tmp_path, run, text):
    path = tmp_path / "c.json"
    path.write_text(text)
    done = run("check", model(tmp_path / "m"), path)
    assert done.exit_code == 2 and "invalid contract" in done.output


@pytest.mark.parametrize("shape", [[2], [-1], [True], "x", [10**9]])
def test_values_that_contradict_themselves(shape):
    with pytest.raises(ValueError, match="shape"):
        values.from_json({"dtype": "float32", "shape": shape, "values": [1.0]})


# The commands


def test_write_replaces_only_when_asked_and_says_what_changes(tmp_path, run):
    path = model(tmp_path / "m")
    assert run("write", path).exit_code == 0 and run("write", path).exit_code == 64
    model(path, drop("other"))
    done = run("write", path, "--update")
    assert done.exit_code == 0 and "SIGNATURE_REMOVED" in done.output
    assert run("check", path).exit_code == 0


def test_versions_share_the_contract_of_their_folder(tmp_path, run):
    for version in ("1", "2"):
        model(tmp_path / "net" / version)
    model(tmp_path / "lone")
    assert run("write", tmp_path / "net").exit_code == 64
    assert (
        run("write", tmp_path / "net" / "1").exit_code == 0
        and (tmp_path / "net.contract.json").is_file()
    )
    model(tmp_path / "net" / "2", drop("other"))
    done = run("check", tmp_path)
    assert done.exit_code == 1 and [
        line.split("  ")[0] for line in done.output.splitlines() if line[0] != " "
    ] == [
        "no contract",
        "kept",
        "broken",
    ]
    assert run("check", tmp_path / "net" / "1").exit_code == 0
    assert run("check", tmp_path / "lone").exit_code == 64
    shutil.rmtree(tmp_path / "net" / "2")
    assert (run("check", tmp_path).exit_code, run("check", tmp_path, "--require").exit_code) == (
        0,
        3,
    )


def test_json(tmp_path, run):
    path = model(tmp_path / "m")
    run("write", path)
    model(path, *EDITS["OUTPUT_REMOVED"])
    done = run("check", path, "--json")
    (report,) = json.loads(done.output)["models"]
    assert report["status"] == "broken" and [item["rule"] for item in report["findings"]] == [
        "OUTPUT_REMOVED"
    ]


def test_wrong_usage_and_damage(tmp_path, run):
    path = model(tmp_path / "m")
    run("write", path)
    assert run("check", path, "--allow", "NO_RULE").exit_code == 64
    assert run("check", tmp_path / "absent").exit_code == 64
    (path / "saved_model.pb").write_bytes(b"\xff")
    done = run("check", path)
    assert done.exit_code == 1 and "refused" in done.output
    assert len(run("check", "--rule", "ALL").output.splitlines()) == len(RULES)


def test_requests_with_answers_need_no_TensorFlow(tmp_path):
    path, io = model(tmp_path / "m"), tmp_path / "io"
    io.mkdir()
    for name, value in (
        ("a.npz", {"x": from_numpy(np.zeros((1, 3), np.float32))}),
        ("b.npz", {"y": from_numpy(np.zeros((1, 10), np.float32))}),
    ):
        tensors.save(io / name, value)
    request = {
        "kind": "signature",
        "tags": ["serve"],
        "signature": "serve",
        "inputs": "a.npz",
        "outputs": "b.npz",
    }
    (io / "io.json").write_text(json.dumps({"schema": 1, "requests": [request]}))
    program = (
        "import sys\nfrom savedmodel_compat.cli import main\n"
        f"try: main(['contract', 'write', {str(path)!r}, '--requests', {str(io)!r}])\n"
        "except SystemExit as error: print(error.code)\n"
        "print([name for name in sys.modules if name.startswith(('tensorflow', 'keras'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-2:] == ["0", "[]"], done.stdout + done.stderr
    assert len(file.read(tmp_path / "m.contract.json").answers.requests) == 1


@pytest.mark.tensorflow
def test_golden_answers_are_recorded_and_asked(tmp_path, run):
    path = shutil.copytree(model_edits.fixture("half_plus_two"), tmp_path / "m")
    done = run("write", path, "--answers")
    assert done.exit_code == 0, done.output
    assert file.read(tmp_path / "m.contract.json").answers.requests
    assert run("write", path, "--update").exit_code == 64
    done = run("check", path, "--answers")
    assert done.exit_code == 0 and "asked" in done.output
    model_edits.copy_checkpoint(
        path, lambda key, array: array + 1 if array.dtype.kind == "f" else array
    )
    assert run("check", path).exit_code == 0
    done = run("check", path, "--answers")
    assert done.exit_code == 1 and "ANSWER_CHANGED" in done.output
    stated = (
        tmp_path / "m.contract.json"
    )  # what a contract states about its answers counts up to a limit
    document = json.loads(stated.read_text())
    document["answers"]["tolerance"] |= {"rtol": 1e300, "atol": 1e300}
    stated.write_text(json.dumps(document))
    done = run("check", path, "--answers")
    assert done.exit_code == 1 and "for float32 only 0.01 and 0.001 count" in done.output, (
        done.output
    )
    shutil.rmtree(path / "variables")
    done = run("check", path, "--answers")
    assert done.exit_code == 1 and "ANSWER_FAILED" in done.output


@pytest.mark.tensorflow
def test_golden_answers_of_each_MetaGraph_are_asked_and_new_outputs_do_not_matter(tmp_path, run):
    def twice(message):
        message.meta_graphs.add().CopyFrom(message.meta_graphs[0])
        message.meta_graphs[1].meta_info_def.tags[:] = ["other"]

    path = model_edits.edited(model_edits.fixture("half_plus_two"), tmp_path / "m", twice)
    assert run("write", path, "--answers").exit_code == 0
    assert len(file.read(tmp_path / "m.contract.json").answers.requests) >= 2
    assert run("check", path, "--answers").exit_code == 0

    def more(message):
        for graph in message.meta_graphs:
            for signature in graph.signature_def.values():
                first = signature.outputs[min(signature.outputs)]
                signature.outputs["more"].CopyFrom(first)

    wider = model_edits.edited(path, tmp_path / "wider" / "m", more)
    shutil.copy(tmp_path / "m.contract.json", tmp_path / "wider")
    done = run("check", wider, "--answers")
    assert done.exit_code == 0 and "ANSWER" not in done.output, done.output

    def broken(message):  # the other way round: the one that does not load is asked first
        message.meta_graphs[0].graph_def.node.add(name="unknown", op="NoSuchOp")

    half = model_edits.edited(path, tmp_path / "half" / "m", broken)
    shutil.copy(tmp_path / "m.contract.json", tmp_path / "half")
    done = run("check", half, "--answers")
    lines = [line for line in done.output.splitlines() if "ANSWER_" in line]
    assert (
        done.exit_code == 1
        and lines
        and all("ANSWER_FAILED  tags serve:" in line for line in lines)
    ), done.output
    assert all("NoSuchOp" in line for line in lines), "the reason is the loader's"
