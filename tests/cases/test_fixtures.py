"""The committed TF 1.x fixtures: complete, unchanged, asked in full. No TensorFlow is needed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

import fixtures_v1
from compat_matrix.runtimes import places, resolve
from fixtures_v1 import compare, regenerate
from savedmodel_common import tensors

ROOT = Path(fixtures_v1.ROOT)
CASES = fixtures_v1.cases()
CAP = 12 << 20  # bytes of all fixtures together; issue 2
SHA = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
WORDS = {
    "type": "array",
    "minItems": 1,
    "uniqueItems": True,
    "items": {"type": "string", "pattern": r"^\S+$"},
}
HASHED = {"type": "object", "additionalProperties": False, "required": ["sha256"]}
PROVENANCE = {
    "type": "object",
    "additionalProperties": False,
    "required": ["schema", "case", "title", "clauses", "features", "producer", "generator", "environment", "command", "licence",
                 "unasked", "files"],
    "properties": {
        "schema": {"const": 1},
        "case": {"enum": CASES},
        "title": {"type": "string", "minLength": 10},
        "clauses": {**WORDS, "items": {"type": "string", "pattern": "^[A-Z0-9]+-[0-9]{2}$"}},
        "features": WORDS,
        "producer": {
            "type": "object",
            "additionalProperties": False,
            "required": ["name", "versions"],
            "properties": {
                "name": {"const": "fixture"},
                "versions": {
                    "type": "object",
                    "required": ["python", "tensorflow", "numpy", "protobuf"],
                    "additionalProperties": {"type": "string", "pattern": r"^\d+\.\d+"},
                },
            },
        },
        "generator": {**HASHED, "properties": {"file": {"const": "generate.py"}, "sha256": SHA}},
        "environment": {**HASHED, "properties": {"lock": {"type": "string", "pattern": r"^locks/tf1\..*\.txt$"}, "sha256": SHA}},
        "command": {"type": "string", "pattern": "^python -m fixtures_v1.recorder "},
        "licence": {"const": "Apache-2.0"},
        "unasked": {"type": "object", "additionalProperties": {"type": "string", "minLength": 10}},
        "files": {"type": "object", "minProperties": 3, "additionalProperties": SHA},
    },
}  # fmt: skip
IO = {
    "type": "object",
    "additionalProperties": False,
    "required": ["schema", "stateful", "tolerance", "requests"],
    "properties": {
        "schema": {"const": 1},
        "stateful": {"type": "boolean"},
        "tolerance": {
            "type": "object",
            "additionalProperties": False,
            "required": ["rtol", "atol", "reason"],
            "properties": {"rtol": {"type": "number", "minimum": 0, "maximum": 1e-4},
                           "atol": {"type": "number", "minimum": 0, "maximum": 1e-4},
                           "reason": {"type": "string", "minLength": 5}},
        },
        "requests": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object", "required": ["id", "kind", "tags", "inputs", "outputs"],
                "properties": {"kind": {"enum": ["signature", "function"]}, "recorded_from":
                {"const": "live"}}, "dependentRequired": {"recorded_from": ["loaded_error"],
                "loaded_error": ["recorded_from"]}, }, }, },
}  # fmt: skip


def provenance(case: str) -> dict:
    return fixtures_v1.read_json(str(ROOT / case / "provenance.json"))


def io_json(case: str) -> dict:
    return fixtures_v1.read_json(str(ROOT / case / "io" / "io.json"))


def signatures(case: str) -> dict[tuple[str, ...], dict]:
    """``{sorted tags: {key: SignatureDef}}`` of a fixture, read by our own format layer."""
    from reference_impl.format.container import layout

    saved_model = layout.read(ROOT / case / "model").saved_model
    return {
        tuple(sorted(graph.meta_info_def.tags)): dict(graph.signature_def)
        for graph in saved_model.meta_graphs
    }


@pytest.mark.parametrize("case", CASES)
def test_a_fixture_is_unchanged(case):
    assert fixtures_v1.verify(ROOT / case) == []


@pytest.mark.parametrize("case", CASES)
def test_provenance_and_requests_are_complete(case):
    record = provenance(case)
    jsonschema.validate(record, PROVENANCE)
    jsonschema.validate(io_json(case), IO)
    assert record["case"] == case
    # The version in the lock's name is the version that answered.
    versions = record["producer"]["versions"]
    assert Path(record["environment"]["lock"]).stem.startswith(
        f"tf{versions['tensorflow']}-py{versions['python'].rsplit('.', 1)[0]}"
    )
    tolerance = io_json(case)["tolerance"]
    assert (tolerance["reason"] == "bit-exact") == (tolerance["rtol"] == tolerance["atol"] == 0)


@pytest.mark.parametrize("case", CASES)
def test_every_signature_is_asked_or_says_why_not(case):
    unasked = set(provenance(case)["unasked"])
    asked = {
        (tuple(sorted(request["tags"])), request.get("signature"))
        for request in io_json(case)["requests"]
    }
    present = {
        (tags, key)
        for tags, found in signatures(case).items()
        for key in set(found) - set(fixtures_v1.RESERVED_SIGNATURES)
    }
    assert {(tags, key) for tags, key in present if key not in unasked} == {
        pair for pair in asked if pair[1] is not None
    }
    assert unasked <= {key for _, key in present}


@pytest.mark.parametrize("case", CASES)
def test_recorded_tensors_fit_the_signature(case):
    found, requests = signatures(case), io_json(case)["requests"]
    assert requests
    for request in requests:
        given = tensors.load(str(ROOT / case / "io" / request["inputs"]))
        answers = tensors.load(str(ROOT / case / "io" / request["outputs"]))
        assert answers, request["id"]
        if request["kind"] == "signature":
            definition = found[tuple(sorted(request["tags"]))][request["signature"]]
            assert entries(given, definition.inputs) == set(definition.inputs), request["id"]
            assert entries(answers, definition.outputs) == set(definition.outputs), request["id"]


def entries(recorded: dict, declared: dict) -> set[str]:
    """Signature keys of recorded tensors: the parts of sparse and ragged entries are joined
    again.
    """
    plain = {key for key, info in declared.items() if info.WhichOneof("encoding") == "name"}
    return {name if name in plain else name.rsplit("/", 1)[0] for name in recorded}


def test_the_collection_is_large_old_and_small_enough():
    versions = [provenance(case)["producer"]["versions"]["tensorflow"] for case in CASES]
    assert len(CASES) >= 35
    assert sum(version.split(".")[1] != "15" for version in versions) >= 8
    assert {"1.4.1", "1.8.0", "1.12.3", "1.13.2", "1.14.0", "1.15.5"} == set(versions)
    assert (
        sum(
            path.stat().st_size
            for path in ROOT.rglob("*")
            if "__pycache__" not in path.parts and path.is_file()
        )
        <= CAP
    )


def test_every_lock_is_used_and_has_hashes():
    used = {provenance(case)["environment"]["lock"] for case in CASES}
    assert used == {f"locks/{path.name}" for path in (ROOT / "locks").glob("*.txt")}
    for path in (ROOT / "locks").glob("*.txt"):
        text = path.read_text(encoding="utf-8")
        assert text.count("==") >= 5 and text.count("--hash=sha256:") >= text.count("==")
        assert "://" not in text  # no index is baked in


@pytest.fixture
def copied(tmp_path):
    """A fixture that may be damaged."""
    target = tmp_path / "half_plus_two"
    shutil.copytree(ROOT / "half_plus_two", target)
    return target


@pytest.mark.parametrize(
    "name",
    [
        "model/saved_model.pb",
        "model/variables/variables.data-00000-of-00001",
        "io/serving_default-0.out.npz",
    ],
)
def test_a_flipped_bit_is_found(copied, name):
    data = bytearray((copied / name).read_bytes())
    data[len(data) // 2] ^= 1
    (copied / name).write_bytes(data)
    assert fixtures_v1.verify(copied) == [f"{name}: sha256 differs from provenance.json"]


def test_missing_and_additional_files_are_found(copied):
    (copied / "model" / "variables" / "variables.index").unlink()
    (copied / "model" / "assets").mkdir()
    (copied / "model" / "assets" / "new.txt").write_text("new")
    assert [problem.partition(": ")[0] for problem in fixtures_v1.verify(copied)] == [
        "model/variables/variables.index",
        "model/assets/new.txt",
    ]


def test_an_edited_generator_and_lock_are_found(copied):
    (copied / "generate.py").write_text("# nothing\n")
    record = json.loads((copied / "provenance.json").read_text())
    record["environment"]["lock"] = "locks/tf1.8.0-py3.6.txt"
    (copied / "provenance.json").write_text(json.dumps(record))
    assert [problem.partition(": ")[0] for problem in fixtures_v1.verify(copied)] == [
        "generate.py",
        "tf1.8.0-py3.6.txt",
    ]


@pytest.mark.parametrize("text", ["", "[]", '{"files": {}}'])
def test_a_broken_provenance_is_reported(copied, text):
    (copied / "provenance.json").write_text(text)
    (problem,) = fixtures_v1.verify(copied)
    assert problem.startswith("provenance.json: ")


def test_comparison_finds_a_changed_answer_within_its_tolerance(copied):
    path = copied / "io" / "serving_default-1.out.npz"
    recorded = tensors.load(str(path))
    name, tensor = next(iter(recorded.items()))
    changed = tensor.array.copy()
    changed.flat[0] *= 1 + 2e-6
    tensors.save(str(path), {name: tensors.from_numpy(changed)})
    committed = ROOT / "half_plus_two"
    assert compare.differences(committed, copied) == [
        f"io/{path.name}: {name}: 1 of 3 values differ"
    ]
    # Within a stated tolerance it is the same answer.
    pair = copied.parent / "other"
    shutil.copytree(committed, pair)
    for folder in (copied, pair):
        record = json.loads((folder / "io" / "io.json").read_text())
        record["tolerance"] = {"rtol": 1e-5, "atol": 0.0, "reason": "test"}
        (folder / "io" / "io.json").write_text(json.dumps(record))
    assert compare.differences(pair, copied) == []


def test_comparison_finds_a_changed_node_weight_and_asset(tmp_path):
    from reference_impl.format import schema

    committed, fresh = ROOT / "index_table_oov", tmp_path / "fresh"
    shutil.copytree(committed, fresh)
    assert compare.differences(committed, fresh) == []
    (fresh / "model" / "assets" / "vocabulary.txt").write_text("other\n")
    path = fresh / "model" / "saved_model.pb"
    saved_model = schema.SavedModel()
    saved_model.ParseFromString(path.read_bytes())
    node = saved_model.meta_graphs[0].graph_def.node[0]
    node.device = "/device:CPU:0"
    path.write_bytes(saved_model.SerializeToString())
    lines = compare.differences(committed, fresh)
    assert any(line.startswith("model/assets/vocabulary.txt: ") for line in lines)
    assert any(line.startswith("model/saved_model.pb: ") for line in lines)
    other = compare.differences(ROOT / "default_attrs_kept", ROOT / "default_attrs_stripped")
    assert any("container: no longer " in line for line in other)


def test_comparison_overlooks_the_order_of_maps_and_traces(tmp_path):
    """What TensorFlow 1.15 writes in an order that differs from run to run."""
    from reference_impl.format import schema

    committed, fresh = ROOT / "keras_compiled_save", tmp_path / "fresh"
    shutil.copytree(committed, fresh)
    path = fresh / "model" / "saved_model.pb"
    saved_model = schema.SavedModel()
    saved_model.ParseFromString(path.read_bytes())
    (meta_graph,) = saved_model.meta_graphs
    turned = 0
    for node in meta_graph.graph_def.node:
        config = node.attr["config_proto"].s if "config_proto" in node.attr else b""
        if config:
            node.attr["config_proto"].s = (
                config[9:18] + config[:9] + config[18:]
            )  # two map entries of nine bytes each
            turned += config[:9] != config[9:18]
    for node in meta_graph.object_graph_def.nodes:
        if len(node.function.concrete_functions) > 1:
            names = list(node.function.concrete_functions)[::-1]
            del node.function.concrete_functions[:]
            node.function.concrete_functions.extend(names)
            turned += 1
    assert turned > 2
    path.write_bytes(saved_model.SerializeToString())
    assert compare.differences(committed, fresh) == []


def run_regenerate(*arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "fixtures_v1.regenerate", *arguments]
    return subprocess.run(command, cwd=ROOT.parent, capture_output=True, text=True, check=False)


def test_command_verifies_and_refuses_unknown_cases():
    done = run_regenerate("--verify", "half_plus_two", "pbtxt")
    assert done.returncode == 0 and done.stdout.startswith("2 of 2 cases ")
    assert run_regenerate("--verify", "no_such_case").returncode == 64


def test_command_without_an_environment_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("SAVEDMODEL_COMPAT_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("PYENV_ROOT", raising=False)
    monkeypatch.setenv("UV_PYTHON_DOWNLOADS", "never")
    done = run_regenerate("--check", "half_plus_two")
    assert done.returncode == 4
    assert "environment: " in done.stdout


def test_check_regenerates_a_case():
    """Needs an interpreter of TensorFlow 1.15's Python and, the first time, a package index."""
    runtime = regenerate.runtime_of("hash_table_v2")
    try:
        resolve.provide(runtime, lambda _: None)
    except places.RuntimeTrouble as trouble:
        pytest.skip(f"TensorFlow 1.15 cannot run here: {trouble}")
    done = run_regenerate("--check", "hash_table_v2")
    assert done.returncode == 0, done.stdout + done.stderr
