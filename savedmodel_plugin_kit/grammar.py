"""The messages of the protocol as data: members of requests and replies by op, and a check of
replies.

docs/exporters/protocol.md shows :func:`as_json_schema`; a test keeps both in agreement.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

STATUSES = ("ok", "error", "rejected", "unsupported")
# Types: values of JSON Schema keywords, as far as the messages need them.
STRING, INTEGER, OBJECT, STRINGS = (
    {"type": "string"},
    {"type": "integer"},
    {"type": "object"},
    {"type": "array", "items": "string"},
)
ANY: dict[str, Any] = {}
# op -> (members of the request, members of an `ok` reply, optional members of that reply); `id` and
# `op` are always there.
MESSAGES: dict[str, tuple[dict[str, Any], dict[str, Any], tuple[str, ...]]] = {
    "hello": (
        {"protocol": INTEGER},
        {
            "name": STRING,
            "protocol": INTEGER,
            "versions": {"type": "object", "values": "string"},
            "libraries": STRINGS,
            "capabilities": STRINGS,
            "imported": STRINGS,
            "dtypes": STRINGS,
        },
        ("imported", "dtypes"),
    ),
    "load": (
        {"dir": STRING, "tags": STRINGS, "timeout": {"type": "number"}},
        {"handle": INTEGER, "rss_kib": {"type": ["integer", "null"]}},
        ("rss_kib",),
    ),
    "signatures": ({"handle": INTEGER}, {"signatures": OBJECT}, ()),
    "call": (
        {"handle": INTEGER, "request": OBJECT, "io_dir": STRING, "outputs": STRING},
        {"structure": ANY},
        ("structure",),
    ),
    "call_in_threads": (
        {"handle": INTEGER, "request": OBJECT, "io_dir": STRING, "outputs": STRINGS},
        {"structures": {"type": "array"}},
        (),
    ),
    "variables": (
        {"handle": INTEGER, "outputs": STRING},
        {"naming": {"enum": ["key", "name"]}},
        (),
    ),
    "fetch": ({"handle": INTEGER, "tensors": STRINGS, "outputs": STRING}, {}, ()),
    "describe": ({"handle": INTEGER, "tags": STRINGS}, {"objects": OBJECT}, ()),
    "differentiate": (
        {
            "handle": INTEGER,
            "request": OBJECT,
            "io_dir": STRING,
            "tags": STRINGS,
            "outputs": STRING,
        },
        {},
        (),
    ),
    "change": ({"handle": INTEGER, "tags": STRINGS}, {"changed": INTEGER}, ()),
    "resave": ({"handle": INTEGER, "dir": STRING, "tags": STRINGS}, {"tags": STRINGS}, ()),
    "past": (
        {
            "umask": {"type": ["integer", "null"]},
            "garbage": STRING,
            "counter": {"type": ["integer", "null"]},
        },
        {"counter": {"type": ["integer", "null"]}},
        (),
    ),
    "close": ({"handle": INTEGER}, {}, ()),
    "bye": ({}, {}, ()),
}
FAILURE = {"error_class": STRING, "message": STRING, "traceback": STRING}
_KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "object": (dict,),
    "array": (list,),
    "number": (int, float),
    "null": (type(None),),
}
_ARTICLES = {
    "integer": "an integer",
    "object": "an object",
    "array": "a list",
    "string": "a string",
    "null": "null",
}


def fault(op: str, reply: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return what is wrong with a reply whose id is right: ``(rule, sentence)``; None for a correct
    reply.
    """
    status = reply.get("status")
    if status not in STATUSES:
        return "P-03", f"status is {status!r}, not one of {', '.join(STATUSES)}"
    if status != "ok":
        for name in ("error_class", "message"):
            if not isinstance(reply.get(name), str) or not reply[name].strip():
                return (
                    "P-03",
                    (
                        f"a reply with status {status!r} has {name} {reply.get(name)!r}: it must"
                        " say what went wrong"
                    ),
                )
        return None
    _, members, optional = MESSAGES[op]
    for name, schema in members.items():
        if name not in reply:
            if name not in optional:
                return _rule(op), f"the reply to {op} has no member {name!r}"
        else:
            why = _mismatch(schema, reply[name])
            if why:
                return _rule(op), f"member {name!r} of the reply to {op} is {why}"
    return None


def _rule(op: str) -> str:
    own = {
        "hello": "P-04",
        "load": "P-07",
        "signatures": "P-09",
        "call": "P-10",
        "close": "P-14",
        "bye": "P-16",
    }
    return own.get(op, "P-15")


def _mismatch(schema: Mapping[str, Any], value: Any) -> str:
    """Return why a value does not fit, or ""."""
    if "enum" in schema:
        return (
            "" if value in schema["enum"] else f"{value!r}, not one of {', '.join(schema['enum'])}"
        )
    kinds = schema.get("type")
    if kinds is None:
        return ""
    allowed = [kinds] if isinstance(kinds, str) else kinds
    if isinstance(value, bool) or not any(isinstance(value, _KINDS[kind]) for kind in allowed):
        return f"{value!r}, not {' or '.join(_ARTICLES[kind] for kind in allowed)}"
    inner = str(schema.get("items") or schema.get("values") or "")
    for item in (value.values() if isinstance(value, dict) else value) if inner else ():
        if not isinstance(item, _KINDS[inner]):
            return f"{value!r}, with {item!r} in it, which is not {_ARTICLES[inner]}"
    return ""


def as_json_schema() -> dict[str, Any]:
    """Return the grammar as a JSON Schema: ``$defs`` has ``OP.request``, ``OP.reply`` and
    ``failure``.
    """
    defs: dict[str, Any] = {
        "failure": _object(
            {"id": INTEGER, "status": {"enum": list(STATUSES[1:])}, **FAILURE}, ("traceback",)
        )
    }
    for op, (asked, answered, optional) in MESSAGES.items():
        defs[f"{op}.request"] = _object({"id": INTEGER, "op": {"const": op}, **asked}, ("timeout",))
        defs[f"{op}.reply"] = _object(
            {"id": INTEGER, "status": {"const": "ok"}, **answered}, optional
        )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "worker protocol 1",
        "$defs": defs,
    }


def _object(members: Mapping[str, Any], optional: tuple[str, ...]) -> dict[str, Any]:
    properties = {name: _spelled(schema) for name, schema in members.items()}
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in members if name not in optional],
    }


def _spelled(schema: Mapping[str, Any]) -> dict[str, Any]:
    out = dict(schema)
    if "items" in out:
        out["items"] = {"type": out["items"]}
    if "values" in out:
        out["additionalProperties"] = {"type": out.pop("values")}
    return out
