"""`reference_impl.format` needs nothing of the other rooms, and its README describes real bytes."""

from __future__ import annotations

import doctest
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from reference_impl import errors, format

ROOT = Path(__file__).parents[2]
README = ROOT / "reference_impl" / "format" / "README.md"
FIXTURE = ROOT / "fixtures_v1" / "module_functions" / "model"

# Imports every module of the room while all others of `reference_impl` are refused, and reads a
# model.
PROGRAM = """
import importlib, importlib.abc, json, pkgutil, sys

tried = set()

class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        parts = name.split(".")
        other_room = parts[0] == "reference_impl" and parts[1:2] not in ([], ["format"], ["errors"])
        if other_room or parts[0] in {"tensorflow", "keras", "tf_keras", "compat_matrix"} or name.startswith("savedmodel_"):
            tried.add(name)
            raise ImportError(f"{name} is refused here")
        return None

sys.meta_path.insert(0, Refuse())
from reference_impl import format
before = "numpy" in sys.modules
for module in pkgutil.walk_packages(format.__path__, "reference_impl.format."):
    importlib.import_module(module.name)
model = format.read(sys.argv[1])
with model.open_checkpoint() as checkpoint:
    value = checkpoint.read("parts/0/.ATTRIBUTES/VARIABLE_VALUE").tolist()
public = [getattr(format, name).__name__ for name in format.__all__]
print(json.dumps([sorted(tried), before, value, len(public)]))
"""


def test_the_room_needs_no_other_room():
    command = [sys.executable, "-c", PROGRAM, str(FIXTURE)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    tried, numpy_is_imported, value, public = json.loads(done.stdout)
    assert (tried, numpy_is_imported, value) == ([], False, [1.0, 2.0])
    assert public == len(format.__all__)


def test_the_example_of_the_docstring(monkeypatch):
    monkeypatch.chdir(ROOT)
    result = doctest.testmod(format)
    assert result.attempted >= 7 and not result.failed


def test_the_errors_are_those_of_the_package():
    names = format.errors.__all__
    public = [getattr(errors, name) for name in names]
    assert [getattr(format.errors, name) for name in names] == public
    assert {cls.__module__ for cls in public} == {"reference_impl.errors"}


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        getattr(format, "nothing")  # noqa: B009


def test_a_model_without_a_checkpoint_has_none_to_open(tmp_path):
    write_example(tmp_path / "model", checkpoint=False)
    with pytest.raises(errors.MissingValueError, match=r"variables\.index"):
        format.read(tmp_path / "model").open_checkpoint()


def write_example(directory: Path, checkpoint: bool = True) -> None:
    """Write the model that the README shows byte by byte."""
    model = format.schema.SavedModel(saved_model_schema_version=1)
    model.meta_graphs.add().meta_info_def.tags.append("serve")
    with format.LayoutWriter(directory) as out:
        out.saved_model(model)
        if checkpoint:
            with format.BundleWriter(out.checkpoint_prefix) as bundle:
                bundle.add("v", np.float32([1, 2]))


def shown_bytes(name: str) -> bytes:
    """Return the bytes that the README shows for a file: hex digits before the remarks."""
    block = re.search(rf"`{re.escape(name)}`:\n\n```\n(.*?)```", README.read_text(), re.DOTALL)
    digits = [re.split(r" {4,}(?=\S)", line.strip())[0] for line in block[1].splitlines()]
    return bytes.fromhex("".join(digits))


@pytest.mark.parametrize(
    "name",
    ["saved_model.pb", "variables/variables.index", "variables/variables.data-00000-of-00001"],
)
def test_the_readme_shows_the_bytes_of_a_file(tmp_path, name):
    write_example(tmp_path / "model")
    assert shown_bytes(name) == (tmp_path / "model" / name).read_bytes()


def test_the_fields_that_the_readme_numbers():
    schema = format.schema
    numbered = {
        "SavedModel": ["saved_model_schema_version", "meta_graphs"],
        "MetaGraphDef": [
            "meta_info_def",
            "graph_def",
            "saver_def",
            "collection_def",
            "signature_def",
            "asset_file_def",
            "object_graph_def",
        ],
        "SignatureDef": ["inputs", "outputs", "method_name", "defaults"],
        "SavedObjectGraph": ["nodes", "concrete_functions"],
        "BundleEntryProto": ["dtype", "shape", "shard_id", "offset", "size", "crc32c", "slices"],
    }
    text = README.read_text()
    for message, names in numbered.items():
        fields = getattr(schema, message).DESCRIPTOR.fields_by_name
        assert message in text
        for name in names:
            assert f"{fields[name].number} {name}" in text
    kinds = schema.SavedObject.DESCRIPTOR.oneofs_by_name["kind"].fields
    assert all(f"{kind.number} {kind.name}" in text for kind in kinds)
