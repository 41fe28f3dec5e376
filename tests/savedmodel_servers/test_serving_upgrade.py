"""`serving upgrade` with stand-ins as processes: real models and servers, a planted incompatibility
for every verdict.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner

from compat_matrix.runtimes import resolve
from compat_matrix.runtimes.places import RuntimeTrouble
from reference_impl.format import schema
from savedmodel_common import provenance, tensors
from savedmodel_common.exit_codes import ExitCode
from savedmodel_compat.cli import main
from savedmodel_servers.upgrade.asking import Pair
from savedmodel_servers.upgrade.sides import (
    EXPORTERS_FIRST,
    NEW,
    OLD,
    SERVERS_FIRST,
    Place,
)
from savedmodel_servers.upgrade.verdict import (
    Way,
    exit_code,
    from_pairs,
    line,
)

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "fixtures_v1"
SCHEMA = json.loads((ROOT / "compat_matrix" / "schemas" / "upgrade.schema.json").read_text())
ABSENT = "savedmodel-compat.invalid/serving:2.19.1"
HERE, BEFORE = "standin@local", "2.15"
BETWEEN = 2000  # GraphDef versions: 2.15 has 1645, 2.21 has 2474

needs_tensorflow = pytest.mark.tensorflow


def upgrade(tmp_path: Path, *arguments: Any, code: int = 0) -> dict[str, Any]:
    """Run the command; returns upgrade.json. The last line of what it prints is the verdict."""
    out = tmp_path / "out"
    done = CliRunner().invoke(main, ["serving", "upgrade", "--out", str(out), *map(str, arguments)])
    assert done.exit_code == code, done.output
    record: dict[str, Any] = json.loads((out / "upgrade.json").read_text())
    jsonschema.Draft202012Validator(SCHEMA).validate(record)
    assert done.stdout.splitlines()[-1] == f"verdict: {record['verdict']}"
    assert record["exit_code"] == code
    return record


def export(folder: Path, change: Callable[[Any], None] | None = None) -> Path:
    """An artifact of half_plus_two, with a changed SavedModel message."""
    shutil.copytree(FIXTURES / "half_plus_two", folder)
    if change is not None:
        path = folder / "model" / "saved_model.pb"
        message = schema.parse(schema.SavedModel, path.read_bytes())
        change(message)
        path.write_bytes(schema.serialize(message))
        facts = json.loads((folder / "provenance.json").read_text())
        (folder / "provenance.json").write_text(
            json.dumps({**facts, "files": provenance.hash_files(folder)})
        )
    return folder


def needs_new_consumer(message: Any) -> None:
    message.meta_graphs[0].graph_def.versions.min_consumer = BETWEEN


def refuses_this_consumer(message: Any) -> None:
    import tensorflow as tf

    message.meta_graphs[0].graph_def.versions.bad_consumers.append(tf.version.GRAPH_DEF_VERSION)


def without_signature(message: Any) -> None:
    del message.meta_graphs[0].signature_def["serving_default"]


@pytest.fixture(scope="module")
def before() -> str:
    """The stand-in of an earlier TensorFlow."""
    try:
        runtime = resolve.resolve(BEFORE)
    except RuntimeTrouble as error:
        pytest.skip(str(error))
    return f"standin@{runtime.name}"


def works(record: dict[str, Any]) -> dict[str, Any]:
    return {way["order"]: way["works"] for way in record["orders"]}


@needs_tensorflow
def test_two_servers_and_two_exports_that_fit(tmp_path: Path) -> None:
    exports = export(tmp_path / "a"), export(tmp_path / "b")
    record = upgrade(tmp_path, *exports, "--old-server", HERE, "--new-server", HERE)
    assert record["verdict"] == "either"
    assert [pair["works"] for pair in record["pairs"]] == [True] * 4
    assert all(pair["compared"] == ["serve_grpc", "serve_rest"] for pair in record["pairs"])
    for way in record["orders"]:
        assert [(step["server"], step["export"]) for step in way["steps"]][::4] == [
            ("old", "old")
        ] * 2
        assert len(way["steps"]) == 5
        assert all(
            min(step["answers"].values()) > 0 and len(step["answers"]) == 2 for step in way["steps"]
        )


@needs_tensorflow
def test_an_export_that_old_servers_refuse_wants_new_servers_first(
    tmp_path: Path, before: str
) -> None:
    exports = export(tmp_path / "a"), export(tmp_path / "b", needs_new_consumer)
    record = upgrade(tmp_path, *exports, "--old-server", before, "--new-server", HERE)
    assert record["verdict"] == "upgrade servers first"
    assert works(record) == {SERVERS_FIRST: True, EXPORTERS_FIRST: False}
    reason = record["orders"][1]["reason"]
    assert "the old server" in reason
    assert f"GraphDef min consumer version {BETWEEN} above current version" in reason


@needs_tensorflow
def test_an_export_that_new_servers_refuse_wants_new_exporters_first(
    tmp_path: Path, before: str
) -> None:
    exports = export(tmp_path / "a", refuses_this_consumer), export(tmp_path / "b")
    servers = ("--old-server", before, "--new-server", HERE)
    record = upgrade(
        tmp_path, *exports, *servers, "--order", "servers", code=1
    )  # the order that does not work
    assert record["verdict"] == "exporters first"
    assert works(record) == {SERVERS_FIRST: False, EXPORTERS_FIRST: True}


@needs_tensorflow
def test_clients_whose_signature_is_gone_are_noticed_under_load(tmp_path: Path) -> None:
    """Each pair answers its own requests; a client goes on asking for what the new export no longer
    has.
    """
    gone = export(tmp_path / "b", without_signature)
    questions = json.loads((gone / "io" / "io.json").read_text())
    questions["requests"] = [
        one for one in questions["requests"] if one["signature"] != "serving_default"
    ]
    assert questions["requests"]
    (gone / "io" / "io.json").write_text(json.dumps(questions))
    facts = json.loads((gone / "provenance.json").read_text())
    (gone / "provenance.json").write_text(
        json.dumps({**facts, "files": provenance.hash_files(gone)})
    )
    record = upgrade(
        tmp_path, export(tmp_path / "a"), gone, "--old-server", HERE, "--new-server", HERE, code=1
    )
    assert [pair["works"] for pair in record["pairs"]] == [True] * 4
    assert record["verdict"].startswith("neither, because ")
    for way in record["orders"]:
        assert "request serving_default-" in way["reason"] and "the new export" in way["reason"]
        assert '"serving_default" not found' in way["reason"]


@needs_tensorflow
def test_a_server_that_ends_in_the_switch_loses_its_clients(tmp_path: Path) -> None:
    program = tmp_path / "server"
    subprocess.run(
        [sys.executable, "-m", "savedmodel_standin", "executable", f"{program}.real"],
        cwd=ROOT,
        check=True,
    )
    program.write_text(f'#!/bin/sh\nSTANDIN_ABORT_AT_LOAD=model exec {program}.real "$@"\n')
    program.chmod(0o755)
    exports = export(tmp_path / "a"), export(tmp_path / "b")
    record = upgrade(
        tmp_path, *exports, "--old-server", HERE, "--new-server", f"binary:{program}", code=1
    )
    assert [pair["works"] for pair in record["pairs"]] == [True] * 4
    for way in record["orders"]:
        assert "the new server" in way["reason"]
        assert "SIGABRT" in way["reason"]


@needs_tensorflow
def test_what_could_not_be_asked_is_no_verdict(tmp_path: Path) -> None:
    exports = export(tmp_path / "a"), export(tmp_path / "b")
    record = upgrade(tmp_path, *exports, "--old-server", HERE, "--new-server", ABSENT, code=3)
    assert record["verdict"].startswith("not decided") and "the old export" in record["verdict"]
    assert "not be asked" in record["verdict"] and "to provide it" in record["verdict"]


@needs_tensorflow
def test_a_case_that_both_tensorflows_write(tmp_path: Path, before: str) -> None:
    record = upgrade(
        tmp_path, "--case", "fn_flat", "--from", before.partition("@")[2], "--to", "local"
    )
    assert record["verdict"] == "either"
    versions = {server["tensorflow"] for server in record["servers"].values()}
    assert len({version.partition("+")[0] for version in versions}) == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "name the models"),
        (("--case", "fn_flat", "--from", "2.15"), "--case needs --from and --to"),
        ((FIXTURES / "half_plus_two",), "name the models"),
        (("--case", "fn_flat", "--case", "nope", "--from", "local", "--to", "local"), "nope"),
        (
            (FIXTURES / "half_plus_two", FIXTURES / "half_plus_two", "--from", "2.15"),
            "name the new server",
        ),
        (
            (
                FIXTURES / "half_plus_two",
                FIXTURES / "half_plus_two",
                "--old-server",
                "remote:a:1,2/m",
                "--to",
                "local",
            ),
            "is not switched",
        ),
        (
            (
                FIXTURES / "half_plus_two",
                FIXTURES / "half_plus_two",
                "--from",
                "9.9",
                "--to",
                "local",
            ),
            "no runtime is called 9.9",
        ),
    ],
)
def test_command_lines_that_mean_nothing(
    tmp_path: Path, arguments: tuple[Any, ...], said: str
) -> None:
    command = [
        sys.executable,
        "-m",
        "savedmodel_compat",
        "serving",
        "upgrade",
        *map(str, arguments),
    ]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, said in done.stderr) == (64, True), done.stderr


def pairs(**broken: str) -> list[Pair]:
    """The four pairs of one model; ``old_new="..."`` breaks the old server with the new export, a
    "?" in front: not asked.
    """
    found = []
    for server in (OLD, NEW):
        for side in (OLD, NEW):
            text = broken.get(f"{server}_{side}", "")
            facts = {"unknown": text[1:]} if text.startswith("?") else {"failed": text}
            found.append(Pair("m", Place(server, side), **facts, compared=("serve_grpc",)))
    return found


@pytest.mark.parametrize(
    ("broken", "verdict", "code"),
    [
        ({}, "either", 0),
        ({"old_new": "no"}, "upgrade servers first", 0),
        ({"new_old": "no"}, "exporters first", 0),
        (
            {"old_old": "no"},
            "neither, because m: the old server with the old export does not work (no)",
            1,
        ),
        (
            {"old_new": "a\nb", "new_old": "c"},
            (
                "neither, because upgrade servers first: m: the new server with the old export does"
                " not work (c); exporters first: m: the old server with the new export does not"
                " work (a b)"
            ),
            1,
        ),
        (
            {"old_new": "no", "new_old": "?x"},
            (
                "not decided, because upgrade servers first: m: the new server with the old export"
                " could not be asked (x); exporters first fails: m: the old server with the new"
                " export does not work (no)"
            ),
            3,
        ),
        (
            {"new_new": "?x"},
            "not decided, because m: the new server with the new export could not be asked (x)",
            3,
        ),
        (
            {"old_new": "?x"},
            "not decided, because m: the old server with the new export could not be asked (x)",
            3,
        ),
    ],
)
def test_the_verdict_of_the_pairs(broken: dict[str, str], verdict: str, code: int) -> None:
    ways = [from_pairs(order, pairs(**broken)) for order in (SERVERS_FIRST, EXPORTERS_FIRST)]
    for way in ways:
        if way.works is None and not way.reason:
            way.works = True
    assert (line(ways), int(exit_code(ways))) == (verdict, code)


def test_an_order_that_is_wanted() -> None:
    ways = [Way(SERVERS_FIRST, True), Way(EXPORTERS_FIRST, False, "no")]
    assert exit_code(ways, SERVERS_FIRST) is ExitCode.AS_EXPECTED
    assert exit_code(ways, EXPORTERS_FIRST) is ExitCode.UNEXPECTED
    assert (
        exit_code([Way(SERVERS_FIRST, True), Way(EXPORTERS_FIRST, None, "x")], EXPORTERS_FIRST)
        is ExitCode.INCOMPLETE
    )
    assert exit_code([Way(SERVERS_FIRST, None, "x", trouble=True)]) is ExitCode.HARNESS_ERROR


def test_no_pair_is_no_verdict() -> None:
    ways = [from_pairs(order, []) for order in (SERVERS_FIRST, EXPORTERS_FIRST)]
    assert exit_code(ways) is ExitCode.INCOMPLETE
    assert "was not asked" in line(ways)


def subtracts(message: Any) -> None:
    (node,) = [one for one in message.meta_graphs[0].graph_def.node if one.name == "y"]
    assert node.op in ("Add", "AddV2")
    node.op = "Sub"


@needs_tensorflow
def test_an_export_that_answers_old_requests_otherwise_is_noticed_under_load(
    tmp_path: Path,
) -> None:
    """Each pair gives the answers recorded with its export.

    The new export has none for what clients ask.
    """
    other = export(tmp_path / "b", subtracts)
    questions = json.loads((other / "io" / "io.json").read_text())
    asked = {**questions["requests"][0], "id": "another-0"}
    (other / "io" / "io.json").write_text(json.dumps({**questions, "requests": [asked]}))
    outputs = tensors.load(other / "io" / asked["outputs"])
    right = {
        name: tensors.Tensor(one.dtype, one.array - one.array.dtype.type(4))
        for name, one in outputs.items()
    }
    tensors.save(other / "io" / asked["outputs"], right)
    facts = json.loads((other / "provenance.json").read_text())
    (other / "provenance.json").write_text(
        json.dumps({**facts, "files": provenance.hash_files(other)})
    )
    record = upgrade(
        tmp_path, export(tmp_path / "a"), other, "--old-server", HERE, "--new-server", HERE, code=1
    )
    assert [pair["works"] for pair in record["pairs"]] == [True] * 4
    for way in record["orders"]:
        assert "request " in way["reason"] and "the new export" in way["reason"]
        assert ": element [" in way["reason"] and "max abs error 4" in way["reason"]


@needs_tensorflow
def test_cases_without_a_way_are_named(tmp_path: Path, before: str) -> None:
    """keras_export needs Keras 3, and nothing of fn_partial can be asked of a server."""
    runtime = before.partition("@")[2]
    record = upgrade(
        tmp_path,
        "--case",
        "keras_export",
        "--case",
        "fn_partial",
        "--from",
        runtime,
        "--to",
        "local",
        code=3,
    )
    assert record["pairs"] == []
    assert [text.partition(":")[0] for text in record["left_out"]] == ["fn_partial", "keras_export"]
    assert "tensorflow>=2.16" in record["left_out"][1]
    assert record["verdict"].startswith("not decided, because ")
