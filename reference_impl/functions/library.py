"""The function library of one loaded MetaGraph: the FunctionDefs by file name, and the live name of
each.

FunctionDefs of two models may share names, so each load gives its functions live names that no
other load uses: `__inference_f_7` becomes `__inference_f_7__load1`. The same holds for custom
gradients, and for the shared names of resources that functions make. Live names are recorded when
they are made. A name that only looks like one, which another process or another copy of this
package made, is not ours.

The FunctionDefs stay unchanged; a re-export writes them. `registration` gives copies to TensorFlow.

RFC: RP-06, RP-07, FN-05
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Optional, cast

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import CycleError, MissingKeyError
from reference_impl.format import schema
from reference_impl.format.names import LOAD_MARK
from reference_impl.functions import op_attributes
from reference_impl.functions.names import FileName, LiveName
from reference_impl.graph.order import targets_first
from reference_impl.graph.references import FunctionIndex
from reference_impl.graph.unique_names import unique_name
from reference_impl.tracing import Watch

_loads = itertools.count(1)
# The library that gave a live name. A library that is gone takes its names along.
_givers: weakref.WeakValueDictionary[LiveName, FunctionLibrary] = weakref.WeakValueDictionary()


class FunctionLibrary:
    """The functions of a MetaGraph.

    The FunctionDefLibrary is kept, not copied.

    `custom_gradients` maps registered op types to makers of the function objects that compute the
    gradients (FMT-14), given this library; the loader adds them once their captures are known. The
    library does not hold the objects themselves, because they hold the library and no reference
    cycle may hold a variable. `aliases` maps names of functions to their aliases in the file.
    """

    def __init__(
        self,
        library: schema.FunctionDefLibrary,
        file: str = "",
        aliases: Optional[Mapping[str, str]] = None,
    ):
        self.index = FunctionIndex(library)
        self.aliases = cast("dict[FileName, str]", dict(aliases or {}))
        self.file = file
        self.custom_gradients: dict[FileName, Callable[[FunctionLibrary], Any]] = {}
        # Live op type of a custom gradient -> graph (weak reference) and name of an operation that
        # has it.
        self.sites: dict[LiveName, tuple[Callable[[], Any], str]] = {}
        # The tf.function of each rebuilt function; filled by `rebuild`.
        self.rebuilt: dict[FileName, Any] = {}
        self.watch: Optional[Watch] = None  # of the load, if somebody watches it
        # Returns what takes the arguments of a registered function (`reference_impl.fast.calls`).
        self.prepare_call: Optional[Callable[[Any], Optional[Callable[..., Any]]]] = None
        self.lock = threading.RLock()
        self.eager = tf.executing_eagerly()  # otherwise variables and functions belong to a graph
        # Functions in TensorFlow's runtime; filled by `registration`.
        self.registered: dict[LiveName, None] = {}
        # Registered functions with nodes of ops that were not known then, and these ops.
        self.incomplete: dict[FileName, frozenset[str]] = {}
        self._mark = f"{LOAD_MARK}{next(_loads)}"
        self._live: dict[FileName, LiveName] = {}
        self._of_file: dict[LiveName, FileName] = {}
        self._checked: set[FileName] = set()
        self._references: dict[FileName, tuple[FileName, ...]] = {}
        weakref.finalize(self, _unregister, self.registered).atexit = False

    def __contains__(self, name: str) -> bool:
        return name in self.index.functions

    def __iter__(self) -> Iterator[FileName]:
        return iter(cast("dict[FileName, schema.FunctionDef]", self.index.functions))

    def get(self, name: FileName) -> schema.FunctionDef:
        """Return a FunctionDef as it was read. Raises MissingKeyError."""
        try:
            return self.index.functions[name]
        except KeyError:
            raise MissingKeyError(
                "the function library has no such function", file=self.file, node=name
            ) from None

    def add(self, function: schema.FunctionDef) -> FileName:
        """Add a new function to the library; return its name, with a number if the name was
        taken.
        """
        name = unique_name(function.signature.name, self.index.functions)
        function.signature.name = name
        self.index.functions[name] = function
        return FileName(name)

    def live_name(self, name: FileName) -> LiveName:
        """Return the live name of a function, a custom gradient or a shared resource.

        This is the only place where a file name becomes a live name.
        """
        live = self._live.get(name)
        if live is None:
            live = self._live[name] = self._give(name, LiveName(f"{name}{self._mark}"))
        return live

    def live_name_for_shapes(self, name: FileName) -> LiveName:
        """Return one more live name of a function, for the shapes of some call."""
        return self._give(name, LiveName(f"{name}__shapes{len(self.registered)}{self._mark}"))

    def _give(self, name: FileName, live: LiveName) -> LiveName:
        self._of_file[live] = name
        _givers[live] = self
        return live

    def file_name(self, live: LiveName) -> FileName:
        """Return the file name for which this library gave a live name."""
        return self._of_file[live]

    def closure(self, name: FileName) -> list[FileName]:
        """Return a function and all functions that it may call, each once and before the functions
        that it calls.

        Raises CycleError: a function calls itself. Tracing never makes such a function, and it
        crashes TensorFlow's runtime.
        """
        order = targets_first(
            [name],
            self._refers,
            lambda other: CycleError(
                f"the function {other} calls itself", file=self.file, node=name
            ),
        )
        return order[::-1]

    def check(self, name: FileName) -> None:
        """Raise the errors of `closure`. Each function is visited once."""
        if name not in self._checked:
            self._checked.update(self.closure(name))

    def _refers(self, name: FileName) -> tuple[FileName, ...]:
        if name not in self._references:
            found = map(self.functions_of, self.get(name).node_def)
            self._references[name] = tuple(dict.fromkeys(itertools.chain.from_iterable(found)))
        return self._references[name]

    def functions_of(self, node: schema.NodeDef) -> Iterator[FileName]:
        """Yield the functions that running a node may call, except its custom gradient and
        attributes that its op lacks.
        """
        keys = op_attributes.with_functions(node.op)
        found = self.index.references(node, gradients=False, keys=keys)
        return cast("Iterator[FileName]", found)


def registered_name(live: LiveName) -> Optional[tuple[FunctionLibrary, FileName]]:
    """Return the library and the file name of a loaded function, or None for a function that no
    living load registered, such as one that was traced here.
    """
    found = original_name(live)
    return found if found is not None and found[1] in found[0] else None


def original_name(live: LiveName) -> Optional[tuple[FunctionLibrary, FileName]]:
    """Return the library and the file name for a live name of any kind, also of a shared resource
    or a custom gradient: ``table`` for ``table__load3``.

    Return None if no living load gave the name.
    """
    library = _givers.get(live)
    return None if library is None else (library, library.file_name(live))


def _unregister(names: dict[LiveName, None]) -> None:
    for name in names:
        api.remove_function(name)
