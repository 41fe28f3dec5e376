"""A small world to run the matrix in: two cases, one fixture, a TensorFlow that is only metadata,
workers from a script.
"""

import datetime
import json
import os
import shutil
import signal
import sys
from pathlib import Path

from fork_server import ForkServer

REPO = Path(__file__).resolve().parents[2]
VERSION = "2.99.0"
TODAY = datetime.date(2025, 6, 1)

CASE = '''"""Title of the case."""
CLAUSES = ("SIG-01",)
FEATURES = ("signatures",)
{constants}

def build(tf, work):
    raise AssertionError("not built in these tests")


def requests(np):
    return {requests}
'''
FAIL = {"outcome": "LOAD_ERROR", "error_class": "x.NotFoundError", "message": "no op Foo"}
# What a run imports. Tests of the start of a program start one, and so do those that interrupt it.
COMMANDS = ForkServer(
    *(
        f"compat_matrix.{name}"
        for name in ("commands.gate", "commands.matrix", "plan.planning", "pytest_plugin")
    ),
    *(f"compat_matrix.{name}" for name in ("engine.predict", "report.junit", "report.progress")),
    "savedmodel_tools.skew.naming",
    *("_pytest.junitxml", "compiled_templates", "numpy", "psutil", "rich.live", "tomlkit"),
    environment={key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    | {"PYTHONPATH": str(REPO)},
)
SIGNATURE, FUNCTION = '("serving_default", {"x": 1})', '("f", (1,), {})'


class World:
    """Folders ``cases``, ``fixtures``, ``site`` and output folders under one root; commands run as
    processes.

    The processes are forks of one that has imported what they import."""

    def __init__(self, root):
        self.root = root
        self.cases, self.fixtures, self.site = root / "cases", root / "fixtures", root / "site"
        self.ledger = root / "ledger.toml"
        self.script = root / "script.json"
        self.out = root / "out"
        for folder in (self.cases, self.fixtures, self.site):
            folder.mkdir()
        self.tensorflow(VERSION)
        self.cpp(False)
        self.case("alpha", [SIGNATURE, FUNCTION])
        self.case("beta", [FUNCTION], 'CHECKS = ("load", "values")')
        self.fixture("old")
        self.expect("")
        self.behave()

    def tensorflow(self, version):
        """The local runtime has this TensorFlow; None: none, whatever else is installed."""
        for folder in self.site.glob("tensorflow*.dist-info"):
            (folder / "METADATA").unlink()
            folder.rmdir()
        folder = self.site / f"tensorflow-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: tensorflow\nVersion: {version}\n"
        )

    def cpp(self, there):
        """Whether there is a C++ loader, whatever is installed beside the harness; nothing is ever
        compiled here.
        """
        why = None if there else "no wheel in this world"
        lines = [
            "from compat_matrix.runtimes.native import build",
            f"build.unsupported = lambda runtime: {why!r}",
        ]
        lines += ["build.why_not = build.unsupported", "build.build = lambda runtime, report: None"]
        (self.site / "sitecustomize.py").write_text("\n".join(lines) + "\n")

    def case(self, name, requests, constants=""):
        text = CASE.format(constants=constants, requests=f"[{', '.join(requests)}]")
        (self.cases / f"{name}.py").write_text(text)

    def fixture(self, name, version="1.15.5", kinds=("signature",), **changes):
        folder = self.fixtures / name
        (folder / "io").mkdir(parents=True)
        producer = {"name": "fixture", "versions": {"tensorflow": version}}
        (folder / "provenance.json").write_text(
            json.dumps({"schema": 1, "case": name, "producer": producer, **changes})
        )
        requests = [{"id": f"r{i}", "kind": kind} for i, kind in enumerate(kinds)]
        (folder / "io" / "io.json").write_text(json.dumps({"schema": 1, "requests": requests}))
        return folder

    def expect(self, *entries, head="schema = 1\n"):
        self.ledger.write_text(head + "\n".join(entries))

    def behave(self, *script):
        self.script.write_text(json.dumps(script))

    def executed(self):
        """(process id, cell id) of every execution so far."""
        log = self.root / "executed.txt"
        return (
            [tuple(line.split()) for line in log.read_text().splitlines()] if log.exists() else []
        )

    def environment(self, double=True):
        paths = [self.site, Path(__file__).parent, REPO] if double else [self.site, REPO]
        kept = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("PYTEST", "PYTHON", "COV_", "MATRIX"))
        }
        ours = {"PYTHONPATH": os.pathsep.join(map(str, paths)), "MATRIX_DOUBLE": str(self.script)}
        return {**kept, **ours, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}

    def command(self, *arguments, **options):
        """A ``savedmodel-compat`` command as a process."""
        return self.process(
            [sys.executable, "-m", "savedmodel_compat", *map(str, arguments)], **options
        )

    def matrix(self, verb, *arguments, **options):
        """``matrix VERB`` on this world's cases, fixtures and ledger."""
        world = (
            "--cases-dir",
            self.cases,
            "--fixtures",
            self.fixtures,
            "--expectations",
            self.ledger,
        )
        return self.command("matrix", *verb.split(), *world, *arguments, **options)

    def run(self, *arguments, pytest=(), out=None, **options):
        """``matrix run`` with the scripted workers, in one process unless the arguments say
        otherwise.
        """
        processes = () if "-n" in arguments else ("-n", "1")
        behind = ("--", "-p", "matrix_double", *pytest)
        return self.matrix(
            "run", "--out", out or self.out, *processes, *arguments, *behind, **options
        )

    def pytest(self, *arguments, **options):
        """pytest itself on the plan in ``out``."""
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-c",
            os.devnull,
            "-p",
            "compat_matrix.pytest_plugin",
            "-p",
            "matrix_double",
        ]
        place = ["--rootdir", str(self.out), "--confcutdir", str(self.out)]
        return self.process([*command, *place, *map(str, arguments)], **options)

    def process(self, command, cwd=None):
        assert command[0] == sys.executable
        done = COMMANDS.run(
            command[1:], cwd=cwd or self.root, environment=self.environment(), limit=120
        )
        assert done.returncode not in (-signal.SIGKILL, -signal.SIGALRM)
        return done

    def results(self, out=None):
        """cell id -> record of ``results.jsonl``."""
        lines = ((out or self.out) / "results.jsonl").read_text().splitlines()
        return {record["cell"]: record for record in map(json.loads, lines)}

    def summary(self, out=None):
        return json.loads(((out or self.out) / "summary.json").read_text())


def small_world(root):
    """Two artifacts of one case with two checks, so that a run is short."""
    world = World(root)
    (world.cases / "alpha.py").unlink()
    shutil.rmtree(world.fixtures / "old")
    return world


def cell(consumer, check, artifact=f"beta/tf2@{VERSION}"):
    return f"{artifact}/{consumer}@{VERSION}/{check}"


def outcomes(world, out=None):
    return {name: record["outcome"] for name, record in world.results(out).items()}


def entry(
    case,
    producer="*",
    consumer="*",
    check="*",
    outcome="LOAD_ERROR",
    error_class="NotFoundError",
    **more,
):
    """The TOML text of a ledger entry."""
    fields = {
        "case": case,
        "producer": producer,
        "consumer": consumer,
        "check": check,
        "outcome": outcome,
    }
    if error_class:
        fields["error_class"] = error_class
    fields |= {"kind": "bug", "reason": "known", "added": datetime.date(2025, 1, 31), **more}
    words = (
        f"{key} = {value.isoformat() if isinstance(value, datetime.date) else json.dumps(value)}"
        for key, value in fields.items()
    )
    return "[[expect]]\n" + "\n".join(words) + "\n"
