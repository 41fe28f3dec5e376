"""reference_impl.errors: a closed family; every member can be provoked through the public API."""

import pickle
import sys
from pathlib import Path
from unittest import mock

import pytest

import reference_impl
from reference_impl import errors
from reference_impl.format import schema
from reference_impl.format.bundle.reader import BundleReader
from reference_impl.format.container import layout
from reference_impl.format.values import dtypes, structure, tensor_proto
from savedmodel_kit.forge.records import Forge

BUNDLES = Path(__file__).parents[1] / "data" / "bundles"


def save(directory, data):
    (directory / "saved_model.pb").write_bytes(data)
    return directory


def model(**fields):
    """A serialised SavedModel of one MetaGraph with these fields."""
    message = schema.SavedModel(saved_model_schema_version=1)
    message.meta_graphs.add(**fields)
    return schema.serialize(message)


def assets(directory, name):
    read = layout.read(save(directory, model(asset_file_def=[schema.AssetFileDef(filename=name)])))
    return read.assets(read.meta_graph())


def records(directory, change):
    """Read a split file that `change` has been at."""
    forge = Forge()
    change(forge)
    forge.save(directory / "saved_model.cpb")
    return layout.read(directory)


def damaged_record(forge):
    forge.records(b"record")
    forge.data[-1] ^= 1


def compressed_record(directory):
    """Read a compressed record where the package for it is not installed."""
    forge = Forge()
    forge.records(b"record", compression=ord("z"))
    forge.save(directory / "saved_model.cpb")
    with mock.patch.dict(sys.modules, {"cramjam": None}):
        return layout.read(directory)


def damaged_index(directory):
    data = bytearray((BUNDLES / "tf2_21_objects.index").read_bytes())
    data[-48:-8] = b"\xff" * 40  # the places of its blocks
    (directory / "c.index").write_bytes(data)
    return BundleReader(directory / "c").keys()


PROVOKED = {
    errors.NotASavedModelError: lambda d: layout.read(d),
    errors.MissingFileError: lambda d: layout.read(d / "absent"),
    errors.FileAccessError: lambda d: layout.read("/dev/null"),
    errors.PathEscapeError: lambda d: assets(d, "../../etc/passwd"),
    errors.MalformedError: lambda d: layout.read(save(d, b"\x7fELF")),
    errors.TruncatedError: lambda d: layout.read(
        save(d, model(meta_info_def={"tags": ["serve"]})[:-1])
    ),
    errors.SchemaVersionError: lambda d: layout.read(save(d, b"\x08\x02")),
    errors.NoMetaGraphError: lambda d: layout.read(save(d, b"\x08\x01")),
    errors.SplitFileError: lambda d: records(d, lambda forge: None),
    errors.UnsupportedError: lambda d: records(d, lambda forge: forge.chunk(b"?", b"", 0, 0)),
    errors.ChecksumError: lambda d: records(d, damaged_record),
    errors.MissingPackageError: compressed_record,
    errors.LimitError: lambda d: tensor_proto.decode(
        schema.TensorProto(dtype=1, tensor_shape={"dim": [{"size": 2**50}]})
    ),
    errors.DtypeError: lambda d: dtypes.by_number(99),
    errors.ShapeError: lambda d: structure.decode_shape(
        schema.TensorShapeProto(dim=[{"size": -9}])
    ),
    errors.DuplicateKeyError: lambda d: structure.decode(
        structure.encode(structure.NamedTuple("N", (("f", 1), ("f", 2))))
    ),
    errors.StructureError: lambda d: structure.encode({1, 2}),
    errors.MissingKeyError: lambda d: BundleReader(BUNDLES / "tf2_21_objects").entry("no such key"),
    errors.CorruptTableError: damaged_index,
    errors.V1CheckpointError: lambda d: BundleReader(BUNDLES / "tf1_15_format_v1"),
}
# Raised where objects are made, which needs TensorFlow.
ELSEWHERE = {errors.CycleError}


@pytest.mark.parametrize("kind", PROVOKED, ids=lambda kind: kind.__name__)
def test_every_member_can_be_provoked(kind, tmp_path):
    with pytest.raises(errors.SavedModelError) as caught:
        PROVOKED[kind](tmp_path)
    assert caught.type is kind
    assert caught.value.reason
    assert str(caught.value).isprintable()


# What only `load` and `save` raise, which have tests of their own.
OF_LIVE_OBJECTS = {
    errors.AliasError,
    errors.BindingError,
    errors.FunctionMatchError,
    errors.InsideFunctionError,
    errors.MachineOpError,
    errors.MetaGraphChoiceError,
    errors.MissingValueError,
    errors.NotTrackableError,
    errors.OptionError,
    errors.SaveError,
    errors.SaveOptionError,
    errors.SignatureError,
    errors.UninitializedVariableError,
    errors.UnknownPathError,
    errors.UnknownSignatureError,
    errors.UnknownTensorError,
    errors.UnsupportedModelError,
    errors.UntracedFunctionError,
    errors.UntrackedCaptureError,
}


@pytest.mark.tensorflow
def test_a_tuple_that_contains_itself(tmp_path):
    message = schema.SavedModel.FromString(model(meta_info_def={"tags": ["serve"]}))
    graph = message.meta_graphs[0].object_graph_def
    graph.nodes.add(
        user_object={"identifier": "_generic_user_object"},
        children=[{"node_id": 1, "local_name": "t"}],
    )
    graph.nodes.add(
        user_object={"identifier": "trackable_tuple_wrapper"},
        children=[{"node_id": 1, "local_name": "0"}],
    )
    with pytest.raises(errors.CycleError) as caught:
        reference_impl.load(save(tmp_path, schema.serialize(message)))
    assert caught.value.node


def test_the_family_is_closed():
    members = {getattr(errors, name) for name in errors.__all__} - {errors.SavedModelError}
    assert all(issubclass(member, errors.SavedModelError) for member in members)
    assert all(getattr(reference_impl, name) is getattr(errors, name) for name in errors.__all__)
    members -= OF_LIVE_OBJECTS
    assert members == set(PROVOKED) | ELSEWHERE
    assert all(member.__bases__[0] is errors.SavedModelError for member in members)
    assert {base for member in members for base in member.__bases__[1:]} <= {
        OSError,
        FileNotFoundError,
        ImportError,
        ValueError,
    }


def test_an_error_tells_file_node_reason_and_clause():
    error = errors.PathEscapeError("leaves", file=Path("a/b.pb"), node="asset_file_def[0]")
    assert (error.file, error.node, error.reason, error.clause) == (
        "a/b.pb",
        "asset_file_def[0]",
        "leaves",
        "RES-14",
    )
    assert str(error) == "a/b.pb: asset_file_def[0]: leaves"
    assert str(errors.MalformedError("broken")) == "broken"
    assert errors.StructureError("x", clause="PY-06").clause == "PY-06"


def test_an_error_cites_the_constraint_that_is_broken():
    error = errors.ChecksumError("it differs", file="f", node="v", rule="SM-BUNDLE-7")
    assert error.rule == "SM-BUNDLE-7" and str(error).endswith("[SM-BUNDLE-7]")
    both = errors.PathEscapeError("leaves", rule="SM-DIR-4")
    assert (both.clause, str(both)) == ("RES-14", "leaves [SM-DIR-4]")
    assert errors.MalformedError("broken").rule is None
    assert pickle.loads(pickle.dumps(error)).rule == "SM-BUNDLE-7"


def test_a_check_of_another_module_is_made_under_a_rule():
    with pytest.raises(errors.ShapeError) as caught, errors.under_rule("SM-BUNDLE-8"):
        raise errors.ShapeError("too many dimensions")
    assert caught.value.rule == "SM-BUNDLE-8"
    with pytest.raises(errors.ShapeError) as caught, errors.under_rule("SM-BUNDLE-8"):
        raise errors.ShapeError("slices overlap", rule="SM-BUNDLE-17")
    assert caught.value.rule == "SM-BUNDLE-17"
    with pytest.raises(KeyError), errors.under_rule("SM-BUNDLE-8"):
        raise KeyError("of another family")


def test_names_from_a_model_cannot_steer_a_terminal():
    text = str(errors.MalformedError("\x1b[2Jcleared\n", file="f\u202eexe.pb", node="a\0b"))
    assert text == "f\\u202eexe.pb: a\\x00b: \\x1b[2Jcleared\\n"


def test_errors_cross_processes():
    error = pickle.loads(
        pickle.dumps(errors.LimitError("r", file="f", node="n", limit="TEXT_BYTES"))
    )
    assert (type(error), error.reason, error.file, error.node, error.limit) == (
        errors.LimitError,
        "r",
        "f",
        "n",
        "TEXT_BYTES",
    )
