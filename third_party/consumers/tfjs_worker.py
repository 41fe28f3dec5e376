"""TensorFlow.js: its converter makes a graph model of one signature, and `tfjs/run.js` runs that in
node, on the CPU backend.

node and npm have to be there. The packages of `tfjs/package-lock.json` are put into the environment
of this worker by its first start, by their hashes.

Outputs are asked for by the names of their nodes. Those that the converter's
`use_structured_outputs_names` writes for `GraphModel.predict` may belong to other outputs: they are
sorted, and the nodes beside them are in the order of a map (tensorflow/tfjs#8204).
"""

import base64
import fcntl
import hashlib
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import traceback
from unittest import mock

import common
import numpy as np
from savedmodel_compat_workers import protocol

SCRIPT = pathlib.Path(__file__).parent / "tfjs" / "run.js"
UNSUPPORTED = (  # the converter's words for ops that TensorFlow.js does not have
    "Unsupported Ops in the model"
)
# the converter's function that is called after whatever error of the first one
SECOND_WAY = "_freeze_saved_model_v1"
# TensorFlow.js dtypes for TensorFlow's (`parseDtypeParam` of its converter package); it has no
# others.
DTYPES = {
    "float16": "float32", "float32": "float32", "float64": "float32",
    "int8": "int32", "int32": "int32", "int64": "int32", "uint8": "int32",
    "complex64": "complex64", "complex128": "complex64", "bool": "bool", "string": "string",
}  # fmt: skip
TAIL = 2000  # characters of what a program complained of


class UnsupportedOps(NotImplementedError):
    """The converter refuses ops that TensorFlow.js does not have."""


class NotConverted(RuntimeError):
    """Why neither of the two ways went in which the converter freezes a model.

    It tells the second one's reason only.
    """


class JavaScriptError(RuntimeError):
    """An error thrown in node; ``error_class`` is its name there."""

    def __init__(self, name, message):
        super().__init__(message)
        self.error_class = name


class TFJSWorker(common.Converting):
    """A signature becomes a graph model, which a process of node has."""

    name = "tfjs"

    def __init__(self):
        super().__init__()
        self.packages = packages()  # before an import that takes long
        from tensorflowjs.converters import tf_saved_model_conversion_v2

        self.converter = tf_saved_model_conversion_v2

    def op_hello(self, request):
        return {**super().op_hello(request), "dtypes": sorted({*DTYPES.values()})}

    def versions(self):
        import tensorflowjs

        node = ended(["node", "--version"]).strip().lstrip("v")
        more = {"tensorflow": self.converter.tf.__version__, "node": node}
        return {**super().versions(), self.name: tensorflowjs.__version__, **more}

    def release(self, model):
        for one in model.converted.values():
            one.close()

    def convert(self, model, key):
        with tempfile.TemporaryDirectory() as folder:
            names = self.written(model, key, folder)
            return Node(self.packages, pathlib.Path(folder, "model.json"), *names)

    def written(self, model, key, folder):
        """Write the graph model of a signature; the tensors of its inputs and outputs, which only
        the loaded model tells.
        """
        load, loaded = self.converter.load, []
        with mock.patch.object(
            self.converter, "load", lambda *words: loaded.append(load(*words)) or loaded[-1]
        ):
            try:
                self.converter.convert_tf_saved_model(
                    model.directory, folder, key, ",".join(model.tags)
                )
            except Exception as error:
                raise refused(error)
        function = loaded[0].signatures[key]
        names = sorted(function.structured_outputs)
        if len(names) != len(function.outputs):
            raise NotImplementedError(
                f"TensorFlow.js has no composite tensors: {len(function.outputs)} tensors for"
                f" {names}"
            )
        inputs = [tensor.name for tensor in function.inputs]
        outputs = [tensor.name for tensor in function.outputs]
        return dict(zip(function._arg_keywords, inputs)), dict(zip(names, outputs))

    def call_signature(self, model, key, inputs):
        entries, outputs = common.fitting(model.signatures, key, inputs)
        node = self.converted(model, key)
        given = {}
        for entry in entries:
            name = node.find(entry.name)
            if name in node.known:  # one that nothing depends on is not there
                given[name] = packed(inputs[entry.name])
        return common.named(
            {name: unpacked(tensor) for name, tensor in node.ask(given).items()}, outputs
        )


def refused(error):
    """Return the exception to raise for an error of the converter."""
    if UNSUPPORTED in str(error):
        return UnsupportedOps(str(error))
    if all(frame.name != SECOND_WAY for frame in traceback.extract_tb(error.__traceback__)):
        return error
    first = error
    while first.__context__ is not None:
        first = first.__context__
    return NotConverted(f"{type(first).__name__}: {first}; then {type(error).__name__}: {error}")


class Node:
    """A process of node with one graph model, which is asked and answers in lines of JSON.

    Raises JavaScriptError.
    """

    def __init__(self, packages, model, inputs, outputs):
        self.inputs, self.outputs = inputs, outputs
        command = ["node", str(SCRIPT), str(packages), str(model)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
        )
        try:
            self.known = self.answer()["inputs"]
        except JavaScriptError:
            self.close()
            raise

    def find(self, name):
        """The node of an input of the signature. Raises KeyError."""
        argument = (
            name if name in self.inputs else "_".join(name.rsplit("/", 1))
        )  # a part of a composite one
        return self.inputs[argument].partition(":")[0]

    def ask(self, inputs):
        try:
            self.process.stdin.write(json.dumps({"inputs": inputs, "outputs": self.outputs}) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # the answer says that it has ended
        return self.answer()["outputs"]

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise JavaScriptError("NodeEnded", f"node has ended with {self.process.wait()}")
        reply = json.loads(line)
        if "error" in reply:
            raise JavaScriptError(reply["error"], reply["message"])
        return reply

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


def packed(tensor):
    """An input for run.js.

    Raises NotImplementedError for what TensorFlow.js has no dtype or no number for.
    """
    if tensor.dtype not in DTYPES:
        raise NotImplementedError(f"TensorFlow.js has no dtype {tensor.dtype}")
    array, dtype = common.to_numpy(tensor), DTYPES[tensor.dtype]
    if dtype == "string":
        data = [base64.b64encode(one).decode() for one in array.ravel().tolist()]
    else:
        known = array.astype(dtype)
        if dtype == "int32" and not np.array_equal(known, array):
            raise NotImplementedError(
                f"TensorFlow.js has int32 for {tensor.dtype}: it cannot hold all numbers of the"
                " input"
            )
        data = base64.b64encode(known.tobytes()).decode()
    return {"dtype": dtype, "shape": list(array.shape), "data": data}


def unpacked(tensor):
    """An output of run.js in the dtype that it has there."""
    shape, data = tensor["shape"], tensor["data"]
    if tensor["dtype"] != "string":
        return np.frombuffer(base64.b64decode(data), tensor["dtype"]).reshape(shape)
    out = np.empty(len(data), object)
    out[:] = [base64.b64decode(one) for one in data]
    return out.reshape(shape)


def packages():
    """The folder of the npm packages, inside this environment; installed if they are not there.

    Raises RuntimeError.
    """
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            raise RuntimeError(
                f"there is no {program} on PATH: install Node.js (18 or newer) and npm:"
                " TensorFlow.js runs there"
            )
    files = [SCRIPT.with_name("package.json"), SCRIPT.with_name("package-lock.json")]
    digest = hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()[:12]
    place = pathlib.Path(sys.prefix, f"npm-{digest}")
    with place.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.is_dir():
            staging = place.with_suffix(".tmp")
            shutil.rmtree(staging, ignore_errors=True)
            staging.mkdir()
            for file in files:
                shutil.copy(file, staging)
            ended(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], staging)
            staging.rename(place)
    return place


def ended(command, folder=None):
    """Return a program's output. Raises RuntimeError with the end of its error output."""
    done = subprocess.run(
        command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8"
    )
    if done.returncode:
        raise RuntimeError(
            f"{' '.join(command)} failed ({done.returncode}):\n{done.stderr[-TAIL:]}"
        )
    return done.stdout


if __name__ == "__main__":
    protocol.serve(TFJSWorker)
