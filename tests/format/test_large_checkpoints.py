"""A checkpoint of more than 4 GiB: offsets beyond 32 bits, read within bounded memory.

The shard is a sparse file: one value of 4 GiB of zeros, which takes no room, and the others behind
it. Commands that prove values by their checksums read it once (some seconds); `inspect`, `verify
--ignore SMC203` and loading another part do not.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import google_crc32c
import pytest
from model_edits import edited, fixture

from reference_impl.format import schema
from reference_impl.format.bundle.checksum import masked
from reference_impl.format.bundle.reader import BundleReader
from reference_impl.format.container import layout
from savedmodel_kit.forge.tables import bundle, header

CASE, LARGE, SMALL = (
    "module_functions",
    "parts/0/.ATTRIBUTES/VARIABLE_VALUE",
    "scale/.ATTRIBUTES/VARIABLE_VALUE",
)
ELEMENTS = 2**30 + 2
SIZE = 4 * ELEMENTS
_MEMORY = (
    512 << 20
)  # bytes; a process that holds the value, or has all of it mapped in, has eight times as much
# What getrusage says of a program includes the process that it was forked from, so on Linux the
# kernel's own count is read.
_PEAK = """
import re, resource, sys
def peak():
    if sys.platform == "linux":
        with open("/proc/self/status") as stream:
            return int(re.search("VmHWM:(.*) kB", stream.read())[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
"""
_PROGRAM = f"""{_PEAK}
from savedmodel_compat.cli import main
try:
    main(sys.argv[1:])
finally:
    print(f"used {{peak()}}", file=sys.stderr)
"""
_LOAD = f"""{_PEAK}
import tensorflow as tf
import reference_impl
tf.Variable(0.0).assign_add(1.0)  # the eager runtime is there before
before = peak()
root = reference_impl.load(sys.argv[1], options=reference_impl.LoadOptions(only="scale"))
print(isinstance(root.scale, tf.Variable), root.scale.numpy())
print(f"used {{peak() - before}}", file=sys.stderr)
"""


def enlarge(message):
    """Give the variable its new shape, in both places that say it."""
    graph = message.meta_graphs[0]
    objects = graph.object_graph_def.nodes
    (parts,) = [child.node_id for child in objects[0].children if child.local_name == "parts"]
    (number,) = [child.node_id for child in objects[parts].children if child.local_name == "0"]
    objects[number].variable.shape.dim[0].size = ELEMENTS
    for node in graph.graph_def.node:
        if node.op == "VarHandleOp" and [dim.size for dim in node.attr["shape"].shape.dim] == [2]:
            node.attr["shape"].shape.dim[0].size = ELEMENTS


def zeros_checksum():
    """CRC-32C of the large value."""
    piece, crc = bytes(1 << 20), 0
    for _ in range(SIZE >> 20):
        crc = google_crc32c.extend(crc, piece)
    return masked(google_crc32c.extend(crc, bytes(SIZE % (1 << 20))))


def write(folder, checksum, change=lambda data: data):
    """The model, its large value first in the shard; ``change`` makes another value of the bytes of
    the small one.
    """
    edited(fixture(CASE), folder, enlarge)
    prefix = layout.read(fixture(CASE)).checkpoint_prefix
    shard = prefix.with_name("variables.data-00000-of-00001").read_bytes()
    entries, rest = {}, b""
    with BundleReader(prefix) as reader:
        for raw, entry in reader.stored().items():
            data = shard[entry.offset : entry.offset + entry.size]
            message = schema.BundleEntryProto(
                dtype=schema.DataType.Value(entry.dtype.enum), size=entry.size, crc32c=entry.crc32c
            )
            message.shape.SetInParent()
            for size in entry.shape:
                message.shape.dim.add(size=size)
            if raw == LARGE.encode():
                message.shape.dim[0].size, message.size, message.crc32c = ELEMENTS, SIZE, checksum
            else:
                if raw == SMALL.encode():
                    data = change(data)
                    message.crc32c = masked(google_crc32c.value(data))
                message.offset = SIZE + len(rest)
                rest += data
            entries[raw] = message
    shutil.rmtree(folder / "variables")
    (folder / "variables").mkdir()
    bundle(folder / "variables" / "variables", entries, b"", header())
    with (folder / "variables" / "variables.data-00000-of-00001").open("r+b") as stream:
        stream.seek(SIZE)
        stream.write(rest)
    return folder


@pytest.fixture(scope="module")
def checksum():
    return zeros_checksum()


@pytest.fixture(scope="module")
def large(checksum, tmp_path_factory):
    folder = write(tmp_path_factory.mktemp("large") / "model", checksum)
    shard = folder / "variables" / "variables.data-00000-of-00001"
    if shard.stat().st_blocks * 512 > SIZE // 2:
        pytest.skip("this file system has no sparse files")
    return folder


def run(*arguments, code=0):
    """Return what a command of `savedmodel-compat` says; its memory is bounded."""
    return run_program(_PROGRAM, *arguments, code=code)


def run_program(program, *arguments, code=0):
    """Return what a Python program says that writes its peak to stderr, which is checked."""
    command = [sys.executable, "-c", program, *[str(item) for item in arguments]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    memory = int(done.stderr.split("used ")[-1])
    assert memory < _MEMORY, f"{memory >> 20} MiB"
    return done.stdout


def test_offsets_beyond_32_bits_are_read(large):
    with BundleReader(layout.read(large).checkpoint_prefix) as reader:
        assert reader.entry(SMALL).offset >= SIZE > 2**32
        with BundleReader(layout.read(fixture(CASE)).checkpoint_prefix) as before:
            assert reader.read(SMALL) == before.read(SMALL)
            assert reader.object_graph() == before.object_graph()


def test_inspect_knows_its_size(damaged):
    assert f"[{ELEMENTS}]" in run("inspect", damaged)


@pytest.fixture(scope="module")
def damaged(checksum, tmp_path_factory):
    """Whoever reads the large value notices."""
    return write(tmp_path_factory.mktemp("damaged") / "model", checksum ^ 1)


def test_verify_reads_values_unless_it_is_told_not_to(damaged):
    found = [json.loads(run("verify", damaged, "--json", *options, code=code))["models"][0]["findings"]
             for options, code in ((("--ignore", "SMC203"), 0), ((), 1))]  # fmt: skip
    assert (
        [item for item in found[1] if item not in found[0]]
        == [item for item in found[1] if item["rule"] == "SMC203"]
        != []
    )


def test_diff_finds_what_differs_behind_it(large, checksum, tmp_path):
    other = write(tmp_path / "other", checksum, lambda data: bytes(len(data)))
    told = run("diff", large, other, code=1)
    assert "~ scale" in told and "parts.0" not in told


@pytest.mark.parametrize(
    "command", [("signatures", "{}", "--input", "lookup:words=terms"), ("slim", "{}")]
)
def test_an_edit_leaves_the_shard_the_same_file(large, tmp_path, command):
    run(
        "edit",
        *[str(large) if item == "{}" else item for item in command],
        "--out",
        tmp_path / "out",
    )
    shards = [
        path / "variables" / "variables.data-00000-of-00001" for path in (large, tmp_path / "out")
    ]
    assert shards[0].samefile(shards[1])


@pytest.mark.tensorflow
def test_a_part_is_loaded_without_the_rest(damaged):
    pytest.importorskip("tensorflow")
    with BundleReader(layout.read(fixture(CASE)).checkpoint_prefix) as reader:
        assert run_program(_LOAD, damaged) == f"True {reader.read(SMALL)}\n"
