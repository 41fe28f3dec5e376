"""The signatures of an export: choose the functions that are signatures.

Sources, in order: the argument; the object's own map of signatures; `_default_save_signature` and
the only function of the root that can be a signature.

RFC: SIG-01, SIG-02, SIG-03, SIG-13, ATTR-06, ATTR-07, IMP-01, IMP-06, API-03
"""

from __future__ import annotations

import inspect
import itertools
import logging
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Optional

from reference_impl import tensorflow_api as api
from reference_impl.errors import SavedModelError, SignatureError
from reference_impl.format.names import (
    DEFAULT_SIGNATURE,
    RESERVED_SIGNATURES,
    SIGNATURES_CHILD,
)
from reference_impl.kinds.signature_map import is_live_map
from reference_impl.saving import signature_inputs
from reference_impl.saving.signature_function import SignatureFunction, signature_function
from reference_impl.saving.traces import is_function
from reference_impl.saving.walk import ObjectGraphWalk

_log = logging.getLogger(__name__)

_ABSENT = object()


def choose_signatures(
    walk: ObjectGraphWalk, given: Optional[Any]
) -> Mapping[str, SignatureFunction]:
    """Return the signatures of an export. Raises SignatureError."""
    # An invalid value is refused even with the argument, which would hide it from every reader.
    own = _own(walk.root)
    given = own if given is None else given
    if given is None:
        found = _inferred(walk)
        return MappingProxyType({} if found is None else {DEFAULT_SIGNATURE: found})
    if is_function(given):
        given = {DEFAULT_SIGNATURE: given}
    if not isinstance(given, Mapping):
        raise SignatureError(
            f"Expected a TensorFlow function or a map of such, got {type(given).__name__}",
            node=SIGNATURES_CHILD,
            clause="API-03",
        )
    for key in given:
        if not isinstance(key, str):
            raise SignatureError(
                f"keys must be strings, got {key!r}", node=SIGNATURES_CHILD, clause="API-03"
            )
        if key in RESERVED_SIGNATURES:
            raise SignatureError(
                "the key is reserved for the initialisation of the model", node=key, clause="API-03"
            )
    chosen = {key: signature_function(key, given[key], walk.strict) for key in given}
    return MappingProxyType(chosen)


def _own(root: object) -> Optional[Mapping[str, Any]]:
    """Return the map of signatures that loading put on the root (ATTR-06).

    Raises SignatureError for other values (ATTR-07).
    """
    if isinstance(root, tuple):
        # Its proxy may have no dict to look into; a field of that name is an element.
        held = getattr(root, SIGNATURES_CHILD) if hasattr(type(root), SIGNATURES_CHILD) else _ABSENT
    else:
        held = inspect.getattr_static(root, SIGNATURES_CHILD, _ABSENT)
    if held is _ABSENT or isinstance(held, property):  # no property is run (FN-03)
        return None
    value = getattr(root, SIGNATURES_CHILD)
    if not is_live_map(value):
        reason = (
            "The attribute `signatures` is reserved for the map that loading makes, and holds a"
            f" {type(value).__name__}. Remove it with `del obj.signatures`, and give the functions"
            " as the argument `signatures`."
        )
        raise SignatureError(reason, node="root.signatures", clause="ATTR-07")
    return value


def _inferred(walk: ObjectGraphWalk) -> Optional[SignatureFunction]:
    """Return the signature that the root itself offers, or None if it offers none or several.

    Nobody asked for it, so what cannot be a signature is a warning, never an error (IMP-06). Inputs
    in a structure get the names that TensorFlow gives them: without a signature, no server could
    run the model.
    """
    offered = api.keras_signature(walk.root)
    if is_function(offered):  # Keras numbers the inputs of a structure: inputs, inputs_1
        try:
            return signature_function(DEFAULT_SIGNATURE, offered, strict=False)
        except SavedModelError as error:
            _without_default([f"the function of the Keras model cannot be it: {error}"])
            return None
    found, refused = {}, []
    for name, child in walk.children(walk.root).items():
        if not is_function(child) or (
            isinstance(child, api.Function) and child.input_signature is None
        ):
            continue
        try:
            found[name] = signature_function(DEFAULT_SIGNATURE, child, strict=False)
        except SavedModelError as error:
            refused.append(f"root.{name} cannot be it: {error}")
    if len(found) == 1:
        ((name, signature),) = found.items()
        _say_numbered(name, signature)
        return signature
    if found:
        refused.insert(
            0, " and ".join(f"root.{name}" for name in sorted(found)) + " could all be it"
        )
    if refused:
        _without_default(refused)
    return None


def _without_default(reasons: Sequence[str]) -> None:
    _log.warning(
        "saved without a default signature, name one by the argument signatures: %s",
        "; ".join(reasons),
    )


def _say_numbered(name: str, signature: SignatureFunction) -> None:
    """Warn of inputs of the default signature whose names nobody chose (SIG-13)."""
    trace = signature.trace
    numbered = list(signature_inputs.numbered(trace))
    if numbered and not signature.direct:
        _log.warning(
            "root.%s is the default signature, and the parts of a structure are its inputs %s. A"
            " client could not know these names: give each TensorSpec a name, or say what to export"
            " by the argument signatures ({} for nothing)",
            name,
            ", ".join(map(repr, itertools.chain(*numbered))),
        )
