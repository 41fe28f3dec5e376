"""The private descriptor pool and the message classes made from it, under every protobuf from 3.20 to 7."""

from __future__ import annotations

import functools
import threading
from pathlib import Path
from typing import Any, Callable, Optional

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.message import Message

# Packages whose top-level names are attributes of the schema; of two equal names the first package's is meant.
_PACKAGES = ("tensorflow", "savedmodel_compat", "tensorflow.proto_splitter", "tensorflow.error", "google.protobuf")

_lock = threading.RLock()


class Schema:
    """One descriptor pool with its message classes.

    Args:
      change: what to do to each message before it is declared.
    """

    def __init__(self, change: Optional[Callable[[descriptor_pb2.DescriptorProto], None]] = None) -> None:
        files = descriptor_pb2.FileDescriptorSet.FromString((Path(__file__).parent / "descriptors.binpb").read_bytes())
        self.pool = descriptor_pool.DescriptorPool()
        self._names: dict[str, str] = {}
        self._enum_values: dict[str, int] = {}
        for file in files.file:
            if change is not None:
                for declared in file.message_type:
                    change(declared)
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


def without_maps(message: descriptor_pb2.DescriptorProto) -> None:
    """Declare maps as the lists of key-value messages that they are on the wire: equal keys then stay visible."""
    message.options.ClearField("map_entry")
    for nested in message.nested_type:
        without_maps(nested)


def unopened(message: descriptor_pb2.DescriptorProto) -> None:
    """Declare every message inside as bytes, always a list, and nothing else: it can be counted without being made."""
    without_maps(message)
    inner = [field for field in message.field if field.type == field.TYPE_MESSAGE]
    del message.field[:], message.oneof_decl[:]
    for field in inner:
        message.field.add(name=field.name, number=field.number, type=field.TYPE_BYTES, label=field.LABEL_REPEATED)
    for nested in message.nested_type:
        unopened(nested)


def _class_maker(pool: descriptor_pool.DescriptorPool) -> Callable[[Descriptor], type[Message]]:
    if hasattr(message_factory, "GetMessageClass"):  # protobuf >= 4.22
        return message_factory.GetMessageClass
    factory: Any = message_factory.MessageFactory(pool)
    make: Callable[[Descriptor], type[Message]] = factory.GetPrototype
    return make


@functools.cache
def _make(change: Optional[Callable[[descriptor_pb2.DescriptorProto], None]]) -> Schema:
    return Schema(change)


def schema(change: Optional[Callable[[descriptor_pb2.DescriptorProto], None]] = None) -> Schema:
    """The one schema as declared, or the one changed so."""
    with _lock:
        return _make(change)


def lookup(name: str) -> Any:
    return schema().lookup(name)


def names() -> set[str]:
    return schema().names()
