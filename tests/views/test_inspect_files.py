"""`inspect` of files beside the model, of everybody's models, and what it imports."""

import json
import shutil
import subprocess
import sys

import model_edits as edits
import pytest

from reference_impl import errors
from reference_impl.format import schema
from reference_impl.views.model import inspect


def test_files_beside(tmp_path):
    shutil.copytree(edits.fixture("module_functions"), tmp_path / "model")
    (tmp_path / "model" / "fingerprint.pb").write_bytes(
        schema.serialize(
            schema.FingerprintDef(saved_model_checksum=2**64 - 1, uuid="u", version={"producer": 4})
        )
    )
    (tmp_path / "model" / "debug").mkdir()
    (tmp_path / "model" / "debug" / "saved_model_debug_info.pb").write_bytes(b"123")
    (tmp_path / "model" / "assets.extra" / "a").mkdir(parents=True)
    (tmp_path / "model" / "assets.extra" / "a" / "b").write_bytes(b"12345")
    info = inspect(tmp_path / "model")
    assert info.fingerprint["saved_model_checksum"] == str(2**64 - 1)
    assert (info.fingerprint["uuid"], info.fingerprint["version"]) == ("u", 4)
    assert info.debug_info.size == 3
    assert [(item.path, item.size) for item in info.extra] == [("assets.extra/a/b", 5)]
    assert info.problems == ()


def test_imports_neither_tensorflow_nor_numpy():
    """They would cost more than all the rest."""
    program = (
        "import sys; from reference_impl.views.model import inspect;"
        " inspect(sys.argv[1]).to_json();print([name for name in ('numpy', 'tensorflow',"
        " 'ml_dtypes', 'rich') if name in sys.modules])"
    )
    command = [sys.executable, "-c", program, str(edits.fixture("module_functions"))]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "[]\n"


def test_zoo():
    import zoo

    models = zoo.models()
    if not models:
        pytest.skip(zoo.ABSENT)
    shown = 0
    for path in models:
        try:
            json.dumps(inspect(path).to_json())
        except errors.SavedModelError as error:
            assert str(error)
        else:
            shown += 1
    assert shown > len(models) * 0.9
