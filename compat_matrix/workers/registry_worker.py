"""The op registry of a runtime: every OpDef, every kernel and the GraphDef versions, as its C API
tells them.

Python 3.6 syntax, standard library and NumPy. The tensorflow package is not imported: what the
library registers when it is mapped is what Serving, Go and Java see. The libraries of
``tensorflow.contrib`` are then mapped one by one, as its modules do when they are used, so that the
ops of each are known as such.
"""

import ctypes
import os

from . import c_library, protocol, signature_wire

_P = ctypes.c_void_p
_BUFFER = ctypes.POINTER(c_library.Buffer)
_PROTOTYPES = {
    "TF_GetAllOpList": (_BUFFER, []),
    "TF_GetAllRegisteredKernels": (_BUFFER, [_P]),
    "TF_GraphToGraphDef": (None, [_P, _BUFFER, _P]),
    "TF_LoadLibrary": (_P, [ctypes.c_char_p, _P]),
    "TF_GetOpList": (c_library.Buffer, [_P]),
    "TF_NewSession": (_P, [_P, _P, _P]),
    "TF_SessionListDevices": (_P, [_P, _P]),
    "TF_DeviceListCount": (ctypes.c_int, [_P]),
    "TF_DeviceListType": (ctypes.c_char_p, [_P, ctypes.c_int, _P]),
    "TF_DeleteDeviceList": (None, [_P]),
    "TF_NewOperation": (_P, [_P, ctypes.c_char_p, ctypes.c_char_p]),
    "TF_SetAttrType": (None, [_P, ctypes.c_char_p, ctypes.c_int]),
    "TF_FinishOperation": (_P, [_P, _P]),
}
# Folders of the package with libraries that its Python maps when a module is used. Those with ops
# of TensorFlow's own tests lie elsewhere.
OP_LIBRARIES = ("contrib", "lite/experimental/microfrontend")
HIGHEST_DTYPE = 63  # more than any release has; references begin at 101
GRAPH_VERSIONS, PRODUCER, MIN_CONSUMER = 4, 1, 2  # field numbers in GraphDef and VersionDef


class RegistryWorker(protocol.Worker):
    """Writes what the runtime has registered; loads no model."""

    name = "registry"
    capabilities = ("registry",)

    def __init__(self):
        super(RegistryWorker, self).__init__()
        self.library = c_library.Library()
        self.library.declare(_PROTOTYPES, optional=True)

    def versions(self):
        return dict(super(RegistryWorker, self).versions(), tensorflow=self.library.version)

    def op_registry(self, request):
        """Write the registry into ``dir``, as serialized OpLists and KernelLists.

        ``ops.binpb`` and ``kernels.binpb``: of the library with the C API.
        ``kernels_python.binpb``: the kernels once the library of the Python package is mapped, too.
        ``libraries/*.binpb``: the ops of libraries that are mapped on demand.
        """
        folder = request["dir"]
        self._write(folder, "ops.binpb", self.library.TF_GetAllOpList())
        if self.library.TF_GetAllRegisteredKernels is not None:
            self._write(
                folder, "kernels.binpb", self._checked(self.library.TF_GetAllRegisteredKernels)
            )
            # From 2.12 on the kernels of PyFunc are in this library alone. Before, it is the one
            # with the C API.
            ctypes.CDLL(
                os.path.join(c_library.package_folder(), "python", c_library.PYTHON_LIBRARY)
            )
            self._write(
                folder,
                "kernels_python.binpb",
                self._checked(self.library.TF_GetAllRegisteredKernels),
            )
        producer, min_consumer = self._graph_versions()
        # After those above: from here on the registry holds more than a session that imports
        # nothing knows.
        failed = self._libraries(os.path.join(folder, "libraries"))
        return {
            "versions": self.versions(),
            "producer": producer,
            "min_consumer": min_consumer,
            "dtypes": self._dtypes(),
            "devices": self._devices(),
            "failed": failed,
        }

    def _graph_versions(self):
        """Of an empty graph, which carries the versions this release writes."""
        library = self.library
        graph, buffer = library.TF_NewGraph(), library.TF_NewBuffer()
        try:
            self._checked(library.TF_GraphToGraphDef, graph, buffer)
            data = ctypes.string_at(buffer.contents.data, buffer.contents.length)
        finally:
            library.TF_DeleteBuffer(buffer)
            library.TF_DeleteGraph(graph)
        versions = dict(
            signature_wire.fields(dict(signature_wire.fields(data)).get(GRAPH_VERSIONS, b""))
        )
        return versions.get(PRODUCER, 0), versions.get(MIN_CONSUMER, 0)

    def _devices(self):
        """The types of a session's devices: from 1.12 to 2.3 an op without a CPU kernel was put on
        XLA_CPU.
        """
        library = self.library
        if library.TF_SessionListDevices is None:
            return ["CPU"]
        graph, options = library.TF_NewGraph(), library.TF_NewSessionOptions()
        session = self._checked(library.TF_NewSession, graph, options)
        try:
            devices = self._checked(library.TF_SessionListDevices, session)
            count = library.TF_DeviceListCount(devices)
            types = [
                self._checked(library.TF_DeviceListType, devices, index) for index in range(count)
            ]
            library.TF_DeleteDeviceList(devices)
            return sorted({name.decode("utf-8") for name in types})
        finally:
            self._checked(library.TF_DeleteSession, session)
            library.TF_DeleteSessionOptions(options)
            library.TF_DeleteGraph(graph)

    def _dtypes(self):
        """The numbers of DataType that an attr may have: those with which a Placeholder can be
        made.
        """
        library, known = self.library, []
        graph = library.TF_NewGraph()
        try:
            for number in range(1, HIGHEST_DTYPE + 1):
                operation = library.TF_NewOperation(
                    graph, b"Placeholder", "p{}".format(number).encode("utf-8")
                )
                library.TF_SetAttrType(operation, b"dtype", number)
                try:
                    self._checked(library.TF_FinishOperation, operation)
                except c_library.CError:
                    continue
                known.append(number)
        finally:
            library.TF_DeleteGraph(graph)
        return known

    def _libraries(self, folder):
        """Map every library of ops that the package has; write those that hold any.

        Returns ``{library: why it cannot be}``.
        """
        root, failed = c_library.package_folder(), {}
        paths = []
        for top in OP_LIBRARIES:
            paths += c_library.libraries_below(os.path.join(root, *top.split("/")))
        for path in sorted(paths):
            name = os.path.relpath(path, root).replace(os.sep, "/")
            try:
                handle = self._checked(self.library.TF_LoadLibrary, path.encode("utf-8"))
            except c_library.CError as error:
                failed[name] = str(error)
                continue
            listed = self.library.TF_GetOpList(handle)  # the library's own, not to be freed
            if listed.length:
                with open(
                    _made(os.path.join(folder, name.replace("/", "__") + ".binpb")), "wb"
                ) as stream:
                    stream.write(ctypes.string_at(listed.data, listed.length))
        return failed

    def _checked(self, function, *arguments):
        return self.library.checked(lambda status: function(*(arguments + (status,))))

    def _write(self, folder, name, buffer):
        try:
            with open(_made(os.path.join(folder, name)), "wb") as stream:
                stream.write(ctypes.string_at(buffer.contents.data, buffer.contents.length))
        finally:
            self.library.TF_DeleteBuffer(buffer)


def _made(path):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    return path


def main():
    protocol.serve(RegistryWorker)
