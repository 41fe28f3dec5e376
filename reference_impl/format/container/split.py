"""The split format: a SavedModel too large for one protocol message, cut into the records of
`saved_model.cpb`.

RFC: DR-09
"""

from __future__ import annotations

from typing import Any, Optional, TypeVar, cast

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from reference_impl.format import errors, limits, schema
from reference_impl.format.container import files
from reference_impl.format.container.riegeli import RecordFile
from reference_impl.format.schema import is_repeated

M = TypeVar("M", bound=Message)


def read(cls: type[M], path: files.AnyPath) -> M:
    """Return the message that was split into a .cpb file.

    Raises:
      SplitFileError: the chunk metadata does not fit the message or the records.
      SavedModelError: the errors of `RecordFile` and `schema.parse`.
    """
    merger, message = _Merger(path), cls()
    merger.merge(merger.metadata.message, message)
    return message


class _Merger:
    def __init__(self, path: files.AnyPath) -> None:
        self.path = path
        self.records = RecordFile(path)
        self.metadata = schema.parse(
            schema.ChunkMetadata, bytes(self.records.last()), path, "chunk metadata"
        )
        self.used: set[int] = set()

    def _error(self, reason: str, node: str, rule: str = "SM-SPLIT-5") -> errors.SplitFileError:
        return errors.SplitFileError(reason, file=self.path, node=node or None, rule=rule)

    def merge(
        self, chunked: schema.ChunkedMessage, message: Message, node: str = "", depth: int = 0
    ) -> None:
        """Merge the chunk of a message into the message, then the parts that were cut out of it."""
        if depth > limits.MESSAGE_DEPTH:
            reason = f"messages are nested deeper than {limits.MESSAGE_DEPTH}"
            raise errors.LimitError(
                reason, file=self.path, node=node, limit="MESSAGE_DEPTH", rule="SM-SPLIT-6"
            )
        if chunked.HasField("chunk_index"):
            data = self._chunk(chunked.chunk_index, schema.ChunkInfo.MESSAGE, node)
            message.MergeFrom(schema.parse(type(message), data, self.path, node or None))
        for field in chunked.chunked_fields:
            self._merge_field(field, message, node, depth)

    def _merge_field(
        self, chunked: schema.ChunkedField, message: Message, node: str, depth: int
    ) -> None:
        tags = list(chunked.field_tag)
        while tags:
            field = self._field(message, tags.pop(0), node)
            key = tags.pop(0) if tags and tags[0].WhichOneof("kind") != "field" else None
            node = f"{node}.{field.name}" if node else field.name
            kind = field.message_type
            if kind is None:
                if tags or field.type not in (
                    FieldDescriptor.TYPE_BYTES,
                    FieldDescriptor.TYPE_STRING,
                ):
                    raise self._error("only messages, strings and bytes can be cut out", node)
                self._set(message, field, key, chunked.message, node)
                return
            message = self._enter(getattr(message, field.name), field, kind, key, node)
        self.merge(chunked.message, message, node, depth + 1)

    def _field(self, message: Message, tag: schema.FieldIndex, node: str) -> FieldDescriptor:
        if tag.WhichOneof("kind") != "field":
            raise self._error("a field was expected on the path, not an index or a key", node)
        field = cast(Descriptor, message.DESCRIPTOR).fields_by_number.get(tag.field)
        if field is None:
            raise self._error(f"{message.DESCRIPTOR.full_name} has no field {tag.field}", node)
        return field

    def _enter(
        self,
        value: Any,
        field: FieldDescriptor,
        kind: Descriptor,
        key: Optional[schema.FieldIndex],
        node: str,
    ) -> Message:
        """Return the message in a field.

        A message in a list or map that does not exist yet is added.
        """
        if not is_repeated(field):
            if key is not None:
                raise self._error("an index or a key for a single message", node)
            value.SetInParent()
            entered: Message = value
        elif kind.GetOptions().map_entry:
            if kind.fields_by_name["value"].message_type is None:
                raise self._error("a map of plain values cannot be entered", node)
            entered = value[self._map_key(kind, key, node)]
        else:
            index = self._index(key, len(value), node)
            entered = value.add() if index == len(value) else value[index]
        return entered

    def _index(self, key: Optional[schema.FieldIndex], length: int, node: str) -> int:
        if key is None or key.WhichOneof("kind") != "index":
            raise self._error("a list without an index", node)
        if key.index > length:
            raise self._error(f"index {key.index} of a list of {length}", node)
        return key.index

    def _map_key(
        self, kind_of_entry: Descriptor, key: Optional[schema.FieldIndex], node: str
    ) -> Any:
        kind = (
            key.map_key.WhichOneof("type")
            if key is not None and key.WhichOneof("kind") == "map_key"
            else None
        )
        if key is None or kind is None:
            raise self._error("a map without a key", node)
        value = getattr(key.map_key, kind)
        expected = {FieldDescriptor.CPPTYPE_STRING: str, FieldDescriptor.CPPTYPE_BOOL: bool}
        if type(value) is not expected.get(kind_of_entry.fields_by_name["key"].cpp_type, int):
            raise self._error(f"{value!r} is not a key of this map", node)
        return value

    def _set(
        self,
        message: Message,
        field: FieldDescriptor,
        key: Optional[schema.FieldIndex],
        chunked: schema.ChunkedMessage,
        node: str,
    ) -> None:
        """Set a string or bytes field that is stored as a separate chunk."""
        if not chunked.HasField("chunk_index") or chunked.chunked_fields:
            raise self._error("bytes must be exactly one chunk", node)
        data: Any = self._chunk(chunked.chunk_index, schema.ChunkInfo.BYTES, node)
        if field.type == FieldDescriptor.TYPE_STRING:
            try:
                data = data.decode("utf-8")
            except UnicodeDecodeError as error:
                raise self._error(f"a string is not UTF-8: {error.reason}", node) from error
        if not is_repeated(field):
            setattr(message, field.name, data)
            return
        values = getattr(message, field.name)
        index = self._index(key, len(values), node)
        if index == len(values):
            values.append(data)
        else:
            values[index] = data

    def _chunk(self, index: int, kind: int, node: str) -> bytes:
        """Return the record of a chunk.

        A chunk may be used only once, so that a small file cannot fill the memory.
        """
        chunks = self.metadata.chunks
        if index >= len(chunks):
            raise self._error(f"chunk {index} of {len(chunks)}", node)
        if index in self.used:
            raise self._error(f"chunk {index} is used twice", node, "SM-SPLIT-4")
        self.used.add(index)
        info = chunks[index]
        if info.type != kind:
            raise self._error(f"chunk {index} is of type {info.type}, not {kind}", node)
        data = bytes(self.records.record(info.offset))
        if len(data) != info.size:
            raise self._error(f"chunk {index} has {len(data)} bytes, not {info.size}", node)
        return data
