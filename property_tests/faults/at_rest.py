"""Faults in the files of a model at rest."""

from __future__ import annotations

import shutil
from pathlib import Path

from property_tests.faults import losses
from property_tests.faults.declaring import Fault
from property_tests.faults.found_by.command import Command
from property_tests.faults.planting import artifact_of, edit, flip
from property_tests.faults.scenes import (
    ADAM,
    COUNTER,
    EXTENDED,
    SUBJECT,
    TABLE,
    TWO_GRAPHS,
    stamp,
)
from reference_impl.format import schema
from reference_impl.format.container import layout

CHECK = "check artifacts/{} --consumer tf2"
CHECK_CPP = "check artifacts/{} --consumer c_api"
DIFF = "diff original artifacts/{}/model"
VERIFY = "verify artifacts/{}/model"
CONTRACT = "contract check artifacts/{}/model original.contract.json"


def _lose_meta_graph(folder: Path) -> None:
    model = artifact_of(folder) / "model"
    message = layout.read(model).saved_model
    del message.meta_graphs[1:]
    (model / "saved_model.pb").unlink()
    (model / "saved_model.pb").write_bytes(schema.serialize(message))


def _other_fingerprint(folder: Path) -> None:
    """The weights are those of another export, the graph and the fingerprint are not."""
    assert losses.apply("last_bit", artifact_of(folder) / "model")
    stamp(artifact_of(folder))


def _lose_shard(folder: Path) -> None:
    shutil.rmtree(artifact_of(folder) / "model" / "variables")


ROWS = (
    Fault(
        "lost-slot-variable",
        "the slot variables of an optimizer are lost",
        edit("slots"),
        Command(ADAM, DIFF, 1, "slot"),
    ),
    Fault(
        "byte-of-a-shard",
        "one byte of a data shard",
        flip("variables/*.data-*"),
        Command(SUBJECT, VERIFY, 1, "SMC203"),
        gate=True,
    ),
    Fault(
        "byte-of-the-index",
        "one byte of the checkpoint's index",
        flip("variables/*.index"),
        Command(SUBJECT, VERIFY, 1, "SMC202"),
    ),
    Fault(
        "byte-of-the-graph",
        "one byte of saved_model.pb",
        flip("saved_model.pb"),
        Command(SUBJECT, CHECK, 1, "saved_model.pb was changed"),
    ),
    Fault(
        "lost-checkpoint",
        "the folder variables/ is lost",
        _lose_shard,
        Command(SUBJECT, VERIFY, 1, "SMC201"),
    ),
    Fault(
        "other-fingerprint",
        "a fingerprint of another export",
        _other_fingerprint,
        Command(SUBJECT, CHECK, 1, "fingerprint.pb: its hashes"),
    ),
    Fault(
        "wrong-dtype",
        "variables of another dtype than their values",
        edit("variable_dtypes"),
        Command(SUBJECT, VERIFY, 1, "SMC212"),
        gate=True,
    ),
    Fault(
        "wrong-dtype-of-an-output",
        "a signature with another dtype than its tensor",
        edit("signature_dtypes"),
        Command(SUBJECT, CHECK, 1, "FAIL_SIGNATURE|float64"),
    ),
    Fault(
        "swapped-variables",
        "two variables of one shape have each other's value",
        edit("swapped_values"),
        Command(SUBJECT, CHECK, 1, "FAIL_VALUE.*values"),
        gate=True,
    ),
    Fault(
        "nan-for-a-number",
        "a number of a variable is NaN",
        edit("not_a_number"),
        Command(SUBJECT, CHECK, 1, " is nan, recorded"),
    ),
    Fault(
        "negative-zero",
        "a zero of a variable is negative",
        edit("negative_zero"),
        Command(SUBJECT, DIFF, 1, "variables"),
    ),
    Fault(
        "last-bit-of-a-weight",
        "a weight is one unit in the last place away",
        edit("last_bit"),
        Command(SUBJECT, DIFF, 1, "variables"),
    ),
    Fault(
        "lost-asset",
        "a file of assets/ is lost",
        edit("lost_assets"),
        Command(SUBJECT, VERIFY, 1, "SMC411"),
    ),
    Fault(
        "changed-asset",
        "a file of assets/ is another",
        edit("assets"),
        Command(SUBJECT, CHECK, 1, "FAIL_VALUE"),
    ),
    Fault(
        "lost-table-row",
        "a table has a row less",
        edit("table_rows"),
        Command(SUBJECT, CHECK, 1, "FAIL_VALUE"),
    ),
    Fault(
        "dropped-default",
        "defaults of arguments are others",
        edit("defaults"),
        Command(SUBJECT, DIFF, 1, "power: spec differs"),
    ),
    Fault(
        "trainable",
        "a frozen variable is trained",
        edit("trainable"),
        Command(SUBJECT, DIFF, 1, "trainable"),
    ),
    Fault(
        "missing-control-edge",
        "a control edge is lost",
        edit("control_edges"),
        Command(COUNTER, DIFF, 1, "functions"),
    ),
    Fault(
        "stale-value",
        "a variable is read before it is assigned",
        edit("read_too_early"),
        Command(COUNTER, CHECK, 1, "FAIL_VALUE"),
        gate=True,
    ),
    Fault(
        "captures-in-another-order",
        "captures are in another order",
        edit("captures"),
        Command(SUBJECT, CHECK, 1, "FAIL_VALUE"),
    ),
    Fault(
        "wrong-output-order",
        "two outputs have each other's tensor",
        edit("output_order"),
        Command(SUBJECT, CHECK_CPP, 1, "FAIL_VALUE"),
    ),
    Fault(
        "wrong-input-order",
        "two inputs have each other's tensor",
        edit("input_order"),
        Command(SUBJECT, CHECK_CPP, 1, "FAIL_VALUE"),
    ),
    Fault(
        "init-op-not-run",
        "the op that fills the tables is not named",
        edit("main_op"),
        Command(TABLE, VERIFY, 1, "SMC401"),
    ),
    Fault(
        "lost-signature",
        "a signature is lost",
        edit("signature_lost"),
        Command(SUBJECT, CONTRACT, 1, "SIGNATURE_REMOVED"),
        gate=True,
    ),
    Fault(
        "renamed-input",
        "an input of a signature is renamed",
        edit("input_renamed"),
        Command(SUBJECT, CONTRACT, 1, "INPUT_REMOVED"),
    ),
    Fault(
        "lost-meta-graph",
        "one of two MetaGraphs is lost",
        _lose_meta_graph,
        Command(TWO_GRAPHS, CONTRACT, 1, "META_GRAPH_REMOVED"),
    ),
    Fault(
        "wrong-tags",
        "a MetaGraph has other tags",
        edit("tag_renamed"),
        Command(SUBJECT, CONTRACT, 1, "META_GRAPH_REMOVED"),
    ),
    Fault(
        "lost-alias",
        "the alias of a function is lost",
        edit("aliases"),
        Command(EXTENDED, DIFF, 1, "- alias add: is gone"),
    ),
    Fault(
        "lost-initial-value",
        "how a variable gets its first value is lost",
        edit("additions"),
        Command(EXTENDED, DIFF, 1, "v: initial value"),
    ),
    Fault(
        "lost-gradient",
        "a registered gradient is lost",
        edit("custom_gradients"),
        Command(SUBJECT, DIFF, 1, "gradient"),
    ),
    Fault(
        "lost-trace",
        "a function has a trace less",
        edit("traces"),
        Command(SUBJECT, DIFF, 1, "- power: trace"),
    ),
    Fault(
        "wrong-version-of-a-model",
        "the model says that another TensorFlow wrote it",
        edit("claimed_version"),
        Command(SUBJECT, CHECK, 1, "2.1.0"),
        gate=True,
    ),
)
