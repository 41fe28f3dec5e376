"""The generators of the fixtures (``fixtures_v1/<case>/generate.py``), run in any TensorFlow from
1.4 on. Python 3.6 syntax.

Each runs in a fork of this process, which has imported TensorFlow and done nothing with it: default
graph, seeds, patched UUIDs, registered protos, the switch between TF 1.x and 2.x behaviour and the
working directory of one case never reach the next, and no generator pays for the import.
"""

import importlib
import importlib.machinery
import importlib.util
import json
import os
import sys
import tempfile
import threading

from . import protocol, v1_recording

PACKAGE = "fixtures_v1"  # what generators call the folder they lie in when they share code
LOST = 71  # exit status of a fork that could not even say what went wrong

IMPORTS = ("tensorflow",)


class Relayed(Exception):
    """An error in the fork, as the corresponding reply."""

    def __init__(self, reply):
        super(Relayed, self).__init__(reply.get("message"))
        self.reply = reply


class V1BuilderWorker(protocol.Worker):
    """Produces; it loads nothing for others."""

    name = "v1_builder"
    capabilities = ("generate",)

    def __init__(self):
        super(V1BuilderWorker, self).__init__()
        import tensorflow as tf

        self.tensorflow = tf
        self.refusals = self.refusals + (tf.errors.UnimplementedError,)

    def versions(self):
        import google.protobuf

        own = {"tensorflow": self.tensorflow.__version__, "protobuf": google.protobuf.__version__}
        return dict(super(V1BuilderWorker, self).versions(), **own)

    def produce(self, case, directory, scratch):
        """Run the generator file ``case`` in a fork.

        Dies of the signal or with the status the fork died of.
        """
        alive, keep = os.pipe()
        replies, write = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if child == 0:
            try:
                os.close(keep)
                os.close(replies)
                # A fork has one thread; the one that ends this process with the harness has stayed
                # behind.
                threading.Thread(
                    target=protocol._die_with_harness, args=(alive,), daemon=True
                ).start()
                self._reply_in_fork(write, case, directory, scratch)
            finally:
                os._exit(LOST)
        os.close(alive)
        os.close(write)
        with os.fdopen(replies, "rb") as stream:
            said = stream.read()
        _, status = os.waitpid(child, 0)
        os.close(keep)
        if not said:
            _end_as(status)
        reply = json.loads(said.decode("utf-8"))
        if reply["status"] != "ok":
            raise Relayed(reply)

    def _reply_in_fork(self, write, case, directory, scratch):
        try:
            self._generate(os.path.abspath(case), directory, scratch)
            reply = {"status": "ok"}
        except BaseException as error:  # also SystemExit
            reply = self._failure(error)
        sys.stdout.flush()
        sys.stderr.flush()
        with os.fdopen(write, "wb") as stream:
            stream.write(json.dumps(reply).encode("utf-8"))
        os._exit(0)

    def _generate(self, case, directory, scratch):
        name = os.path.basename(os.path.dirname(case))
        v1_recording.seed(name)
        tf = v1_api(self.tensorflow)
        register_package(os.path.dirname(os.path.dirname(case)))
        module = importlib.import_module("{}.{}.generate".format(PACKAGE, name))
        v1_recording.record(tf, module, directory, tempfile.mkdtemp(dir=scratch))

    def _failure(self, error):
        if isinstance(error, Relayed):
            return error.reply
        return super(V1BuilderWorker, self)._failure(error)


def v1_api(tf):
    """The names of TensorFlow 1.x, with its behaviour; a generator may still switch to that of
    2.x.
    """
    if tf.__version__.startswith("1."):
        return tf
    tf.compat.v1.disable_v2_behavior()
    return tf.compat.v1


def register_package(root):
    """Make the folder of the generators importable by its name, wherever it lies and whatever lies
    beside it.
    """
    init = os.path.join(root, "__init__.py")
    spec = importlib.machinery.ModuleSpec(PACKAGE, None, is_package=True)
    if os.path.isfile(init):
        spec = importlib.util.spec_from_file_location(
            PACKAGE, init, submodule_search_locations=[root]
        )
    else:
        spec.submodule_search_locations.append(root)
    package = importlib.util.module_from_spec(spec)
    sys.modules[PACKAGE] = package
    if spec.loader is not None:
        spec.loader.exec_module(package)


def _end_as(status):
    """End this process as the fork ended: the harness then reports its crash."""
    if os.WIFSIGNALED(status):
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.WEXITSTATUS(status))


def main():
    protocol.serve(V1BuilderWorker)
