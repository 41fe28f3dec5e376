"""The C++ loader behind the protocol: a C++ program of ours is asked with serialized protos
(``runtimes/native/loader.h``).

The program, which is compiled for each runtime, is the argument. When it dies, this process dies
the same way. Python 3.6 syntax, standard library and NumPy.
"""

import faulthandler
import os
import resource
import signal
import struct
import subprocess
import sys

from . import c_library, loader_worker, protocol, serving_methods, signature_wire, tensor_wire
from .tensor_wire import field

CONSUMER = {
    "place": 4,
    "summary": (
        "tensorflow::LoadSavedModel and Session::Run, in a C++ program built against the wheel"
    ),
    "capabilities": ("fetch", "tags"),
    "loader": "servers",
}
LENGTH = struct.Struct("<Q")


class Program(object):
    """The running C++ program. One question at a time."""

    def __init__(self, path):
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        words = [path, str(theirs_in), str(theirs_out)]
        self._process = subprocess.Popen(
            words, pass_fds=(theirs_in, theirs_out), stdin=subprocess.DEVNULL
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._send, self._receive = os.fdopen(ours_out, "wb"), os.fdopen(ours_in, "rb")
        self.pid = self._process.pid
        self._handles = 0
        faulthandler.unregister(signal.SIGUSR1)
        signal.signal(
            signal.SIGUSR1, lambda *_: os.kill(self.pid, signal.SIGUSR1)
        )  # it knows where it hangs

    def new_handle(self):
        """A name for a model."""
        self._handles += 1
        return str(self._handles)

    def ask(self, operation, handle="", feed=(), fetch=()):
        """``[(name, TensorProto)]`` of a RunStepResponse, serialized.

        Raises CError; ends the process where the program died.
        """
        parts = [field(1, handle.encode("utf-8"))]
        parts += [
            field(2, field(1, name.encode("utf-8")) + field(2, tensor_wire.to_wire(tensor)))
            for name, tensor in feed
        ]
        parts += [field(3, name.encode("utf-8")) for name in fetch] + [
            field(4, word.encode("utf-8")) for word in operation
        ]
        answer = signature_wire.fields(memoryview(self._exchanged(b"".join(parts))))
        status = dict(answer)
        c_library.raise_status(
            status.get(3, 0), bytes(status.get(4, b"")).decode("utf-8", "replace")
        )
        named = [dict(signature_wire.fields(value)) for number, value in answer if number == 1]
        return [(bytes(one.get(1, b"")).decode("utf-8"), one.get(2, b"")) for one in named]

    def _exchanged(self, message):
        try:
            self._send.write(LENGTH.pack(len(message)) + message)
            self._send.flush()
            head = self._receive.read(LENGTH.size)
            if len(head) == LENGTH.size:
                (size,) = LENGTH.unpack(head)
                data = self._receive.read(size)
                if len(data) == size:
                    return data
        except BrokenPipeError:
            pass
        return self._die_alike()

    def _die_alike(self):
        """End as the program did, so that the harness sees what killed it."""
        code = self._process.wait()
        if code < 0:
            faulthandler.disable()
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            if -code != signal.SIGKILL:
                signal.signal(-code, signal.SIG_DFL)
            os.kill(os.getpid(), -code)
        os._exit(code)


class Model(object):
    """A loaded MetaGraph of the program."""

    def __init__(self, program, directory, tags):
        self._program, self._handle = program, program.new_handle()
        ((_, meta_graph),) = program.ask(["load", directory] + list(tags), self._handle)
        self.signature_defs = signature_wire.signature_defs(
            tensor_wire.from_wire(meta_graph).array.item()
        )
        self.signatures = signature_wire.described(self.signature_defs)

    def run(self, feed, names):
        """``session.run``: ``feed`` is ``[(tensor name, Tensor)]``.

        Returns the Tensors called ``names``.
        """
        if not names:  # a signature without outputs; TensorFlow refuses to run nothing
            return []
        got = self._program.ask(["run"], self._handle, feed, names)
        if [name for name, _ in got] == ["missing"] != list(names):
            raise KeyError("the graph has no tensor {!r}".format(_text(got[0][1])))
        return [tensor_wire.from_wire(value) for _, value in got]

    def close(self):
        """Close the session and free it."""
        self._program.ask(["close"], self._handle)


def _text(tensor):
    return tensor_wire.from_wire(tensor).array.item().decode("utf-8")


class CppWorker(loader_worker.LoaderWorker):
    """One session per loaded MetaGraph, in the C++ program."""

    name = "cpp"
    capabilities = CONSUMER["capabilities"]

    def __init__(self):
        super(CppWorker, self).__init__()
        self._program = Program(sys.argv[2])
        self.reader = self._program.pid

    def versions(self):
        out = super(CppWorker, self).versions()
        for name, value in self._program.ask(["hello"]):
            out[name] = _text(value)
        return out

    def load(self, directory, tags):
        return Model(self._program, directory, tags)

    def signatures(self, model):
        return serving_methods.marked(super(CppWorker, self).signatures(model), model)


def main():
    protocol.serve(CppWorker)
