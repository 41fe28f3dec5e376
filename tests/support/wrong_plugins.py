"""A consumer with one mistake: ``python wrong_plugins.py MISTAKE``.

The sample of the docs, spoilt in one place each.
"""

import json
import os
import signal
import sys
import time
import zipfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "savedmodel_plugin_kit/samples"))
from numpy_consumer import NumpyWorker

from compat_matrix.workers import protocol
from savedmodel_common import tensors
from savedmodel_common.tensors import Tensor

MISTAKE = sys.argv[1]
send, save = protocol._send, tensors.save


class Wrong(NumpyWorker):
    """What a worker can do wrong within its operations."""

    capabilities = {
        "claims_resave": ("fetch", "resave", "tags"),
        "misspelt_capability": ("fetches",),
        "one_thread_answers": ("fetch", "tags", "threads"),
        "claims_functions": ("fetch", "functions", "tags"),
        "forgets_variables": ("fetch", "tags", "variables"),
    }.get(MISTAKE, NumpyWorker.capabilities)
    previous, remembered, beside, requests = {}, {}, {}, 0

    def answer(self, request):
        self.requests += 1
        if MISTAKE == "dies_of_old_age" and self.requests > 100:
            sys.exit("out of handles")
        if MISTAKE == "short_lines" and len(json.dumps(request)) > 1 << 16:
            return {
                "id": request["id"],
                "status": "error",
                "error_class": "Overflow",
                "message": "64 KiB are enough for anybody",
            }
        reply = super().answer(request)
        if (
            MISTAKE == "answers_functions"
            and request["op"] == "call"
            and request["request"]["kind"] == "function"
        ):
            reply = {"id": request["id"], "status": "ok"}
        if MISTAKE == "swallows_errors" and reply["status"] == "error":
            reply = {"id": request["id"], "status": "ok", "handle": 99}
        if MISTAKE == "dies_of_errors" and reply["status"] == "error":
            sys.exit(reply["message"])
        if MISTAKE == "no_message" and reply["status"] == "error":
            reply["message"] = ""
        if MISTAKE == "unknown_is_error" and reply["status"] == "unsupported":
            reply["status"] = "error"
        if MISTAKE == "unknown_hangs" and reply["status"] == "unsupported":
            time.sleep(3600)
        if MISTAKE == "null_handle" and "handle" in reply:
            reply["handle"] = str(reply["handle"])
        return reply

    def op_hello(self, request):
        if MISTAKE == "any_protocol":
            request = {**request, "protocol": 1}
        if MISTAKE == "floods":
            sys.stderr.write("a line that nobody reads\n" * 300000)
        reply = super().op_hello(request)
        if MISTAKE == "no_versions":
            del reply["versions"]
        return reply

    def load(self, directory, tags):
        if MISTAKE == "loads_nothing":
            return None
        if MISTAKE == "writes_into_model":
            (Path(directory) / "cache.bin").write_bytes(b"cache")
        if MISTAKE == "refuses_everything":
            raise NotImplementedError("not today")
        if MISTAKE == "any_tags":
            tags = ["serve"]
        return super().load(directory, tags)

    def op_load(self, request):
        reply = super().op_load(request)
        self.beside[reply["handle"]] = Path(request["dir"]).parent / "io"
        if MISTAKE == "one_handle":
            self.models[1] = self.models[reply["handle"]]
            reply["handle"] = 1
        return reply

    def signatures(self, model):
        found = super().signatures(model)
        if MISTAKE == "dtypes_of_numpy":
            for sides in found.values():
                for spec in (spec for side in sides.values() for spec in side.values()):
                    spec["dtype"] = np.dtype(spec["dtype"]).str
        if MISTAKE == "one_shape":
            for sides in found.values():
                for spec in (spec for side in sides.values() for spec in side.values()):
                    spec["shape"] = [1]
        return found

    def variables(self, model):
        if MISTAKE != "forgets_variables":
            raise protocol.Unsupported("variables")
        return "name", {}

    def fetch(self, model, names):
        found = super().fetch(model, names)
        return (
            dict(zip(found, reversed(found.values())))
            if MISTAKE == "fetches_in_another_order"
            else found
        )

    def op_call_in_threads(self, request):
        if MISTAKE == "one_thread_answers":
            request = {**request, "outputs": request["outputs"][:1]}
        return super().op_call_in_threads(request)

    def op_call(self, request):
        records = {
            "returns_records": Path(request["io_dir"]),
            "looks_beside_the_model": self.beside.get(request["handle"]),
        }
        name = request["request"].get("outputs")
        if name and records.get(MISTAKE):
            Path(request["outputs"]).write_bytes((records[MISTAKE] / name).read_bytes())
            return {}
        return super().op_call(request)

    def op_close(self, request):
        return (
            {}
            if MISTAKE == "close_does_nothing" and request["handle"] in self.models
            else super().op_close(request)
        )

    def call_signature(self, model, key, inputs):
        if MISTAKE == "falls_back" and key not in model.signatures:
            key = "same"
        if MISTAKE == "ignores_key":
            key = min(model.signatures)
            key = "same" if "same" in model.signatures else key
        if MISTAKE == "remembers_inputs":
            self.remembered.update(inputs)
            inputs = {
                name: self.remembered[name]
                for name in self.signatures(model)[key]["inputs"]
                if name in self.remembered
            }
        if MISTAKE == "ignores_further_inputs":
            inputs = {name: inputs[name] for name in self.signatures(model)[key]["inputs"]}
        if MISTAKE == "casts_inputs":
            wanted = self.signatures(model)[key]["inputs"]
            inputs = {
                n: Tensor("float32", t.array.astype("f4")) if wanted[n]["dtype"] == "float32" else t
                for n, t in inputs.items()
            }
        if MISTAKE == "empty_answers":
            return {}
        if MISTAKE == "dies":
            os._exit(1)
        answer = super().call_signature(model, key, inputs)
        if MISTAKE == "keeps_state":
            self.previous, answer = answer, self.previous or answer
        if MISTAKE == "swaps_outputs" and len(answer) == 2:
            (a, one), (b, other) = answer.items()
            answer = {a: other, b: one}
        if MISTAKE == "names_outputs_by_tensor":
            answer = {
                model.signatures[key].outputs[name].name: value for name, value in answer.items()
            }
        return {name: spoilt(tensor) for name, tensor in answer.items()}


def spoilt(tensor):
    """A tensor with the mistake in it."""
    array, numeric = tensor.array, tensor.dtype != "string"
    if MISTAKE == "transposes" and array.ndim == 2:
        return Tensor(tensor.dtype, np.ascontiguousarray(array.T))
    if MISTAKE == "transposes_data" and array.ndim == 2:
        return Tensor(tensor.dtype, np.ascontiguousarray(array.T).reshape(array.shape))
    if MISTAKE == "floats_as_text" and array.dtype.kind == "f":
        return tensors.from_numpy(
            np.array([str(x) for x in array.ravel()], object).reshape(array.shape)
        )
    if MISTAKE == "swaps_bytes" and numeric:
        return Tensor(tensor.dtype, array.byteswap())
    if MISTAKE == "no_scalars" and array.ndim == 0:
        return Tensor(tensor.dtype, array.reshape(1))
    if MISTAKE in ("cuts_at_nul", "text_strings") and not numeric:
        cut = (
            (lambda s: s.split(b"\0")[0])
            if MISTAKE == "cuts_at_nul"
            else (lambda s: s.decode("utf-8", "replace").encode())
        )
        out = np.empty(array.size, object)
        out[:] = [cut(item) for item in array.ravel().tolist()]
        return Tensor("string", out.reshape(array.shape))
    if MISTAKE == "one_nan" and array.dtype.kind == "f":
        return Tensor(tensor.dtype, np.where(np.isnan(array), np.array(np.nan, array.dtype), array))
    if MISTAKE == "no_minus_zero" and array.dtype.kind == "f":
        return Tensor(tensor.dtype, np.where(array == 0, np.array(0, array.dtype), array))
    if MISTAKE == "answers_nan" and array.dtype.kind == "f":
        return Tensor(tensor.dtype, np.full_like(array, np.nan))
    if MISTAKE == "one_ulp" and array.dtype.kind == "f":
        return Tensor(tensor.dtype, np.nextafter(array, np.array(np.inf, array.dtype)))
    if MISTAKE == "all_float32" and tensor.dtype == "float64":
        return Tensor("float32", array.astype("f4"))
    if MISTAKE == "int64_through_double" and tensor.dtype == "int64":
        return Tensor("int64", array.astype("f8").clip(-(2.0**63), 2.0**63 - 2048).astype("i8"))
    return tensor


def save_wrong(path, values):
    """The file of the outputs, written wrongly."""
    save(path, values)
    if MISTAKE == "nothing_written":
        Path(path).unlink()
    if MISTAKE == "big_endian":
        with zipfile.ZipFile(path, "w") as archive:
            arrays = {f"t{i}.npy": t.array for i, t in enumerate(values.values())}
            meta = [
                {"name": n, "dtype": t.dtype, "shape": list(t.array.shape)}
                for n, t in values.items()
            ]
            arrays["meta.npy"] = np.frombuffer(json.dumps(meta).encode(), np.uint8)
            for name, array in arrays.items():
                with archive.open(name, "w") as stream:
                    np.lib.format.write_array(stream, array.astype(array.dtype.newbyteorder(">")))
    if MISTAKE == "plain_npz":
        np.savez(str(path)[:-4], **{name: tensor.array for name, tensor in values.items()})


def send_wrong(replies, reply):
    """The line of a reply, written wrongly."""
    if MISTAKE == "wrong_id":
        reply = {**reply, "id": 1}
    if MISTAKE == "id_as_text":
        reply = {**reply, "id": str(reply["id"])}
    if MISTAKE == "prints_to_stdout":
        print(json.dumps(reply), flush=True)
        return
    if MISTAKE == "chats_on_the_channel":
        replies.write(b"loading the model...\n")
    send(replies, reply)
    if MISTAKE == "says_more":
        replies.write(b'{"progress": 100}\n')


def main():
    protocol._send, tensors.save = send_wrong, save_wrong
    protocol.tensor_file.save = save_wrong
    if MISTAKE == "ignores_sigterm":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if MISTAKE in ("hangs_at_the_end", "stays_after_bye"):
        protocol._die_with_harness = lambda descriptor: None
    protocol.serve(Wrong)
    if MISTAKE in ("hangs_at_the_end", "stays_after_bye"):
        time.sleep(3600)


if __name__ == "__main__":
    main()
