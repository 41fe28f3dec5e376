"""Add the extension's entries to the objects, in terms that do not depend on numbers and generated
names.
"""

from __future__ import annotations

from typing import Any

from reference_impl.format import schema
from savedmodel_tools.canonical.functions import Functions
from savedmodel_tools.canonical.graph import digest
from savedmodel_tools.canonical.objects import Fields, Objects, hashed


def add_fields(
    entries: dict[str, Fields], extension: schema.Extension, objects: Objects, functions: Functions
) -> None:
    """Add the extension to the entries of the objects.

    Slots are already there, see `extension.object_graph`.
    """

    def described(inputs: Any) -> bytes:
        parts = []
        for given in inputs:
            kind = given.WhichOneof("kind") or "none"
            value = (
                objects.labels[given.node_id]
                if kind == "node_id"
                else str(getattr(given, kind, ""))
            )
            parts.append(f"{kind} {value}".encode())
        return digest(*parts)

    for state in extension.registered:
        blobs: list[bytes] = []
        for key in sorted(state.blobs):
            blobs += [key.encode(), state.blobs[key]]
        text = digest(schema.serialize(state.values), *blobs).hex()
        entries.setdefault(objects.labels[state.node_id], {})["registered state"] = text
    for item in extension.initial_values:
        trace = objects.concrete(item.trace).encode() if item.trace else b""
        text = digest(
            functions.hashes.get(item.function, b"missing"), described(item.inputs), trace
        ).hex()
        entries.setdefault(objects.labels[item.node_id], {})["initial value"] = text
    for optimizer in extension.optimizers:
        fields = entries.setdefault(objects.labels[optimizer.node_id], {})
        for update in optimizer.updates:
            slots: list[str] = []
            for slot in sorted(update.slots, key=lambda slot: slot.name):
                slots += [slot.name, hashed(schema.serialize(slot.value))]
            body = functions.hashes.get(update.function, b"missing")
            fields[f"update of dtype {update.dtype}"] = digest(
                body, described(update.inputs), *map(str.encode, slots)
            ).hex()
        if optimizer.shared:
            fields["changed by a step"] = ", ".join(
                sorted(objects.labels[number] for number in optimizer.shared)
            )
