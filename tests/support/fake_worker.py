"""A worker that needs no TensorFlow and misbehaves on demand; run by the tests in place of a real
one.

Its model computes ``y = x / 2 + 2``. What it does wrong stands in the file ``misbehave`` of the
model directory, one word per operation: ``load=abort call=wrong``. See the methods for the words.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

from compat_matrix.workers import protocol
from reference_impl.format import schema
from savedmodel_common import tensors

WRITE_FD = int(os.environ[protocol.CHANNEL].split(",")[1])


TWICE = []


class Refusal(Exception):
    """Made for refusing."""


class FakeWorker(protocol.Worker):
    """Answers like a consumer that reads nothing but ``misbehave``."""

    name = "fake"
    capabilities = ("describe", "functions", "resave", "tags", "threads", "variables")
    refusals = (Refusal,)

    def __init__(self):
        super().__init__()
        starts = os.environ.get("FAKE_STARTS")
        if starts:
            with Path(starts).open("a") as stream:
                stream.write("started\n")
            if len(Path(starts).read_text().split()) <= int(os.environ.get("FAKE_KILLED", "0")):
                os.kill(os.getpid(), signal.SIGKILL)
        if os.environ.get("FAKE_BROKEN"):
            raise ImportError("this runtime is broken")
        self.loads = 0

    def answer(self, request):
        reply = super().answer(request)
        if TWICE:
            TWICE.clear()
            os.write(WRITE_FD, (json.dumps(reply) + "\n").encode() * 2)
        return reply

    def versions(self):
        return dict(super().versions(), fake="1.0")

    def load(self, directory, tags):
        self.loads += 1
        path = Path(directory, "misbehave")
        words = (
            dict(word.split("=", 1) for word in path.read_text().split()) if path.exists() else {}
        )
        program = sys.argv[-1]  # `c_api_worker/call=wrong`: only who plays that one
        words.update(
            {
                key.partition("/")[2]: word
                for key, word in words.items()
                if key.startswith(f"{program}/")
            }
        )
        misbehave(words.get("load"))
        return dict(words, directory=directory)

    def signatures(self, model):
        misbehave(model.get("signatures"))
        spec = {"dtype": "float32", "shape": [-1]}
        return {
            "serving_default": {"inputs": {"x": spec}, "outputs": {model.get("output", "y"): spec}}
        }

    def call_signature(self, model, key, inputs):
        misbehave(model.get("call"))
        y = inputs["x"].array / np.float32(2) + np.float32(2)
        if model.get("call") == "wrong":
            y[-1] += 1
        if model.get("call") == "near":
            y[-1] += np.float32(2**-10)
        if model.get("call") == "count":  # the state of this model
            model["count"] = model.get("count", 0) + 1
            y += model["count"]
        if model.get("call") == "chance":  # another answer from every load
            y += self.loads
        if model.get("call") == "double":
            y = y.astype(np.float64)
        return {model.get("output", "y"): tensors.from_numpy(y)}

    def call_function(self, model, path, args, kwargs, inputs):
        misbehave(model.get("call"))
        if path == "loads":
            return self.loads, {}
        if path == "close_count":
            return len(self.models), {}
        return {"$tuple": [{"$tensor": "o0"}]}, {"o0": inputs["a0"]}

    def variables(self, model):
        return "key", {}

    def describe(self, model, tags):
        return {"naming": "name", "variables": {}, "functions": {}}

    def differentiate(self, model, tags, path, args, kwargs, inputs):
        return {}

    def change(self, model, tags):
        return 0

    def fetch(self, model, names):
        return {}

    def resave(self, model, directory, tags):
        misbehave(model.get("resave"))
        shutil.copytree(model["directory"], directory)
        if model.get("resave") == "forget":
            shutil.rmtree(Path(directory, "assets.extra"), ignore_errors=True)
        path = Path(directory, "saved_model.pb")
        saved = schema.parse(schema.SavedModel, path.read_bytes())
        graph = saved.meta_graphs[0]
        nodes, limit = (
            len(graph.graph_def.node),
            {"settle": 3, "grow": 100}.get(model.get("resave"), 0),
        )
        if nodes < limit:
            graph.graph_def.node.add(name=f"more_{nodes}", op="NoOp")
        if model.get("resave") == "lose" and "serving_default" in graph.signature_def:
            del graph.signature_def["serving_default"]
        if model.get("resave") == "classify":
            graph.signature_def["serving_default"].method_name = "tensorflow/serving/classify"
        path.write_bytes(schema.serialize(saved))
        return tags

    def produce(self, case, directory, scratch):
        misbehave(os.environ.get("FAKE_PRODUCE"))
        for folder in ("model", "io"):
            Path(directory, folder).mkdir()
        Path(directory, "model", "made_by").write_text(str(os.getpid()))
        Path(directory, "io", "io.json").write_text('{"schema": 1, "requests": []}')


def misbehave(word):
    if word == "abort":
        sys.stderr.write("about to abort\n")
        os.abort()
    elif word == "exit":
        os._exit(3)
    elif word == "hang":
        time.sleep(600)
    elif word == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif word == "garbage":
        os.write(WRITE_FD, b"this is no reply\n")
    elif word == "skewed_garbage":
        os.write(WRITE_FD, b"Op type not registered 'Placeholder' in binary running on host\n")
    elif word == "other_id":
        os.write(WRITE_FD, b'{"id": 12345, "status": "ok"}\n')
    elif word == "half":
        os.write(WRITE_FD, b"half a line ")
    elif word == "late":
        threading.Timer(0.05, os.write, (WRITE_FD, b"too late\n")).start()
    elif word == "twice":
        TWICE.append(word)
    elif word == "flood":
        for stream in (sys.stdout, sys.stderr):
            for number in range(4096):
                stream.write("line {} {}\n".format(number, "x" * 1000))
    elif word == "close":
        os.close(WRITE_FD)
        time.sleep(600)
    elif word == "fork":
        if os.fork() == 0:
            time.sleep(600)  # keeps the channel open after the parent is gone
        os._exit(4)
    elif word and word.startswith("child:"):
        child = subprocess.Popen(["sleep", "600"])
        Path(word.partition(":")[2]).write_text(str(child.pid))
        time.sleep(600)
    elif word and word.startswith("pid:"):
        Path(word.partition(":")[2]).write_text(str(os.getpid()))
        time.sleep(600)
    elif word == "error":
        raise OSError("no such op")
    elif word == "skew":
        raise LookupError("Op type not registered 'Placeholder' in binary running on host.")
    elif word == "refuse":
        raise Refusal("this is by design")
    elif word == "unsupported":
        raise protocol.Unsupported("not in the vocabulary")
    elif word == "sys_exit":
        sys.exit(5)
    elif word == "disk":
        raise OSError(28, "No space left on device")


if __name__ == "__main__":
    protocol.serve(FakeWorker)
