"""Inputs and outputs of a signature, called otherwise (SIG-01, SIG-07).

A SignatureDef names them in three maps. `tf.saved_model.load` does not read it: it takes the names
from the function that the object graph has for the signature, see `callee`. The tensors of the
graph keep their names, which no caller says.
"""

from __future__ import annotations

import keyword
import unicodedata
from collections.abc import Mapping
from typing import Any, Optional

from reference_impl.graph.argument_names import python_name
from savedmodel_common.printable import like
from savedmodel_tools.edits import callee
from savedmodel_tools.edits.draft import Draft
from savedmodel_tools.edits.proof import RefusedError
from savedmodel_tools.edits.signatures import (
    existing,
    signature_map,
    where,
)


def rename_arguments(
    draft: Draft,
    key: str,
    inputs: Mapping[str, str],
    outputs: Mapping[str, str],
    tags: Optional[str] = None,
) -> None:
    """Rename inputs and outputs of a signature (old name -> new one), all at once: two may swap
    names.

    Raises:
      RefusedError: there is no such signature, input or output; a new name is taken or cannot be
        one; or what the object graph says of the signature does not agree with the names that it
        has.
      NoMetaGraphError: `tags` choose none.
    """
    index, graph = draft.graph(tags)
    existing(draft, graph, key)
    signature = graph.signature_def[key]
    for word, infos, names in (
        ("input", signature.inputs, inputs),
        ("output", signature.outputs, outputs),
    ):
        _check(draft, key, word, infos, names)
    for new in inputs.values():
        _check_keyword(draft, key, new)
    objects, holder = signature_map(draft, index, key)
    if objects is not None and holder is not None:
        draft.edited_functions |= callee.rename(
            objects, holder, graph, draft.file, key, inputs, outputs
        )
    renamed = {"inputs": inputs, "outputs": outputs, "defaults": inputs}
    for kind, names in renamed.items():
        callee.rename_keys(getattr(signature, kind), names)
    facts = draft.signatures[index]
    facts[key] = {
        (kind, renamed.get(kind, {}).get(name, name)): value
        for (kind, name), value in facts[key].items()
    }
    for word, pairs in (("input", inputs), ("output", outputs)):
        for old, new in pairs.items():
            draft.changes.append(
                f"{word} {old} of signature {key} is called {new}{where(objects, holder)}"
            )


def _check(
    draft: Draft, key: str, word: str, infos: Mapping[str, Any], names: Mapping[str, str]
) -> None:
    for old, new in names.items():
        if old not in infos:
            reason = (
                f"there is no {word} {old!r}; there are:"
                f" {', '.join(sorted(infos)) or 'none'}.{like(old, infos)}"
            )
            raise RefusedError(reason, file=draft.file, node=key)
        if not new or not new.isprintable():
            reason = (
                f"{new!r} cannot be the name of an {word}: empty, or with characters that cannot be"
                " shown"
            )
            raise RefusedError(reason, file=draft.file, node=key)
        holders = [name for name in infos if names.get(name, name) == new]
        if old == new or len(holders) > 1:
            raise RefusedError(
                f"an {word} is called {new!r} already, or would be", file=draft.file, node=key
            )


def _check_keyword(draft: Draft, key: str, name: str) -> None:
    """`tf.saved_model.load` makes each input a parameter of a Python function, which every caller
    names.
    """
    plain = (
        name.isidentifier()
        and not keyword.iskeyword(name)
        and unicodedata.normalize("NFKC", name) == name
    )
    if not plain or name == "self" or python_name(name) != name:
        reason = (
            f"{name!r} cannot be the name of an input: it must be what Python takes as a keyword,"
            " and begin with a letter"
        )
        raise RefusedError(reason, file=draft.file, node=key, clause="SIG-07")
