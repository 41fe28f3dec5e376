"""The JSON that Keras 2 writes for each of its objects."""

from __future__ import annotations

from typing import Any

from compat_matrix.common import strict_json


def decode(text: str) -> dict[str, Any]:
    """Return the metadata of one object, with tuples and shapes in place of their JSON form.

    Raises ValueError if the text is not a JSON object.
    """
    found = strict_json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("the metadata is not a JSON object")
    try:
        whole = _plain(found)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    assert isinstance(whole, dict)
    return whole


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    kind, items = value.get("class_name"), value.get("items")
    if kind in ("__tuple__", "TensorShape") and set(value) == {"class_name", "items"}:
        if items is None:
            return None  # a shape of unknown rank
        if isinstance(items, list):
            return tuple([_plain(item) for item in items])
    if kind == "__ellipsis__":
        return ...
    return {key: _plain(item) for key, item in value.items()}
