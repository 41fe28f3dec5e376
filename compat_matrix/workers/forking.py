"""A process that imports TensorFlow and forks: each fork becomes a worker.

Python 3.6 syntax.

An import takes seconds of CPU, a fork some hundredths of one. The process does nothing but import
and fork, so a fork is what a new process would be after its import. It has one thread, since a fork
would lose the others.
"""

import array
import gc
import json
import os
import random
import socket
import sys
import tempfile

LONGEST = 1 << 20  # bytes of a request: a program, a folder, an environment
DESCRIPTORS = 4  # stdout, stderr, the channel


def serve(descriptor):
    """Answer ``{program, folder, environment, channel}`` by a fork: ``{pid}``, and ``{reap}`` by
    its exit status: ``{status}``.

    Return the program in each fork; exit when the harness is gone.
    """
    gc.disable()
    import tensorflow  # noqa: F401

    if hasattr(gc, "freeze"):  # not in Python 3.6
        gc.freeze()
    channel = socket.socket(fileno=descriptor)
    while True:
        data, descriptors = _receive(channel)
        if not data:
            os._exit(0)
        request = json.loads(data.decode("utf-8"))
        if "reap" in request:
            reply = {"status": os.waitpid(request["reap"], 0)[1]}
        elif len(os.listdir("/proc/self/task")) > 1:
            reply = {"refused": "importing TensorFlow has started threads"}
        else:
            pid = os.fork()
            if not pid:
                channel.close()
                return _become(request, descriptors)
            os.setpgid(
                pid, pid
            )  # here, too: the harness may kill the group before the fork has run
            reply = {"pid": pid}
        for descriptor in descriptors:
            os.close(descriptor)
        channel.send(json.dumps(reply).encode("utf-8"))


def _receive(channel):
    found = array.array("i")
    data, ancillary, _, _ = channel.recvmsg(
        LONGEST, socket.CMSG_SPACE(DESCRIPTORS * found.itemsize)
    )
    for level, kind, content in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            found.frombytes(content[: len(content) - len(content) % found.itemsize])
    return data, list(found)


def _become(request, descriptors):
    """Make a fork a process of its own, and return its program."""
    os.setpgid(0, 0)
    with open("/proc/self/comm", "w") as name:  # what `ps` shows
        name.write(os.path.basename(request["program"])[:15])
    out, err, requests, replies = descriptors
    for source, target in ((out, 1), (err, 2)):
        os.dup2(source, target)
        os.close(source)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    os.environ[request["channel"]] = "{},{}".format(requests, replies)
    tempfile.tempdir = None  # the environment has another one
    random.seed()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
    return request["program"]
