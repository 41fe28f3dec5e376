"""Tell whether a function to be saved was written by the user or by the library of the object it
belongs to.

If a function was never traced, the user who wrote it can call it or give it an input signature.
Users cannot do this for a library's own functions: while a layer of Keras 2 is saved, Keras makes
functions for it and traces those of layers that a model calls. The cell of an LSTM, for example, is
never traced.

RFC: FN-06
"""

from __future__ import annotations

import os
import sys
import sysconfig

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.saving.traces import is_function

# Packages whose classes have internal attributes, which are not the user's state.
FRAMEWORKS = frozenset({"keras", "tf_keras", "tensorflow", "reference_impl"})
_LIBRARIES = ("keras", "tf_keras", "tensorflow")
_INSTALLED = tuple({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
_CONTAINERS = (list, tuple, dict)


def package(item: object) -> str:
    """Return the name of the package that defines a class, a function, or an object's class."""
    return str(getattr(item, "__module__", None)).partition(".")[0]


def is_framework_file(file: str) -> bool:
    """Return whether a source file is TensorFlow's or Keras' own.

    Their tests are code of a user.
    """
    folders: list[str] = []
    for name in _LIBRARIES:
        folders += getattr(sys.modules.get(name), "__path__", ())
    return file.startswith(tuple(folder + os.sep for folder in folders)) and not file.endswith(
        "_test.py"
    )


def is_installed_file(file: str) -> bool:
    """Return whether a file belongs to an installed package, which users cannot change."""
    return file.startswith(_INSTALLED)


def _of_library(item: object) -> bool:
    return package(item) in _LIBRARIES


def is_private_helper(function: tf.types.experimental.GenericFunction) -> bool:
    """Return whether a tf.function is a private function of TensorFlow or Keras, which users never
    call.

    Optimizers of Keras 2 hold such a function, ``_update_step_xla``, which runs only when they
    compile with XLA.
    """
    code = function.python_function
    return _of_library(code) and str(getattr(code, "__name__", "")).startswith("_")


def is_of_library(parent: object, name: str, made: bool) -> bool:
    """Return whether a library, not the user, made the child `name` of a trackable object.

    `made` tells whether a library made the parent itself while its children were listed.
    """
    members = getattr(parent, "__dict__", {})
    cls = type(parent)
    if made and (cls is api.AutoTrackable or isinstance(parent, _CONTAINERS)):
        return True  # a container of helpers
    if name in members or isinstance(parent, _CONTAINERS):
        return False
    defining = next((base for base in cls.__mro__ if name in vars(base)), None)
    if defining is not None and is_function(vars(defining)[name]):
        return _of_library(defining)
    if api.tracks_attributes(parent):
        return False
    hook = next((base for base in cls.__mro__ if "_trackable_children" in vars(base)), cls)
    return _of_library(hook)  # not an attribute: made by the hook
