"""The C++ loader behind Serving, Go and Java: ``TF_LoadSessionFromSavedModel``, in a process that
never imports tensorflow.

Python 3.6 syntax, standard library and NumPy.
"""

import ctypes
import re

import numpy as np

from . import c_library, c_tensors, loader_worker, protocol, signature_wire

CONSUMER = {
    "place": 3,
    "summary": "TF_LoadSessionFromSavedModel: the loader of Serving, Go and Java",
    "capabilities": ("fetch", "tags", "threads"),
    "loader": "c++",
}


class Model(object):
    """A loaded session: handles of the C library, the signatures, and the fed bytes TensorFlow may
    still point at.
    """

    def __init__(self, library, directory, tags):
        self.library = library
        self.keep = c_tensors.Kept()
        self.graph = self.session = None
        options, buffer = library.TF_NewSessionOptions(), library.TF_NewBuffer()
        try:
            self.graph = library.TF_NewGraph()
            names = (ctypes.c_char_p * max(len(tags), 1))(*[tag.encode("utf-8") for tag in tags])
            self.session = library.checked(
                lambda status: library.TF_LoadSessionFromSavedModel(
                    options,
                    None,
                    directory.encode("utf-8"),
                    names,
                    len(tags),
                    self.graph,
                    buffer,
                    status,
                )
            )
            meta_graph = ctypes.string_at(buffer.contents.data, buffer.contents.length)
            self.signature_defs = signature_wire.signature_defs(meta_graph)
            self.signatures = signature_wire.described(self.signature_defs)
        except BaseException:
            self.close()
            raise
        finally:
            library.TF_DeleteBuffer(buffer)
            library.TF_DeleteSessionOptions(options)

    def close(self):
        """Close the session, then free it and its graph."""
        library, session, graph = self.library, self.session, self.graph
        self.session = self.graph = None
        try:
            if session:
                library.checked(lambda status: library.TF_CloseSession(session, status))
                library.checked(lambda status: library.TF_DeleteSession(session, status))
        finally:
            if graph:
                library.TF_DeleteGraph(graph)
            self.keep = c_tensors.Kept()

    def run(self, feed, names, run_options=b"", shaped=np.reshape):
        """``session.run``: ``feed`` is ``[(tensor name, Tensor)]``.

        Returns the Tensors called ``names``.

        ``run_options`` is a serialized RunOptions, or nothing. ``shaped`` gives vectors their
        shapes (:func:`c_tensors.from_c`).
        """
        if not names:  # a signature without outputs; TensorFlow refuses to run nothing
            return []
        library = self.library
        sources = self._outputs([name for name, _ in feed])
        targets = self._outputs(names)
        given = (ctypes.c_void_p * max(len(feed), 1))()
        results = (ctypes.c_void_p * max(len(names), 1))()
        options = c_library.buffer(run_options) if run_options else None
        try:
            for index, (_, tensor) in enumerate(feed):
                given[index] = c_tensors.to_c(library, tensor, self.keep)
            library.checked(
                lambda status: library.TF_SessionRun(
                    self.session,
                    options,
                    sources,
                    given,
                    len(feed),
                    targets,
                    results,
                    len(names),
                    None,
                    0,
                    None,
                    status,
                )
            )
            return [
                c_tensors.from_c(library, results[index], shaped) for index in range(len(names))
            ]
        finally:
            for handle in list(given) + list(results):
                if handle:
                    library.TF_DeleteTensor(handle)

    def has_tensor(self, name):
        """Whether the graph has a tensor of this name."""
        return self._find(name) is not None

    def _find(self, name):
        operation, _, index = name.partition(":")
        found = self.library.TF_GraphOperationByName(self.graph, operation.encode("utf-8"))
        place = int(index or 0) if not index or re.match("[0-9]{1,9}$", index) else None
        if not found or place is None or place >= self.library.TF_OperationNumOutputs(found):
            return None
        return found, place

    def _outputs(self, names):
        out = (c_library.Output * max(len(names), 1))()
        for slot, name in zip(out, names):
            found = self._find(name)
            if found is None:
                raise KeyError("the graph has no tensor {!r}".format(name))
            slot.operation, slot.index = found
        return out


class CApiWorker(loader_worker.LoaderWorker):
    """One session per loaded MetaGraph."""

    name = "c_api"
    capabilities = CONSUMER["capabilities"]

    def __init__(self):
        super(CApiWorker, self).__init__()
        self.library = c_library.Library()

    def versions(self):
        return dict(super(CApiWorker, self).versions(), tensorflow=self.library.version)

    def load(self, directory, tags):
        return Model(self.library, directory, tags)


def main():
    protocol.serve(CApiWorker)
