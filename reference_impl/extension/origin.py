"""Where a model was loaded from, as far as the classes of its objects need it to make more objects.

An origin holds messages and classes, and no object of any load, so a class keeps no variable alive.

RFC: INIT-02, INIT-04
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

from reference_impl.format.container.layout import Layout


class Origin:
    """The file of a load, and what its extension says by number of node.

    Args:
      directory, meta_graph: the file.
      graph: the object graph that was loaded; a part has empty nodes.
      message: the Extension of the file, None without one.
      construct: fills an object that calling the class of a node made; see `reference_impl.extension.new_objects.construct`.

    Attributes:
      registered, initial_values, optimizers: messages of the extension by number.
      classes: classes of generic objects by number.
    """

    def __init__(self, directory: Layout, meta_graph: Any, graph: Any, message: Optional[Any], construct: Callable[..., None]):
        self.directory, self.meta_graph, self.graph, self.construct = directory, meta_graph, graph, construct
        self.registered = {} if message is None else {item.node_id: item for item in message.registered}
        self.initial_values = {} if message is None else {item.node_id: item for item in message.initial_values}
        self.optimizers = {} if message is None else {item.node_id: item for item in message.optimizers}
        self.classes: dict[int, type] = {}
