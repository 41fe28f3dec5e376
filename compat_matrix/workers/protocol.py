"""The worker's side of the protocol: a loop over two private file descriptors
(docs/contribute/internals.md).

Python 3.6 syntax, standard library and NumPy. A program subclasses :class:`Worker`, writes the
methods it can answer and calls :func:`serve`; a method it does not have is answered with
``unsupported``.
"""

import collections
import concurrent.futures
import contextlib
import faulthandler
import gc
import importlib
import json
import os
import platform
import select
import signal
import sys
import threading
import traceback

import numpy as np

from savedmodel_common import tensors as tensor_file

from . import past

PROTOCOL = 1
CHANNEL = "SAVEDMODEL_COMPAT_FD"
COMPANIONS = ("keras",)  # part of what was asked where a model is Keras's
# characters of a message or a traceback: a hostile model may make its reader say anything
MAX_TEXT = 20000
HARNESS_GONE = 70  # exit status
COLLECT_AFTER = 10000  # objects, in place of Python's 700


class Unsupported(Exception):
    """The operation is not in this worker's vocabulary."""


class Worker(object):
    """The base of all programs: handles, tensor files, error replies.

    A program sets ``name`` and ``capabilities`` and defines some of ``load``, ``release``,
    ``signatures``,
    ``call_signature``, ``call_function``, ``variables``, ``fetch``, ``describe``,
    ``differentiate``, ``change``, ``resave``
    and ``produce``. ``refusals`` are the
    error classes made for refusing: they are answered with ``rejected``. ``missing`` are those
    among them that say that the
    model lacks what was asked for. They are errors: what was lost on the way to a consumer is not
    refused by it.
    ``reader``: the process that reads the models.
    """

    name = ""
    capabilities = ()
    refusals = (NotImplementedError,)
    missing = ()
    reader = "self"

    def __init__(self):
        self.models = {}
        self._handles = 0

    def versions(self):
        """``{package: version}`` of what this process really uses."""
        out = {"python": platform.python_version(), "numpy": np.__version__}
        for name in COMPANIONS:
            with contextlib.suppress(
                ImportError
            ):  # absent, or Python 3.7, whose standard library cannot tell
                out[name] = importlib.import_module("importlib.metadata").version(name)
        return out

    def release(self, model):
        """Free what ``load`` returned."""

    # The operations
    # ----------------------------------------------------------------------------------------------

    def op_hello(self, request):
        if request.get("protocol") != PROTOCOL:
            raise Unsupported(
                "protocol {}; this worker speaks {}".format(request.get("protocol"), PROTOCOL)
            )
        return {
            "name": self.name,
            "protocol": PROTOCOL,
            "versions": self.versions(),
            "libraries": mapped_libraries(self.reader),
            "capabilities": sorted(self.capabilities),
            "imported": [
                name for name in ("keras", "tensorflow", "tf_keras") if sys.modules.get(name)
            ],
        }

    def op_past(self, request):
        return past.live(request)

    def op_produce(self, request):
        self._method("produce")(request["case"], request["dir"], request["scratch"])
        return {"versions": self.versions()}

    def op_load(self, request):
        model = self._method("load")(request["dir"], request["tags"])
        self._handles += 1
        self.models[self._handles] = model
        return {"handle": self._handles, "rss_kib": resident_kib(self.reader)}

    def op_signatures(self, request):
        return {"signatures": self._method("signatures")(self._model(request))}

    def op_call(self, request):
        model, asked, inputs = self._asked(request)
        reply, outputs = self._called(model, asked, inputs)
        tensor_file.save(request["outputs"], outputs)
        return reply

    def op_call_in_threads(self, request):
        """One call from as many threads at once as ``outputs`` names files; each gets the answer of
        its thread.
        """
        if "threads" not in self.capabilities:
            raise Unsupported("{} answers one thread at a time".format(self.name))
        model, asked, inputs = self._asked(request)
        files = request["outputs"]
        together = threading.Barrier(len(files))

        def call(file):
            together.wait()
            reply, outputs = self._called(model, asked, inputs)
            tensor_file.save(file, outputs)
            return reply.get("structure")

        # No thread is idle before all have met, so the pool starts one for each file.
        with concurrent.futures.ThreadPoolExecutor(len(files)) as pool:
            return {"structures": list(pool.map(call, files))}

    def _asked(self, request):
        """The model of a request, the entry of io.json and the tensors that it gives."""
        model, asked = self._model(request), request["request"]
        return model, asked, tensor_file.load(os.path.join(request["io_dir"], asked["inputs"]))

    def _called(self, model, asked, inputs):
        """``(reply, outputs)`` of one call."""
        if asked["kind"] == "signature":
            return {}, self._method("call_signature")(model, asked["signature"], inputs)
        structure, outputs = self._method("call_function")(
            model, asked["path"], asked["args"], asked["kwargs"], inputs
        )
        return {"structure": structure}, outputs

    def op_variables(self, request):
        naming, values = self._method("variables")(self._model(request))
        tensor_file.save(request["outputs"], values)
        return {"naming": naming}

    def op_fetch(self, request):
        arrays = self._method("fetch")(self._model(request), request["tensors"])
        tensor_file.save(request["outputs"], arrays)
        return {}

    def op_describe(self, request):
        return {"objects": self._method("describe")(self._model(request), request["tags"])}

    def op_differentiate(self, request):
        model, asked, inputs = self._asked(request)
        call = asked["path"], asked["args"], asked["kwargs"]
        tensor_file.save(
            request["outputs"], self._method("differentiate")(model, request["tags"], *call, inputs)
        )
        return {}

    def op_change(self, request):
        return {"changed": self._method("change")(self._model(request), request["tags"])}

    def op_resave(self, request):
        return {
            "tags": self._method("resave")(self._model(request), request["dir"], request["tags"])
        }

    def op_close(self, request):
        model = self._model(request)
        del self.models[request["handle"]]
        self.release(model)
        return {}

    # ---------------------------------------------------------------------------------------------

    def _method(self, name):
        method = getattr(self, name, None)
        if method is None:
            raise Unsupported("{} has no {}".format(self.name, name))
        return method

    def _model(self, request):
        if request["handle"] not in self.models:
            raise KeyError("no model has the handle {}".format(request["handle"]))
        return self.models[request["handle"]]

    def answer(self, request):
        """The reply to one request; never raises for what the request made go wrong."""
        operation = getattr(self, "op_" + str(request.get("op")), None)
        try:
            if operation is None:
                raise Unsupported("no operation called {!r}".format(request.get("op")))
            reply = dict(operation(request), status="ok")
        except BaseException as error:  # also SystemExit: a model's Python may call sys.exit
            reply = self._failure(error)
        reply["id"] = request.get("id")
        return reply

    def _failure(self, error):
        status = "error"
        if isinstance(error, Unsupported):
            status = "unsupported"
        elif isinstance(error, self.refusals) and not isinstance(error, self.missing):
            status = "rejected"
        return {
            "status": status,
            "error_class": getattr(error, "error_class", None) or class_path(type(error)),
            "message": str(error)[:MAX_TEXT],
            "traceback": "".join(
                traceback.format_exception(type(error), error, error.__traceback__)
            )[-MAX_TEXT:],
        }


def class_path(cls):
    """``module.QualifiedName``; built-in errors without their module."""
    if cls.__module__ in ("builtins", None):
        return cls.__qualname__
    return "{}.{}".format(cls.__module__, cls.__qualname__)


def mapped_libraries(process):
    """Paths of the TensorFlow libraries that are mapped into a process (Linux; elsewhere an empty
    list).
    """
    try:
        with open("/proc/{}/maps".format(process), errors="replace") as stream:
            paths = {line.split(None, 5)[5].strip() for line in stream if "/" in line}
    except (IOError, OSError):
        return []
    prefixes = ("libtensorflow", "_pywrap_tensorflow_internal")
    return sorted(path for path in paths if os.path.basename(path).startswith(prefixes))


def resident_kib(process):
    """Resident memory of a process in KiB, or None where the system does not say."""
    try:
        with open("/proc/{}/statm".format(process)) as stream:
            return int(stream.read().split()[1]) * (os.sysconf("SC_PAGE_SIZE") // 1024)
    except (IOError, OSError):
        return None


def serve(make_worker):
    """Answer requests until ``bye`` or until the harness is gone.

    ``make_worker`` is called after the channel is taken over, since importing TensorFlow may fork
    or crash: an error in it is the reply to the first request.
    """
    faulthandler.enable()  # the log of a crash says what Python was doing
    faulthandler.register(signal.SIGUSR1, chain=False)  # and so does, when asked, that of a hang
    read_fd, write_fd = (int(part) for part in os.environ.pop(CHANNEL).split(","))
    for descriptor in (read_fd, write_fd):
        os.set_inheritable(descriptor, False)  # a child of the model must not keep the channel open
    threading.Thread(target=_die_with_harness, args=(read_fd,), daemon=True).start()
    with os.fdopen(read_fd, "rb") as requests, os.fdopen(write_fd, "wb", buffering=0) as replies:
        worker = _make(make_worker)
        for line in iter(requests.readline, b""):
            request = json.loads(line.decode("utf-8"))
            if request.get("op") == "bye":
                _send(replies, {"id": request.get("id"), "status": "ok"})
                return
            _send(replies, worker.answer(request))


def _make(make_worker):
    # TensorFlow's import makes a million objects, and each model many more. Nearly all stay, and
    # Python's collector would visit them again and again (the benchmark "start of a worker").
    gc.disable()
    gc.set_threshold(COLLECT_AFTER)
    try:
        return make_worker()
    except Exception as error:
        failed, caught = Worker(), error

        def answer(request):
            return dict(failed._failure(caught), id=request.get("id"))

        failed.answer = answer
        return failed
    finally:
        if hasattr(gc, "freeze"):  # not in Python 3.6
            gc.freeze()
        gc.enable()


def _send(replies, reply):
    data = memoryview(json.dumps(reply, allow_nan=False).encode("utf-8") + b"\n")
    while data:
        data = data[replies.write(data) :]


def _die_with_harness(read_fd):
    """End the process, whatever it is busy with, when nobody is left to write requests."""
    poller = select.poll()
    poller.register(read_fd, 0)  # POLLHUP is always reported
    poller.poll()
    os._exit(HARNESS_GONE)


def named(pairs):
    """An ordered dict of ``(name, Tensor)`` pairs; ValueError when a name comes twice, so that none
    is lost silently.
    """
    out = collections.OrderedDict()
    for name, tensor in pairs:
        if name in out:
            raise ValueError("two tensors are called {!r}".format(name))
        out[name] = tensor
    return out
