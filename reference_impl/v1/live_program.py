"""A program whose functions can be called: the library has their FunctionDefs, and they capture the
state that the load made.
"""

from __future__ import annotations

import re
from typing import Any, Optional

from reference_impl import tensorflow_api as api
from reference_impl.errors import UnsupportedModelError
from reference_impl.fast import calls
from reference_impl.format import schema
from reference_impl.format.container.layout import Layout
from reference_impl.functions.library import FunctionLibrary
from reference_impl.functions.names import FileName
from reference_impl.functions.op_attributes import rules_of
from reference_impl.functions.registered_function import RegisteredFunction
from reference_impl.graph import damage
from reference_impl.kinds.asset import Assets
from reference_impl.load_options import LoadOptions
from reference_impl.v1.reading.extract import Extracted
from reference_impl.v1.reading.program import Program
from reference_impl.v1.reading.selection import Part


class LiveProgram:
    """A program of a TF 1.x MetaGraph with its state. The steps of a load and the methods of the
    loaded root share it.

    Attributes:
      program: what was read.
      part: the part to load, or None for all of it. See `choose_part`.
      library: the functions of the program, and those that are cut out of its graph.
      assets: the files of the model.
      state: node -> variable, resource or asset.

    Raises the errors of `Program` and `Assets`.
    """

    def __init__(self, directory: Layout, meta_graph: schema.MetaGraphDef, options: LoadOptions):
        self.directory, self.meta_graph, self.options = directory, meta_graph, options
        self.file = str(directory.file)
        self.program = Program(
            meta_graph, self.file, api.op_def, find_damage(meta_graph, self.file)
        )
        aliases = meta_graph.meta_info_def.function_aliases
        self.library = FunctionLibrary(self.program.graph.graph_def.library, self.file, aliases)
        if options.fast:
            self.library.prepare_call = calls.prepare
        self.part: Optional[Part] = None
        self.assets = Assets(directory, meta_graph)
        self.state: dict[str, Any] = {}

    def choose_part(self) -> None:
        """Restrict the load to the signatures of ``LoadOptions(only=...)`` and the state that they
        need.

        Raises UnknownPathError.
        """
        if self.options.only is not None:
            self.part = Part(self.program, self.options.only)

    def wants(self, name: str) -> bool:
        """Return whether a variable or resource belongs to the loaded part of the model."""
        return self.part is None or name in self.part.state

    def function(
        self,
        extracted: Extracted,
        inputs: Any,
        outputs: Any,
        cls: type[RegisteredFunction] = RegisteredFunction,
        structured: Any = None,
    ) -> RegisteredFunction:
        """Return a live function over the state.

        `inputs`, in the order of its arguments, are a mapping of named tensors or a tuple of
        positional nests. `structured` is its structured input signature, if different.
        """
        name = self._add(extracted)
        structured = structured or (
            (inputs, {}) if isinstance(inputs, tuple) else ((), dict(inputs))
        )
        made: RegisteredFunction = cls(self.library, name, lambda: (structured, outputs))
        made.of_graph, made.placeholders = True, extracted.fed
        if not isinstance(inputs, tuple):
            made.set_flat_arguments(list(inputs), len(inputs))
        left_out = [node for node in extracted.captures if node not in self.state]
        if left_out:
            reason = f"needs {', '.join(left_out)}, which LoadOptions(only=...) left out"
            raise UnsupportedModelError(reason, file=self.file, node=name, clause="DR-03")
        made.capture([self.state[node] for node in extracted.captures])
        return made

    def _add(self, extracted: Extracted) -> FileName:
        """Add the FunctionDef to the library; return its name there."""
        extracted.function.signature.name = "v1_" + re.sub(
            r"[^A-Za-z0-9_]", "_", extracted.function.signature.name
        )
        for inner in extracted.functions:  # their names are free, since the program chose them
            self.library.add(inner)
        return self.library.add(extracted.function)


def find_damage(meta_graph: schema.MetaGraphDef, file: str) -> damage.Damage:
    """Return the nodes that break the rules of their ops in this TensorFlow.

    Raises SavedModelError: one of them is a placeholder, which becomes an argument of a function
    wherever it is fed.
    """
    found = damage.find(meta_graph.graph_def, rules_of, file)
    for node in meta_graph.graph_def.node if found.nodes else ():
        if node.op.startswith("Placeholder") and node.name in found.nodes:
            raise found.nodes[node.name]
    return found
