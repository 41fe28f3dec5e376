"""Base classes of loaded objects, which implement private methods of TensorFlow's classes with our
public methods.

TensorFlow and Keras call these methods of every trackable object. All are in 2.12-2.21.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Optional

import tensorflow as tf

from reference_impl.tensorflow_api.functions import ConcreteFunction, Function
from reference_impl.tensorflow_api.trackables import (
    AutoTrackable,
    CapturableResource,
    Trackable,
    TrackableResource,
    lists_attributes,
)


class _Unsearched:
    """The value of `_TF_MODULE_IGNORED_PROPERTIES`, which `tf.Module` reads from classes and from
    their objects.
    """

    def __get__(self, instance: Any, owner: Any = None) -> frozenset[str]:
        known = frozenset(tf.Module._TF_MODULE_IGNORED_PROPERTIES) | owner._unsearched
        return known if instance is None else known | owner.unsearched_attributes(instance)


class Searchable(AutoTrackable):
    """An object that chooses which of its attributes are searched for variables and modules, also
    if it is a `tf.Module` as well.

    It is none by itself: a layer of Keras 2, like any `tf.Module`, trains the variables of the
    modules that it holds.
    """

    _TF_MODULE_IGNORED_PROPERTIES = _Unsearched()
    _unsearched: ClassVar[frozenset[str]] = (
        frozenset()
    )  # attributes in which no object of the class has variables or modules

    def unsearched_attributes(self) -> frozenset[str]:
        """Return further attributes of this object that are not searched for variables and
        modules.
        """
        return frozenset()

    def hidden_children(self) -> dict[str, Any]:
        """Return the children by name that are not attributes, since TensorFlow has attributes with
        these names.
        """
        return {}

    @lists_attributes
    def _trackable_children(
        self, save_type: str = "checkpoint", **kwargs: object
    ) -> dict[str, Any]:
        """Return the children as `tf.Module` does, and functions that are hidden, which it looks up
        as attributes.
        """
        hidden = {
            name: child
            for name, child in type(self).hidden_children(self).items()
            if isinstance(child, Trackable)
        }
        return {**super()._trackable_children(save_type, **kwargs), **hidden}


def unsearched(owner: object) -> frozenset[str]:
    """Return the attributes of a class, or of an object, that `tf.Module` does not search for
    variables and modules.

    Empty for other classes.
    """
    return frozenset(getattr(owner, "_TF_MODULE_IGNORED_PROPERTIES", ()))


class _Lifecycle:
    """The three hooks of a resource: `tf.saved_model.experimental.TrackableResource` documents them
    under these names.
    """

    def create(self) -> tf.Tensor:
        """Make the resource and return its handle."""
        raise NotImplementedError

    def initialize(self) -> Any:
        """Fill the resource."""

    def destroy(self) -> Any:
        """Free what the resource holds."""

    def _create_resource(self) -> tf.Tensor:
        return self.create()

    def _initialize(self) -> Any:
        return self.initialize()

    def _destroy_resource(self) -> Any:
        return self.destroy()


class SharedResource(_Lifecycle, CapturableResource):
    """A resource with the hooks `create`, `initialize` and `destroy`, shared by all devices."""


class Resource(_Lifecycle, TrackableResource):
    """A resource with the hooks `create`, `initialize` and `destroy`; strategies make one for each
    device.
    """

    def set_content_hooks(self, save: Callable[..., Any], restore: Callable[..., Any]) -> None:
        """Make checkpoints save the content of this resource.

        Hooks in the class would apply to every resource.
        """
        self._serialize_to_tensors = save
        self._restore_from_tensors = restore


class RestoredFunction(Function):
    """A `tf.function` with given traces: a derived class sets ``concrete_functions``.

    The `__getattr__` of the derived class initialises the base class when one of its own attributes
    is accessed.
    """

    concrete_functions: list[Any]

    def has_python_function(self) -> bool:
        """Return whether the base class is initialised."""
        return "_python_function" in vars(self)

    def _get_concrete_function_garbage_collected(self, *args: object, **kwargs: object) -> Any:
        """Return, for TensorFlow's writer, a function around this one whose outputs are tensors of
        a graph.
        """
        self._python_function  # noqa: B018  # initialises the base class
        return super()._get_concrete_function_garbage_collected(*args, **kwargs)

    def _list_all_concrete_functions(self) -> list[Any]:
        return list(self.concrete_functions)

    def _list_all_concrete_functions_for_serialization(self) -> list[Any]:
        return list(self.concrete_functions)


class _OfTraced:
    """An attribute that TensorFlow's class sets when it traces a function; read from the traced
    function, and set there.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, function: Any, owner: Optional[type] = None) -> Any:
        return self if function is None else getattr(function.traced(), self._name)

    def __set__(self, function: RestoredConcreteFunction, value: object) -> None:
        setattr(function.traced(), self._name, value)


class RestoredConcreteFunction(ConcreteFunction):
    """A concrete function that gets its graph on demand, and whose flat arguments are passed by
    name.

    TensorFlow's class keeps its graph in the attributes below, in some release from 2.12 to 2.21.
    Its own methods and properties (`graph`, `inputs`, `function_def`, `name`, ...) read them.

    Attributes:
      flat_keywords: the names, or None for a function that takes no flat arguments.
      flat_positional: how many of them may be positional.
      flat_order: the names in the order of positional arguments.
    """

    _attrs = _OfTraced()
    _captured_inputs = _OfTraced()
    _delayed_rewrite_functions = _OfTraced()
    _first_order_tape_functions = _OfTraced()
    _func_graph = _OfTraced()
    _function_spec = _OfTraced()  # in 2.12; a property since 2.15
    _function_type = _OfTraced()  # since 2.13
    _garbage_collector = _OfTraced()
    _higher_order_tape_functions = _OfTraced()
    _inference_function = _OfTraced()
    _output_shapes = _OfTraced()
    _pre_initialized_function_spec = _OfTraced()  # in 2.12

    def traced(self) -> ConcreteFunction:
        """Return the concrete function that TensorFlow traced, which has the graph."""
        raise NotImplementedError

    _arg_keywords: Optional[list[str]] = None
    _num_positional_args = 0

    def set_flat_arguments(
        self,
        keywords: Optional[Sequence[str]],
        positional: int,
        order: Optional[Sequence[str]] = None,
    ) -> None:
        """Set the names of the flat arguments and how many of them may be positional, in the order
        of the names or in another.
        """
        self._arg_keywords = None if keywords is None else list(keywords)
        self._num_positional_args = positional
        self.flat_order = self._arg_keywords if order is None else list(order)

    @property
    def flat_keywords(self) -> Optional[list[str]]:
        return self._arg_keywords

    @property
    def flat_positional(self) -> int:
        return self._num_positional_args
