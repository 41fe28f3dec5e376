"""The real third parties as they are declared: no network, no environment of theirs and no
TensorFlow is needed here.
"""

import importlib
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from compat_matrix.commands.parts.plugin_options import THIRD_PARTY
from compat_matrix.plugins import found
from compat_matrix.plugins.probe import home
from compat_matrix.runtimes.locked import DONE, Environment
from compat_matrix.runtimes.worker import NotStarted, Worker
from compat_matrix.verdict import Ledger
from savedmodel_common import tensors

HERE = THIRD_PARTY.parent
FIXTURE = HERE.parent / "fixtures_v1" / "simple_save"
SCRIPTS = sorted([*HERE.glob("consumers/*.py"), *HERE.glob("exporters/*.py")])


@pytest.fixture(scope="module")
def registry():
    return found.registry(found.Asked(file=THIRD_PARTY))


@pytest.fixture(scope="module")
def declared(registry):
    consumers, producers = registry.theirs
    return [*consumers, *producers]


def test_each_says_what_it_is_and_is_the_version_that_its_lock_holds(declared):
    assert declared
    for one in declared:
        assert one.summary and "{python}" not in one.summary, f"{one.name} has no summary"
        lock = Path(one.program.lock[0]).read_text(encoding="utf-8")
        assert f"=={one.version} " in lock, (
            f"{one.name} is {one.version}, of which {one.program.lock[0]} knows nothing"
        )


def test_locks_hold_hashes_and_no_address(declared):
    for lock in {Path(one.program.lock[0]) for one in declared}:
        text = lock.read_text(encoding="utf-8")
        pins = re.findall(r"(?m)^[a-z0-9_.-]+==\S+(.*(?:\n .*)*)", text)
        assert pins and all("--hash=sha256:" in pin for pin in pins), lock.name
        assert "://" not in text, lock.name
        assert lock.with_suffix(".in").is_file(), f"{lock.name} is made of a file that is not there"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_scripts_compile_and_shadow_nothing(script):
    assert compile(script.read_text(encoding="utf-8"), str(script), "exec")
    locks = "\n".join(path.read_text(encoding="utf-8") for path in HERE.glob("locks/*.txt"))
    packages = {name.replace("-", "_") for name in re.findall(r"(?m)^([a-z0-9_.-]+)==", locks)}
    if (
        script.parent.name == "consumers"
    ):  # their folder comes first on sys.path: `tflite.py` would stand for a module `tflite`
        assert script.stem not in packages


def test_each_known_failure_is_of_third_parties(declared):
    names = {one.name for one in declared}
    known = Ledger.read(HERE / "known.toml").entries
    assert known
    for entry in known:
        assert names & {*entry.consumer, *entry.producer}, f"{entry.title()} names none of them"


@pytest.fixture
def common(monkeypatch):
    """The module that scripts of consumers share, found as a worker process finds it."""
    start = importlib.import_module("compat_matrix.workers.__main__")
    start.load_package(start.PACKAGE, str(HERE.parent / "compat_matrix" / "workers"))
    monkeypatch.syspath_prepend(str(HERE / "consumers"))
    yield importlib.import_module("common")
    for name in [
        name for name in sys.modules if name == "common" or name.split(".")[0] == start.PACKAGE
    ]:
        del sys.modules[name]


def test_common_reads_signatures_of_the_tags_asked(common):
    known = common.signatures(FIXTURE / "model", ["serve"])
    assert {key: [entry.name for entry in inputs] for key, (inputs, _) in known.items()} == {
        "serving_default": ["x"]
    }
    with pytest.raises(KeyError, match=r"\['train'\]; .*\['serve'\]"):
        common.signatures(FIXTURE / "model", ["train"])
    with pytest.raises(FileNotFoundError):
        common.signatures(FIXTURE)


def test_common_refuses_what_a_library_would_cast(common):
    known = common.signatures(FIXTURE / "model")
    dtype = known["serving_default"][0][0].dtype
    given = {"x": tensors.from_numpy(np.zeros((1, 2), dtype))}
    assert common.fitting(known, "serving_default", given) == known["serving_default"]
    for key, inputs, error in (
        ("nothing", given, KeyError),
        ("serving_default", {}, ValueError),
        ("serving_default", {**given, "y": given["x"]}, ValueError),
        ("serving_default", {"x": tensors.from_numpy(np.zeros((1, 2), "int8"))}, TypeError),
    ):
        with pytest.raises(error):
            common.fitting(known, key, inputs)


def test_common_names_what_comes_back(common):
    _, outputs = common.signatures(FIXTURE / "model")["serving_default"]
    one = np.ones(2, np.float32)
    assert (
        common.named(one, outputs).keys()
        == common.named({outputs[0].name: one}, outputs).keys()
        == {outputs[0].name}
    )
    with pytest.raises(ValueError, match="2 values"):
        common.named([one, one], outputs)


def test_a_consumer_of_each_environment_that_is_installed_answers(registry, tmp_path):
    asked = []
    request = json.loads((FIXTURE / "io" / "io.json").read_text(encoding="utf-8"))["requests"][0]
    recorded = tensors.load(FIXTURE / "io" / request["outputs"])
    first = {
        one.program.lock: one for one in reversed(registry.theirs[0])
    }  # of each: several take minutes
    for one in first.values():
        if not (Environment(Path(one.program.lock[0]), one.program.lock[1]).place / DONE).is_file():
            continue
        worker, answer = (
            Worker(home(), one.program, tmp_path / one.name, tmp_path / f"{one.name}.log"),
            tmp_path / "answer.npz",
        )
        try:
            handle = worker.request("load", 600.0, dir=str(FIXTURE / "model"), tags=["serve"])[
                "handle"
            ]
            worker.request(
                "call",
                600.0,
                handle=handle,
                request=request,
                io_dir=str(FIXTURE / "io"),
                outputs=str(answer),
            )
        finally:
            worker.close()
        got = tensors.load(answer)
        assert got.keys() == recorded.keys(), one.name
        for name, tensor in recorded.items():
            np.testing.assert_allclose(
                got[name].array, tensor.array, rtol=1e-5, atol=1e-6, err_msg=one.name
            )
        asked.append(one.name)
    if not asked:
        pytest.skip(
            "no environment of a third party is installed: a matrix run with --plugins third-party"
            " makes them"
        )


@pytest.fixture
def tfjs(common, monkeypatch, tmp_path):
    """The worker of TensorFlow.js in an environment of its own, with a node and an npm that do what
    `npm` below says.
    """
    worker = importlib.import_module("tfjs_worker")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/bin:/usr/bin")
    (tmp_path / "bin").mkdir()

    def npm(does):
        for name, text in (("node", ":"), ("npm", does)):
            path = tmp_path / "bin" / name
            path.write_text(f"#!/bin/sh\n{text}\n")
            path.chmod(0o755)

    worker.npm = npm
    yield worker
    del sys.modules["tfjs_worker"]


def test_npm_packages_are_locked_by_hashes_and_name_no_host(registry):
    lock = json.loads(
        (HERE / "consumers" / "tfjs" / "package-lock.json").read_text(encoding="utf-8")
    )
    found = {
        path.removeprefix("node_modules/"): one for path, one in lock["packages"].items() if path
    }
    assert found and all(
        one["integrity"].startswith("sha512-") and "resolved" not in one for one in found.values()
    )
    version = registry.consumers["tfjs"].version
    assert {one["version"] for name, one in found.items() if name.startswith("@tensorflow/")} == {
        version
    }


def test_npm_packages_are_installed_once_and_whole(tfjs, tmp_path):
    tfjs.npm(
        f'echo "$@" >> {tmp_path / "asked"}; mkdir node_modules; echo "no such package" >&2; exit 1'
    )
    with pytest.raises(RuntimeError, match=r"(?s)npm ci .* failed \(1\):\nno such package"):
        tfjs.packages()
    assert not [path for path in tmp_path.glob("npm-*") if path.is_dir() and path.suffix != ".tmp"]
    tfjs.npm(f'echo "$@" >> {tmp_path / "asked"}; mkdir node_modules')
    place = tfjs.packages()
    assert place == tfjs.packages() and sorted(path.name for path in place.iterdir()) == [
        "node_modules", "package-lock.json", "package.json",
    ]  # fmt: skip
    assert len((tmp_path / "asked").read_text().splitlines()) == 2


def test_without_node_the_cells_say_what_to_install(registry, tmp_path):
    program = replace(
        registry.consumers["tfjs"].program,
        lock=(),
        python=sys.executable,
        environment=(("PATH", str(tmp_path)),),
    )
    worker = Worker(home(), program, tmp_path / "cwd", tmp_path / "log")
    with pytest.raises(NotStarted, match=r"node.* on PATH: .*Node\.js"):
        worker.hello()
    worker.close()
