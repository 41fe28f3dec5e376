"""Faults in the files of a model at rest."""

from __future__ import annotations

import shutil
from pathlib import Path

from property_tests.planted import faults
from property_tests.planted.kinds.declaring import Planted
from property_tests.planted.kinds.planting import artifact_of, edit, flip
from property_tests.planted.kinds.scenes import (
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
    assert faults.apply("last_bit", artifact_of(folder) / "model")
    stamp(artifact_of(folder))


def _lose_shard(folder: Path) -> None:
    shutil.rmtree(artifact_of(folder) / "model" / "variables")


ROWS = (
    Planted(
        "lost-slot-variable",
        "the slot variables of an optimizer are lost",
        ADAM,
        edit("slots"),
        DIFF,
        1,
        "slot",
    ),
    Planted(
        "byte-of-a-shard",
        "one byte of a data shard",
        SUBJECT,
        flip("variables/*.data-*"),
        VERIFY,
        1,
        "SMC203",
        gate=True,
    ),
    Planted(
        "byte-of-the-index",
        "one byte of the checkpoint's index",
        SUBJECT,
        flip("variables/*.index"),
        VERIFY,
        1,
        "SMC202",
    ),
    Planted(
        "byte-of-the-graph",
        "one byte of saved_model.pb",
        SUBJECT,
        flip("saved_model.pb"),
        CHECK,
        1,
        "saved_model.pb was changed",
    ),
    Planted(
        "lost-checkpoint",
        "the folder variables/ is lost",
        SUBJECT,
        _lose_shard,
        VERIFY,
        1,
        "SMC201",
    ),
    Planted(
        "other-fingerprint",
        "a fingerprint of another export",
        SUBJECT,
        _other_fingerprint,
        CHECK,
        1,
        "fingerprint.pb: its hashes",
    ),
    Planted(
        "wrong-dtype",
        "variables of another dtype than their values",
        SUBJECT,
        edit("variable_dtypes"),
        VERIFY,
        1,
        "SMC212",
        gate=True,
    ),
    Planted(
        "wrong-dtype-of-an-output",
        "a signature with another dtype than its tensor",
        SUBJECT,
        edit("signature_dtypes"),
        CHECK,
        1,
        "FAIL_SIGNATURE|float64",
    ),
    Planted(
        "swapped-variables",
        "two variables of one shape have each other's value",
        SUBJECT,
        edit("swapped_values"),
        CHECK,
        1,
        "FAIL_VALUE.*values",
        gate=True,
    ),
    Planted(
        "nan-for-a-number",
        "a number of a variable is NaN",
        SUBJECT,
        edit("not_a_number"),
        CHECK,
        1,
        " is nan, recorded",
    ),
    Planted(
        "negative-zero",
        "a zero of a variable is negative",
        SUBJECT,
        edit("negative_zero"),
        DIFF,
        1,
        "variables",
    ),
    Planted(
        "last-bit-of-a-weight",
        "a weight is one unit in the last place away",
        SUBJECT,
        edit("last_bit"),
        DIFF,
        1,
        "variables",
    ),
    Planted(
        "lost-asset", "a file of assets/ is lost", SUBJECT, edit("lost_assets"), VERIFY, 1, "SMC411"
    ),
    Planted(
        "changed-asset",
        "a file of assets/ is another",
        SUBJECT,
        edit("assets"),
        CHECK,
        1,
        "FAIL_VALUE",
    ),
    Planted(
        "lost-table-row",
        "a table has a row less",
        SUBJECT,
        edit("table_rows"),
        CHECK,
        1,
        "FAIL_VALUE",
    ),
    Planted(
        "dropped-default",
        "defaults of arguments are others",
        SUBJECT,
        edit("defaults"),
        DIFF,
        1,
        "power: spec differs",
    ),
    Planted(
        "trainable",
        "a frozen variable is trained",
        SUBJECT,
        edit("trainable"),
        DIFF,
        1,
        "trainable",
    ),
    Planted(
        "missing-control-edge",
        "a control edge is lost",
        COUNTER,
        edit("control_edges"),
        DIFF,
        1,
        "functions",
    ),
    Planted(
        "stale-value",
        "a variable is read before it is assigned",
        COUNTER,
        edit("read_too_early"),
        CHECK,
        1,
        "FAIL_VALUE",
        gate=True,
    ),
    Planted(
        "captures-in-another-order",
        "captures are in another order",
        SUBJECT,
        edit("captures"),
        CHECK,
        1,
        "FAIL_VALUE",
    ),
    Planted(
        "wrong-output-order",
        "two outputs have each other's tensor",
        SUBJECT,
        edit("output_order"),
        CHECK_CPP,
        1,
        "FAIL_VALUE",
    ),
    Planted(
        "wrong-input-order",
        "two inputs have each other's tensor",
        SUBJECT,
        edit("input_order"),
        CHECK_CPP,
        1,
        "FAIL_VALUE",
    ),
    Planted(
        "init-op-not-run",
        "the op that fills the tables is not named",
        TABLE,
        edit("main_op"),
        VERIFY,
        1,
        "SMC401",
    ),
    Planted(
        "lost-signature",
        "a signature is lost",
        SUBJECT,
        edit("signature_lost"),
        CONTRACT,
        1,
        "SIGNATURE_REMOVED",
        gate=True,
    ),
    Planted(
        "renamed-input",
        "an input of a signature is renamed",
        SUBJECT,
        edit("input_renamed"),
        CONTRACT,
        1,
        "INPUT_REMOVED",
    ),
    Planted(
        "lost-meta-graph",
        "one of two MetaGraphs is lost",
        TWO_GRAPHS,
        _lose_meta_graph,
        CONTRACT,
        1,
        "META_GRAPH_REMOVED",
    ),
    Planted(
        "wrong-tags",
        "a MetaGraph has other tags",
        SUBJECT,
        edit("tag_renamed"),
        CONTRACT,
        1,
        "META_GRAPH_REMOVED",
    ),
    Planted(
        "lost-alias",
        "the alias of a function is lost",
        EXTENDED,
        edit("aliases"),
        DIFF,
        1,
        "- alias add: is gone",
    ),
    Planted(
        "lost-initial-value",
        "how a variable gets its first value is lost",
        EXTENDED,
        edit("additions"),
        DIFF,
        1,
        "v: initial value",
    ),
    Planted(
        "lost-gradient",
        "a registered gradient is lost",
        SUBJECT,
        edit("custom_gradients"),
        DIFF,
        1,
        "gradient",
    ),
    Planted(
        "lost-trace",
        "a function has a trace less",
        SUBJECT,
        edit("traces"),
        DIFF,
        1,
        "- power: trace",
    ),
    Planted(
        "wrong-version-of-a-model",
        "the model says that another TensorFlow wrote it",
        SUBJECT,
        edit("claimed_version"),
        CHECK,
        1,
        "2.1.0",
        gate=True,
    ),
)
