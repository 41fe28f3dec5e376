"""Plug-ins: found in files and entry points, planned, run, told of; and the pages that say how.

Needs no TensorFlow.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from plugin_world import DOCS, PAGE, ROOT, SAMPLES, ours, page_files, plugin_world, results, run

from compat_matrix.cells import registry
from compat_matrix.cells.consumers import CONSUMERS
from compat_matrix.cells.registry import OURS, PluginError
from compat_matrix.cells.results import read_results
from compat_matrix.plugins import found, probe
from compat_matrix.verdict import Ledger
from savedmodel_common import tensors
from savedmodel_plugin_kit import grammar
from savedmodel_plugin_kit.rules import RULES

PROTOCOL = (DOCS / "exporters/protocol.md").read_text(encoding="utf-8")
LOCKED = (
    'command = ["{python}", "consumer.py"]\nlock = "mine.lock"\nversion = "0.1"\ncapabilities ='
    ' ["tags"]\n'
)


@pytest.fixture
def folder(tmp_path):
    """What somebody has who did what docs/exporters/plugins.md says, and nothing else."""
    return page_files(tmp_path)


def test_a_consumer_written_from_the_page_alone_passes_plugin_check(folder):
    (command,) = re.findall(
        r"^savedmodel-compat (plugin-check) (\"python consumer.py\")$", PAGE, re.MULTILINE
    )
    words = command[1].strip('"').replace("python", sys.executable)
    done = ours(
        [command[0], words, "--json", "--large", "1", "--limit", "600", "--grace", "120"], folder
    )
    record = json.loads(done.stdout)
    states = {one["check"]: (one["state"], one["message"]) for one in record["checks"]}
    assert done.returncode == 0, states
    refused = {name for name, (state, _) in states.items() if state != "passed"}
    assert refused == {"half-plus-two"}, states  # it knows no variables, as the page says


def test_one_that_is_wrong_fails_with_the_mistake_by_its_name(folder):
    text = (folder / "consumer.py").read_text()
    (folder / "consumer.py").write_text(text.replace('{**reply, "id": id}', '{**reply, "id": 0}'))
    done = ours(["plugin-check", f"{sys.executable} consumer.py"], folder)
    assert done.returncode == 1
    assert "hello            FAILED: " in done.stdout and "the id 0" in done.stdout
    assert RULES["P-02"] in done.stdout and re.search(
        r"docs/exporters/protocol.md:\d+", done.stdout
    )


@pytest.fixture
def world(folder):
    """A world without cases and fixtures of ours, in the folder of the plug-ins."""
    return plugin_world(folder)


ASKED = (
    "--plugins",
    "plugins.toml",
    "--consumer",
    "mine",
    "--consumer",
    "numpy_sample=python numpy_consumer.py",
)


def test_exporter_and_consumers_of_the_page_are_cells_of_the_matrix(world):
    """With the ledger of the page: the one known failure is expected, everything else passes."""
    sample = f"numpy_sample={sys.executable} numpy_consumer.py"
    done = run(world, *ASKED[:4], "--consumer", sample, "--producer", "mytrainer")
    seen = {
        cell: record["outcome"]
        for cell, record in results(world).items()
        if record["outcome"] not in ("NOT_RUN", "NOT_APPLICABLE")
    }
    assert done.returncode == 0, done.stdout + done.stderr
    assert seen["linear/mytrainer@1.0/-/produce"] == "PASS"
    for check in ("load", "signatures", "values", "relocate", "checkpoint"):
        assert seen[f"linear/mytrainer@1.0/numpy_sample@1.0/{check}"] == "PASS"
    assert seen["linear/mytrainer@1.0/mine@0.1/load"] == "PASS"
    assert seen["linear/mytrainer@1.0/mine@0.1/values"] == "REJECTED"
    of_mine = {
        cell.rpartition("/")[2] for cell in seen if cell.startswith("scaled/mytrainer@1.0/mine")
    }
    assert of_mine == {"load", "values"}
    provenance = json.loads(
        (world.out / "artifacts/linear/mytrainer@1.0/provenance.json").read_text()
    )
    assert provenance["producer"]["versions"]["numpy_exporter"] == "1.0"
    assert (provenance["title"], provenance["clauses"]) == ("A linear model", ["SIG-01"])
    assert "mine" in (world.out / "report.html").read_text()
    replay = results(world)["linear/mytrainer@1.0/numpy_sample@1.0/values"]["replay"]
    assert (
        f"--plugins {world.root}/plugins.toml" in replay
        and str(world.root / "numpy_consumer.py") in replay
    )


def test_artifacts_that_exist_are_a_producer(world):
    sample = f"numpy_sample={sys.executable} numpy_consumer.py"
    assert run(world, *ASKED[:2], "--producer", "mytrainer", "--consumer", sample).returncode == 0
    artifacts = world.root / "made"
    artifacts.mkdir()
    (world.out / "artifacts/linear/mytrainer@1.0").rename(artifacts / "linear")
    provenance = json.loads((artifacts / "linear/provenance.json").read_text())
    provenance["producer"]["versions"]["tensorflow"] = "1.0"
    (artifacts / "linear/provenance.json").write_text(json.dumps(provenance))
    done = run(world, "--producer", "theirs=made", "--consumer", sample, out="again")
    assert done.returncode == 0, done.stdout + done.stderr
    assert results(world, "again")["linear/theirs@1.0/numpy_sample@1.0/values"]["outcome"] == "PASS"


@pytest.mark.parametrize(
    ("status", "outcome", "message"),
    [
        ("65", "REJECTED", "no such luck"),
        ("3", "CALL_ERROR", "exit status 3: no such luck"),
        ("0", "CALL_ERROR", "there is no model"),
    ],
)
def test_an_exporter_that_does_not_write_says_why(world, status, outcome, message):
    program = f"import sys\nprint('no such luck', file=sys.stderr)\nsys.exit({status})\n"
    (world.root / "numpy_exporter.py").write_text(program)
    (world.root / "known.toml").write_text("schema = 1\n")
    done = run(world, *ASKED[:2], "--producer", "mytrainer", "--check", "produce")
    assert done.returncode == 1, done.stdout + done.stderr
    record = results(world)["linear/mytrainer@1.0/-/produce"]
    assert (record["outcome"], message in record["message"]) == (outcome, True), record


def distribution(site, name, group, value):
    """An installed distribution with one entry point."""
    folder = site / f"{name}-1.2.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
    (folder / "entry_points.txt").write_text(f"[savedmodel_compat.{group}]\n{name} = {value}\n")


def test_entry_points_are_found_and_a_broken_one_costs_its_own_cells(world):
    distribution(world.site, "worker_class", "consumers", "numpy_consumer:NumpyWorker")
    distribution(world.site, "broken", "consumers", "broken_module:CONSUMER")
    (world.site / "broken_module.py").write_text("import no_such_module\n")
    (world.site / "numpy_consumer.py").write_bytes((world.root / "numpy_consumer.py").read_bytes())
    words = (
        "--consumer",
        "worker_class",
        "--consumer",
        "broken",
        "--producer",
        "mytrainer",
        "--case",
        "scaled",
    )
    done = run(world, "--plugins", "plugins.toml", *words)
    seen = results(world)
    assert done.returncode == 4, done.stdout + done.stderr
    assert seen["scaled/mytrainer@1.0/worker_class@1.0/values"]["outcome"] == "PASS"
    record = seen["scaled/mytrainer@1.0/broken@unknown/values"]
    assert record["outcome"] == "SETUP_ERROR"
    for words in (
        "entry point savedmodel_compat.consumers: broken = broken_module:CONSUMER of broken 1.2",
        "no_such_module",
    ):
        assert words in record["message"]


def test_the_ledger_of_a_plug_in_is_rewritten_from_its_cells(world):
    """What ours says of others is not its business."""
    (world.root / "known.toml").write_text("schema = 1\n")
    (world.root / "plugins.toml").write_text(
        (world.root / "plugins.toml").read_text().replace('"load", ', "")
    )
    words = ("--plugins", "plugins.toml", "--consumer", "mine", "--producer", "mytrainer")
    assert run(world, *words).returncode == 1
    update = [
        "matrix",
        "expect",
        "update",
        "out",
        "--expectations",
        "known.toml",
        "--reason",
        "It knows two ops.",
    ]
    done = ours(update, world.root)
    assert done.returncode == 0, done.stderr
    # One entry, whose list of cases has both.
    assert (world.root / "known.toml").read_text().count("[[expect]]") == 1
    assert run(world, *words).returncode == 0


def test_a_lock_is_an_environment_of_its_own(folder, monkeypatch):
    """Made once, and not before it is needed; the interpreter of the consumer is in it.

    The lock here is of nothing.
    """
    monkeypatch.setenv("SAVEDMODEL_COMPAT_HOME", str(folder / "home"))
    (folder / "mine.lock").write_text("# nothing\n")
    (folder / "plugins.toml").write_text(f"[consumer.mine]\n{LOCKED}")
    places = []
    for _ in range(2):
        made = found.registry(found.Asked(file=folder / "plugins.toml")).consumers["mine"]
        assert places or not (folder / "home").exists()
        places.append(made.program.words(probe.home())[0])
        assert Path(places[-1]).parent.parent.parent == folder / "home" / "environments"
        assert Path(places[-1]).exists()
    assert len(list((folder / "home" / "environments").glob("plugin-mine-*/bin"))) == 1


def test_a_script_finds_our_modules_whatever_its_python_has(folder):
    """`{workers}`: the sample consumer with our package out of sight."""
    script = (
        "from savedmodel_compat_workers import protocol\nclass W(protocol.Worker):\n    name ="
        " 'bare'\nprotocol.serve(W)\n"
    )
    (folder / "bare.py").write_text(script)
    (folder / "plugins.toml").write_text(
        '[consumer.mine]\ncommand = ["{python}", "{workers}", "bare.py"]\n'
    )
    made = found.registry(found.Asked(file=folder / "plugins.toml")).consumers["mine"]
    assert (made.program.broken, made.capabilities) == ("", frozenset())


@pytest.mark.parametrize(
    ("tolerance", "outcome"),
    [("", "FAIL_VALUE"), ('tolerance = {atol = 2.0, reason = "rounds to even numbers"}', "PASS")],
)
def test_a_consumer_that_computes_in_its_own_way_says_how_far_it_is_off(folder, tolerance, outcome):
    worker = (SAMPLES / "numpy_consumer.py").read_text()
    (folder / "consumer.py").write_text(worker.replace("a + b,", "np.rint(a + b),"))
    text = f'[consumer.rounding]\ncommand = ["{{python}}", "consumer.py"]\n{tolerance}\n'
    text += (
        '[producer.plain]\ncommand = ["{python}", "numpy_exporter.py"]\nversion = "1"\nexports ='
        ' ["linear"]\n'
    )
    (folder / "plugins.toml").write_text(text)
    cell = "linear/plain@1/rounding@1.0/values"
    done = run(plugin_world(folder), "--plugins", "plugins.toml", "--cell", cell)
    (result,) = [
        result for result in read_results(folder / "out" / "results.jsonl") if result.cell == cell
    ] or [done.stderr]
    assert str(result.outcome) == outcome, result.message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[consumer.a]\ncommand = ["x"]\ntolerance = {atol = 1.0}', "tolerance: has no reason"),
        ('[consumer.a]\ncommand = ["x"]\ntolerance = {reason = "so"}', "rtol and atol are 0 and 0"),
        ('[consumer.tf2]\ncommand = ["x"]', "is a name of savedmodel-compat's own"),
        ('[producer.fixture]\ncommand = ["x"]', "is a name of savedmodel-compat's own"),
        ('[consumer.a-b]\ncommand = ["x"]', "is not a name of a consumer"),
        ("[consumer.a]\n", "consumer a: has no command"),
        ('[consumer.a]\ncomand = ["x"]', "unknown field 'comand' (known: command,"),
        ('[consumer.a]\ncommand = ["x"]\nversion = "one"', "version: Invalid version"),
        (
            '[consumer.a]\ncommand = ["x"]\ncapabilities = ["fly"]',
            "capabilities holds 'fly'; known: functions",
        ),
        ('[consumer.a]\ncommand = ["x"]\nchecks = ["vibes"]', "checks holds 'vibes'"),
        ('[consumer.a]\ncommand = ["x"]\nlock = "none.lock"', "lock: there is no file"),
        (
            '[consumer.a]\ncommand = ["x"]\ntensorflow = true\nversion = "1"',
            "the version and the interpreter are the runtime's",
        ),
        ('[producer.a]\ncommand = ["{python}", "plugins.toml"]\nversion = "1"', "has no exports"),
        ('[producer.a]\ncommand = ["{python}", "plugins.toml"]\nexports = ["x"]', "has no version"),
        ('[producer.a]\nartifacts = "nowhere"', "no folder"),
        ('expectations = "none.toml"', "expectations: there is no file"),
        ("schema = 2", "schema is 2, this program reads 1"),
        ("[consumer.a", "plugins.toml: "),
    ],
)
def test_a_wrong_file_is_told_with_its_place(tmp_path, text, said):
    (tmp_path / "plugins.toml").write_text(text)
    with pytest.raises(PluginError) as caught:
        found.registry(found.Asked(file=tmp_path / "plugins.toml"))
    assert said in str(caught.value) and "plugins.toml" in str(caught.value)


def test_a_wrong_file_is_a_usage_error(folder):
    (folder / "plugins.toml").write_text('[consumer.tf2]\ncommand = ["x"]')
    done = ours(["matrix", "run", "--dry-run", "--plugins", "plugins.toml"], folder)
    assert done.returncode == 64 and "own: " in done.stderr


def test_pyproject_is_asked_by_name_only(folder, monkeypatch):
    (folder / "pyproject.toml").write_text(
        '[tool.savedmodel-compat.consumer.mine]\ncommand = "{python} consumer.py"\nversion ='
        ' "3"\ncapabilities = []\n'
    )
    monkeypatch.chdir(folder)
    assert found.registry(found.Asked()) == OURS
    assert found.registry(found.Asked(("mine",))).consumers["mine"].version == "3"


def test_an_entry_point_cannot_stand_in_for_ours(tmp_path, monkeypatch):
    distribution(tmp_path, "tf2", "consumers", "json:dumps")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert [point.name for point in found.points(found.CONSUMERS_GROUP)] == ["tf2"]
    assert found.registry(found.Asked(("tf2",))) == OURS
    assert found.command_of("tf2").command[-1] == "tf2_worker"


def test_a_consumer_that_nobody_declares_is_a_usage_error(folder):
    done = ours(["matrix", "run", "--dry-run", "--consumer", "nobody"], folder)
    assert done.returncode == 64 and "nobody" in done.stderr and "c_api," in done.stderr, (
        done.stderr
    )


def test_what_a_plug_in_was_registered_with_it_must_say(folder, monkeypatch):
    """A cell must not name one version and ask another."""
    text = (folder / "plugins.toml").read_text()
    (folder / "plugins.toml").write_text(text.replace('version = "0.1"', 'version = "0.2"'))
    world = plugin_world(folder)
    run(
        world,
        "--plugins",
        "plugins.toml",
        "--consumer",
        "mine",
        "--producer",
        "mytrainer",
        "--case",
        "scaled",
    )
    record = results(world)["scaled/mytrainer@1.0/mine@0.2/load"]
    assert (
        record["outcome"] == "SETUP_ERROR"
        and "0.2" in record["message"]
        and "0.1" in record["message"]
    )


def test_a_registry_goes_through_a_file(folder, tmp_path):
    made = found.registry(found.Asked(file=folder / "plugins.toml"))
    made.write(tmp_path)
    again = registry.read(tmp_path)
    assert (again.consumers, again.producers) == (made.consumers, made.producers)
    OURS.write(tmp_path)
    assert registry.read(tmp_path) == OURS


def test_a_pattern_of_the_ledger_means_our_consumers():
    """Else our known failures would be expected of programs that nobody here has seen."""
    text = (
        'schema = 1\n[[expect]]\ncase = "*"\nproducer = "*"\nconsumer = "*"\ncheck = "*"\noutcome ='
        ' "CRASH"\nkind = "bug"\n'
    )
    (entry,) = Ledger.parse(text + 'reason = "x"\nadded = 2025-01-31\n').entries
    assert {name for name in (*CONSUMERS, "mine", "serving") if entry.asks(name)} == set(CONSUMERS)


# The page of the protocol
# ---------------------------------------------------------------------------------------------


def test_the_page_has_every_rule_and_no_other():
    assert dict(re.findall(r"^\* \*\*(P-\d\d)\*\* (.*)$", PROTOCOL, re.MULTILINE)) == RULES


def test_the_schema_is_that_of_the_grammar():
    schema = json.loads((ROOT / "compat_matrix" / "schemas" / "protocol.schema.json").read_text())
    assert schema == grammar.as_json_schema(), "python -m savedmodel_plugin_kit writes it"


def test_the_table_of_messages_is_the_grammar():
    section = PROTOCOL[PROTOCOL.index("## Messages") : PROTOCOL.index("## Capabilities")]
    rows = re.findall(r"^\| `(\w+)` \|([^|]*)\|([^|]*)\|$", section, re.MULTILINE)
    told = {
        op: [re.findall(r"`(\w+)`", side) for side in sides]
        for op, *sides in rows
        if op in grammar.MESSAGES
    }
    assert told == {
        op: [list(asked), list(answered)] for op, (asked, answered, _) in grammar.MESSAGES.items()
    }


def test_every_dtype_is_told_as_it_travels():
    """Section Tensors names those that have no NumPy type."""
    section = PROTOCOL[PROTOCOL.index("## Tensors") :]
    carried = {
        one: carrier
        for one, carrier in tensors.CARRIERS.items()
        if one != carrier and not one.startswith("float4")
    }
    assert carried
    for dtype, carrier in carried.items():
        family = re.sub(r"_e.*", "_*", dtype)
        assert re.search(rf"- {carrier}:[^\n]*`{re.escape(family)}`", section), dtype


def replayed(command, tmp_path, environment):
    """Send the requests of the page to a program; what it answers beside what the page says."""
    model = ROOT / "fixtures_v1" / "half_plus_two"
    known = {
        "$MODEL": str(model / "model"),
        "$IO": str(model / "io"),
        "$OUT": str(tmp_path / "out.npz"),
    }
    (block,) = re.findall(r"```replay\n(.*?)```", PROTOCOL, re.DOTALL)
    for name, value in known.items():
        block = block.replace(name, value)
    lines = block.splitlines()
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    environment = {**environment, "SAVEDMODEL_COMPAT_FD": f"{theirs_in},{theirs_out}"}
    with subprocess.Popen(
        command, env=environment, pass_fds=(theirs_in, theirs_out), cwd=tmp_path
    ) as process:
        os.close(theirs_in)
        os.close(theirs_out)
        with os.fdopen(ours_out, "w", buffering=1) as send, os.fdopen(ours_in) as receive:
            for asked, answered in zip(lines[::2], lines[1::2]):
                send.write(asked[2:] + "\n")
                reply = receive.readline()
                yield json.loads(answered[2:]), json.loads(reply)
        process.wait()


def check_replay(pairs):
    count = 0
    for wanted, got in pairs:
        count += 1
        for name, value in wanted.items():
            assert name in got and (value == "…" or got[name] == value), (wanted, got)
    assert count == 10


def test_the_examples_of_the_page_are_what_happens(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    check_replay(
        replayed([sys.executable, str(SAMPLES / "numpy_consumer.py")], tmp_path, environment)
    )


@pytest.mark.tensorflow
@pytest.mark.parametrize("consumer", ["tf2", "c_api", "reference"])
def test_the_examples_of_the_page_are_what_our_workers_do(consumer, tmp_path):
    from compat_matrix.runtimes.runtime import local_runtime
    from compat_matrix.runtimes.worker import command, environment

    program = CONSUMERS[consumer].program
    check_replay(replayed(command(local_runtime(), program), tmp_path, environment(program)))


@pytest.mark.tensorflow
@pytest.mark.parametrize("consumer", ["c_api", "cpp", "reference", "tf2", "v1_session"])
def test_our_own_workers_keep_the_rules(consumer):
    from savedmodel_plugin_kit.run import FAILED, Settings, check

    outcomes = check(found.command_of(consumer), Settings(600.0, 120.0, 1))
    assert [(one.check, one.message) for one in outcomes if one.state in (FAILED, "defect")] == []
