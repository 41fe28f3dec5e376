"""The reader in JavaScript, written from docs/format/spec alone, reads what `reference_impl` reads.

tests/savedmodel_kit asks it about every artifact of the kit.
"""

import hashlib
import json
import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

from reference_impl.format.bundle.reader import BundleReader
from reference_impl.format.bundle.writer import BundleWriter
from reference_impl.format.errors import SavedModelError

ROOT = Path(__file__).parents[2]
READER = ROOT / "examples/node_reader/reader.mjs"
FORMAT_V1 = ROOT / "fixtures_v1/v1_checkpoint/model/variables/variables"

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")


def run(prefix):
    command = ["node", str(READER), str(prefix)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def tensors_of_node(prefix):
    done = run(prefix)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def tensors_of_ours(prefix):
    found = []
    with BundleReader(prefix) as reader:
        for key, entry in reader.entries().items():
            content = content_of(reader.read(key), entry.dtype.itemsize is None)
            found.append(
                {
                    "key": key,
                    "dtype": entry.dtype.name,
                    "shape": list(entry.shape),
                    "bytes": len(content),
                    "sha256": hashlib.sha256(content).hexdigest(),
                }
            )
    return found


def content_of(array, has_lengths):
    if not has_lengths:
        return array.tobytes()
    return b"".join(struct.pack("<Q", len(item)) + item for item in array.ravel().tolist())


def test_format_v1_is_refused():
    done = run(FORMAT_V1)
    assert done.returncode == 1
    assert "SM-BUNDLE-22" in done.stderr


@pytest.fixture
def small(tmp_path):
    with BundleWriter(tmp_path / "variables") as writer:
        writer.add("empty", np.zeros((0, 3), np.float32))
        writer.add("numbers", np.arange(6, dtype=np.int64).reshape(2, 3))
        writer.add("texts", np.array([b"", b"a\0b", b"\xff" * 300], object))
    return tmp_path / "variables"


def test_strings_and_empty_tensors(small):
    assert tensors_of_node(small) == tensors_of_ours(small)


def outcome(tensors, prefix):
    """What a reader gives: the tensors, or None when it refuses the checkpoint."""
    try:
        return tensors(prefix)
    except SavedModelError:
        return None


def node_or_refused(prefix):
    done = run(prefix)
    return None if done.returncode == 1 else [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("suffix", [".index", ".data-00000-of-00001"])
def test_both_refuse_a_flipped_bit_or_read_the_same(small, suffix):
    file = small.with_name(f"variables{suffix}")
    whole = file.read_bytes()
    differ = []
    for position in range(0, len(whole), max(len(whole) // 12, 1)):
        damaged = bytearray(whole)
        damaged[position] ^= 4
        file.write_bytes(damaged)
        if node_or_refused(small) != outcome(tensors_of_ours, small):
            differ.append(position)
    assert not differ
