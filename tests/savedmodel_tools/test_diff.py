"""``diff``: what is different between two models, and that nothing is where only names are."""

from __future__ import annotations

import itertools
import json
import random
import shutil
import types

import model_edits
import neutral_edits
import numpy as np
import pytest
from click.testing import CliRunner

from property_tests.strategies import edits
from reference_impl.errors import ChecksumError
from reference_impl.format import schema
from reference_impl.format.bundle.writer import BundleWriter
from reference_impl.format.container import layout
from savedmodel_compat.cli import main
from savedmodel_tools.canonical.form import canonical
from savedmodel_tools.comparison import weights as weights_module
from savedmodel_tools.diff import SECTIONS, Options, diff

CASES = ("module_functions", "half_plus_two")
HASHES = Options(hashes=True)


@pytest.fixture(scope="module")
def run():
    def run(*arguments):
        done = CliRunner().invoke(main, ["diff", *map(str, arguments)])
        assert done.exception is None or isinstance(done.exception, SystemExit)
        return done

    return run


def copied(case, tmp_path, name="changed"):
    return shutil.copytree(model_edits.fixture(case), tmp_path / name)


def counting(result):
    return {change.section for change in result.changes if change.counts}


@pytest.mark.parametrize(
    "case",
    ["module_functions", "half_plus_two", "dynamic_rnn", "hash_table_v1_op", "mutable_hash_table"],
)
def test_a_model_is_equal_to_itself_and_its_hash_is_the_content_hash(case):
    model = model_edits.fixture(case)
    result = diff(model, model)
    assert result.verdict == "equal" and result.equal and result.changes == ()
    assert result.first.content_hash == model_edits.form(case).hash


EDITED = {edit.__name__: ["module_functions"] for edit in edits.EDITS} | {
    "swap": [
        "control_flow_v2",
        "function_flow",
    ],  # the fixtures with an op whose inputs are not interchangeable
    "signature_key": list(CASES),
    "signature_output": list(CASES),
}


@pytest.mark.parametrize(
    ("edit", "case"), [(edit, case) for edit in edits.EDITS for case in EDITED[edit.__name__]]
)
def test_every_single_edit_is_seen(edit, case, tmp_path):
    target = copied(case, tmp_path)
    what = edit(target, lambda items: items[0])
    assert what, "the edit finds nothing to change in this model"
    source, after = model_edits.fixture(case), canonical(target)
    differing = {
        section
        for section, value in model_edits.form(case).sections.items()
        if value != after.sections[section]
    }
    for result in (diff(source, target, HASHES), diff(target, source, HASHES)):
        assert result.verdict == "different", what
        assert {result.first.content_hash, result.second.content_hash} == {
            model_edits.form(case).hash,
            after.hash,
        }
        assert counting(result) and counting(result) <= differing


@pytest.mark.parametrize(
    ("name", "case"), [*itertools.product([edit.__name__ for edit in neutral_edits.NEUTRAL], CASES)]
)
def test_no_renaming_is_a_difference(name, case, tmp_path):
    target = model_edits.edited(
        model_edits.fixture(case), tmp_path / "renamed", neutral_edits.neutral(name)
    )
    result = diff(model_edits.fixture(case), target)
    assert result.equal and result.verdict == "equal"
    assert {change.section for change in result.changes} <= {"metadata"}


def test_an_edit_is_told_where_it_is(tmp_path):
    """One line for each kind of edit, in the words of somebody who looks for it."""
    expected = {
        "weight": ("variables", "value"),
        "attribute": ("functions", "value"),
        "edge": ("objects", "is now"),
        "signature_key": ("signatures", "is now"),
        "signature_output": ("signatures", "is now"),
        "trainable": ("objects", "trainable"),
        "trace_order": ("objects", "order of its traces"),
    }
    for edit in edits.EDITS:
        target = copied("module_functions", tmp_path, edit.__name__)
        what = edit(target, lambda items: items[0])
        if what is None or edit.__name__ not in expected:
            continue
        section, words = expected.pop(edit.__name__)
        changes = [
            change
            for change in diff(model_edits.fixture("module_functions"), target).changes
            if change.counts
        ]
        assert [change.section for change in changes] == [section], (edit.__name__, changes)
        assert words in json.dumps(changes[0].to_json()), changes[0]
    assert expected == {}


def insert_relu(message):
    function = next(
        item
        for item in message.meta_graphs[0].graph_def.library.function
        if "multiply" in item.signature.name
    )
    target = next(node for node in function.node_def if node.op in ("Mul", "AddV2"))
    node = function.node_def.add(name="between", op="Relu")
    node.attr["T"].type = 1
    node.input.append(target.input[0])
    target.input[0] = "between:activations:0"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda aliases: aliases.pop("Blend"), ["removed alias first: is gone"]),
        (
            lambda aliases: aliases.update({"Cube": "third"}),
            ["added alias third: is new", "removed alias second: is gone"],
        ),
        (
            lambda aliases: aliases.update({"Blend": "second", "Cube": "first"}),
            [
                "changed alias first: stands for other functions",
                "changed alias second: stands for other functions",
            ],
        ),
    ],
    ids=["lost", "renamed", "swapped"],
)
def test_an_alias_of_a_function_is_named(change, told, tmp_path):
    one, other = (
        copied("defun_gradient", tmp_path, "one"),
        copied("defun_gradient", tmp_path, "other"),
    )
    for model in (one, other):
        message = layout.read(model).saved_model
        graph = message.meta_graphs[0]
        aliases = graph.meta_info_def.function_aliases
        aliases.update({"Blend": "first", "Cube": "second"})
        if model == other:
            change(aliases)
        (model / "saved_model.pb").write_bytes(schema.serialize(message))
    assert (
        sorted(
            f"{item.kind} {item.where[-1]}: {item.what}"
            for item in diff(one, other).changes
            if item.counts
        )
        == told
    )


def test_a_node_put_between_two_others_is_the_only_one_that_is_new(tmp_path):
    target = model_edits.edited(
        model_edits.fixture("module_functions"), tmp_path / "relu", insert_relu
    )
    changes = [
        change
        for change in diff(model_edits.fixture("module_functions"), target).changes
        if change.counts
    ]
    assert [change.section for change in changes] == ["functions"]
    nodes = changes[0].details["nodes"]
    assert [(node["kind"], node["op"]) for node in nodes] == [("changed", "Mul"), ("added", "Relu")]
    assert (
        nodes[0]["what"] == ["input 0: x → between:activations:0"]
        or "between" in nodes[0]["what"][0]
    )


# Weights


def bundle(folder, values, shards=1, dtype=None):
    message, graph = model_edits.new_model()
    graph.graph_def.versions.producer = 1
    model_edits.write(message, folder)
    with BundleWriter(folder / "variables" / "variables", shards) as writer:
        for number, (key, array) in enumerate(values.items()):
            writer.add(key, array, dtype, shard=number % shards)
    return folder


def weights(tmp_path, one, other, dtype=None, **options):
    numbers = itertools.count()
    folders = [
        bundle(tmp_path / str(next(numbers)) / str(id(values)), {"w": values}, dtype=dtype)
        for values in (one, other)
    ]
    result = diff(*folders, Options(**options))
    changes = [change for change in result.changes if change.section == "variables"]
    return result.verdict, changes[0] if changes else None


def test_floats_that_differ_are_measured(tmp_path):
    one = np.linspace(-1, 1, 600_000, dtype=np.float32).reshape(2, 300_000)
    other = one.copy()
    other[1, 7] = np.nextafter(np.nextafter(other[1, 7], np.float32(9)), np.float32(9))
    other[0, 0] = np.nan
    verdict, change = weights(tmp_path, one, other)
    assert verdict == "different"
    details = change.details
    assert (details["differing"], details["elements"], details["max_ulp"], details["new_nan"]) == (
        2,
        600_000,
        2,
        1,
    )
    assert details["max_abs_at"] == [1, 7] and details["max_abs"] == float(other[1, 7]) - float(
        one[1, 7]
    )
    assert details["first"] == {"at": [0, 0], "before": "-1.0", "after": "nan"}


@pytest.mark.parametrize(
    ("options", "verdict"),
    [
        ({}, "different"),
        ({"ulps": 1}, "different"),
        ({"ulps": 2}, "close"),
        ({"rtol": 1e-6}, "close"),
        ({"rtol": 0.0, "atol": 1e-9}, "different"),
    ],
)
def test_what_is_within_the_tolerance_is_close(tmp_path, options, verdict):
    one = np.ones(5, np.float32)
    other = one.copy()
    other[3] = 1 + 2 * np.finfo(np.float32).eps
    assert weights(tmp_path, one, other, **options)[0] == verdict


def test_NaN_is_within_no_tolerance_but_zeros_of_either_sign_are(tmp_path):
    one, zero = np.zeros(3, np.float32), np.array([0, -0.0, 0], np.float32)
    assert weights(tmp_path / "a", one, zero)[0] == "different"
    assert weights(tmp_path / "b", one, zero, ulps=0)[0] == "close"
    assert (
        weights(tmp_path / "c", one, np.array([0, np.nan, 0], np.float32), rtol=1e9, atol=1e9)[0]
        == "different"
    )


@pytest.mark.parametrize(
    "dtype", ["float64", "float16", "int64", "uint64", "uint8", "complex64", "bool"]
)
def test_numbers_of_every_type_are_measured(tmp_path, dtype):
    one = np.zeros(4, dtype)
    other = one.copy()
    other[2] = 1
    verdict, change = weights(tmp_path, one, other)
    assert (
        verdict == "different"
        and change.details["differing"] == 1
        and change.details["first"]["at"] == [2]
    )
    assert change.details.get("max_abs") == (None if dtype == "bool" else 1.0)


def test_the_extremes_of_a_type_do_not_overflow(tmp_path):
    limits = np.iinfo(np.int64)
    change = weights(tmp_path / "i", np.array([limits.min]), np.array([limits.max]))[1]
    assert change.details["max_abs"] == float(2**64 - 1)
    change = weights(
        tmp_path / "f", np.array([-np.finfo(np.float64).max]), np.array([np.finfo(np.float64).max])
    )[1]
    assert change.to_json()["details"]["max_abs"] == "inf" and change.details["max_ulp"] > 2**63


def test_a_dtype_that_changed_is_told_with_the_distance_of_the_values(tmp_path):
    one = np.array([0.1, 1.0])
    change = weights(tmp_path, one, one.astype(np.float32))[1]
    assert change.what.startswith("float64[2] → float32[2]; 1 of 2") and "1.49e-09" in change.what
    assert (
        weights(tmp_path / "shape", one, one.reshape(2, 1))[1].what == "float64[2] → float64[2,1]"
    )


def test_a_variable_under_another_key_is_renamed_and_others_come_and_go(tmp_path):
    one = bundle(tmp_path / "one", {"a": np.arange(3), "gone": np.arange(4), "same": np.arange(5)})
    other = bundle(
        tmp_path / "other",
        {"b": np.arange(3), "come": np.arange(6), "same": np.arange(5)},
        shards=2,
    )
    found = [
        (change.kind, change.where)
        for change in diff(one, other).changes
        if change.section == "variables"
    ]
    assert found == [("renamed", ("a",)), ("removed", ("gone",)), ("added", ("come",))]


def test_behind_a_difference_numbers_are_read_but_hashed_for_those_who_ask(tmp_path, monkeypatch):
    """Small tensors come first in time; changes are listed by key."""
    values = {"large": np.arange(300_000), "other": np.arange(20), "small": np.arange(3)}
    one, other = (
        bundle(tmp_path / "one", values),
        bundle(tmp_path / "other", {**values, "small": np.arange(1, 4), "large": -values["large"]}),
    )
    hashed, plain = [], weights_module.hashlib.sha256
    monkeypatch.setattr(
        weights_module, "hashlib", types.SimpleNamespace(sha256=lambda: hashed.append(1) or plain())
    )
    found = [diff(one, other, options) for options in (Options(), HASHES)]
    assert found[0].changes == found[1].changes and [
        change.where for change in found[0].changes
    ] == [("large",), ("small",)]
    assert len(hashed) == 1 + 3
    assert found[0].first.content_hash is None
    assert [side.content_hash for side in (found[1].first, found[1].second)] == [
        canonical(folder).hash for folder in (one, other)
    ]
    shard = next((other / "variables").glob("*.data-*"))
    data = bytearray(shard.read_bytes())
    data[100] ^= 1  # within `large`
    shard.write_bytes(data)
    with pytest.raises(ChecksumError, match="large"):
        diff(one, other)


def test_a_partitioned_variable_is_equal_to_the_whole(tmp_path):
    value = np.arange(600_000, dtype=np.float32).reshape(600, 1000)
    whole, parted = bundle(tmp_path / "whole", {"w": value}), bundle(tmp_path / "parted", {})
    shutil.rmtree(parted / "variables")
    with BundleWriter(parted / "variables" / "variables") as writer:
        for start, stop in ((300, 600), (0, 300)):
            writer.add_slice(
                "w", value.shape, ((start, stop - start), (0, 1000)), value[start:stop]
            )
    assert diff(whole, parted).equal


# The command


def test_exit_codes_and_text(run, tmp_path):
    source = model_edits.fixture("module_functions")
    done = run(source, source)
    assert done.exit_code == 0 and "one content hash" in done.output
    target = copied("module_functions", tmp_path)
    assert edits.weight(target, lambda items: items[0])
    done = run(source, target)
    assert (
        done.exit_code == 1 and "different: variables 1" in done.output and "max abs" in done.output
    )
    for arguments in (["--ignore", "variables"], ["--only", "signatures"]):
        done = run(source, target, *arguments)
        assert done.exit_code == 0 and "compared sections" in done.output
    assert run(source, target, "--only", "variables", "--json").exit_code == 1


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("a",),
        ("no", "such"),
        ("--tolerance", "x"),
        ("--tolerance", "-1"),
        ("--tolerance", "1,2,3"),
        ("--ulps", "-1"),
        ("--only", "x"),
    ],
)
def test_wrong_usage(run, arguments):
    models = (
        [model_edits.fixture("module_functions")] * 2
        if arguments and arguments[0].startswith("--")
        else []
    )
    assert run(*models, *arguments).exit_code == 64


def test_json(run, tmp_path):
    target = copied("module_functions", tmp_path)
    done = run(model_edits.fixture("module_functions"), target, "--json")
    found = json.loads(done.output)
    assert (
        found["schema"] == 1 and found["verdict"] == "equal" and found["sections"] == list(SECTIONS)
    )
    assert found["first"]["content_hash"] == found["second"]["content_hash"]


def test_metadata_differs_without_making_models_different(run, tmp_path):
    target = model_edits.edited(
        model_edits.fixture("module_functions"),
        tmp_path / "x",
        neutral_edits.neutral("other_producer"),
    )
    source = model_edits.fixture("module_functions")
    done = run(source, target)
    assert done.exit_code == 0 and "TensorFlow: 1.15.5 → 9.9.9" in done.output
    assert run(source, target, "--only", "metadata").exit_code == 1


def test_a_damaged_model_is_refused(run, tmp_path):
    target = copied("module_functions", tmp_path)
    shard = next((target / "variables").glob("*.data-*"))
    shard.write_bytes(shard.read_bytes()[:-1])
    done = run(model_edits.fixture("module_functions"), target)
    assert done.exit_code == 1 and "TruncatedError" in done.output


def test_names_of_a_model_do_not_steer_the_terminal(run, tmp_path):
    def rename(message):
        signatures = message.meta_graphs[0].signature_def
        signatures["\x1b[31mred"].CopyFrom(signatures["serving_default"])

    target = model_edits.edited(model_edits.fixture("half_plus_two"), tmp_path / "x", rename)
    done = run(model_edits.fixture("half_plus_two"), target)
    assert (
        done.exit_code == 1 and "\\x1b[31mred" in done.output and "\x1b[31mred" not in done.output
    )


def test_two_trees(run, tmp_path):
    for side in ("a", "b"):
        copied("half_plus_two", tmp_path, f"{side}/same/1")
        copied("module_functions", tmp_path, f"{side}/other")
    edits.weight(tmp_path / "b" / "other", lambda items: items[0])
    copied("half_plus_two", tmp_path, "a/gone")
    copied("half_plus_two", tmp_path, "b/come")
    (tmp_path / "b" / "come" / "saved_model.pb").unlink()
    shutil.copytree(tmp_path / "b" / "same", tmp_path / "b" / "new")
    done = run(tmp_path / "a", tmp_path / "b")
    assert done.exit_code == 1
    assert [line.split("  ")[0] for line in done.output.splitlines() if line[0] in "-+=≠"] == [
        "- gone",
        "+ new/1",
        "≠ other",
        "= same/1",
    ]
    assert "1 equal, 1 different, " in done.output
    found = json.loads(run(tmp_path / "a", tmp_path / "b", "--json").output)
    assert [item["status"] for item in found["models"]] == [
        "only in the first",
        "only in the second",
        "different",
        "equal",
    ]
    assert run(tmp_path / "a" / "same", tmp_path / "b" / "same").exit_code == 0
    assert run(tmp_path / "a", tmp_path / "b" / "same" / "1").exit_code == 64


def test_one_damaged_model_does_not_stop_the_others(run, tmp_path):
    for name in ("a/x", "a/y", "b/x", "b/y"):
        copied("half_plus_two", tmp_path, name)
    (tmp_path / "b" / "x" / "saved_model.pb").write_bytes(b"\xff\xff")
    done = run(tmp_path / "a", tmp_path / "b")
    assert (
        done.exit_code == 1
        and "! x  " in done.output
        and "= y" in done.output
        and "1 refused" in done.output
    )


def test_random_pairs_of_fixtures_differ_both_ways_and_terminate():
    names = sorted(path.parent.name for path in model_edits.FIXTURES.glob("*/model"))
    pairs = random.Random(7).sample(list(itertools.combinations(names, 2)), 6)
    assert len(pairs) == 6
    for one, other in pairs:
        found = diff(model_edits.fixture(one), model_edits.fixture(other))
        assert found.verdict == "different" and json.dumps(found.to_json(), allow_nan=False)
