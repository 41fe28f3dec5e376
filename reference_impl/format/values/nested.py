"""Walk through an encoded StructuredValue."""

from __future__ import annotations

from collections.abc import Iterator

from reference_impl.format import schema


def nested_values(*values: schema.StructuredValue) -> Iterator[schema.StructuredValue]:
    """Yield these values and all values inside them, at any depth, except inside type specs."""
    pending = list(values)
    while pending:
        value = pending.pop()
        yield value
        kind = value.WhichOneof("kind")
        if kind in ("list_value", "tuple_value"):
            pending += getattr(value, kind).values
        elif kind == "dict_value":
            pending += value.dict_value.fields.values()
        elif kind == "named_tuple_value":
            pending += [item.value for item in value.named_tuple_value.values]
