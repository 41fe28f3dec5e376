"""Find the children that TensorFlow's loader of objects calls or breaks on, because of their
names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from reference_impl.format import schema
from reference_impl.graph import called_names
from reference_impl.graph.object_references import traces

# Their children are items.
_CONTAINERS = (
    "trackable_list_wrapper",
    "trackable_dict_wrapper",
    "trackable_tuple_wrapper",
    "signature_map",
)


class CalledChild(NamedTuple):
    """A child with the name of something that TensorFlow calls or sets on an object.

    Attributes:
      parent: the number of the object.
      name: the name of the child.
      number: the number of the child. It may be out of range.
      runs: whether the loader runs the child, which is a function.
    """

    parent: int
    name: str
    number: int
    runs: bool


def called_children(nodes: Sequence[schema.SavedObject]) -> Iterator[CalledChild]:
    """Yield the children that some release of TensorFlow calls, or with which its load fails."""
    for parent, item in enumerate(nodes):
        if item.user_object.identifier in _CONTAINERS:
            continue
        for child in item.children:
            name, number = child.local_name, child.node_id
            if name in called_names.RUN or name in called_names.BROKEN:
                runs = (
                    name in called_names.RUN
                    and 0 <= number < len(nodes)
                    and bool(traces(nodes[number]))
                )
                yield CalledChild(parent, name, number, runs)
