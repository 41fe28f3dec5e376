"""reference_impl.format.schema: our declarations of TensorFlow's messages."""

import importlib.util
import json
import mmap
import os
import subprocess
import sys
from pathlib import Path
from random import Random

import fresh_tensorflow
import pytest
from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.internal import api_implementation
from google.protobuf.message import DecodeError

from reference_impl import errors
from reference_impl.format import limits, schema
from reference_impl.format.schema import _count, _examine, _kept, _pool
from reference_impl.format.schema._kept import Kept
from reference_impl.format.schema.ordered import ordered_bytes
from reference_impl.format.wire import write_varint

HERE = Path(__file__).parents[1]
TYPES = {
    value: name[5:].lower()
    for name, value in vars(FieldDescriptor).items()
    if name.startswith("TYPE_")
}

# What a release had and ours has not: nothing reads it, its number is reserved or taken over by the
# new name.
GONE = {
    "descriptors-tf1.15.5": {
        "tensorflow.TrackableObjectGraph.TrackableObject.SerializedTensor.optional_restore"
    },
    "descriptors-tf2.4.4": {
        "tensorflow.TrackableObjectGraph.TrackableObject.SerializedTensor.optional_restore",
        "tensorflow.FunctionSpec.experimental_compile",
        "tensorflow.FunctionSpec.ExperimentalCompile",
        "tensorflow.SpecializedType",
    },
    "installed": set(),
}


def run(program, **environment):
    """Run a program text in a fresh interpreter; returns what it printed."""
    env = {**os.environ, "PYTHONPATH": str(HERE.parent), **environment}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def describe(field):
    target = field.message_type or field.enum_type
    kind = target.full_name if target else TYPES[field.type]
    return [field.number, kind, "repeated" if schema.is_repeated(field) else "single"]


def differences(declared):
    """What TensorFlow declares and our schema does not, or not so."""
    pool = _pool.schema().pool
    missing, different = set(), []
    for name, fields in declared["messages"].items():
        ours = pool.FindMessageTypeByName(name).fields_by_name
        missing.update(f"{name}.{field}" for field in fields if field not in ours)
        different += [
            (name, field)
            for field in fields
            if field in ours and describe(ours[field]) != fields[field]
        ]
    for name, values in declared["enums"].items():
        try:
            ours = pool.FindEnumTypeByName(name).values_by_name
        except KeyError:
            missing.add(name)
        else:
            different += [
                (name, value)
                for value in values
                if value not in ours or ours[value].number != values[value]
            ]
    return missing, different


@pytest.mark.parametrize("release", ["descriptors-tf1.15.5", "descriptors-tf2.4.4"])
def test_old_releases_declare_the_same(release):
    declared = json.loads((HERE / "data" / f"{release}.json").read_text())
    assert len(declared["messages"]) > 90
    assert differences(declared) == (GONE[release], [])


@pytest.mark.tensorflow
def test_the_installed_tensorflow_declares_the_same():
    declared = json.loads(fresh_tensorflow.printed(HERE / "support" / "dump_descriptors.py"))
    assert len(declared["messages"]) > 90
    assert differences(declared) == (GONE["installed"], [])


@pytest.mark.tensorflow
def test_the_split_format_is_declared_as_in_tensorflows_library():
    """The wheel has no Python module for these messages, but the library registers their
    descriptor, serialised.
    """
    spec = importlib.util.find_spec("tensorflow")
    library = next(Path(spec.submodule_search_locations[0]).glob("libtensorflow_framework.so*"))
    name = b"tensorflow/tools/proto_splitter/chunk.proto"
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        start = data.find(b"\n" + bytes([len(name)]) + name)
        if start < 0:
            pytest.skip("this TensorFlow does not split models")  # nor does 2.12
        end = data.find(b"b\x06proto3", start) + 8
        theirs = descriptor_pb2.FileDescriptorProto.FromString(data[start:end])
    pool = _pool.schema().pool
    assert {message.name for message in theirs.message_type} >= {
        "ChunkMetadata",
        "ChunkedMessage",
        "FieldIndex",
    }
    for message in theirs.message_type:
        ours = descriptor_pb2.DescriptorProto()
        pool.FindMessageTypeByName(f"{theirs.package}.{message.name}").CopyToProto(ours)
        for field in ours.field:
            field.ClearField("json_name")
        assert [fields(nested) for nested in (ours, *ours.nested_type)] == [
            fields(nested) for nested in (message, *message.nested_type)
        ]


def fields(message):
    return sorted(
        (field.number, field.name, field.type, field.label, field.type_name)
        for field in message.field
    )


def test_the_committed_descriptors_are_those_of_the_proto_files():
    pytest.importorskip("grpc_tools", reason="grpcio-tools (extra: dev) compiles the schema")
    command = [sys.executable, "-m", "reference_impl.format.schema.build", "--check"]
    done = subprocess.run(command, cwd=HERE.parent, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


EXERCISE = """
import json, sys
from google.protobuf.internal import api_implementation
from reference_impl import errors
from reference_impl.format import schema

model = schema.SavedModel(saved_model_schema_version=1)
graph = model.meta_graphs.add()
node = graph.graph_def.node.add(name="x", op="Const")
node.attr["dtype"].type = schema.DT_FLOAT
node.attr["bytes"].s = b"\\xff"
graph.graph_def.library.function.add().arg_attr[3].attr["k"].i = 4
graph.meta_info_def.CopyFrom(schema.MetaGraphDef.MetaInfoDef(tags=["serve"]))
graph.object_graph_def.nodes.add().serialized_user_proto.Pack(schema.SerializedDType(datatype=schema.DT_INT32))
spec = graph.object_graph_def.nodes.add().function.function_spec
spec.jit_compile = schema.FunctionSpec.ON
assert schema.FunctionSpec.JitCompile.Name(1) == "ON" and schema.DataType.Value("DT_HALF") == schema.DT_HALF == 19
data = schema.serialize(model)
text = schema.to_text(model)
assert "[type.googleapis.com/tensorflow.SerializedDType]" in text, text
assert schema.serialize(schema.parse_text(schema.SavedModel, text)) == data
assert schema.serialize(schema.parse(schema.SavedModel, data)) == data
unpacked = schema.SerializedDType()
assert schema.parse(schema.SavedModel, data).meta_graphs[0].object_graph_def.nodes[0].serialized_user_proto.Unpack(unpacked)
assert unpacked.datatype == 3
unknown = bytes([0xFA, 0x07, 3]) + b"abc"
assert schema.serialize(schema.parse(schema.SavedModel, data + unknown)) == data + unknown
for bad, kind in [
    (b"\\x0a\\x01\\xff", "MalformedError"), (b"\\x0a\\x05a", "TruncatedError"), (b"\\x0a" + b"\\xff" * 10, "MalformedError"),
    (b"\\x0f", "MalformedError"), (b"\\x00", "MalformedError"), (b"\\x0b", "TruncatedError"), (b"\\x0c", "MalformedError"),
]:
    try:
        schema.parse(schema.NodeDef, bad, "file")
        sys.exit(f"{bad} was accepted")
    except errors.SavedModelError as error:
        assert (type(error).__name__, error.file) == (kind, "file"), (bad, error)
print(api_implementation.Type(), data.hex())
"""


def test_every_implementation_of_the_installed_protobuf_agrees():
    """Python's is slow but always there; the other is C or C++, whichever this release has."""
    python = run(EXERCISE, PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION="python").split()
    default = run(EXERCISE).split()
    assert python[0] == "python"
    assert default[0] == api_implementation.Type() != "python"
    assert default[1] == python[1]


@pytest.mark.tensorflow
@pytest.mark.parametrize("first", ["tensorflow", "schema"])
def test_lives_beside_tensorflow_whichever_comes_first(first):
    imports = {
        "tensorflow": "from tensorflow.core.protobuf import saved_model_pb2",
        "schema": (
            "from reference_impl.format import schema; ours ="
            " schema.SavedModel(saved_model_schema_version=1)"
        ),
    }
    second = imports[{"tensorflow": "schema", "schema": "tensorflow"}[first]]
    program = f"""{imports[first]}
{second}
import tensorflow as tf
theirs = saved_model_pb2.SavedModel(saved_model_schema_version=1)
assert type(ours) is not type(theirs) and ours.SerializeToString() == theirs.SerializeToString()
assert saved_model_pb2.SavedModel.FromString(schema.serialize(ours)) == theirs
print(int(tf.constant(3)))
"""
    assert run(program).split()[-1] == "3"


def test_import_stays_light():
    program = """
import sys
from reference_impl.format import schema
schema.SavedModel()
print(sorted(set(sys.modules) & {"numpy", "tensorflow", "keras", "ml_dtypes", "cramjam"}))
"""
    assert run(program).strip() == "[]"


def test_names_are_attributes():
    assert {"SavedModel", "DataType", "DT_FLOAT", "Any", "ChunkMetadata", "parse"} <= set(
        dir(schema)
    )
    assert schema.VersionDef.DESCRIPTOR.full_name == "tensorflow.VersionDef"
    assert schema.SavedModel is schema.SavedModel
    assert schema.TrackableObjectGraph.TrackableObject.ObjectReference(node_id=3).node_id == 3
    with pytest.raises(AttributeError, match="NoSuchMessage"):
        schema.NoSuchMessage  # noqa: B018


def test_unknown_fields_survive_in_nested_messages_and_map_values():
    unknown = bytes([0xFA, 0x07, 3]) + b"abc"
    attr = b"\x12\x01v" + unknown  # AttrValue.s, then field 127
    entry = b"\x0a\x01k\x12" + write_varint(len(attr)) + attr
    node = b"\x0a\x01n\x2a" + write_varint(len(entry)) + entry + unknown
    message = schema.parse(schema.NodeDef, node)
    assert message.attr["k"].s == b"v"
    message.name = "m"
    data = schema.serialize(message)
    assert len(data) == len(node)
    assert data.count(unknown) == 2


def test_serialised_maps_are_sorted():
    forward, backward = schema.SignatureDef(), schema.SignatureDef()
    for key in "abcdefgh":
        forward.inputs[key].name = key
    for key in reversed("abcdefgh"):
        backward.inputs[key].name = key
    assert schema.serialize(forward) == schema.serialize(backward)


def nested(depth):
    """A FullTypeDef with this many levels below the outermost."""
    data = b""
    for _ in range(depth):
        data = b"\x12" + write_varint(len(data)) + data
    return data


def entry(key, value):
    """An entry of NodeDef.attr."""
    return (
        b"\x2a"
        + write_varint(len(key) + len(value) + 4)
        + b"\x0a"
        + bytes([len(key)])
        + key
        + b"\x12"
        + bytes([len(value)])
        + value
    )


def delimited(number, content):
    return write_varint(number << 3 | 2) + write_varint(len(content)) + content


GRAPH = schema.serialize(
    schema.GraphDef(node=[schema.NodeDef(name="a"), schema.NodeDef(name="bcd")])
)

BROKEN = {
    "not a message": (
        schema.SavedModel,
        b"\x7fELF\x02\x01",
        errors.MalformedError,
        "#15",
        "wire type 7",
    ),
    "cut off": (
        schema.GraphDef,
        GRAPH[:-1],
        errors.TruncatedError,
        "node",
        "5 bytes are promised, 4 are left",
    ),
    "cut off inside": (
        schema.GraphDef,
        GRAPH + b"\x0a\x03\x0a\x05a",
        errors.TruncatedError,
        "node[2].name",
        "are left",
    ),
    "hostile length": (
        schema.GraphDef,
        b"\x0a\xff\xff\xff\xff\x07",
        errors.TruncatedError,
        "node",
        "2147483647 bytes",
    ),
    "bad text": (
        schema.GraphDef,
        b"\x0a\x03\x0a\x01\xff",
        errors.MalformedError,
        "node[0].name",
        "not UTF-8",
    ),
    "bad text in a map key": (
        schema.NodeDef,
        entry(b"\xff", b""),
        errors.MalformedError,
        "attr[0].key",
        "not UTF-8",
    ),
    "packed floats": (
        schema.TensorProto,
        b"\x2a\x03abc",
        errors.MalformedError,
        "float_val",
        "4-byte",
    ),
    "packed integers": (
        schema.TensorProto,
        b"\x3a\x01\xff",
        errors.MalformedError,
        "int_val",
        "cut off",
    ),
    "too deep": (schema.FullTypeDef, nested(101), errors.LimitError, "args[0]", "deeper than 100"),
    "far too deep": (
        schema.FullTypeDef,
        nested(50_000),
        errors.LimitError,
        "args[0]",
        "deeper than 100",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_bytes_give_a_named_error_at_a_place(case):
    cls, data, kind, node, reason = BROKEN[case]
    with pytest.raises(kind, match=reason) as caught:
        schema.parse(cls, data, "some/file.pb")
    assert caught.value.file == "some/file.pb"
    assert caught.value.node.startswith(node)
    assert len(caught.value.node) < 300


def test_nesting_up_to_the_limit_is_read():
    assert schema.serialize(
        schema.parse(schema.FullTypeDef, nested(limits.MESSAGE_DEPTH))
    ) == nested(limits.MESSAGE_DEPTH)


def test_a_message_too_deep_to_be_read_again_is_not_written():
    message = schema.FullTypeDef()
    innermost = message
    for _ in range(limits.MESSAGE_DEPTH + 1):
        innermost = innermost.args.add()
    with pytest.raises(errors.LimitError):
        schema.parse(schema.FullTypeDef, schema.serialize(message))


@pytest.mark.skipif(
    api_implementation.Type() == "cpp", reason="protobuf 3.20's C++ keeps entries as they came"
)
def test_duplicate_map_keys_are_found_anywhere():
    node = b"\x0a\x01n" + entry(b"k", b"") + entry(b"other", b"") + entry(b"k", b"\x12\x01v")
    data = b"\x0a" + write_varint(len(node)) + node
    with pytest.raises(errors.DuplicateKeyError, match="'k' twice") as caught:
        schema.parse(schema.GraphDef, data, "f")
    assert caught.value.node == "node[0].attr"
    with pytest.raises(errors.DuplicateKeyError, match="'k' twice"):
        schema.parse_text(
            schema.NodeDef, 'attr { key: "k" value { i: 1 } } attr { key: "k" value { i: 2 } }'
        )


def attr(content):
    """An entry of NodeDef.attr."""
    return delimited(5, content)


def i_is(number):
    """The value of an entry of NodeDef.attr: an AttrValue."""
    return delimited(2, b"\x18" + write_varint(number))


# Encodings that are larger when they are written again, with the bytes that each gains. As many
# bytes are lost with the first of two entries that have one key.
GAINS = {
    "an entry without a key": (2, [attr(i_is(1))]),
    "an entry without a value": (2, [attr(delimited(1, b"k"))]),
    "an entry without both": (4, [attr(b"")]),
    "a list of one element that is not packed": (
        1,
        [attr(delimited(1, b"k") + delimited(2, delimited(1, b"\x18\x07")))],
    ),
    "a negative number cut to 32 bits": (
        5,
        [attr(delimited(1, b"k") + delimited(2, b"\x30\xff\xff\xff\xff\x0f"))],
    ),
}


@pytest.mark.skipif(
    api_implementation.Type() == "cpp", reason="protobuf 3.20's C++ keeps entries as they came"
)
@pytest.mark.parametrize("case", GAINS)
def test_a_duplicate_key_is_found_where_the_size_stays_the_same(case):
    gain, entries = GAINS[case]
    lost = attr(delimited(1, b"k" * 12) + i_is(1))
    twice = delimited(1, delimited(1, b"n") + lost + lost)
    others = [delimited(1, b"".join(entries)) for _ in range(len(lost) // gain)]
    data = twice + b"".join(others)
    message = schema.GraphDef.FromString(data)
    assert len(lost) == 20 and message.ByteSize() == len(data)
    with pytest.raises(errors.DuplicateKeyError) as caught:
        schema.parse(schema.GraphDef, data)
    assert caught.value.rule == "SM-DIR-11" and caught.value.node == "node[0].attr"
    assert len(schema.parse(schema.GraphDef, b"".join(others)).node) == 20 // gain


IN_PARTS = delimited(1, delimited(1, b"f") + delimited(2, b""))  # concrete_functions
TWICE = {
    "in two parts of one message": (
        schema.MetaGraphDef,
        delimited(7, delimited(2, IN_PARTS[2:])) + delimited(7, delimited(2, IN_PARTS[2:])),
    ),
    "a number and the default of a missing number": (
        schema.GraphDebugInfo,
        delimited(4, b"\x09" + bytes(8) + delimited(2, b"")) + delimited(4, delimited(2, b"")),
    ),
    "numbers that are equal in 32 bits": (
        schema.FunctionDef,
        delimited(8, b"\x08\x07\x10\x01")
        + delimited(8, b"\x08" + write_varint(2**32 + 7) + b"\x10\x01"),
    ),
}


@pytest.mark.skipif(
    api_implementation.Type() == "cpp", reason="protobuf 3.20's C++ keeps entries as they came"
)
@pytest.mark.parametrize("case", TWICE)
def test_a_key_may_be_the_same_in_another_form(case):
    cls, data = TWICE[case]
    with pytest.raises(errors.DuplicateKeyError):
        schema.parse(cls, data)


def random_attributes(random, depth=0):
    """Attributes of a node, some of them in unusual encodings, some of them twice."""
    parts = []
    for _ in range(random.randrange(4)):
        key = random.choice(
            [b"", b"", delimited(1, b""), *[delimited(1, b"%c" % c) for c in b"abcdef"]]
        )
        value = random.choice(
            [
                b"",
                i_is(0),
                i_is(300),
                delimited(2, b""),
                delimited(2, delimited(1, b"\x18\x07")),
                delimited(2, delimited(1, delimited(3, b"\x07"))),
                delimited(2, b"\x30\xff\xff\xff\xff\x0f"),
                delimited(2, b"\xb0\x00\x01"),
                delimited(2, b"\xfa\x07\x01u"),
            ]
        )
        if depth < 2 and random.random() < 0.4:
            inner = random_attributes(random, depth + 1).replace(b"\x2a", b"\x12", 1)
            value = delimited(2, delimited(10, delimited(1, b"f") + inner))
        parts.append(delimited(5 if not depth else 2, key + value))
    return b"".join(parts)


@pytest.mark.skipif(
    api_implementation.Type() == "cpp", reason="protobuf 3.20's C++ keeps entries as they came"
)
def test_sizes_and_fields_agree_about_duplicate_keys():
    """A message passes by its size only if reading it field by field finds no key twice."""
    random = Random(11)
    passed = failed = 0
    for _ in range(3_000):
        nodes = [delimited(1, random_attributes(random)) for _ in range(random.randrange(1, 6))]
        data = b"".join(nodes)
        try:
            message = schema.GraphDef.FromString(data)
        except DecodeError:
            continue
        fault = _examine.examine(data, schema.GraphDef.DESCRIPTOR, keys_only=True)
        if fault is not None:
            failed += 1
            assert _kept.kept(message, data) is Kept.UNSETTLED, data
        else:
            passed += _kept.kept(message, data) is not Kept.UNSETTLED
    assert min(passed, failed) > 300, (passed, failed)


def test_a_search_for_duplicate_keys_that_ends_early_is_an_error(monkeypatch):
    """What was not examined may hold a key twice."""
    monkeypatch.setattr(limits, "WIRE_FIELDS", 40)
    odd = delimited(1, attr(i_is(1)))
    assert len(schema.parse(schema.GraphDef, odd * 10).node) == 10
    with pytest.raises(errors.LimitError) as caught:
        schema.parse(schema.GraphDef, odd * 20)
    assert caught.value.limit == "WIRE_FIELDS"


@pytest.mark.skipif(
    api_implementation.Type() == "python", reason="it does not count what it discards"
)
def test_fields_of_a_later_release_do_not_make_reading_slow(monkeypatch):
    """Nor are they lost."""
    later = delimited(127, b"new")
    forward = delimited(1, entry(b"b", b"") + entry(b"a", b"") + later)
    monkeypatch.setattr(_examine, "examine", None)
    message = schema.parse(schema.GraphDef, forward * 3 + later)
    assert schema.serialize(message).count(later) == 4


def test_the_same_key_in_two_maps_is_fine():
    """Also in encodings that nobody's writer uses today: they are read a second time, and pass."""
    data = b"".join(entry(key, b"") for key in (b"a", b"b")) + b"\x2a\x03\x0a\x01c"
    both = b"\x0a" + write_varint(len(data)) + data
    message = schema.parse(schema.GraphDef, both * 2)
    assert [sorted(node.attr) for node in message.node] == [["a", "b", "c"]] * 2
    assert message.ByteSize() != len(both * 2)


MANY = {
    "at the top": delimited(2, b"") * 300,
    "in a small message": delimited(2, delimited(2, delimited(1, b"") * 300)),
    "in many small messages": delimited(2, delimited(2, delimited(1, delimited(5, b"")) * 150)),
    "in a large message": delimited(
        2, delimited(2, delimited(1, b"") * 300 + delimited(1, delimited(2, b"x" * 70_000)))
    ),
}


@pytest.mark.parametrize("case", MANY)
def test_messages_are_counted_before_they_are_made(monkeypatch, case):
    """Two bytes in a file may be a hundred in memory."""
    data = b"\x08\x01" + MANY[case]
    monkeypatch.setattr(limits, "MESSAGES", 250)
    with pytest.raises(errors.LimitError, match="more than 250 messages") as caught:
        schema.parse(schema.SavedModel, data)
    assert caught.value.limit == "MESSAGES"
    monkeypatch.setattr(limits, "MESSAGES", 310)
    schema.parse(schema.SavedModel, data)


@pytest.mark.parametrize("op", ["Conv", "BRbj"])  # letters of the second could each begin a message
def test_a_file_may_have_more_messages_the_larger_it_is(monkeypatch, op):
    """Refusing the 100,000 functions of a sound model is a defect.

    So is a small file that takes gigabytes of memory.
    """
    monkeypatch.setattr(limits, "DENSE_MESSAGES", 100)
    data = delimited(1, delimited(2, op.encode())) * 150
    assert len(schema.parse(schema.GraphDef, data).node) == 150
    for parts in (delimited(1, b"") * 150, delimited(1, delimited(5, delimited(1, b""))) * 150):
        with pytest.raises(errors.LimitError, match=r"more than [12][0-9]{2} messages"):
            schema.parse(schema.GraphDef, parts)
    monkeypatch.setattr(limits, "MESSAGES", 140)
    with pytest.raises(errors.LimitError, match="more than 140 messages"):
        schema.parse(schema.GraphDef, data)


def test_only_bytes_that_may_be_an_attack_are_counted_one_by_one(monkeypatch):
    """Counting in Python takes longer than everything else that `inspect` does."""
    monkeypatch.setattr(limits, "DENSE_MESSAGES", 100)
    monkeypatch.setattr(_count, "_Counter", None)
    assert len(schema.parse(schema.GraphDef, delimited(1, delimited(2, b"Conv")) * 150).node) == 150


@pytest.mark.parametrize("case", ["cut off", "bad text", "packed floats"])
def test_counting_leaves_broken_bytes_to_the_parser(monkeypatch, case):
    cls, data, kind, _, _ = BROKEN[case]
    monkeypatch.setattr(limits, "MESSAGES", 2)
    with pytest.raises(kind):
        schema.parse(cls, data)


TEXTS = {
    "unknown field": ("no_such_field: 1", errors.MalformedError, "no_such_field"),
    "position": ("saved_model_schema_version: 1\nmeta_graphs {", errors.MalformedError, "2:"),
    "not UTF-8": (b"\xff\xfe", errors.MalformedError, "utf-8"),
    "unknown type in an Any": (
        (
            "meta_graphs { object_graph_def { nodes { serialized_user_proto {"
            " [type.googleapis.com/tensorflow.Nope] {} } } } }"
        ),
        errors.MalformedError,
        "tensorflow.Nope",
    ),
    "too deep": (
        'meta_graphs { object_graph_def { concrete_functions { key: "f" value { output_signature {'
        + "list_value { values {" * 2000
        + "}}" * 2000
        + "}}}}}",
        errors.LimitError,
        "deeper than 100",
    ),
}


@pytest.mark.parametrize("case", TEXTS)
def test_broken_text_gives_a_named_error(case):
    text, kind, reason = TEXTS[case]
    with pytest.raises(kind, match=reason) as caught:
        schema.parse_text(schema.SavedModel, text, "saved_model.pbtxt")
    assert caught.value.file == "saved_model.pbtxt"


@pytest.mark.skipif(
    api_implementation.Type() != "upb", reason="the others keep the entry, as TensorFlow does"
)
def test_an_entry_of_a_map_with_more_than_key_and_value_is_refused():
    """Protobuf from 4 on leaves it out of the map, without a word and in another order each
    time.
    """
    entry = b"\x0a\x01k\x12\x02\x18\x01"  # attr "k": i = 1
    for odd in (entry + b"\x18\x01", b"\x08\x05" + entry[3:], entry + b"\x7a\x00"):
        data = b"\x2a" + bytes([len(odd)]) + odd
        with pytest.raises(errors.MalformedError, match=r"key nor .*value") as caught:
            schema.parse(schema.NodeDef, data)
        assert caught.value.node.startswith("attr[0]")
    assert schema.parse(schema.NodeDef, b"\x2a\x07" + entry).attr["k"].i == 1
    beside = schema.parse(schema.NodeDef, b"\x2a\x07" + entry + b"\x92\x3f\x03new")
    assert beside.attr["k"].i == 1 and schema.serialize(beside).endswith(b"new")


def test_no_class_is_left_to_the_garbage_collector():
    """A class that the collector takes apart in one thread while another thread meets it ends the
    process.
    """
    program = """
import gc, weakref
from reference_impl.format import schema
graph = schema.SavedModel().meta_graphs.add().graph_def
held = weakref.ref(type(graph.node.add().experimental_debug_info))  # no code of ours names this type
del graph
gc.collect()
assert held() is not None
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_structure_that_comes_again_has_the_same_bytes_in_order():
    """`ordered_bytes` keeps those of short structures; a change of one is seen."""

    def function(name):
        saved = schema.SavedObjectGraph()
        for key in ("f", "g"):
            fields = saved.concrete_functions[key].output_signature.dict_value.fields
            for field in ("ab", "a", name):
                fields[field].string_value = field
        return saved

    first, again, other = (ordered_bytes(function(name)) for name in ("abc", "abc", "b"))
    assert first == again != other
    assert first.index(b"\x0a\x01a") < first.index(b"\x0a\x02ab") < first.index(b"\x0a\x03abc")
    for data, name in ((first, "abc"), (other, "b")):
        assert schema.parse(schema.SavedObjectGraph, data) == function(name)
