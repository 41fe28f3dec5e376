"""The types that users' type checkers see: mypy reads programs that use the installed package."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy", reason="the type checker of the development environment")

RIGHT = """
from pathlib import Path

import reference_impl
from reference_impl import (
    LoadOptions,
    MissingFileError,
    SavedModelError,
    SaveOptions,
)

try:
    part = LoadOptions(only=["signatures.predict"], machine_ops="refuse")
    model = reference_impl.load(Path("model"), tags={"serve"}, options=part)
except MissingFileError as error:
    reveal_type(error.file)
    raise
reveal_type(reference_impl.load)
reveal_type(model.signatures)
reveal_type(model.extra_assets)
reveal_type(model.tensorflow_version)
reveal_type(model.any_child)
tags = reference_impl.inspect("model").meta_graphs[0].tags
answer = model.signatures["predict"](x=[1.0])
reference_impl.save(model, "copy", signatures=model.signatures, options=SaveOptions(strict=False, extra_tags=("gpu",)))
with reference_impl.strictness(False):
    reference_impl.save(model, "copy", signatures={"predict": model.predict})
reveal_type(issubclass(MissingFileError, SavedModelError))
"""
WRONG = """
import reference_impl
from reference_impl import LoadOptions, SaveOptions

reference_impl.load(3)
reference_impl.load("model", options="only")
LoadOptions(only=3)
LoadOptions(machine_ops="forbid")
SaveOptions(strickt=True)
reference_impl.load("model").signatures.clear()
reference_impl.save(None, "copy", signatures=3)
reference_impl.save(None, "copy", options=LoadOptions())
reference_impl.NoSuchError
reference_impl.inspect("model").no_such_field
"""


def checked(program: str, folder: Path) -> list[str]:
    """The lines that mypy prints about a program, which lies outside of the sources."""
    (folder / "program.py").write_text(program.strip("\n") + "\n", encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--no-error-summary",
        "--cache-dir",
        str(folder / "cache"),
        "program.py",
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert not done.stderr, done.stderr
    return done.stdout.splitlines()


def test_a_program_sees_what_load_returns(tmp_path):
    found = checked(RIGHT, tmp_path)
    assert not [line for line in found if "error:" in line]
    types = [re.sub(r"[\w.]+\.(?=\w)", "", line.partition('is "')[2].rstrip('"')) for line in found]
    assert set(types[0].split(" | ")) == {"str", "None"}
    assert types[1].startswith("def (export_dir: str | PathLike[str]") and types[1].endswith(
        "-> LoadedModel"
    )
    assert types[2:] == ["Mapping[str, Any]", "ExtraAssets", "str", "Any", "bool"]


def test_wrong_programs_are_found(tmp_path):
    found = checked(WRONG, tmp_path)
    numbers = {
        int(match[1]) for line in found if (match := re.match(r"program.py:(\d+): error", line))
    }
    first = WRONG.strip("\n").split("\n").index("reference_impl.load(3)") + 1
    assert numbers == set(range(first, len(WRONG.strip("\n").split("\n")) + 1))
