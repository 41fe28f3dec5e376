"""Worker programs of the migration, which run in the Python of the harness.

keras_worker        rebuilds a Keras 2 model, and asks the old and the new one
keras_file_worker   loads a saved `.keras` file in a process that knows nothing else
keras_asking        inputs, answers and weights of a Keras model, for both
migration_worker    converts a MetaGraph, and asks the old and the new model in four ways

`compat_matrix.workers` starts them as scripts (``python <compat_matrix/workers> PATH``).
"""

from __future__ import annotations

from pathlib import Path

from compat_matrix.runtimes import programs

_FOLDER = Path(__file__).parent

KERAS = programs.of_script(_FOLDER / "keras_worker.py")
KERAS_FILE = programs.of_script(_FOLDER / "keras_file_worker.py")
# Models of strangers are run, and need no network.
MIGRATION = programs.of_script(_FOLDER / "migration_worker.py", isolated=True)
