"""Changes of split files (saved_model.cpb): of their chunks and metadata, with lengths and hashes
that fit.
"""

from __future__ import annotations

import random

from property_tests.fuzz.mutation import NUMBERS, mutate
from property_tests.fuzz.wire import Mutator
from reference_impl.format import schema
from savedmodel_kit.forge.records import Forge, path, simple

_PACKING = (0, 0, 0, ord("b"), ord("z"), ord("s"))


def forged(
    chunks: list[tuple[int, bytes]], metadata: bytes, compression: int = 0, honest: bool = True
) -> bytes:
    """A file of these chunks (type, bytes) and metadata, whose table of chunks is made anew if
    `honest`.
    """
    forge = Forge()
    places = [forge.records(data, compression=compression)[0] for _, data in chunks]
    if honest:
        described = schema.ChunkMetadata()
        try:
            described.ParseFromString(metadata)
            del described.chunks[:]
            for (kind, data), place in zip(chunks, places):
                described.chunks.add(type=kind, offset=place, size=len(data))
            metadata = described.SerializeToString()
        except Exception:  # whatever protobuf says: a record of any bytes will do
            pass
    forge.records(metadata, compression=compression)
    return bytes(forge.data)


def seeds() -> list[tuple[list[tuple[int, bytes]], bytes]]:
    """Chunks and metadata of two small models: a constant and a function cut out, a string of a
    list cut out.
    """
    model = schema.SavedModel(saved_model_schema_version=1)
    graph = model.meta_graphs.add()
    graph.meta_info_def.tags.append("serve")
    node = graph.graph_def.node.add(name="c", op="Const")
    node.attr["dtype"].type = 1
    value = schema.TensorProto(dtype=1, tensor_content=bytes(40))
    value.tensor_shape.dim.add(size=10)
    function = schema.FunctionDef()
    function.signature.name = "f"
    message = schema.ChunkedMessage(chunk_index=0)
    constant = message.chunked_fields.add(
        field_tag=path(2, ("index", 0), 2, 1, ("index", 0), 5, ("key", "value"), 8)
    )
    constant.message.chunk_index = 1
    library = message.chunked_fields.add(field_tag=path(2, ("index", 0), 2, 2, 1, ("index", 0)))
    library.message.chunk_index = 2
    metadata = schema.ChunkMetadata(version={"producer": 1}, message=message)
    messages = [
        (schema.ChunkInfo.MESSAGE, part.SerializeToString()) for part in (model, value, function)
    ]
    tags = schema.ChunkedMessage(chunk_index=0)
    tags.chunked_fields.add(
        field_tag=path(2, ("index", 0), 1, 4, ("index", 1))
    ).message.chunk_index = 1
    strings = [messages[0], (schema.ChunkInfo.BYTES, b"gpu")]
    return [
        (messages, metadata.SerializeToString()),
        (strings, schema.ChunkMetadata(version={"producer": 1}, message=tags).SerializeToString()),
    ]


class SplitMutator:
    """Makes split files out of changed parts.

    The parts of a file are not known any more, so every change starts at a seed.
    """

    def __init__(self) -> None:
        self.seeds = seeds()
        self.metadata = Mutator(schema.ChunkMetadata, [metadata for _, metadata in self.seeds])
        self.models = Mutator(schema.SavedModel, [chunks[0][1] for chunks, _ in self.seeds])

    def mutate(self, rng: random.Random, data: bytes) -> bytes:
        """One to four changes, or any bytes changed in a file."""
        kind = rng.randrange(6)
        if kind == 0:
            return mutate(rng, data)
        chunks, metadata = rng.choice(self.seeds)
        chunks = list(chunks)
        honest = True
        for _ in range(rng.randrange(1, 5)):
            what = rng.randrange(6)
            at = rng.randrange(len(chunks))
            if what < 3:
                metadata = self.metadata.mutate(rng, metadata)
            elif what == 3:
                chunks[at] = (
                    chunks[at][0],
                    (self.models if at == 0 else self.metadata).mutate(rng, chunks[at][1]),
                )
            elif what == 4:
                honest = False
            else:
                chunks.append((rng.randrange(3), mutate(rng, chunks[at][1])))
        if kind == 1:
            return self._odd_chunks(rng, chunks, metadata)
        return forged(chunks, metadata, rng.choice(_PACKING), honest)

    def _odd_chunks(
        self, rng: random.Random, chunks: list[tuple[int, bytes]], metadata: bytes
    ) -> bytes:
        """Chunks whose own numbers lie."""
        forge = Forge()
        for _, data in chunks:
            packed = simple([data], rng.choice(_PACKING))
            count = rng.choice((1, 1, 0, 2, 1000))
            forge.chunk(
                rng.choice((b"r", b"r", b"t", b"p", b"m", b"x")),
                mutate(rng, packed),
                count,
                rng.choice(NUMBERS[:12]),
            )
        forge.records(metadata)
        return bytes(forge.data)
