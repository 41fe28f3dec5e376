"""savedmodel_common.serving.messages: our declarations of TensorFlow Serving's messages."""

import importlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2

from reference_impl import errors
from reference_impl.format import schema
from reference_impl.format.schema import _pool
from savedmodel_common.serving import messages

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "savedmodel_common" / "serving" / "schema"

# Declared by the published package, not by us: streaming of language models and options of a
# session that nobody here asks for.
LEFT_OUT = {
    "PredictRequest.predict_streamed_options",
    "PredictRequest.client_id",
    "PredictRequest.request_options",
    "PredictRequest.RequestOptions",
    "PredictStreamedOptions",
    "PredictStreamedLog",
    "PredictionLog.predict_streamed_log",
    "SessionRunRequest.options",
    "SessionRunResponse.metadata",
    "PerTaskSamplingConfig",
    "SamplingConfig.per_task_sampling_configs",
    "SamplingConfig.Attributes",
    "LogMetadata.dc",
    "LogMetadata.request_origin",
    "LogMetadata.request_criticality",
    "LogMetadata.safe_aggregation_privacy_key",
    "PlatformConfig",
    "PlatformConfigMap",
    "SessionService",
    "FeatureList",
    "FeatureLists",
    "SequenceExample",
}
# The package lacks the file of the first two, and before 2.19 the rest.
NOT_PUBLISHED = {
    "PrometheusConfig",
    "MonitoringConfig",
    "Metric",
    "LoggingConfig.custom_logging_config",
}
NOT_PUBLISHED |= {"ReloadConfigRequest.metric_names", "ReloadConfigResponse.metric"}
# Answers as they are read from servers that check no UTF-8, and the file of a flag.
RAW = {
    "RawStatus": "StatusProto",
    "RawModelVersionStatus": "ModelVersionStatus",
    "RawModelStatusResponse": "GetModelStatusResponse",
    "RawReloadConfigResponse": "ReloadConfigResponse",
}
NOT_PUBLISHED |= {*RAW, "BatchingParameters"}

# In an interpreter of its own: the package registers its messages, and TensorFlow's, for the whole
# process.
DUMP = """
import glob, importlib, os, sys
from google.protobuf import descriptor_pb2
import tensorflow_serving
root = os.path.dirname(list(tensorflow_serving.__path__)[0])
files = descriptor_pb2.FileDescriptorSet()
for path in sorted(glob.glob(root + "/tensorflow_serving/*/*_pb2.py")):
    module = importlib.import_module(os.path.relpath(path, root)[:-3].replace(os.sep, "."))
    module.DESCRIPTOR.CopyToProto(files.file.add())
from tensorflow.core.example import example_pb2, feature_pb2
from tensorflow.core.protobuf import named_tensor_pb2
for module in (example_pb2, feature_pb2, named_tensor_pb2):
    module.DESCRIPTOR.CopyToProto(files.file.add())
sys.stdout.buffer.write(files.SerializeToString())
"""


def described(message, prefix=""):
    """{path: what a reader of the wire sees} of a message and everything in it."""
    found = {prefix + message.name: "message"}
    for field in message.field:
        choice = (
            message.oneof_decl[field.oneof_index].name if field.HasField("oneof_index") else None
        )
        found[f"{prefix}{message.name}.{field.name}"] = (
            field.number,
            field.type,
            field.type_name,
            field.label,
            choice,
        )
    for enum in message.enum_type:
        found[f"{prefix}{message.name}.{enum.name}"] = sorted(
            (value.name, value.number) for value in enum.value
        )
    for nested in message.nested_type:
        found.update(described(nested, f"{prefix}{message.name}."))
    return found


def declared(files):
    found = {}
    for file in files:
        for message in file.message_type:
            found.update(described(message))
        for enum in file.enum_type:
            found[enum.name] = sorted((value.name, value.number) for value in enum.value)
        for service in file.service:
            found[service.name] = sorted(
                (item.name, item.input_type, item.output_type) for item in service.method
            )
    return found


def test_the_published_package_declares_the_same():
    if importlib.util.find_spec("tensorflow_serving") is None:
        pytest.skip("tensorflow-serving-api is not installed; it brings a TensorFlow")
    # What protoc of old made of the older packages works with this implementation only.
    env = {**os.environ, "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python"}
    done = subprocess.run([sys.executable, "-c", DUMP], capture_output=True, check=True, env=env)
    theirs = declared(descriptor_pb2.FileDescriptorSet.FromString(done.stdout).file)
    ours = declared(
        descriptor_pb2.FileDescriptorSet.FromString(
            (FOLDER / "descriptors.binpb").read_bytes()
        ).file
    )
    assert without(LEFT_OUT, set(theirs) - set(ours)) == set()
    assert without(NOT_PUBLISHED, set(ours) - set(theirs)) == set()
    both = set(ours) & set(theirs)
    assert {path: (ours[path], theirs[path]) for path in both if ours[path] != theirs[path]} == {}
    assert len(both) > 150


def test_raw_answers_have_the_fields_of_the_published_ones():
    found = descriptor_pb2.FileDescriptorSet.FromString((FOLDER / "descriptors.binpb").read_bytes())
    fields = {message.name: message.field for file in found.file for message in file.message_type}
    for raw, published in RAW.items():
        theirs = {field.name: field.number for field in fields[published]}
        assert {field.name: field.number for field in fields[raw]}.items() <= theirs.items()


def without(known, paths):
    return {
        path
        for path in paths
        if not any(path == out or path.startswith(out + ".") for out in known)
    }


def test_the_committed_descriptors_are_those_of_the_proto_files():
    pytest.importorskip("grpc_tools", reason="grpcio-tools (extra: dev) compiles the schema")
    command = [sys.executable, "-m", "reference_impl.format.schema.build", "--check", str(FOLDER)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_methods_have_the_names_of_the_api():
    assert {name: method.path for name, method in messages.METHODS.items()} == {
        "Predict": "/tensorflow.serving.PredictionService/Predict",
        "Classify": "/tensorflow.serving.PredictionService/Classify",
        "Regress": "/tensorflow.serving.PredictionService/Regress",
        "MultiInference": "/tensorflow.serving.PredictionService/MultiInference",
        "GetModelMetadata": "/tensorflow.serving.PredictionService/GetModelMetadata",
        "GetModelStatus": "/tensorflow.serving.ModelService/GetModelStatus",
        "HandleReloadConfigRequest": "/tensorflow.serving.ModelService/HandleReloadConfigRequest",
    }
    assert messages.METHODS["Predict"].request is messages.PredictRequest
    assert messages.METHODS["HandleReloadConfigRequest"].response is messages.ReloadConfigResponse


EXERCISE = """
from google.protobuf.internal import api_implementation
from reference_impl.format import schema
early = schema.parse(schema.NodeDef, b"")  # the pool is in use before the folder joins it
from savedmodel_common.serving import messages as m

request = m.PredictRequest(output_filter=["y"])
request.model_spec.name = "half"
request.model_spec.version.value = 3
request.inputs["x"].CopyFrom(schema.TensorProto(dtype=schema.DT_FLOAT, float_val=[1.5]))
assert request.model_spec.WhichOneof("version_choice") == "version"
data = schema.serialize(request)
assert data.hex() == "0a0a0a0468616c6612020803" + "120d0a0178120808012a040000c03f" + "1a0179", data.hex()
assert schema.parse(m.PredictRequest, data) == request

map = m.SignatureDefMap()
map.signature_def["serving_default"].inputs["x"].CopyFrom(schema.TensorInfo(name="x:0"))
answer = m.GetModelMetadataResponse()
answer.metadata["signature_def"].Pack(map)
assert answer.metadata["signature_def"].type_url == "type.googleapis.com/tensorflow.serving.SignatureDefMap"
read = m.SignatureDefMap()
assert answer.metadata["signature_def"].Unpack(read) and read == map
assert type(read.signature_def["serving_default"]) is schema.SignatureDef

text = 'model_config_list { config { name: "a" base_path: "/m" version_labels { key: "v" value: 7 }'
text += " model_version_policy { all {} } } }"
config = schema.parse_text(m.ModelServerConfig, text)
assert config.model_config_list.config[0].version_labels["v"] == 7
assert config.model_config_list.config[0].model_version_policy.WhichOneof("policy_choice") == "all"
streamed = bytes.fromhex("2a020801")  # PredictRequest.predict_streamed_options, which is not declared
assert schema.serialize(schema.parse(m.PredictRequest, streamed)) == streamed
assert m.ModelVersionStatus.State.Name(30) == "AVAILABLE"
print(api_implementation.Type(), "ok")
"""


def run(program, **environment):
    env = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_every_implementation_of_the_installed_protobuf_agrees():
    assert run(EXERCISE, PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION="python") == ["python", "ok"]
    assert run(EXERCISE)[1:] == ["ok"]


@pytest.mark.tensorflow
@pytest.mark.parametrize("first", [True, False])
def test_lives_beside_tensorflow_whichever_comes_first(first):
    theirs = (
        "import tensorflow as tf\nassert tf.train.Example.DESCRIPTOR.full_name =="
        " 'tensorflow.Example'\n"
    )
    assert run(theirs + EXERCISE if first else EXERCISE + theirs)[1:] == ["ok"]


def test_import_stays_light():
    program = """
import sys
from savedmodel_common.serving import messages
from savedmodel_servers import client
print(sorted(set(sys.modules) & {"tensorflow", "keras", "grpc", "docker", "http.client"}))
"""
    assert run(program) == ["[]"]


def test_broken_bytes_give_a_named_error_at_a_place():
    """The counting of messages goes through pools of its own, which must know the folder too."""
    with pytest.raises(errors.TruncatedError) as caught:
        schema.parse(messages.PredictRequest, bytes.fromhex("0a05"))
    assert caught.value.node == "model_spec"
    assert _pool.schema(_pool.unopened).pool.FindMessageTypeByName(
        "tensorflow.serving.PredictRequest"
    )
