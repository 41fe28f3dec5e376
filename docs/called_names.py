"""Write `reference_impl/graph/called_names.py`: ``python -m docs.called_names PYTHON...``, with the
interpreters of releases.

Each interpreter has another TensorFlow; name all of them, since the file is written anew.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from property_tests.attacks import forge

OUT = Path(__file__).parents[1] / "reference_impl" / "graph" / "called_names.py"
PROBE = Path(__file__).with_name("called_names_probe.py")

HEAD = '''"""The names of children that TensorFlow calls, breaks on or looks up. Written by ``python -m docs.called_names``.

A loader of objects sets each child as an attribute. Where TensorFlow has an attribute of this name, the child takes its place.
"""

from __future__ import annotations
'''  # noqa: E501


def model(folder: Path) -> None:
    """Write a model with one child, a function without arguments (object 1) or a plain object
    (object 2).
    """
    message = forge.model()
    graph = message.meta_graphs[0]
    forge.function(graph, "f")
    nodes = graph.object_graph_def.nodes
    for _ in range(3):
        nodes.add()
    for number in (0, 2):
        nodes[number].user_object.identifier = "_generic_user_object"
        nodes[number].user_object.version.producer = nodes[
            number
        ].user_object.version.min_consumer = 1
    nodes[0].children.add(node_id=2, local_name="child")
    nodes[1].function.concrete_functions.append("f")
    nodes[1].function.function_spec.fullargspec.named_tuple_value.name = "FullArgSpec"
    described = graph.object_graph_def.concrete_functions["f"]
    both = described.canonicalized_input_signature.tuple_value
    both.values.add().tuple_value.SetInParent()
    both.values.add().dict_value.SetInParent()
    described.output_signature.none_value.SetInParent()
    fields = nodes[1].function.function_spec.fullargspec.named_tuple_value.values
    for key in (
        "args",
        "varargs",
        "varkw",
        "defaults",
        "kwonlyargs",
        "kwonlydefaults",
        "annotations",
    ):
        _field(fields.add(key=key), key)
    nodes[1].function.function_spec.input_signature.none_value.SetInParent()
    forge.write(folder, message)
    forge.object_checkpoint(folder, message)


def _field(pair: Any, key: str) -> None:
    kind = {"args": "list_value", "kwonlyargs": "list_value", "annotations": "dict_value"}.get(
        key, "none_value"
    )
    getattr(pair.value, kind).SetInParent()


def asked(python: str, folder: Path) -> dict[str, Any]:
    """Return what the TensorFlow of an interpreter does."""
    done = subprocess.run(
        [python, str(PROBE), str(folder)], capture_output=True, text=True, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def text(answers: dict[str, dict[str, Any]]) -> str:
    """Return the module."""
    releases = sorted(answers, key=lambda name: [int(part) for part in name.split(".")])
    names = _listed("names", answers)
    lines = [HEAD, f"RELEASES = {tuple(releases)!r}", ""]
    for constant, outcome, comment in (
        (
            "RUN",
            "run",
            (
                "tf.saved_model.load calls a child function of this name while it loads. Name ->"
                " releases."
            ),
        ),
        (
            "BROKEN",
            "broken",
            "tf.saved_model.load fails if a child has this name. Name -> releases.",
        ),
    ):
        lines += [f"# {comment}", f"{constant}: dict[str, tuple[str, ...]] = {{"]
        for name in names:
            members = [one for one in releases if answers[one]["names"].get(name) == outcome]
            if members:
                lines.append(f"    {name!r}: {tuple(members)!r},")
        lines += ["}", ""]
    lines += [
        "# TensorFlow looks these names up in any object that it tracks or saves.",
        "LOOKED_UP = frozenset(",
        "    {",
    ]
    lines += [f"        {name!r}," for name in _listed("looked_up", answers)]
    return "\n".join([*lines, "    }", ")", ""])


def _listed(key: str, answers: dict[str, dict[str, Any]]) -> list[str]:
    """Return the names that the answer of any release has under ``key``, sorted."""
    names: set[str] = set()
    for answer in answers.values():
        names.update(answer[key])
    return sorted(names)


def main(pythons: list[str]) -> None:
    """Ask the interpreters, and write the module."""
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work) / "model"
        model(folder)
        answers = {}
        for python in pythons:
            answer = asked(python, folder)
            answers[answer["version"].rpartition(".")[0]] = answer
    OUT.write_text(text(answers))


if __name__ == "__main__":
    main(sys.argv[1:])
