"""Where the installed TensorFlow's files are, as JSON on standard output; TensorFlow is not
imported. Not a worker.

Python 3.6 syntax, standard library only. ``error`` says why there is nothing to build against.
"""

import json
import os
import sys
import sysconfig

from . import c_library


def python_library():
    """The shared library of this Python, None when it has none (the executable then holds the
    symbols).
    """
    names = [sysconfig.get_config_var(name) for name in ("INSTSONAME", "LDLIBRARY")]
    # A Python that was moved after it was built still names the folder it was built for.
    folders = [
        sysconfig.get_config_var("LIBDIR"),
        os.path.join(sys.base_prefix, "lib"),
        sys.base_prefix,
    ]
    for name in names:
        for folder in folders:
            if (
                name
                and folder
                and not name.endswith(".a")
                and os.path.isfile(os.path.join(folder, name))
            ):
                return os.path.join(folder, name)
    return None


def main():
    facts = {"folder": None, "libraries": [], "python_library": python_library(), "error": None}
    try:
        facts["folder"] = c_library.package_folder()
        facts["libraries"] = c_library.libraries(facts["folder"])
    except ImportError as error:
        facts["error"] = str(error)
    print(json.dumps(facts))
