"""A session that knows the ops of ``tensorflow.contrib`` too, as in a program that has imported it.

Python 3.6 syntax.

Later releases have none: there it is the session of `v1_session_worker`.
"""

import os

from . import c_library, protocol
from .v1_session_worker import V1SessionWorker

IMPORTS = ("tensorflow",)
FOLDER = "contrib"


class ContribSessionWorker(V1SessionWorker):
    """Maps the libraries with ops when it starts, without the Python modules around them."""

    def __init__(self):
        super(ContribSessionWorker, self).__init__()
        top = os.path.join(c_library.package_folder(), FOLDER)
        for path in c_library.libraries_below(top):
            try:
                self.tf.load_op_library(path)
            except (self.tf.errors.OpError, RuntimeError):
                continue  # a library for other devices: its ops stay unknown


def main():
    protocol.serve(ContribSessionWorker)
