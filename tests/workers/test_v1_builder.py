"""The producer v1_builder: the fixtures' generators run in whatever TensorFlow there is, none of
them seeing another.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from compat_matrix.cases import CaseError
from compat_matrix.cells.generators import GENERATOR, all_generators, fixtures_root, read_generator
from compat_matrix.plan.planning import generator_artifacts, make_plan
from compat_matrix.runtimes.places import RuntimeTrouble
from compat_matrix.runtimes.resolve import resolve
from compat_matrix.runtimes.runtime import Runtime
from compat_matrix.verdict import Ledger
from compat_matrix.workers.v1_answers import answer_session
from fixtures_v1.compare import differences
from reference_impl.format import schema
from savedmodel_compat.cli import main

ROOT = Path(__file__).parents[2]
NEW = Runtime("tf2.21", Path("python"), "2.21.0")
EVERYWHERE = ("1.13.2", "1.15.5", "2.0.4", "2.4.4", "2.8.4", "2.12.1", "2.15.1", "2.18.1", "2.21.0")
LIAR = '''"""A generator whose export does not answer as what it claims to have exported."""
CLAUSES = ("V1-01",)
FEATURES = ("builder",)


def generate(tf, rec):
    x = tf.placeholder(tf.float32, [None], "x")
    rec.export(rec.session(), {"serving_default": rec.signature({"x": x}, {"y": x * 2.0})})
    rec.live({"serving_default": lambda x: {"y": x * 3.0}})
    rec.ask("serving_default", {"x": [1.0]})
'''
CRASH = '''"""A generator that kills the process it runs in."""
CLAUSES = ("V1-01",)
FEATURES = ("builder",)


def generate(tf, rec):
    import os

    os.abort()
'''


def planned(version):
    runtime = Runtime("one", Path("python"), version)
    return {artifact.case: artifact for artifact in generator_artifacts(fixtures_root(), runtime)}


def test_generators_are_planned_only_where_they_are_asked_for():
    assert not [cell for cell in make_plan(Ledger()) if cell.producer == "v1_builder"]
    asked = make_plan(Ledger(), producers=["v1_builder"])
    assert {cell.producer for cell in asked} == {"v1_builder"}
    assert {cell.case for cell in asked} == {
        generator.name for generator in all_generators(fixtures_root())
    }


def test_a_generator_may_require_a_version():
    old, new = planned("1.15.5")["contrib_op"], planned("2.0.0")["contrib_op"]
    assert old.refused is None
    assert "tensorflow<2" in new.refused and "2.0.0" in new.refused
    assert planned("2.21.0")["module_functions"].kinds == {"signature", "function"}
    lacking = Runtime("x", Path("python"), "2.21.0", lacks={"v1_builder": "no fork"})
    assert {artifact.refused for artifact in generator_artifacts(fixtures_root(), lacking)} == {
        "no fork"
    }


def test_forty_generators_run_in_every_release():
    refused = [
        {case for case, artifact in planned(version).items() if artifact.refused}
        for version in EVERYWHERE
    ]
    assert len(planned("2.21.0")) - len(set().union(*refused)) >= 40


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('"""Half', '#"""Half', "no title"),
        ('CLAUSES = ("V1-01",', "CLAUSES = (1,", "CLAUSES must be"),
        ("FEATURES = (", "OTHER = (", "FEATURES must be"),
        ("RUNTIME =", "REQUIRES = 2\nRUNTIME =", "which is not a string"),
        ("def generate", "def generate def", "invalid syntax|expected"),
    ],
)
def test_a_generator_that_cannot_be_read_is_named(tmp_path, old, new, problem):
    text = (fixtures_root() / "half_plus_two" / GENERATOR).read_text()
    assert old in text
    file = tmp_path / GENERATOR
    file.write_text(text.replace(old, new, 1))
    with pytest.raises(CaseError, match=problem) as caught:
        read_generator(file)
    assert str(file) in str(caught.value)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Some of the fixtures, and two that are up to no good."""
    root = tmp_path_factory.mktemp("fixtures") / "fixtures_v1"
    names = (
        "collections",
        "control_flow_v2",
        "default_attrs_kept",
        "default_attrs_stripped",
        "module_functions",
        "simple_save",
    )
    for name in names:
        shutil.copytree(fixtures_root() / name, root / name)
    for name, text in (("a_crash", CRASH), ("a_liar", LIAR)):
        shutil.copytree(root / "simple_save", root / name)
        (root / name / GENERATOR).write_text(text)
        provenance = json.loads((root / name / "provenance.json").read_text())
        (root / name / "provenance.json").write_text(json.dumps({**provenance, "case": name}))
    return root


@pytest.fixture(scope="module")
def run(world, tmp_path_factory):
    """Produce through the CLI, in one process; returns (output folder, {case: result})."""

    def run_(*arguments, fixtures=world):
        out = tmp_path_factory.mktemp("run") / "out"
        command = ["matrix", "run", "--out", str(out), "-n", "1", "--check", "produce"]
        command += ["--producer", "v1_builder", "--fixtures", str(fixtures), *arguments]
        done = CliRunner().invoke(main, command)
        lines = (out / "results.jsonl").read_text().splitlines() if out.exists() else []
        made = [
            result
            for result in map(json.loads, lines)
            if result["cell"].endswith("/produce") and result["versions"]
        ]
        results = {result["cell"].partition("/")[0]: result for result in made}
        assert results, done.output
        return out, results

    return run_


@pytest.fixture(scope="module")
def all_of_them(run):
    return run()


def artifact(out, case):
    (found,) = (out / "artifacts" / case).glob("v1_builder@*")
    return found


@pytest.mark.tensorflow
@pytest.mark.parametrize("case", ["module_functions", "simple_save", "default_attrs_stripped"])
def test_what_a_generator_makes_does_not_depend_on_those_before_it(run, all_of_them, case):
    out, results = all_of_them
    alone, _ = run("--case", case)
    assert results[case]["outcome"] == "PASS"
    assert differences(artifact(alone, case), artifact(out, case)) == []


@pytest.mark.tensorflow
def test_an_export_that_answers_otherwise_is_a_failure(all_of_them):
    out, results = all_of_them
    assert (results["a_liar"]["outcome"], results["a_liar"]["error_class"].rpartition(".")[2]) == (
        "FAIL_VALUE",
        "Differs",
    )
    assert "output y differs" in results["a_liar"]["message"]
    assert not list((out / "artifacts" / "a_liar").glob("v1_builder@*"))


@pytest.mark.tensorflow
def test_a_generator_that_crashes_takes_nobody_along(all_of_them):
    _, results = all_of_them
    assert (results["a_crash"]["outcome"], results["a_crash"]["error_class"]) == (
        "CRASH",
        "SIGABRT",
    )
    assert {case for case, result in results.items() if result["outcome"] == "PASS"} == set(
        results
    ) - {"a_crash", "a_liar"}


@pytest.mark.tensorflow
def test_the_provenance_says_who_made_it(all_of_them):
    out, _ = all_of_them
    made = json.loads((artifact(out, "simple_save") / "provenance.json").read_text())
    committed = json.loads((fixtures_root() / "simple_save" / "provenance.json").read_text())
    assert made["producer"]["name"] == "v1_builder"
    assert (
        f"v1_builder@{made['producer']['versions']['tensorflow']}"
        == artifact(out, "simple_save").name
    )
    for member in ("case", "title", "clauses", "features", "generator", "licence"):
        assert made[member] == committed[member]


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", ["tf1.4", "tf1.13", "tf2.4"])
def test_other_releases_make_them_too(run, name):
    try:
        resolve(name)
    except RuntimeTrouble as error:
        pytest.skip(str(error))
    out, results = run(
        "--runtime",
        name,
        "--case",
        "simple_save",
        "--case",
        "half_plus_two",
        fixtures=fixtures_root(),
    )
    assert results["half_plus_two"]["outcome"] == "PASS"
    assert ("simple_save" in results) == (name != "tf1.4"), "simple_save came with 1.7"
    made = json.loads((artifact(out, "half_plus_two") / "provenance.json").read_text())
    assert made["environment"]["runtime"] == name


def test_a_composite_output_in_a_composite_one_is_each_of_its_tensors() -> None:
    """`io.json` names the tensors of a signature, so the recorder counts them as every client
    does.
    """
    signature = schema.SignatureDef()
    outer = signature.outputs["y"].composite_tensor
    sparse = outer.components.add(dtype=schema.DT_FLOAT).coo_sparse
    sparse.values_tensor_name, sparse.indices_tensor_name, sparse.dense_shape_tensor_name = (
        "v:0",
        "i:0",
        "d:0",
    )
    outer.components.add().composite_tensor.components.add(name="n:0", dtype=schema.DT_INT32)

    class Session:
        values = {"v:0": np.float32(1), "i:0": np.int64(2), "d:0": np.int64(3), "n:0": np.int32(4)}

        def run(self, names: list[str], feed: dict[str, object]) -> list[object]:
            return [self.values[name] for name in names]

    found = answer_session(None, Session(), signature, {})
    assert {name: (tensor.dtype, tensor.array.item()) for name, tensor in found.items()} == {
        "y/component_0": ("float32", 1),
        "y/component_1": ("int64", 2),
        "y/component_2": ("int64", 3),
        "y/component_3": ("int32", 4),
    }
