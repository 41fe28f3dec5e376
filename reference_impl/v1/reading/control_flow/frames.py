"""Find the frame of a TF 1.x loop that each node of a function runs in.

``Enter`` leads into a frame, ``Exit`` out of it; every other node is in the frame of its inputs.
TensorFlow's executor finds the frames while it runs. This module finds them beforehand and refuses
a graph that mixes frames.

RFC: V1-11
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional

from reference_impl.format import limits, schema
from reference_impl.graph.closure import reversed_edges
from reference_impl.v1.reading.control_flow.editable_function import (
    EditableFunction,
    NotConvertible,
)


@dataclass(eq=False)
class Frame:
    """The nodes of one loop: ``enters`` lead into it, ``members`` (Exit nodes among them) run in
    it, in graph order.
    """

    name: str
    parent: Optional[Frame]
    depth: int
    enters: list[str] = field(default_factory=list)
    members: list[str] = field(default_factory=list)


def find_frames(function: EditableFunction) -> list[Frame]:
    """Return all frames of a function except the outermost, inner frames before outer ones.

    Raises NotConvertible: a node has inputs of different frames, or is in a cycle without an Enter;
    a result is inside a loop.
    """
    root = Frame("", None, 0)
    children: dict[tuple[int, str], Frame] = {}
    needs = {name: function.sources(node) for name, node in function.nodes.items()}
    users = reversed_edges(needs.items())
    found = [name for name in needs if not needs[name]]
    frame_of = dict.fromkeys(found, root)
    for name in found:  # grows meanwhile
        outside = _frame_after(function.nodes[name], frame_of[name], children)
        for user in users.get(name, ()):
            if user not in frame_of:
                frame_of[user] = outside
                found.append(user)
            elif frame_of[user] is not outside:
                raise NotConvertible(
                    user, f"has inputs of the frames {frame_of[user].name!r} and {outside.name!r}"
                )
    for name, node in function.nodes.items():
        if name not in frame_of:
            raise NotConvertible(name, "is part of a cycle that no Enter leads into")
        frame_of[name].members.append(name)
        if node.op == "Enter":
            children[id(frame_of[name]), _frame_name(node)].enters.append(name)
    return sorted(children.values(), key=lambda frame: -frame.depth)


def inside_of_loops(function: EditableFunction) -> list[str]:
    """Return the nodes in frames whose tensors the function returns.

    The list is empty if the frames contradict each other.
    """
    try:
        frames = find_frames(function)
    except NotConvertible:
        return []
    members: set[str] = set()
    for frame in frames:
        members.update(
            name for name in frame.members if function.nodes[name].op != "Exit" or frame.depth > 1
        )
        members.update(frame.enters)
    return [name for name in function.results() if name in members]


def _frame_after(
    node: schema.NodeDef, frame: Frame, children: dict[tuple[int, str], Frame]
) -> Frame:
    """Return the frame that the outputs of a node are in."""
    if node.op == "Enter":
        name = _frame_name(node)
        if (id(frame), name) not in children:
            if frame.depth == limits.CONTROL_FLOW_DEPTH:
                raise NotConvertible(
                    node.name, f"is nested in more than {limits.CONTROL_FLOW_DEPTH} loops"
                )
            children[id(frame), name] = Frame(name, frame, frame.depth + 1)
        return children[id(frame), name]
    if node.op == "Exit":
        if frame.parent is None:
            raise NotConvertible(node.name, "leaves a loop that no Enter leads into")
        return frame.parent
    return frame


def _frame_name(node: schema.NodeDef) -> str:
    return str(node.attr["frame_name"].s.decode("utf-8", "replace"))
