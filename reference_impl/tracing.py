"""Watching a load: the steps that ``load(path, trace=print)`` tells, one by one.

A `Step` names the file, the node and the clause of the RFC, and says what came of the node. A load
that nobody watches makes no steps: the ``watch`` of a loader, a checkpoint and a function library
is None.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Optional, Union

from reference_impl.errors import SavedModelError, printable

# Stage of a load -> what its steps tell, in the order of a load. A variable is made with its value,
# so the steps of the stages in `TOGETHER` alternate.
STAGES = {
    "file": "the file that was read, and the other saved_model files, which were not",
    "meta graph": "the MetaGraph that the tags choose",
    "graph": "the state that was found in the graph of a TF 1.x model",
    "object graph": "the object graph, whose numbers were checked",
    "function": "a function of the library: known, or with an op that this TensorFlow lacks",
    "checkpoint": "the checkpoint: opened, not there, or not wanted",
    "value": "the value of a variable: its key, dtype and shape, or why there is none",
    "object": "an object: its class, or why its node was left out",
    "children": "the names of the children that became attributes of an object",
    "captures": "the objects that a function captures",
    "state": "the content of a table, or other state of an object, from the checkpoint",
    "initializer": "an initialiser: it ran, or why it did not",
    "signature": "a signature: its inputs and outputs, or why it cannot be called",
    "error": "the error with which the load ends",
    "registered": "a function that TensorFlow's runtime got, at the first call",
    "rebuilt": "a function that was rebuilt as a graph, when a gradient or a trace needed one",
}
TOGETHER = ("checkpoint", "value", "object")
# Functions are called after the load, and by initialisers during it.
AT_ANY_TIME = ("registered", "rebuilt")

_WIDTH = max(map(len, STAGES))


@dataclass(frozen=True)
class Step:
    """One step of a load; ``str()`` of it is one line of text without control characters.

    Attributes:
      stage: one of `STAGES`.
      file: the file, relative to the directory of the model: ``saved_model.pb``.
      node: where in the file: ``nodes[3] root.v``, the name of a function or a node; or "".
      result: what came of the node: ``variable float32[2]``.
      rule: the clause of the RFC that the step follows, like ``RP-03``; or "".
    """

    stage: str
    file: str
    node: str
    result: str
    rule: str = ""

    def __str__(self) -> str:
        parts = (self.file, self.node, self.result, self.rule)
        return "  ".join(
            [self.stage.ljust(_WIDTH), *[printable(part) for part in parts if part]]
        ).rstrip()


Sink = Callable[[Step], Any]


class Watch:
    """Gives a sink the steps of one load of a directory. An error of the sink reaches the caller.

    It holds no object of the model, so that a function library can keep it.
    """

    def __init__(self, sink: Sink, directory: Union[str, os.PathLike[str]]):
        self._sink = sink
        self._above = f"{os.path.abspath(directory)}{os.sep}"  # noqa: PTH100  as `Root` has it

    def tell(
        self,
        stage: str,
        file: Union[str, os.PathLike[str]],
        node: str,
        result: str,
        rule: Optional[str] = None,
    ) -> None:
        """Give the sink a step about a file of the directory."""
        self._sink(Step(stage, os.fspath(file).removeprefix(self._above), node, result, rule or ""))

    def tell_error(self, error: Exception) -> None:
        """Give the sink the step of the error that ends a load."""
        kind = type(error).__name__
        if isinstance(error, SavedModelError):
            result = f"{kind}: {error.reason}"
            cited = error.rule or error.clause
            self.tell("error", error.file or "", error.node or "", result, cited)
        else:
            self.tell("error", "", "", f"{kind}: {error}")
