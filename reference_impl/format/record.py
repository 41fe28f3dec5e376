"""Classes of plain data that cost next to nothing to declare: `record` is ``dataclass(frozen=True)`` without code of its own.

`dataclasses` writes and compiles six methods for every class, of which a program that looks at one small model has dozens: a
quarter of its time. Here all classes share their methods. `dataclasses.fields`, `replace` and `asdict` work as usual.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, TypeVar

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_):
        return lambda function: function


T = TypeVar("T")
V = TypeVar("V")


class _Made:
    """A default value that is made anew for each object."""

    def __init__(self, factory: Callable[[], Any]) -> None:
        self.factory = factory


def field(*, default_factory: Callable[[], V]) -> V:
    """A default that is made for each object, as in `dataclasses`."""
    return _Made(default_factory)  # type: ignore[return-value]  # what the attribute is, once there is an object


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """Make a class one of the fields that it annotates, compared and hashed by them, and never changed."""
    return _declared(cls, {**_METHODS, "__hash__": _hash, "__setattr__": _refuse, "__delattr__": _refuse})


@dataclass_transform(field_specifiers=(field,))
def mutable_record(cls: type[T]) -> type[T]:
    """The same, of which the fields may be set; it has no hash."""
    return _declared(cls, {**_METHODS, "__hash__": None})


def _declared(cls: type[T], methods: dict[str, Any]) -> type[T]:
    own: dict[str, str] = getattr(cls, "__annotations__", {})
    defaults = {name: cls.__dict__[name] for name in own if name in cls.__dict__}
    for name, default in defaults.items():
        if isinstance(default, _Made):
            delattr(cls, name)
    for name, method in methods.items():
        if name not in cls.__dict__:
            setattr(cls, name, method)
    settings: Any = cls
    settings.__record_fields__ = {**getattr(cls, "__record_fields__", {}), **own}  # name: annotation
    settings.__record_defaults__ = {**getattr(cls, "__record_defaults__", {}), **defaults}
    settings.__dataclass_fields__ = _AsDataclass()
    return cls


class _AsDataclass:
    """What `dataclasses` knows of a class, made when it asks."""

    def __get__(self, _: Any, cls: Any) -> Any:
        import dataclasses

        declared: list[Any] = []
        for name, kind in cls.__record_fields__.items():
            default = cls.__record_defaults__.get(name, dataclasses.MISSING)
            made = isinstance(default, _Made)
            item = dataclasses.field(default_factory=default.factory) if made else dataclasses.field(default=default)
            declared.append((name, kind, item))
        twin: Any = dataclasses.make_dataclass(cls.__name__, declared)
        cls.__dataclass_fields__ = twin.__dataclass_fields__
        return cls.__dataclass_fields__


def _init(self: Any, *given: Any, **named: Any) -> None:
    fields, values = self.__record_fields__, self.__dict__
    values.update(zip(fields, given))
    if len(given) == len(fields) and not named:
        return
    if len(given) > len(fields):
        raise TypeError(f"{type(self).__qualname__} has {len(fields)} fields, not {len(given)}")
    for name in list(fields)[len(given) :]:
        if name in named:
            values[name] = named.pop(name)
            continue
        if name not in self.__record_defaults__:
            raise TypeError(f"{type(self).__qualname__} needs the field {name!r}")
        default = self.__record_defaults__[name]
        values[name] = default.factory() if isinstance(default, _Made) else default
    if named:
        raise TypeError(f"{type(self).__qualname__} does not take {', '.join(named)}")


def _values(self: Any) -> tuple[Any, ...]:
    values = self.__dict__  # which may hold cached properties too
    return tuple([values[name] for name in self.__record_fields__])


def _equal(self: Any, other: object) -> bool:
    return _values(self) == _values(other) if other.__class__ is self.__class__ else NotImplemented


def _hash(self: Any) -> int:
    return hash(_values(self))


def _shown(self: Any) -> str:
    shown = [f"{name}={value!r}" for name, value in zip(self.__record_fields__, _values(self))]
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _refuse(self: Any, name: str, *_: Any) -> None:
    raise AttributeError(f"{type(self).__qualname__}.{name} cannot be changed")


_METHODS: dict[str, Any] = {"__init__": _init, "__eq__": _equal, "__repr__": _shown}
