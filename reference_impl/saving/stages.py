"""The stages of a save. Each takes the values of earlier stages and makes one frozen value.

`save` runs the stages in this order, ``SaveOptions(trace=print)`` prints them, and the reading
guide (`reference_impl/README.md`) walks them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Optional, TypeVar

from reference_impl.errors import listed
from reference_impl.tracing import Watch

Made = TypeVar("Made")


class Stage(NamedTuple):
    """A stage: its name, what it makes, and the module and the function that make it."""

    name: str
    makes: str
    module: str
    function: str


STAGES = (
    Stage("walk", "the objects to which the root leads, with their children", "walk", "walk"),
    Stage("signatures", "the functions that are signatures", "signatures", "choose_signatures"),
    Stage("tree", "the objects with their numbers", "tree", "number_objects"),
    Stage(
        "contents", "the state of all objects, and all functions", "contents", "collect_contents"
    ),
    Stage("plan", "the checked contents, and the asset files", "plan", "plan_save"),
    Stage("messages", "the SavedModel message", "meta_graph", "saved_model"),
    Stage("files", "the directory of the export", "files", "write_files"),
)


class StageRunner:
    """Runs the stages of one save in order, and tells a watch what came of each."""

    def __init__(self, watch: Optional[Watch]):
        self._watch = watch
        self._left = iter(STAGES)

    def run(self, make: Callable[..., Made], *values: Any) -> Made:
        """Run the next stage, the function `make`, and return its value."""
        stage = next(self._left)
        assert make.__name__ == stage.function, (make, stage)
        made = make(*values)
        if self._watch is not None:
            self._watch.tell(stage.name, "", "", _TEXTS[stage.name](made))
        return made


def _contents_text(contents: Any) -> str:
    functions = len(contents.functions.library.definitions)
    states = sum(map(len, contents.states.values()))
    return (
        f"objects: {len(contents.tree.nodes)}, variables: {len(contents.checkpoint.variables)},"
        f" functions: {functions}, states: {states}, slots: {len(contents.slots)}"
    )


# Name of a stage -> what its step says of the value.
_TEXTS: dict[str, Callable[[Any], str]] = {
    "walk": lambda walk: f"objects: {len(walk.objects)}",
    "signatures": lambda signatures: listed(sorted(signatures)) if signatures else "none",
    "tree": lambda tree: f"objects: {len(tree.nodes)}",
    "contents": _contents_text,
    "plan": lambda plan: f"checked; asset files: {len(plan.assets.all_files)}",
    "messages": lambda message: (
        f"nodes of the main graph: {len(message.meta_graphs[0].graph_def.node)}"
    ),
    "files": lambda _: "written",
}
