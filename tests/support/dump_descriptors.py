"""Print as JSON what an installed TensorFlow declares for the messages of SavedModels and
checkpoints. Python 3.6 syntax.

    python tests/support/dump_descriptors.py > tests/data/descriptors-tf1.15.5.json

`test_format_schema.py` compares our schema with the committed output of old releases and with that
of the installed one.
"""

import importlib
import json
import sys

from google.protobuf.descriptor import FieldDescriptor

MODULES = [
    "tensorflow.core.protobuf.saved_model_pb2",
    "tensorflow.core.protobuf.trackable_object_graph_pb2",
    "tensorflow.core.protobuf.tensor_bundle_pb2",
    "tensorflow.core.protobuf.fingerprint_pb2",
    "tensorflow.core.protobuf.control_flow_pb2",
    "tensorflow.core.protobuf.queue_runner_pb2",
    "tensorflow.core.framework.graph_debug_info_pb2",
    "tensorflow.core.protobuf.graph_debug_info_pb2",
    "tensorflow.core.util.saved_tensor_slice_pb2",
]
TYPES = {
    value: name[5:].lower()
    for name, value in vars(FieldDescriptor).items()
    if name.startswith("TYPE_")
}


def is_repeated(field):
    known = getattr(field, "is_repeated", None)  # a newer protobuf has it, and no label
    return field.label == FieldDescriptor.LABEL_REPEATED if known is None else known


def add_message(message, out):
    fields = {}
    for field in message.fields:
        target = field.message_type or field.enum_type
        kind = target.full_name if target else TYPES[field.type]
        fields[field.name] = [field.number, kind, "repeated" if is_repeated(field) else "single"]
    out["messages"][message.full_name] = fields
    for enum in message.enum_types:
        out["enums"][enum.full_name] = {value.name: value.number for value in enum.values}
    for nested in message.nested_types:
        add_message(nested, out)


def add_file(file, out, seen):
    if file.name in seen or file.package == "google.protobuf":
        return
    seen.add(file.name)
    for dependency in file.dependencies:
        add_file(dependency, out, seen)
    for enum in file.enum_types_by_name.values():
        out["enums"][enum.full_name] = {value.name: value.number for value in enum.values}
    for message in file.message_types_by_name.values():
        add_message(message, out)


def main():
    out = {"messages": {}, "enums": {}}
    seen = set()
    for name in MODULES:
        try:
            module = importlib.import_module(name)
        except ImportError:  # younger or older than this TensorFlow
            continue
        add_file(module.DESCRIPTOR, out, seen)
    json.dump(out, sys.stdout, indent=0, sort_keys=True)


main()
