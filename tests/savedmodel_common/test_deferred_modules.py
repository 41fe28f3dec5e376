"""A deferred module is imported at its first use, and protobuf works without and with it."""

import os
import subprocess
import sys

import pytest

from savedmodel_common import fast
from savedmodel_common.fast import deferred_modules

PROGRAM = f"""
import sys
from savedmodel_common.fast.deferred_modules import defer_pure_messages
defer_pure_messages()
from google.protobuf import descriptor_pb2
from google.protobuf.internal import api_implementation
kind = api_implementation.Type()
message = descriptor_pb2.FileDescriptorProto(name="a")
assert message == descriptor_pb2.FileDescriptorProto.FromString(message.SerializeToString())
before = "google.protobuf.internal.decoder" in sys.modules
from google.protobuf.internal import python_message
assert python_message.GeneratedProtocolMessageType.__name__ == "GeneratedProtocolMessageType"
assert sys.modules["{deferred_modules.PURE_MESSAGES}"] is python_message
from google.protobuf import text_format
assert text_format.MessageToString(message) == str(message)
print(kind, before, "google.protobuf.internal.decoder" in sys.modules)
"""


def run(**settings):
    kept = {key: value for key, value in os.environ.items() if key != fast.PLAIN}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=kept | settings,
        check=True,
        capture_output=True,
        text=True,
    )
    kind, before, after = done.stdout.split()
    assert after == "True"
    return kind, before == "True"


def test_compiled_messages_need_no_pure_ones():
    kind, imported = run()
    if kind == "python":
        pytest.skip("this protobuf has no compiled messages")
    assert not imported


@pytest.mark.parametrize(
    "settings", [{fast.PLAIN: "1"}, {"PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python"}]
)
def test_plain(settings):
    assert run(**settings)[1]


def test_no_such_module():
    deferred_modules.defer("no_package_of_this_name.module")
    deferred_modules.defer("json.no_module_of_this_name")
    assert "json.no_module_of_this_name" not in sys.modules
