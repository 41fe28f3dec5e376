"""The private descriptor pool and the message classes made from it, under every protobuf from 3.20
to 7.

The pool starts with the messages of this folder. With `declare`, another package may add a folder
of its own whose files import these; its messages can then contain messages of this schema.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Callable, Optional

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.message import Message

_HERE = Path(__file__).parent
_DESCRIPTORS = "descriptors.binpb"

_lock = threading.RLock()
_folders: list[Path] = []  # the files of the pool, each after the files that it imports
_schemas: list[Schema] = []

Change = Callable[[descriptor_pb2.DescriptorProto], None]


class Schema:
    """One descriptor pool with its message classes.

    `change` is applied to each message before it is declared.
    """

    def __init__(self, change: Optional[Change] = None) -> None:
        self.pool = descriptor_pool.DescriptorPool()
        self._change = change
        self._class_of = _class_maker(self.pool)
        self._classes: dict[str, type[Message]] = {}  # full name -> class

    def add(self, folder: Path) -> None:
        for file in _files(folder):
            if self._change is not None:
                for declared in file.message_type:
                    self._change(declared)
            self.pool.AddSerializedFile(file.SerializeToString())

    def message_class(self, descriptor: Descriptor) -> type[Message]:
        """Return the class of a message of this pool, nested classes attached (not every
        implementation does it).

        The class, and the classes of all messages that it can contain, live as long as the
        pool. Protobuf alone would let the garbage collector take a class that nobody holds, and
        make another one for the next message. Another thread that meets the class while it is taken
        apart ends the process (seen once, with protobuf 7.36: a NULL descriptor).
        """
        with _lock:
            waiting = [descriptor]
            while waiting:
                current = waiting.pop()
                if current.full_name in self._classes:
                    continue
                self._classes[current.full_name] = self._class_of(current)
                waiting += [
                    *current.nested_types,
                    *(field.message_type for field in current.fields if field.message_type),
                ]
                cls = self._classes[current.full_name]
                for nested in current.nested_types:
                    if not hasattr(cls, nested.name):
                        setattr(cls, nested.name, self._class_of(nested))
            return self._classes[descriptor.full_name]


class Names:
    """The declarations of a folder with a descriptors.binpb, by short name.

    Only the top-level names of `packages` are offered; of two equal names the first package's.
    """

    def __init__(self, folder: Path, packages: Sequence[str]) -> None:
        self._full: dict[str, str] = {}
        self._enum_values: dict[str, int] = {}
        files = _files(folder)
        for package in reversed(packages):
            for file in files:
                if file.package == package:
                    declared = [item.name for item in file.message_type] + [
                        item.name for item in file.enum_type
                    ]
                    self._full.update((name, f"{package}.{name}") for name in declared)
                    for enum in file.enum_type:
                        self._enum_values.update((value.name, value.number) for value in enum.value)
        self._messages: set[str] = set()
        for file in files:
            self._messages.update(item.name for item in file.message_type)

    def lookup(self, name: str) -> Any:
        """Return a message class, an enumeration or its value by its short name.

        Raises AttributeError.
        """
        if name in self._enum_values:
            return self._enum_values[name]
        if name not in self._full:
            raise AttributeError(f"the schema declares no {name!r}")
        if name in self._messages:
            return schema().message_class(schema().pool.FindMessageTypeByName(self._full[name]))
        return EnumTypeWrapper(schema().pool.FindEnumTypeByName(self._full[name]))

    def all(self) -> set[str]:
        return {*self._full, *self._enum_values}


def without_maps(message: descriptor_pb2.DescriptorProto) -> None:
    """Declare maps as lists of key-value messages, their form on the wire, so that duplicate keys
    stay visible.
    """
    message.options.ClearField("map_entry")
    for nested in message.nested_type:
        without_maps(nested)


def unopened(message: descriptor_pb2.DescriptorProto) -> None:
    """Declare only the nested messages, as lists of bytes, so that messages can be counted without
    being made.
    """
    without_maps(message)
    inner = [field for field in message.field if field.type == field.TYPE_MESSAGE]
    del message.field[:], message.oneof_decl[:]
    for field in inner:
        message.field.add(
            name=field.name, number=field.number, type=field.TYPE_BYTES, label=field.LABEL_REPEATED
        )
    for nested in message.nested_type:
        unopened(nested)


def _class_maker(pool: descriptor_pool.DescriptorPool) -> Callable[[Descriptor], type[Message]]:
    if hasattr(message_factory, "GetMessageClass"):  # protobuf >= 4.22
        return message_factory.GetMessageClass
    factory: Any = message_factory.MessageFactory(pool)
    make: Callable[[Descriptor], type[Message]] = factory.GetPrototype
    return make


def _files(folder: Path) -> list[descriptor_pb2.FileDescriptorProto]:
    return list(
        descriptor_pb2.FileDescriptorSet.FromString((folder / _DESCRIPTORS).read_bytes()).file
    )


@functools.cache
def _make(change: Optional[Change]) -> Schema:
    made = Schema(change)
    for folder in _folders:
        made.add(folder)
    _schemas.append(made)
    return made


def schema(change: Optional[Change] = None) -> Schema:
    """Return the schema, as declared or with a change."""
    with _lock:
        return _make(change)


def declare(folder: Path, packages: Sequence[str]) -> Names:
    """Add the declarations of a folder to every schema, once. Return its names."""
    with _lock:
        if folder not in _folders:
            _folders.append(folder)
            for made in _schemas:
                made.add(folder)
    return Names(folder, packages)


_PACKAGES = (
    "tensorflow",
    "savedmodel_compat",
    "tensorflow.proto_splitter",
    "tensorflow.error",
    "google.protobuf",
)
_names = declare(_HERE, _PACKAGES)
lookup = _names.lookup
names = _names.all
