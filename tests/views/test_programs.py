"""StableHLO programs inside SavedModels: what `inspect` shows of them, and which releases `compat`
says may not read them.
"""

import base64
import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

import reference_impl
from reference_impl.format import schema
from savedmodel_compat.cli import main

HALF_PLUS_TWO = Path(__file__).parents[2] / "fixtures_v1" / "half_plus_two" / "model"
# `stablehlo.custom_call @Sharding`, serialised by TensorFlow 2.21 for StableHLO 1.13.7.
ARTIFACT = base64.b64decode(
    "TUzvUg1TdGFibGVITE9fdjEuMTMuNwABGQUBBQkBAwsDBw8TFwM1HwcBDwsLExMTExMDEQsLCwsLCwsLAwcTFwcCZQUNBQ8XAQMDFwEDGxcBA0kXAQOfFwEFBQMB"
    "IwMdER0TCwMdFR0XBQEpAwkFEQMBAwEJBE0FAVAFAQcEPQMBBQNQBwMHBCkDBQsDAwkABUYLBQMBAwEHBA0DAwYDAQUBALkZEwMPCwUFFR8RDwsRYnVpbHRpbgB2"
    "aGxvAG1vZHVsZQBmdW5jX3YxAGN1c3RvbV9jYWxsX3YxAHJldHVybl92MQAtAGMAbWFpbgBwdWJsaWMAAFNoYXJkaW5nAAgnBwUHAQsPEQ8TFREXGRsPHQ8PDw=="
)
TEXT = (
    b"func.func @main(%x: tensor<2xf32>) { %0 = stablehlo.custom_call @lapack_dgeqrf(%x) : ..."
    b' custom_call @"tf.call"() }'
)


def model(folder, module, version=9):
    """A model whose signature runs a StableHLO program."""
    shutil.copytree(HALF_PLUS_TWO, folder)
    saved = schema.SavedModel()
    saved.ParseFromString((folder / "saved_model.pb").read_bytes())
    (graph,) = saved.meta_graphs
    node = graph.graph_def.node.add()
    node.name, node.op = "program", "XlaCallModule"
    node.input.append("y")
    node.attr["module"].s, node.attr["version"].i = module, version
    node.attr["platforms"].list.s.append(b"CPU")
    for name, number in (("Tin", 1), ("Tout", 1)):
        node.attr[name].list.type.append(number)
    node.attr["Sout"].list.shape.add().unknown_rank = True
    graph.signature_def["serving_default"].outputs["y"].name = "program:0"
    (folder / "saved_model.pb").write_bytes(saved.SerializeToString())
    return folder


@pytest.mark.parametrize(
    ("module", "stablehlo", "calls", "exact"),
    [
        (ARTIFACT, "1.13.7", ("c", "Sharding"), False),
        (TEXT, None, ("lapack_dgeqrf", "tf.call"), True),
        (b"", None, (), True),
        (ARTIFACT[:30], "1.13.7", (), False),
        (ARTIFACT[:9], None, (), False),
        (b"ML\xefR", None, (), False),
        (b"ML\xefR\x00\x00", None, (), False),
        (b"ML\xefR\x0dStableHLO_v1.2\x00", None, (), False),
        (
            ARTIFACT[:23] + b"\x00\xff\xff\xff\xff\xff\xff\xff\xff" + ARTIFACT[23:],
            "1.13.7",
            (),
            False,
        ),
    ],
)
def test_inspect_tells_version_and_custom_calls(module, stablehlo, calls, exact, tmp_path):
    (graph,) = reference_impl.inspect(model(tmp_path / "m", module)).meta_graphs
    (program,) = graph.programs
    assert (program.node, program.function, program.version, program.platforms) == (
        "program",
        None,
        9,
        ("CPU",),
    )
    assert (program.stablehlo, program.custom_calls, program.exact) == (stablehlo, calls, exact)


def test_every_cut_of_an_artifact_is_read():
    from reference_impl.views.programs import program

    node = schema.NodeDef(name="n", op="XlaCallModule")
    for end in range(len(ARTIFACT)):
        node.attr["module"].s = ARTIFACT[:end]
        assert program(node).custom_calls in (
            (),
            ("c", "Sharding"),
        )  # a section behind the strings may be cut
    node.attr["module"].s = ARTIFACT + b"more"
    assert program(node).custom_calls == ("c", "Sharding")


def test_inspect_shows_them(tmp_path):
    shown = CliRunner().invoke(
        main,
        ["inspect", str(model(tmp_path / "m", ARTIFACT)), "--only", "programs"],
        standalone_mode=False,
    )
    assert "StableHLO programs" in shown.output
    words = " ".join(shown.output.split())
    assert "XlaCallModule version 9, StableHLO 1.13.7, for CPU" in words
    assert "c, Sharding" in words


def test_compat_does_not_call_older_readers_well(tmp_path):
    path = str(model(tmp_path / "m", ARTIFACT))
    done = CliRunner().invoke(
        main, ["compat", "--json", "--for", "session", path], standalone_mode=False
    )
    uses = json.loads(done.output)["models"][0]["meta_graphs"][0]["uses"]
    use = next(use for use in uses if use["part"] == "signature serving_default")
    risky = {
        release
        for release, risks in use["risks"].items()
        if any("StableHLO 1.13.7" in risk for risk in risks)
    }
    assert {"2.16", "2.18", "2.20"} <= risky
    assert "2.21" not in risky
    assert any(
        "version 9" in reason for reason in use["fails"]["2.15"]
    )  # of the op, which 2.15 reads up to 8
    target = CliRunner().invoke(
        main, ["compat", "--target", "2.20", "--for", "session", path], standalone_mode=False
    )
    assert target.exit_code == 1
    assert "reads StableHLO up to 1.12.1" in target.output
