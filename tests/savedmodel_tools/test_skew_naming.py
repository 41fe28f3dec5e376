"""Names for version skew, from what genuine runtimes of 1.4 to 2.21 said of the models of
``skew_models``.
"""

import json

import pytest
import skew_models
from packaging.specifiers import SpecifierSet
from skew_models import recorded

from savedmodel_tools.skew import naming
from savedmodel_tools.skew.naming import KINDS, name

# model -> (releases, kind, op, attr or value, since, until): by hand, from what the releases' own
# notes and headers say. What is not listed must not be called skew: the models are then malformed,
# or were asked nonsense.
OLD = ("<1.12", "unknown_op", "PartitionedCall", None, "1.12", None)
OLDER = ("<1.12", "unknown_op", "StatefulPartitionedCall", None, "1.12", None)
CONFIG = (
    "<1.13",
    "unknown_attr",
    ("PartitionedCall", "StatefulPartitionedCall"),
    "config_proto",
    "1.13",
    None,
)
DEBUG_NAME = ("<2.5", "unknown_attr", "VarHandleOp", "debug_name", "2.15", None)
COPY = ("<2.10", "unknown_op", "DisableCopyOnRead", None, "2.10", None)
NOT_LOADED = ("<2", "unknown_op")
EXPECTED = {
    "nobody_knows": [("", "unknown_op", "NoSuchOpAtAll", None, None, None)],
    "newer_op": [("<2.3", "unknown_op", "BesselJ0", None, "2.3", None)],
    "newer_op_inner": [OLD, ("<2.3", "unknown_op", "BesselJ0", None, "2.3", None)],
    "far_producer": [("<2.3", "unknown_op", "BesselJ0", None, "2.3", None)],
    "newer_attr": [("<2.5", "unknown_attr", "MatMul", "grad_a", "2.16", None)],
    "newer_attr_inner": [OLD],
    "newer_attr_called": [OLD, ("<2.5", "unknown_attr", "MatMul", "grad_a", "2.16", None)],
    "newer_type_called": [
        OLD,
        ("<2.12", "attr_value", "MatMul", "uint8", "2.12", None),
        ("", "missing_kernel", "MatMul", "T=uint8", None, None),
    ],
    "newer_value": [("<1.12", "unknown_op", "BroadcastTo", None, "1.12", None)],
    "no_kernel": [("<2.3", "missing_kernel", "Neg", "T=uint8", None, None)],
    "newer_type": [
        ("<2.12", "attr_value", "MatMul", "uint8", "2.12", None),
        ("", "missing_kernel", "MatMul", "T=uint8", None, None),
    ],
    "newer_dtype": [("<2.15", "unknown_dtype", None, "int4", "2.15", None)],
    "unknown_dtype": [("", "unknown_dtype", None, "number 77", None, None)],
    "min_consumer": [("", "min_consumer", None, "99999", None, None)],
    "bad_consumer": [("", "bad_consumer", None, None, None, None)],
    "deprecated": [("", "deprecated_op", "BatchNormWithGlobalNormalization", "9", None, None)],
    "missing_attr": [],
    "missing_attr_inner": [OLD],
    "inputs": [],
    "far_inputs": [(">=2.3", "forward_window", None, "99999", None, None)],
    "changed_inputs": [
        ("<1.14", "unknown_op", "CrossReplicaSum", None, "1.4", None),
        (">=1.14", "missing_kernel", "CrossReplicaSum", None, None, None),
        (">=1.14", "changed_inputs", "CrossReplicaSum", None, "1.4", "1.8"),
    ],
    "contrib": [
        (*NOT_LOADED, "Resampler", None, "1.4", "1.15"),
        (">=2", "renamed_contrib_op", "Resampler", None, "1.4", "1.15"),
    ],
    "addons": [("", "unknown_op", "Addons>GatherTree", None, None, None)],
    "removed": [(">=2.6", "removed_op", "CompareAndBitpack", None, "1.4", "2.5")],
    "op_version": [
        ("<2.10", "unknown_op", "XlaCallModule", None, "2.10", None),
        (">=2.12", "op_version", "XlaCallModule", "99", None, None),
    ],
    "newer_checkpoint": [
        ("<1.8", "unknown_op", "AddV2", None, "1.8", None),
        ("", "newer_checkpoint", None, "99", None, None),
    ],
    "fixture_contrib_op": [
        (*NOT_LOADED, "Resampler", None, "1.4", "1.15"),
        (">=2", "renamed_contrib_op", "Resampler", None, "1.4", "1.15"),
    ],
    "fixture_contrib_renamed_op": [
        (*NOT_LOADED, "GatherTree", None, "1.4", "1.15"),
        (">=2", "renamed_contrib_op", "GatherTree", None, "1.4", "1.15"),
    ],
    "fixture_dtypes_reference": [
        ("<1.12", "missing_kernel", "Assign", "T=quint16", "1.12", None),
        (">=2.12", "missing_kernel", "AssignVariableOp", "dtype=quint16", "1.12", "2.3"),
    ],
    "fixture_dtypes_removed_kernels": [
        (
            "<1.12",
            "missing_kernel",
            "AssignVariableOp",
            ("dtype=qint16", "dtype=quint16"),
            "1.12",
            "2.3",
        ),
        (
            ">=2.4",
            "missing_kernel",
            "AssignVariableOp",
            ("dtype=qint16", "dtype=quint16"),
            "1.12",
            "2.3",
        ),
    ],
    "fixture_estimator_boosted_trees": [
        ("<1.8", "unknown_op", "BoostedTreesEnsembleResourceHandleOp", None, "1.8", None),
        (">=2.9", "missing_kernel", "BoostedTreesEnsembleResourceHandleOp", None, "1.12", "2.8"),
    ],
    "fixture_module_functions": [OLDER, CONFIG],
    "real_variable": [OLDER, DEBUG_NAME, COPY],
    "real_op_stateless_random": [
        OLD,
        CONFIG,
        ("<2.5", "unknown_op", "StatelessRandomGetKeyCounter", None, "2.5", None),
        ("<2.10", "unknown_op", "StatelessShuffle", None, "2.10", None),
    ],
    "real_op_xla_call_module": [
        OLDER,
        DEBUG_NAME,
        ("<2.10", "unknown_op", "XlaCallModule", None, "2.10", None),
        ("<2.13", "missing_attr", "XlaCallModule", "dim_args_spec", "2.13", None),
        (">=2.13,<2.16", "op_version", "XlaCallModule", "9", "2.16", None),
    ],
    "real_var_float8": [
        OLDER,
        DEBUG_NAME,
        ("<2.12", "unknown_dtype", None, ("float8_e5m2", "float8_e4m3fn"), "2.12", None),
        (
            "<2.15",
            "missing_kernel",
            "AssignVariableOp",
            ("dtype=float8_e5m2", "dtype=float8_e4m3fn"),
            "2.15",
            None,
        ),
    ],
    "real_var_int4": [
        OLDER,
        DEBUG_NAME,
        ("<2.15", "unknown_dtype", None, ("int4", "uint4"), "2.15", None),
    ],
}
# Not skew at all: what a request without a proper Example is told, a model that is malformed in
# every release, and what the v1 import of 2.0 to 2.3 says of a model without variables.
PLAIN = (
    "is required but could not be found",
    "expected inputs",
    "to be a control input",
    "More inputs specified",
    "does not exist. Node only has",
    "Cannot find 'main'",
    "Shape must be rank",
    "'NoneType' object is not subscriptable",
)


ROWS = [row for row in recorded() if row[4] is not None]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder, made = tmp_path_factory.mktemp("models"), {}

    def model(what):
        if what not in made:
            made[what] = skew_models.made(what, folder)
        return made[what]

    return model


def fits(skew, expected):
    _, kind, op, value, since, until = expected
    ops = op if isinstance(op, tuple) else (op,)
    values = value if isinstance(value, tuple) else (value,)
    says = {skew.attr, skew.value, skew.text.partition(" for ")[2].partition(":")[0]}
    return (
        skew.kind == kind
        and (op is None or skew.op in ops)
        and (value is None or says & set(values))
        and (skew.since, skew.until) == (since, until)
    )


@pytest.mark.parametrize("model", sorted(EXPECTED))
def test_what_runtimes_said_is_named(model, models):
    rows = [row for row in ROWS if row[1] == model]
    met = set()
    for consumer, _, step, error_class, message, versions in rows:
        for version in versions:
            skew = name(error_class, message, version, models(model))
            due = [item for item in EXPECTED[model] if SpecifierSet(item[0]).contains(version)]
            if skew is None:
                nowhere = model == "no_kernel" and "is not in the list of allowed values" in message
                assert not due or nowhere or any(text in message for text in PLAIN), (
                    consumer,
                    version,
                    step,
                    message,
                )
                continue
            found = [item for item in due if fits(skew, item)]
            assert found, (consumer, version, step, message, skew)
            met.update(map(EXPECTED[model].index, found))
            assert f"here {version}" in skew.text and len(skew.text) < 1500
            assert skew.cause.startswith(skew.text.partition(":")[0])
    assert [item for number, item in enumerate(EXPECTED[model]) if number not in met] == []


def test_every_kind_has_been_provoked():
    assert {item[1] for expected in EXPECTED.values() for item in expected} == set(KINDS)


def test_every_recorded_model_is_expected_to_do_something():
    assert {row[1] for row in recorded()} == set(EXPECTED)


def test_messages_of_every_consumer_and_release_were_recorded():
    seen = {}
    for consumer, *_, versions in recorded():
        seen.setdefault(consumer, set()).update(version.rpartition(".")[0] for version in versions)
    assert len(seen["c_api"]) == 28 and len(seen["v1_session"]) == 28
    assert len(seen["tf2"]) == 22 and len(seen["reference"]) == 10


def where(model, kind, models, consumer="c_api"):
    """The first skew of a kind that was recorded for a model."""
    for row in ROWS:
        if row[:2] == (consumer, model):
            skew = name(row[3], row[4], row[5][0], models(model))
            if skew and skew.kind == kind:
                return skew
    raise AssertionError(f"{model}: no {kind}")


def test_the_place_in_nested_functions_is_told(models):
    rows = [row for row in ROWS if row[:2] == ("c_api", "newer_op_inner")]
    skew = next(
        s
        for row in rows
        if (s := name(row[3], row[4], row[5][0], models("newer_op_inner"))).op == "BesselJ0"
    )
    assert (skew.node, skew.function, skew.chain) == (
        "victim",
        "inner_body",
        ("outer", "inner_body"),
    )
    assert (skew.signatures, skew.tags) == (("serving_default",), ("serve",))
    assert "node 'victim'" in skew.text and "'inner_body' (called through 'outer'" in skew.text


def test_the_place_in_the_object_tree_is_told(models):
    skew = where("real_op_xla_call_module", "op_version", models)
    assert skew.paths[0] == "f" and skew.function.startswith("__inference_f_")
    assert "object 'f'" in skew.text


def test_an_op_only_the_writer_of_checkpoints_needs_is_told_so(models):
    skew = where("real_variable", "unknown_op", models, "tf2")
    assert skew.op == "DisableCopyOnRead" and "no signature" in skew.text
    assert "has no result" in skew.advice


def test_an_attr_at_its_default_can_be_dropped(models):
    assert "drop it" in where("newer_attr", "unknown_attr", models).advice
    assert "in messages" in where("real_variable", "unknown_attr", models).advice


def test_the_replacement_of_a_contrib_op_is_told(models):
    skew = where("fixture_contrib_op", "renamed_contrib_op", models)
    assert "'Addons>Resampler' " in skew.advice and "tensorflow_addons" in skew.advice
    assert (
        "import tensorflow.contrib.resampler"
        in where("fixture_contrib_op", "unknown_op", models).advice
    )


def test_the_package_of_a_custom_op_is_told(models):
    assert "tensorflow-addons" in where("addons", "unknown_op", models).advice
    assert "tf.load_op_library" in where("nobody_knows", "unknown_op", models).advice


def test_an_op_that_was_removed_is_told_its_last_release(models):
    skew = where("removed", "removed_op", models)
    assert "only in 1.4 to 2.5" in skew.cause and "CompareAndBitpack" in skew.cause


def test_between_releases_that_were_asked_the_text_does_not_guess(models):
    skew = where("fixture_module_functions", "unknown_op", models)
    assert "since 1.12 (not in 1.8)" in skew.text


def test_of_kernels_that_older_releases_do_not_tell_nothing_is_claimed(models):
    skew = where("fixture_dtypes_removed_kernels", "missing_kernel", models)
    assert "1.12 to 2.3" in skew.cause and "not in 1.8" not in skew.text


def test_without_a_model_the_text_alone_is_named():
    skew = name(
        None, "Op type not registered 'DisableCopyOnRead' in binary running on host.", "2.8.4"
    )
    assert (skew.kind, skew.since, skew.node, skew.function) == ("unknown_op", "2.10", "", "")
    assert "node" not in skew.to_json() and skew.to_json()["kind"] == "unknown_op"


def test_a_version_newer_than_the_table_is_taken_for_its_newest():
    skew = name(
        None,
        "Op type not registered 'CompareAndBitpack' in binary running on host.",
        "2.99.0rc1+local",
    )
    assert (skew.kind, skew.until) == ("removed_op", "2.5")


def test_a_key_error_is_skew_only_when_the_model_holds_such_an_op(models):
    model = models("real_variable")
    assert name("KeyError", "'DisableCopyOnRead'", "1.13.2", model).kind == "unknown_op"
    assert name("KeyError", "'Nothing'", "1.13.2", model) is None
    assert name("KeyError", "'DisableCopyOnRead'", "1.13.2") is None
    assert name("ValueError", "'DisableCopyOnRead'", "1.13.2", model) is None


def test_what_is_no_skew_has_no_name():
    for message in (
        "",
        "Could not find matching concrete function",
        "Restoring from checkpoint failed.",
        "x" * 100_000,
    ):
        assert name("ValueError", message, "2.21.0") is None


def test_a_value_that_the_release_allows_or_none_allows_is_no_skew():
    text = (
        "Value for attr 'T' of {} is not in the list of allowed values: x\n; NodeDef: {{{{node"
        " a}}}}; Op<name=MatMul; signature=>"
    )
    assert name("ValueError", text.format("uint8"), "2.11.1").since == "2.12"
    assert name("ValueError", text.format("float"), "2.11.1") is None
    assert name("ValueError", text.format("string"), "2.11.1") is None


def test_a_model_that_cannot_be_read_costs_only_the_place(tmp_path):
    (tmp_path / "saved_model.pb").write_bytes(b"\xff" * 40)
    text = "Op type not registered 'BesselJ0' in binary running on host."
    for model in (tmp_path, tmp_path / "nowhere"):
        assert name(None, text, "2.0.4", model).since == "2.3"


HOSTILE = [
    "Op type not registered '\x1b[31m\u202eevil' in binary",
    "Op type not registered '" + "a" * 50_000 + "' in binary",
    "NodeDef mentions attr '../../x' not in Op<name=..\n;",
    "Value for attr 'T' of " + "9" * 5000 + " must be at least minimum 1",
    "AttrValue has invalid DataType enum: " + "9" * 3000,
    "No OpKernel was registered to support Op '"
    + "(" * 3000
    + "' with these attrs: ["
    + "T=DT_X, " * 4000,
    "GraphDef min consumer version " + "9" * 4000 + " above current version 1",
    "Op " + "x" * 9000 + " is not available in GraphDef version 1. It has been removed in version"
    " 99999999999999999999. y",
    "KernelDef 'op: \"" + "a" * 9000 + "has constraint on attr 'T' that has value '" * 50,
    "Expected one attr with name 'T' in name: \"" + "\\" * 3000,
]


@pytest.mark.parametrize("message", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_are_only_text(message, models):
    skew = name("X", message, "2.21.0", models("newer_op_inner"))
    assert skew is None or json.loads(json.dumps(skew.to_json()))["kind"] in KINDS


def test_hostile_names_in_a_model_are_located(tmp_path):
    evil = "\x1b[31m' of function 'x\n\u202e"
    model = skew_models.model(tmp_path / "m", op="BesselJ0", T="type:float32")
    message = skew_models.layout.read(model).saved_model
    message.meta_graphs[0].graph_def.node[1].name = evil
    skew_models.write(message, model)
    skew = name(
        None, "Op type not registered 'BesselJ0' in binary running on host.", "2.0.4", model
    )
    assert skew.node == evil and json.dumps(skew.to_json())


def test_locating_in_functions_that_call_each_other_ends(tmp_path):
    model = skew_models.model(
        tmp_path / "m",
        op="PartitionedCall",
        f="func:outer",
        Tin=["float32"],
        Tout=["float32"],
        inner=True,
    )
    skew = name(
        None, "Op type not registered 'PartitionedCall' in binary running on host.", "1.8.0", model
    )
    assert skew.kind == "unknown_op" and "and 2 more" in skew.text


def test_an_op_in_a_function_that_nothing_uses_is_told_so(tmp_path):
    model = skew_models.model(tmp_path / "m", op="Relu", T="type:float32")
    skew_models.add_function(model, "lonely", "BesselJ0", T="type:float32")
    skew = name(
        None, "Op type not registered 'BesselJ0' in binary running on host.", "2.0.4", model
    )
    assert (skew.function, skew.chain, skew.signatures) == ("lonely", ("lonely",), ())
    assert "no signature" in skew.text


def test_the_node_that_the_error_names_is_preferred(tmp_path):
    model = skew_models.model(tmp_path / "m", op="BesselJ0", T="type:float32")
    skew_models.add_function(model, "lonely", "BesselJ0", T="type:float32")
    text = (
        "Op type not registered 'BesselJ0' in binary running on host. {{function_node"
        " lonely_load_7}}{{node a/b/body}}"
    )
    skew = name(None, text, "2.0.4", model)
    assert (skew.node, skew.function) == ("body", "lonely") and ", and 1 more" in skew.text
    assert (
        name(
            None, text.replace("lonely_load_7", "x").replace("a/b/body", "victim"), "2.0.4", model
        ).node
        == "victim"
    )


def test_every_reader_of_a_complaint_has_its_kind():
    assert set(naming._READ) | {"removed_op", "renamed_contrib_op"} == set(KINDS)
