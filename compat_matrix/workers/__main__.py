"""``python <this folder> PROGRAM``: run a worker program inside the runtime whose Python this is.

``PROGRAM`` is a module of this folder, or the path of a script, which finds our modules by ``from
savedmodel_compat_workers import protocol, tensors`` whatever is installed in its Python (a plug-in:
``command = ["{python}", "{workers}", "mine.py"]``).

Python 3.6 syntax. The programs import each other relatively, so they need a package; a runtime must
not see more of the harness than this folder, `savedmodel_common`, and `reference_impl` where a
program needs it: their parent may be the site-packages of quite another Python.
"""

import importlib
import importlib.util
import os
import runpy
import sys

PACKAGE = "savedmodel_compat_workers"
# the package beside ours that has what workers and harness share: tensors in files, digests
COMMON = "savedmodel_common"
# the folder of the package reference_impl, for the programs that import it
REFERENCE = "SAVEDMODEL_COMPAT_REFERENCE"
# the folder of the package reference_eval, for the program that imports it
EVALUATOR = "SAVEDMODEL_COMPAT_EVALUATOR"
# in place of PROGRAM, with a descriptor: become each program that is asked for, in a fork
FORKING = "forking"


def load_package(name, folder):
    """Import the package in ``folder`` under ``name``, without what else lies beside it."""
    init = os.path.join(folder, "__init__.py")
    spec = importlib.util.spec_from_file_location(name, init, submodule_search_locations=[folder])
    package = importlib.util.module_from_spec(spec)
    sys.modules[name] = package
    spec.loader.exec_module(package)


def main():
    """Load the folder as a package of its own and run ``PROGRAM.main()``."""
    folder = os.path.dirname(os.path.abspath(__file__))
    # Names as common as `tensors` must not shadow a runtime's modules.
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != folder]
    load_package(PACKAGE, folder)
    load_package(COMMON, os.path.join(os.path.dirname(os.path.dirname(folder)), COMMON))
    if sys.argv[1] == FORKING:
        sys.argv[1:] = [importlib.import_module(PACKAGE + "." + FORKING).serve(int(sys.argv[2]))]
    if REFERENCE in os.environ:
        load_package("reference_impl", os.environ[REFERENCE])
    if EVALUATOR in os.environ:
        load_package("reference_eval", os.environ[EVALUATOR])
    if sys.argv[1].endswith(".py"):
        del sys.argv[0]
        sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))  # as Python does it
        runpy.run_path(sys.argv[0], run_name="__main__")
        return
    importlib.import_module("{}.{}".format(PACKAGE, sys.argv[1])).main()


if __name__ == "__main__":
    main()
