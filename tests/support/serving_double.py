"""A double of ``tensorflow_model_server``: its flags, its APIs as far as drivers use them, and
models that misbehave on order.

A model is a folder ``NAME/1`` with a file ``behaviour`` (lines ``load ...`` and ``predict ...``,
see ``_act``). The server is told by the environment, or by a file ``server`` beside the
configuration: ``no_reload``, ``exit TEXT``, ``slow SECONDS``. It needs no TensorFlow; it runs in a
container as well (``serving_image.py``).
"""

import json
import os
import signal
import sys
import threading
import time
from concurrent import futures
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

VERSION = "TensorFlow ModelServer: 2.15.1-rc0+dev.sha.9bd1e5a\nTensorFlow Library: 2.15.1\n"


def log(letter, text):
    print(
        f"{time.strftime('%Y-%m-%d %H:%M:%S')}.000000: {letter} double/server.cc:1] {text}",
        file=sys.stderr,
        flush=True,
    )


class Refused(Exception):
    pass


def _act(base, step):
    """Does what the model of ``base`` is told to do at ``load`` or ``predict``."""
    behaviour = Path(base, "1", "behaviour").read_text().splitlines()
    for line in behaviour:
        when, what, *rest = line.split(" ", 2)
        if when != step:
            continue
        if what == "refuse":
            raise Refused(" ".join(rest))
        if what == "slow":
            time.sleep(float(rest[0]))
        elif what == "hang":
            time.sleep(3600)
        elif what == "memory":
            hoard = []
            while True:
                hoard.append(os.urandom(1 << 20))
        elif what == "exit":
            log("F", f"Check failed: {base}")
            os._exit(int(rest[0]))
        elif what == "die":
            log("F", f"Check failed: {base}")
            os.kill(os.getpid(), getattr(signal, rest[0]))
            time.sleep(3600)
        elif what == "freeze":
            os.kill(os.getpid(), signal.SIGSTOP)
            time.sleep(3600)
        elif what == "read":
            log("I", f"{rest[0]}: {Path(base, '1', rest[0]).read_text()}")
        elif what == "write":
            Path(base, "1", "written").write_text("x")


def _privileges():
    """Its capabilities, whether it can get more, and whether it can write to the root file
    system.
    """
    told = dict(
        line.split(":\t", 1)
        for line in Path("/proc/self/status").read_text().splitlines()
        if ":\t" in line
    )
    writable = os.access("/", os.W_OK) and not os.statvfs("/").f_flag & os.ST_RDONLY
    return (
        f"caps {int(told['CapEff'], 16)} more {1 - int(told['NoNewPrivs'])} writes {int(writable)}"
    )


class Core:
    """The models that are held, loaded one after the other like the real server's."""

    def __init__(self):
        self.states = {}
        self.lock = threading.Lock()

    def hold(self, models):
        with self.lock:
            for name in set(self.states) - set(models):
                self.states[name] = ("END", "")
            fresh = [
                name
                for name in models
                if name not in self.states or self.states[name] == ("END", "")
            ]
            bad = False
            for name in fresh:
                self.states[name] = ("LOADING", "")
                log("I", f"Loading servable version {{name: {name} version: 1}}")
                try:
                    _act(models[name], "load")
                    self.states[name] = ("AVAILABLE", "")
                    log("I", f"Successfully loaded servable version {{name: {name} version: 1}}")
                except (Refused, OSError) as error:
                    bad = True
                    log("E", f"Servable {name} cannot be loaded: {error}")
                    self.states[name] = ("END", str(error))
            self.models = dict(models)
            return not bad

    models = {}


def grpc_server(core, port, options):
    import grpc

    from savedmodel_common.serving import messages

    def status(request, context):
        name = request.model_spec.name
        if name not in core.states:
            context.abort(grpc.StatusCode.NOT_FOUND, f"Could not find any versions of model {name}")
        state, text = core.states[name]
        answer = messages.GetModelStatusResponse()
        one = answer.model_version_status.add(
            version=1, state=messages.ModelVersionStatus.State.Value(state)
        )
        one.status.error_code, one.status.error_message = (3 if text else 0), text
        return answer

    def reload(request, context):
        if "no_reload" in options:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, "no such method")
        if not core.hold(
            {one.name: one.base_path for one in request.config.model_config_list.config}
        ):
            context.abort(grpc.StatusCode.UNKNOWN, "Some models did not become available")
        return messages.ReloadConfigResponse()

    def predict(request, context):
        _act(core.models[request.model_spec.name], "predict")
        return messages.PredictResponse()

    calls = {"GetModelStatus": status, "HandleReloadConfigRequest": reload, "Predict": predict}
    by_service = {}
    for name, call in calls.items():
        method = messages.METHODS[name]
        _, service, _ = method.path.split("/")
        handler = grpc.unary_unary_rpc_method_handler(
            call, method.request.FromString, method.response.SerializeToString
        )
        by_service.setdefault(service, {})[name] = handler
    server = grpc.server(futures.ThreadPoolExecutor(8), options=[("grpc.so_reuseport", 0)])
    for service, handlers in by_service.items():
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
    server.add_insecure_port(f"[::]:{port}")
    server.start()
    return server


def rest_server(core, port):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            name = self.path.rpartition("/")[2]
            found = core.states.get(name)
            if found is None:
                return self._answer(404, {"error": f"Could not find any versions of model {name}"})
            status = {
                "error_code": "INVALID_ARGUMENT" if found[1] else "OK",
                "error_message": found[1],
            }
            return self._answer(
                200,
                {"model_version_status": [{"version": "1", "state": found[0], "status": status}]},
            )

        def _answer(self, code, told):
            body = json.dumps(told).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("0.0.0.0", port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()


def main(arguments):
    from google.protobuf import text_format

    flags = dict(one.lstrip("-").partition("=")[::2] for one in arguments)
    if "version" in flags:
        print(VERSION, end="", flush=True)
        return 0
    config = Path(flags["model_config_file"])
    server_file = config.parent / "server"
    lines = server_file.read_text().splitlines() if server_file.exists() else []
    options = dict(
        line.partition(" ")[::2] for line in lines + os.environ.get("DOUBLE", "").splitlines()
    )
    log("I", f"flags {json.dumps(flags)} uid {os.getuid()} pid {os.getpid()} {_privileges()}")
    if "exit" in options:
        log("E", options["exit"])
        return 1
    time.sleep(float(options.get("slow", 0)))

    from savedmodel_common.serving import messages

    told = text_format.Parse(config.read_text(), messages.ModelServerConfig())
    core = Core()
    if not core.hold({one.name: one.base_path for one in told.model_config_list.config}):
        return 255
    server = grpc_server(core, int(flags["port"]), options)
    rest_server(core, int(flags["rest_api_port"]))
    log("I", "Exporting HTTP/REST API")
    server.wait_for_termination()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
