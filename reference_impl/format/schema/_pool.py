"""The private descriptor pool and the message classes made from it, under every protobuf from 3.20 to 7."""

from __future__ import annotations

import functools
import threading
from pathlib import Path
from typing import Any, Callable

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.message import Message

# Packages whose top-level names are attributes of the schema; of two equal names the first package's is meant.
_PACKAGES = ("tensorflow", "tensorflow.proto_splitter", "tensorflow.error", "google.protobuf")

_lock = threading.RLock()


class Schema:
    """One descriptor pool with its message classes.

    Args:
      maps: False declares every map as the repeated key-value message that it is on the wire. Equal keys then stay visible.
    """

    def __init__(self, maps: bool = True) -> None:
        files = descriptor_pb2.FileDescriptorSet.FromString((Path(__file__).parent / "descriptors.binpb").read_bytes())
        self.pool = descriptor_pool.DescriptorPool()
        self._names: dict[str, str] = {}
        self._enum_values: dict[str, int] = {}
        for file in files.file:
            if not maps:
                for declared in file.message_type:
                    _clear_map_entries(declared)
            self.pool.AddSerializedFile(file.SerializeToString())
        for package in reversed(_PACKAGES):
            for file in files.file:
                if file.package == package:
                    declared_names = [item.name for item in file.message_type] + [item.name for item in file.enum_type]
                    self._names.update((name, f"{package}.{name}") for name in declared_names)
                    for enum in file.enum_type:
                        self._enum_values.update((value.name, value.number) for value in enum.value)
        self._messages = {item.name for file in files.file for item in file.message_type}
        self._class_of = _class_maker(self.pool)

    def message_class(self, descriptor: Descriptor) -> type[Message]:
        """The class of a message of this pool, nested classes attached (not every implementation does it)."""
        with _lock:
            cls = self._class_of(descriptor)
            for nested in descriptor.nested_types:
                if not hasattr(cls, nested.name):
                    setattr(cls, nested.name, self.message_class(nested))
            return cls

    def lookup(self, name: str) -> Any:
        """Message class, enumeration, or value of an enumeration by its short name. Raises AttributeError."""
        if name in self._enum_values:
            return self._enum_values[name]
        if name not in self._names:
            raise AttributeError(f"the schema declares no {name!r}")
        if name in self._messages:
            return self.message_class(self.pool.FindMessageTypeByName(self._names[name]))
        return EnumTypeWrapper(self.pool.FindEnumTypeByName(self._names[name]))

    def names(self) -> set[str]:
        return {*self._names, *self._enum_values}


def _clear_map_entries(message: descriptor_pb2.DescriptorProto) -> None:
    message.options.ClearField("map_entry")
    for nested in message.nested_type:
        _clear_map_entries(nested)


def _class_maker(pool: descriptor_pool.DescriptorPool) -> Callable[[Descriptor], type[Message]]:
    if hasattr(message_factory, "GetMessageClass"):  # protobuf >= 4.22
        return message_factory.GetMessageClass
    factory: Any = message_factory.MessageFactory(pool)
    make: Callable[[Descriptor], type[Message]] = factory.GetPrototype
    return make


@functools.cache
def _make(maps: bool) -> Schema:
    return Schema(maps)


def schema(maps: bool = True) -> Schema:
    """The one schema with maps, or the one without."""
    with _lock:
        return _make(maps)


def lookup(name: str) -> Any:
    return schema().lookup(name)


def names() -> set[str]:
    return schema().names()
