"""Add the custom gradients that nodes of an export name, and theirs.

A gradient may itself use operations with custom gradients, without end: the gradient of a sum over
replicas is a sum over replicas. Gradients are followed up to `ORDERS`; later nodes record that
there is no further gradient, with the reason (`reference_impl.functions.gradients`).

RFC: FMT-14
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Union

from reference_impl.errors import SaveError
from reference_impl.format import schema
from reference_impl.format.names import CUSTOM_GRADIENT, is_generated_gradient
from reference_impl.functions.names import ExportName
from reference_impl.graph.node_attributes import texts_of
from reference_impl.saving.captures import Captures
from reference_impl.saving.export_library import ExportLibrary
from reference_impl.saving.function_sources import FileFunctions
from reference_impl.saving.gradient_names import restore_names
from reference_impl.saving.gradients import GradientTracer
from reference_impl.saving.traced_shapes import TracedShapes
from reference_impl.saving.traces import saved_concrete
from reference_impl.saving.tree import Tree

# How often a loaded function can be differentiated if each gradient has custom gradients of its
# own. tf.saved_model.save keeps the first.
ORDERS = 3


@dataclass(frozen=True)
class ExportedGradients:
    """The custom gradients of an export.

    Attributes:
      functions: op type -> name of the gradient function, "" if the program has to register one.
      described: name of a gradient function -> SavedConcreteFunction.
    """

    functions: Mapping[ExportName, str]
    described: Mapping[ExportName, schema.SavedConcreteFunction]


def add_gradients(
    tree: Tree,
    library: ExportLibrary,
    captures: Captures,
    shapes: TracedShapes,
    names: Mapping[int, ExportName],
    wanted: bool,
) -> ExportedGradients:
    """Add a function to the library for each custom gradient that its nodes name.

    Args:
      names: number of a function's node -> name in the library.
      wanted: whether custom gradients are saved.

    Raises SaveError if a gradient cannot be traced, or uses state that the root does not lead to.
    """
    return _GradientAdder(tree, library, captures, names).add_all(shapes, wanted)


class _GradientAdder:
    def __init__(
        self,
        tree: Tree,
        library: ExportLibrary,
        captures: Captures,
        names: Mapping[int, ExportName],
    ):
        self._tree, self._library, self._captures = tree, library, captures
        self._tracer = GradientTracer(library)
        self._users = _users_of_gradients(library, tree.paths(names) if library.gradients else {})
        self._described: dict[ExportName, schema.SavedConcreteFunction] = {}

    def add_all(self, shapes: TracedShapes, wanted: bool) -> ExportedGradients:
        found = self._followed() if wanted else dict.fromkeys(self._library.gradients, "")
        self._captures.check()
        self._report_doubtful()
        for function in self._tracer.made:
            shapes.complete(function)
        functions = {
            op_type: name if isinstance(name, str) else "" for op_type, name in found.items()
        }
        kept = restore_names(self._library, *self._lost(found, wanted))
        return ExportedGradients(
            {final: functions[op_type] for op_type, final in kept.items()}, self._described
        )

    def _followed(self) -> dict[ExportName, Union[str, SaveError]]:
        """Return op type -> what `_add` returns, also for the gradients of gradients."""
        found: dict[ExportName, Union[str, SaveError]] = {}
        gradients = self._library.gradients  # grows
        # The order of the derivative that needs the gradient.
        orders = dict.fromkeys(gradients, 1)
        while len(found) < len(gradients):
            for op_type in list(gradients):
                if op_type not in found:
                    found[op_type] = self._add(op_type, orders[op_type])
                    for other in gradients:
                        orders.setdefault(other, orders[op_type] + 1)
        return found

    def _add(self, op_type: ExportName, order: int) -> Union[str, SaveError]:
        """Return the name of a gradient function, or "" if there is none.

        An error is returned, to be stored at the nodes, in two cases: if it concerns the gradient
        of a gradient, which does not affect the first gradient, or if the author declared that
        there is no gradient.
        """
        path = (
            f"a custom gradient in {self._users.get(op_type, 'the gradient of another function')}"
        )
        from_file = isinstance(self._library.gradients[op_type][0], FileFunctions)
        if order > ORDERS and not from_file:
            return SaveError(
                f"the model was saved with custom gradients of up to order {ORDERS}", node=path
            )
        try:
            trace = self._tracer.trace(op_type)
        except SaveError as error:
            if order > 1 or isinstance(error.__cause__, NotImplementedError):
                return error
            self._tree.report_loss(error, "a custom gradient is left out")
            return ""
        if trace is None:
            return ""
        if order > 1 and any(self._captures.owner(capture) is None for capture in trace.captures):
            return SaveError(
                "the custom gradient uses what cannot be reached from the object that was saved",
                node=path,
            )
        name = self._tracer.add(trace)
        captured = self._captures.resolve(trace, path, None)
        self._described[name] = saved_concrete(trace, captured, path)
        return name

    def _lost(
        self, found: Mapping[ExportName, Union[str, SaveError]], wanted: bool
    ) -> tuple[list[ExportName], dict[ExportName, str]]:
        """Return the op types of lost gradients that keep their name, and those of gradients that
        must not be looked up with the reason.
        """
        lost: list[ExportName] = []
        refused: dict[ExportName, str] = {}
        why = (
            "the custom gradient was not in the model that was loaded, or does not say what it"
            " captures"
            if wanted
            else "the model was saved with experimental_custom_gradients=False"
        )
        for op_type, name in found.items():
            if isinstance(name, SaveError):
                refused[op_type] = name.reason
            elif not name and is_generated_gradient(self._library.gradients[op_type][1]):
                refused[op_type] = why
            elif not name:
                lost.append(op_type)
        return lost, refused

    def _report_doubtful(self) -> None:
        """Report the custom gradients that tf.saved_model.load gave a number that the file uses for
        another gradient.
        """
        for site in self._library.runtime.sites.doubtful:
            if self._library.find(None, site.function) is not None:
                reason = (
                    f"the custom gradient of {site.operation.name!r} is one of two:"
                    " tf.saved_model.load gave it a number that the file already has for another"
                    " gradient. Load the model with reference_impl.load instead"
                )
                error = SaveError(reason, node=site.function, clause="FMT-14")
                self._tree.report_loss(error, "the custom gradient is left out")


def _users_of_gradients(
    library: ExportLibrary, paths: Mapping[ExportName, str]
) -> dict[ExportName, str]:
    """Return op type of a custom gradient -> the first function that has such a node, by its path
    if it has one.
    """
    if not library.gradients:
        return {}
    users: dict[ExportName, str] = {}
    for text in texts_of(library.definitions, CUSTOM_GRADIENT):
        path = paths.get(ExportName(text.function), text.function)
        users.setdefault(ExportName(text.value), path)
    return users
