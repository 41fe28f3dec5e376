"""An exporter's command line behind the protocol: ``WORDS...

EXPORT DIRECTORY`` writes an artifact. Python 3.6 syntax.

The exit status says how it went: 0 written, 65 refused (the last line on stderr says why), anything
else failed.
"""

import json
import os
import subprocess
import sys

from . import protocol

REFUSED = 65
TAIL = 4000  # characters of what the command said


class Refused(NotImplementedError):
    """The exporter refuses to write this model."""


class Failed(Exception):
    """The exporter failed, or wrote no artifact."""


class ExporterWorker(protocol.Worker):
    """Each production is a process of its own."""

    name = "exporter"
    capabilities = ("produce",)

    def __init__(self):
        super(ExporterWorker, self).__init__()
        self.words = sys.argv[2:]
        self.said = {}

    def versions(self):
        out = super(ExporterWorker, self).versions()
        out.update(self.said)
        return out

    def produce(self, case, directory, scratch):
        # Its output goes where that of all workers goes; what it said last is the reason of a
        # failure.
        process = subprocess.Popen(
            self.words + [case, directory],
            cwd=scratch,
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            stderr=subprocess.PIPE,
        )
        said = process.communicate()[1].decode("utf-8", "replace")
        sys.stderr.write(said)
        lines = [line for line in said.strip().splitlines() if line.strip()] or [
            "it says nothing on stderr"
        ]
        if process.returncode == REFUSED:
            raise Refused(lines[-1][-TAIL:])
        if process.returncode:
            raise Failed("exit status {}: {}".format(process.returncode, lines[-1][-TAIL:]))
        for name in (os.path.join("model", ""), os.path.join("io", "io.json")):
            if not os.path.exists(os.path.join(directory, name)):
                raise Failed(
                    "exit status 0, but there is no {} in the folder it was given".format(
                        name.strip(os.sep)
                    )
                )
        self.said = _versions(os.path.join(directory, "versions.json"))


def _versions(path):
    """Read the exporter's own version report, a file that is not part of the artifact."""
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as stream:
        said = json.load(stream)
    os.remove(path)
    return {str(name): str(version) for name, version in said.items()}


def main():
    protocol.serve(ExporterWorker)
