"""Print the ops that a package registers: ``python -m compat_matrix.workers.package_ops NAME
VERSION FOLDER``. Python 3.6 syntax.

One line for `savedmodel_tools/skew/package_ops.txt`: the libraries below the folder of the
installed package are loaded, each that loads, and TensorFlow's registry is asked before and after.
"""

import os
import sys


def registered(tensorflow):
    """The names of all ops that this process knows."""
    from tensorflow.python.framework import op_def_registry

    op_def_registry.sync()
    return set(
        op_def_registry.get_registered_ops()
        if hasattr(op_def_registry, "get_registered_ops")
        else _names()
    )


def _names():
    from tensorflow.core.framework import op_def_pb2
    from tensorflow.python.client import pywrap_tf_session

    listed = op_def_pb2.OpList()
    buffer = pywrap_tf_session.TF_GetAllOpList()
    listed.ParseFromString(pywrap_tf_session.TF_GetBuffer(buffer))
    return {op.name for op in listed.op}


def of_folder(folder):
    """The ops of the libraries below a folder, and the libraries that do not load here."""
    import tensorflow as tf

    before, refused = registered(tf), []
    for root, _, names in sorted(os.walk(folder)):
        for name in sorted(names):
            if name.endswith(".so") and "cpython" not in name:
                try:
                    tf.load_library(os.path.join(root, name))
                except (tf.errors.OpError, RuntimeError, OSError, ValueError):
                    refused.append(name)
    return sorted(registered(tf) - before), refused


if __name__ == "__main__":
    ops, refused = of_folder(sys.argv[3])
    sys.stderr.write("".join("not loaded: {}\n".format(name) for name in refused))
    print(" ".join([sys.argv[1], sys.argv[2]] + ops))
