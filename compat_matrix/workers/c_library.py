"""TensorFlow's C API through ctypes, out of an installed wheel, in a process that never imports
tensorflow.

Python 3.6 syntax, standard library only. This file finds the libraries, declares the functions it
needs and knows the memory layouts; ``c_api_worker.py`` is the program.
"""

import ctypes
import importlib.util
import os
import re

CODES = {
    1: "TF_CANCELLED", 2: "TF_UNKNOWN", 3: "TF_INVALID_ARGUMENT", 4: "TF_DEADLINE_EXCEEDED",
    5: "TF_NOT_FOUND", 6: "TF_ALREADY_EXISTS", 7: "TF_PERMISSION_DENIED",
    8: "TF_RESOURCE_EXHAUSTED", 9: "TF_FAILED_PRECONDITION", 10: "TF_ABORTED",
    11: "TF_OUT_OF_RANGE", 12: "TF_UNIMPLEMENTED", 13: "TF_INTERNAL", 14: "TF_UNAVAILABLE",
    15: "TF_DATA_LOSS", 16: "TF_UNAUTHENTICATED",
}  # fmt: skip

PYTHON_LIBRARY = "_pywrap_tensorflow_internal.so"  # in the package's folder python/

_P, _S, _I = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
_PP = ctypes.POINTER(ctypes.c_void_p)


class Buffer(ctypes.Structure):
    """``TF_Buffer``: bytes and who frees them."""

    _fields_ = [("data", _P), ("length", _S), ("deallocator", _P)]


def buffer(data):
    """A :class:`Buffer` over bytes of ours, which live as long as it."""
    held = ctypes.create_string_buffer(data, len(data))
    out = Buffer(ctypes.addressof(held), len(data), None)
    out.held = held
    return out


class Output(ctypes.Structure):
    """``TF_Output``: an output of an operation."""

    _fields_ = [("operation", _P), ("index", _I)]


_OUT = ctypes.POINTER(Output)
_PROTOTYPES = {
    "TF_Version": (ctypes.c_char_p, []),
    "TF_NewStatus": (_P, []),
    "TF_DeleteStatus": (None, [_P]),
    "TF_GetCode": (_I, [_P]),
    "TF_Message": (ctypes.c_char_p, [_P]),
    "TF_NewBuffer": (ctypes.POINTER(Buffer), []),
    "TF_DeleteBuffer": (None, [ctypes.POINTER(Buffer)]),
    "TF_NewGraph": (_P, []),
    "TF_DeleteGraph": (None, [_P]),
    "TF_GraphOperationByName": (_P, [_P, ctypes.c_char_p]),
    "TF_OperationNumOutputs": (_I, [_P]),
    "TF_NewSessionOptions": (_P, []),
    "TF_DeleteSessionOptions": (None, [_P]),
    "TF_LoadSessionFromSavedModel": (
        _P,
        [
            _P,
            ctypes.POINTER(Buffer),
            ctypes.c_char_p,
            ctypes.POINTER(ctypes.c_char_p),
            _I,
            _P,
            ctypes.POINTER(Buffer),
            _P,
        ],
    ),
    "TF_CloseSession": (None, [_P, _P]),
    "TF_DeleteSession": (None, [_P, _P]),
    "TF_SessionRun": (
        None,
        [
            _P,
            ctypes.POINTER(Buffer),
            _OUT,
            _PP,
            _I,
            _OUT,
            _PP,
            _I,
            _PP,
            _I,
            ctypes.POINTER(Buffer),
            _P,
        ],
    ),
    "TF_AllocateTensor": (_P, [_I, ctypes.POINTER(ctypes.c_int64), _I, _S]),
    "TF_DeleteTensor": (None, [_P]),
    "TF_TensorType": (_I, [_P]),
    "TF_NumDims": (_I, [_P]),
    "TF_Dim": (ctypes.c_int64, [_P, _I]),
    "TF_TensorByteSize": (_S, [_P]),
    "TF_TensorData": (_P, [_P]),
}
_ENCODED_STRINGS = {  # before 2.4
    "TF_StringEncode": (_S, [ctypes.c_char_p, _S, _P, _S, _P]),
    "TF_StringDecode": (_S, [_P, _S, ctypes.POINTER(_P), ctypes.POINTER(_S), _P]),
    "TF_StringEncodedSize": (_S, [_S]),
}


def libraries_below(folder):
    """The paths of the shared libraries in a folder and its subfolders, in order."""
    found = []
    for where, _, names in os.walk(folder):
        found += [os.path.join(where, name) for name in names if name.endswith(".so")]
    return sorted(found)


def package_folder():
    """The folder of the installed package ``tensorflow``, found without importing it.

    ImportError when there is none.
    """
    spec = importlib.util.find_spec("tensorflow")
    if spec is None or not spec.submodule_search_locations:
        raise ImportError("no package called tensorflow is installed in this runtime")
    site = os.path.dirname(list(spec.submodule_search_locations)[0])
    # From 1.14 to 2.1 `tensorflow` is a facade and the libraries live beside it.
    for name in ("tensorflow_core", "tensorflow"):
        if os.path.isdir(os.path.join(site, name, "python")):
            return os.path.join(site, name)
    raise ImportError("{} holds no TensorFlow".format(site))


def libraries(folder):
    """The libraries to open, in this order: the framework, then the one with the kernels and the C
    API.

    From 2.12 that is ``libtensorflow_cc``, which needs no Python; before, the extension module,
    which does.
    """
    framework = _find(folder, r"libtensorflow_framework\.(so(\.[12])?|([12]\.)?dylib)")
    kernels = _find(folder, r"libtensorflow_cc\.(so\.2|2\.dylib)")
    if kernels is None:
        kernels = _find(os.path.join(folder, "python"), re.escape(PYTHON_LIBRARY))
    found = [path for path in (framework, kernels) if path]
    if kernels is None:
        raise ImportError("{} holds no library with the C API".format(folder))
    return found


def _find(folder, pattern):
    names = sorted(name for name in os.listdir(folder) if re.match(pattern + "$", name))
    # The longest name is the versioned one; the others are links to it.
    return os.path.join(folder, max(names, key=len)) if names else None


class CError(Exception):
    """A status that is not OK; ``error_class`` is the name of its code."""

    def __init__(self, code, message):
        super(CError, self).__init__(message)
        self.error_class = CODES.get(code, "TF_CODE_{}".format(code))


class Unimplemented(CError):
    """The code made for refusing."""


def raise_status(code, message):
    """Raise :class:`CError` for a status that is not OK."""
    if code:
        raise (Unimplemented if CODES.get(code) == "TF_UNIMPLEMENTED" else CError)(code, message)


class Library(object):
    """The C API: ``library.TF_Name(...)`` with declared argument types, and statuses turned into
    errors.
    """

    def __init__(self):
        self.paths = libraries(package_folder())
        # Global: the second library's undefined symbols are in the first.
        self._handles = [
            ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL | os.RTLD_NOW) for path in self.paths
        ]
        self.declare(_PROTOTYPES)
        self.version = self.TF_Version().decode("utf-8")
        numbers = re.match(r"(\d+)\.(\d+)", self.version)
        self.has_tstring = tuple(int(part) for part in numbers.groups()) >= (2, 4)
        if not self.has_tstring:
            self.declare(_ENCODED_STRINGS)

    def declare(self, prototypes, optional=False):
        """Make functions, ``{name: (result, arguments)}``, attributes; None for an ``optional`` one
        that the library lacks.
        """
        for name, (result, arguments) in prototypes.items():
            function = getattr(self._handles[-1], name, *[None] * optional)
            if function is not None:
                function.restype, function.argtypes = result, arguments
            setattr(self, name, function)

    def checked(self, call):
        """Run ``call(status)`` and return its result; raises :class:`CError`."""
        status = self.TF_NewStatus()
        try:
            result = call(status)
            raise_status(
                self.TF_GetCode(status), self.TF_Message(status).decode("utf-8", "replace")
            )
            return result
        finally:
            self.TF_DeleteStatus(status)
