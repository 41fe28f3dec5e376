"""The functions of a model that compute its custom gradients.

RFC: FMT-14
"""

from __future__ import annotations

import weakref
from collections.abc import Callable

from reference_impl import tensorflow_api as api
from reference_impl.functions.library import FunctionLibrary
from reference_impl.functions.load_context import LoadContext
from reference_impl.functions.names import FileName
from reference_impl.functions.registered_function import RegisteredFunction
from reference_impl.functions.saved_functions import signature_of


def add_custom_gradients(load: LoadContext) -> None:
    """Register in the library the makers of the model's custom gradients.

    The library holds these makers. They refer weakly to resources, because resources hold the
    library.
    """
    for op_type, name in load.library.index.gradients.items():
        if name in load.graph.concrete_functions:
            load.library.custom_gradients[FileName(op_type)] = _maker(load, FileName(name))


def _maker(load: LoadContext, name: FileName) -> Callable[[FunctionLibrary], RegisteredFunction]:
    """Return a function that makes the gradient function, given the library."""
    saved = load.graph.concrete_functions[name]
    captured = [load.objects[number] for number in saved.bound_inputs]
    owners = [
        weakref.ref(owner) if isinstance(owner, api.Resource) else owner for owner in captured
    ]
    signature = signature_of(saved, load.library.get(name), load.file)

    def make(library: FunctionLibrary) -> RegisteredFunction:
        function = RegisteredFunction(library, name, signature)
        function.saved = saved
        function.capture(owners)
        return function

    return make
