"""What a model was loaded from, as far as its objects' classes need it to make more of their kind (INIT-02, INIT-04).

It holds messages and classes, and no object of any load: so a class keeps no variable alive.
"""

from __future__ import annotations

from typing import Any, Optional

from reference_impl.format.container.layout import Layout


class Origin:
    """The file of a load, and what its extension says by number of node.

    Attributes:
      directory, meta_graph: the file.
      graph: the object graph that was loaded; a part has empty nodes.
      registered, initial_values, optimizers: messages of the extension by number.
      classes: classes of generic objects by number.
    """

    def __init__(self, directory: Layout, meta_graph: Any, graph: Any, extension: Optional[Any]):
        self.directory, self.meta_graph, self.graph = directory, meta_graph, graph
        self.registered = {} if extension is None else {item.node_id: item for item in extension.registered}
        self.initial_values = {} if extension is None else {item.node_id: item for item in extension.initial_values}
        self.optimizers = {} if extension is None else {item.node_id: item for item in extension.optimizers}
        self.classes: dict[int, type] = {}

    def add_class(self, number: int, cls: Any) -> None:
        """Note the class that was made for a node, and tell the class where it comes from."""
        self.classes[number] = cls
        cls._origin = (self, number)

    def construct(self, number: int, instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Fill an object that was made by calling the class of a node; see `reference_impl.loading.new_objects.construct`."""
        from reference_impl.loading import new_objects  # which is a loader, and loaders make origins

        new_objects.construct(self, number, instance, args, kwargs)
