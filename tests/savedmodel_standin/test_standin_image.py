"""The root file system of the stand-in's image, gathered from this machine and looked at; no
container engine is asked.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from savedmodel_common.packages import OURS
from savedmodel_standin import executable, libraries, rootfs

pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.skipif(sys.platform != "linux", reason="images are made of Linux files"),
]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[rootfs.Tree]:
    # Compiled files are in the folder until the last test is done.
    yield rootfs.gather(Path(sys.executable), tmp_path_factory.mktemp("compiled"))


def test_everything_that_its_binaries_need_is_in_it(tree: rootfs.Tree) -> None:
    binaries = {
        path: e.source
        for path, e in tree.entries.items()
        if e.source and e.mode == 0o755 and libraries.is_elf(e.source)
    }
    names = {Path(path).name for path in tree.entries}
    for path, source in binaries.items():
        for name in libraries.needed([source]):
            assert name in (tree.entries if name.startswith("/") else names), path
    assert any(path.endswith("/tensorflow/libtensorflow_cc.so.2") for path in binaries)


def test_everything_of_ours_that_the_server_imports_is_in_it(tree: rootfs.Tree) -> None:
    """Without TensorFlow: whatever is imported before the server says its version."""
    told = (
        "import sys, savedmodel_standin.server; print(*[getattr(m, '__file__', '') for m"
        " in sys.modules.values()])"
    )
    done = subprocess.run(
        [sys.executable, "-c", told],
        cwd=executable.PROJECT,
        capture_output=True,
        text=True,
        check=True,
    )
    place = f"{executable.PROJECT}/"
    files = [file.removeprefix(place) for file in done.stdout.split() if file.startswith(place)]
    # Environments may lie there, too.
    ours = [file for file in files if file.startswith(tuple(f"{name}/" for name in OURS))]
    assert len(ours) > 30
    assert {f"{rootfs.PROJECT}/{file}" for file in ours} <= set(tree.entries)


def test_it_has_the_contract_of_the_official_image(tree: rootfs.Tree) -> None:
    entry = tree.entries[rootfs.ENTRYPOINT]
    assert entry.mode == 0o755
    for part in (
        "--port=8500",
        "--rest_api_port=8501",
        '"${MODEL_BASE_PATH}/${MODEL_NAME}"',
        '"$@"',
    ):
        assert part in (entry.text or "")
    assert {"/bin/sh", "/models", "/tmp", rootfs.SERVER} <= set(tree.entries)


def test_it_names_no_place_of_this_machine(tree: rootfs.Tree) -> None:
    ours = str(executable.PROJECT).encode()
    compiled = [entry.source for entry in tree.entries.values() if entry.derived]
    assert len(compiled) > 100
    for path in compiled:
        assert path is not None and ours not in path.read_bytes()
    for path, entry in tree.entries.items():
        assert not {"..", "__pycache__", "tests"} & set(Path(path).parts) or entry.derived, path
        assert ours.decode() not in (entry.text or "")


def test_nothing_is_in_it_that_the_server_does_not_use(tree: rootfs.Tree) -> None:
    assert not any(
        "/site-packages/keras" in path or "/site-packages/pytest" in path for path in tree.entries
    )
    assert (
        sum("/tensorflow/" in path for path in tree.entries) == 4
    )  # a package to be found, and two libraries
    assert not any(
        path.startswith(f"{rootfs.PROJECT}/compat_matrix/cases") for path in tree.entries
    )
