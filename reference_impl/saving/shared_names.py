"""The shared names of resources in an export.

TensorFlow makes shared names from the author's paths, or from random or running numbers. In an
export a resource is named after its object: ``root.table``. Resources that shared a name
still do.

RFC: RES-14, RP-06
"""

from __future__ import annotations

from collections.abc import Iterable

from reference_impl.functions.names import ExportName
from reference_impl.graph.node_attributes import Text, texts_of
from reference_impl.saving.export_library import ExportLibrary
from reference_impl.saving.function_sources import Origin
from reference_impl.saving.process_numbers import without_load


def apply_shared_names(library: ExportLibrary, creators: Iterable[tuple[ExportName, str]]) -> None:
    """Write the shared names of all resources into the functions of a library.

    Names without an object lose the numbers of the load by TensorFlow.

    Args:
      creators: name of the function that creates a resource, Python path of the resource.
    """
    found = texts_of(library.definitions, "shared_name")
    names = _names_of_objects(library, creators, found)
    taken = {text.value for text in found}
    for text in found:
        key = _key(library, text)
        plain = without_load(key[1])
        if key not in names and plain != key[1]:
            is_taken = plain in taken or plain in names.values()
            names[key] = f"{plain}_{len(names)}" if is_taken else plain
        text.node.attr["shared_name"].s = names.get(key, key[1]).encode()


def _names_of_objects(
    library: ExportLibrary, creators: Iterable[tuple[ExportName, str]], found: Iterable[Text]
) -> dict[Origin, str]:
    """Return the names of the resources that the functions `creators` make."""
    by_function: dict[str, list[Text]] = {}
    for text in found:
        by_function.setdefault(text.function, []).append(text)
    names: dict[Origin, str] = {}
    for creator, path in creators:
        for function in library.closure(creator):
            for text in by_function.get(function, ()):
                key = _key(library, text)
                if key not in names:
                    is_taken = path in names.values()
                    names[key] = f"{path}_{len(names)}" if is_taken else path
    return names


def _key(library: ExportLibrary, text: Text) -> Origin:
    """Return the source and the original name of a shared resource."""
    return library.source(ExportName(text.function)).owner_of_name(text.value)
