"""A REST server whose answers are written out by hand, and a client of it."""

import http.server
import json
import threading

import numpy as np
import pytest

from reference_impl.format import schema
from savedmodel_common.serving import messages
from savedmodel_common.tensors import Tensor
from savedmodel_servers.client import ModelRef
from savedmodel_servers.rest_client import RestClient

LIMIT = 20.0
HALF = ModelRef("half")

METADATA = """{
"model_spec":{
 "name": "half", "signature_name": "", "version": "123"
},
"metadata": {"signature_def": {
 "signature_def": {
  "serving_default": {
   "inputs": {
    "x": {"dtype": "DT_FLOAT", "tensor_shape": {"dim": [{"size": "-1", "name": ""}], "unknown_rank": false}, "name": "x:0"}
   },
   "outputs": {
    "y": {"dtype": "DT_FLOAT", "tensor_shape": {"dim": [{"size": "-1", "name": ""}], "unknown_rank": false}, "name": "y:0"}
   },
   "method_name": "tensorflow/serving/predict",
   "defaults": {}
  },
  "two": {
   "inputs": {
    "k": {"dtype": "DT_INT64", "tensor_shape": {"dim": [], "unknown_rank": false}, "name": "k:0"},
    "x": {"dtype": "DT_FLOAT", "tensor_shape": {"dim": [], "unknown_rank": true}, "name": "x:0"}
   },
   "outputs": {
    "text": {"dtype": "DT_STRING", "tensor_shape": {"dim": [], "unknown_rank": true}, "name": "t:0"},
    "y": {"dtype": "DT_INT64", "tensor_shape": {"dim": [{"size": "-1", "name": ""}], "unknown_rank": false}, "name": "y:0"}
   },
   "method_name": "tensorflow/serving/predict",
   "defaults": {"k": {"dtype": "DT_INT64", "tensor_shape": {"dim": []}, "int64_val": ["9007199254740993"]}}
  },
  "half": {
   "inputs": {"x": {"dtype": "DT_FLOAT", "tensor_shape": {"unknown_rank": true}, "name": "x:0"}},
   "outputs": {"y": {"dtype": "DT_HALF", "tensor_shape": {"unknown_rank": true}, "name": "y:0"}},
   "method_name": "tensorflow/serving/predict",
   "a_field_of_a_later_release": {"x": 1}
  }
 }
}
}
}
"""
STATUS = """{
 "model_version_status": [
  {
   "version": "123",
   "state": "AVAILABLE",
   "status": {"error_code": "OK", "error_message": ""}
  },
  {"version": "4", "state": "END", "status": {"error_code": "NOT_FOUND", "error_message": "no such file"}}
 ]
}
"""


class Fake(http.server.BaseHTTPRequestHandler):
    """Answers what the server's `answers` have for a path: text with status 200, or (status,
    text).
    """

    protocol_version = "HTTP/1.1"

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.asked.append(
            (self.command, self.path, json.loads(body) if body else None, self.client_address[1])
        )
        found = self.server.answers.get(
            self.path, (404, '{ "error": "Servable not found for request: Latest(half)" }')
        )
        status, text = found if isinstance(found, tuple) else (200, found)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        data = text.encode() if isinstance(text, str) else text
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = answer

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True


@pytest.fixture
def fake():
    with Server(("127.0.0.1", 0), Fake) as server:
        server.answers = {"/v1/models/half/metadata": METADATA, "/v1/models/half": STATUS}
        server.asked = []
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def asking(fake):
    with RestClient("127.0.0.1", fake.server_port) as found:
        yield found


PREDICT = "/v1/models/half:predict"


def floats(*values):
    return Tensor("float32", np.float32(values))


def example(**features):
    found = messages.Example()
    for name, value in features.items():
        kind = {bytes: "bytes_list", float: "float_list", int: "int64_list"}[type(value[0])]
        getattr(found.features.feature[name], kind).value.extend(value)
    return schema.serialize(found)
