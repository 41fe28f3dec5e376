"""The base of the workers of converted files. The harness is not importable here."""

import os

import numpy as np
from savedmodel_compat_workers import protocol, tensors


class FileWorker(protocol.Worker):
    """A worker that loads a file.

    A program defines ``load``, ``signatures``, ``call_signature``, and ``intermediate`` where its
    runtime names intermediate values.
    """

    def op_values(self, request):
        """Save the intermediate values of one call."""
        model = self._model(request)
        found = self._method("intermediate")(model, request["signature"], inputs_of(request))
        tensors.save(request["outputs"], found)
        return {}


def inputs_of(request):
    """The inputs of a request, by name."""
    return tensors.load(os.path.join(request["io_dir"], "inputs.npz"))


def to_array(tensor):
    """Return a tensor as a NumPy array of its own dtype; strings as text."""
    if tensor.dtype == "string":
        return np.vectorize(bytes.decode, otypes=[object])(tensor.array)
    if tensors.CARRIERS[tensor.dtype] == tensor.dtype:
        return tensor.array
    import ml_dtypes

    return tensor.array.view(getattr(ml_dtypes, tensor.dtype))
