"""Artifacts, cells and a host whose consumer is tests/support/fake_worker.py.

Needs no TensorFlow.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from fake_runtime import fake_runtime

from compat_matrix.cells.plan import Cell
from compat_matrix.cells.results import Observation
from compat_matrix.checks import run_cell
from compat_matrix.hosts.host import Host
from reference_impl.format import schema
from savedmodel_common import tensors
from savedmodel_common.provenance import hash_files

CASE = '''"""A case for a producer that needs no TensorFlow."""
CLAUSES = ("FN-01",)
FEATURES = ("nothing",)
def build(tf, work): return None
def requests(np): return [("serving_default", {"x": np.float32([1])})]
'''


def cell(check: str, artifact: Path | str = "artifact", **fields: Any) -> Cell:
    names = {
        "case": "half",
        "producer": "fixture",
        "producer_version": "1.15.5",
        "consumer": "tf2",
        "consumer_version": "1.0",
    }
    if check == "produce":
        names.update(producer="tf2", producer_version="1.0", consumer="-", consumer_version="")
    return Cell(
        **{**names, **fields},
        check=check,
        runtime="fake",
        producer_runtime="fake",
        artifact=str(artifact),
    )


def saved_model() -> bytes:
    """The SavedModel of ``y = x / 2 + 2`` as far as a signature goes."""
    model = schema.SavedModel(saved_model_schema_version=1)
    graph = model.meta_graphs.add()
    graph.meta_info_def.tags.append("serve")
    graph.graph_def.node.add(name="x", op="Placeholder").attr["dtype"].type = schema.DT_FLOAT
    signature = graph.signature_def["serving_default"]
    signature.method_name = "tensorflow/serving/predict"
    for name, infos in (("x", signature.inputs), ("y", signature.outputs)):
        infos[name].name = "x:0"
        infos[name].dtype = schema.DT_FLOAT
        infos[name].tensor_shape.dim.add().size = -1
    return schema.serialize(model)


def write_artifact(directory: Path, misbehave: str = "", **fields: Any) -> Path:
    """An artifact whose consumer behaves as ``misbehave`` says; ``fields`` go into io.json."""
    for folder in ("model", "io"):
        (directory / folder).mkdir(parents=True)
    (directory / "model" / "saved_model.pb").write_bytes(saved_model())
    (directory / "model" / "misbehave").write_text(misbehave)
    tensors.save(directory / "io" / "in.npz", {"x": tensors.from_numpy(np.float32([1, 2]))})
    tensors.save(directory / "io" / "out.npz", {"y": tensors.from_numpy(np.float32([2.5, 3]))})
    request = {
        "id": "r",
        "kind": "signature",
        "tags": ["serve"],
        "signature": "serving_default",
        "inputs": "in.npz",
        "outputs": "out.npz",
    }
    io: dict[str, Any] = {
        "schema": 1,
        "stateful": False,
        "tolerance": {"rtol": 0, "atol": 0},
        "requests": [request],
        **fields,
    }
    (directory / "io" / "io.json").write_text(json.dumps(io))
    seal(directory)
    return directory


def seal(directory: Path) -> None:
    (directory / "provenance.json").write_text(
        json.dumps({"schema": 1, "files": hash_files(directory)})
    )


def fake_host(folder: Path) -> Host:
    """The host of the fake worker, with the case ``half``."""
    cases = folder / "cases"
    cases.mkdir()
    (cases / "half.py").write_text(CASE)
    return Host(folder / "out", {"fake": fake_runtime(folder)}, cases)


def run(host: Host, check: str, misbehave: str = "", **fields: Any) -> Observation:
    artifact = host.out.parent / "artifact"
    shutil.rmtree(artifact, ignore_errors=True)
    write_artifact(artifact, misbehave, **fields)
    return run_cell(cell(check, artifact), host, host.out)


def function_request(path: str, structure: Any) -> dict[str, Any]:
    return {
        "id": path, "kind": "function", "tags": ["serve"], "path": path, "args": [], "kwargs": {},
        "inputs": "in.npz", "outputs": "out.npz", "structure": structure,
    }  # fmt: skip
