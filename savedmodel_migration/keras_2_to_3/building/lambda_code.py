"""The function of a Lambda layer, made of the bytecode in the file. For trusted files only."""

from __future__ import annotations

import base64
import binascii
import builtins
import marshal
import re
import types
from typing import Any

import keras

from savedmodel_migration.keras_2_to_3.refused import Refused


def function_of(told: Any, path: str) -> Any:
    """Return the function of the list that Keras 2 writes (code, defaults, closure), named by the
    path of its layer.

    Raises Refused: this Python cannot read what another one wrote, or it uses names of its module.
    """
    if not isinstance(told, (list, tuple)) or len(told) != 3 or not isinstance(told[0], str):
        raise Refused("its code cannot be read")
    code, defaults, closure = told
    if closure:
        raise Refused("its function has a closure, which the file does not hold")
    try:
        body = marshal.loads(base64.b64decode(code))
    except (ValueError, EOFError, TypeError, binascii.Error) as error:
        raise Refused(f"another release of Python wrote its code: {error}") from None
    if not isinstance(body, types.CodeType):
        raise Refused("its code is not a function")
    known = {"keras": keras, "K": keras.backend, "tf": _tensorflow()}
    missing = [
        name
        for name in body.co_names
        if not hasattr(builtins, name) and name not in known and _is_global(body, name)
    ]
    if missing:
        raise Refused(f"its function uses {', '.join(missing)}, which the file does not hold")
    name = re.sub(r"\W", "_", f"lambda_{path}")
    return types.FunctionType(body, known, name, tuple(defaults) if defaults else None)


def _is_global(code: types.CodeType, name: str) -> bool:
    import dis

    return any(
        step.opname in ("LOAD_GLOBAL", "LOAD_NAME") and step.argval == name
        for step in dis.get_instructions(code)
    )


def _tensorflow() -> Any:
    import tensorflow

    return tensorflow
