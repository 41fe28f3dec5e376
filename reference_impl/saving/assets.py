"""The asset files of an export.

RFC: RES-05, RES-06, RES-13
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass

from reference_impl.errors import MissingFileError
from reference_impl.format.container import layout
from reference_impl.graph.unique_names import UniqueNames
from reference_impl.kinds import asset
from reference_impl.loaded_model import extra_assets_of
from reference_impl.saving.options import SaveOptions
from reference_impl.saving.tree import Tree
from reference_impl.saving.values import of_tensors


@dataclass(frozen=True)
class AssetFiles:
    """The asset files of an export.

    Attributes:
      names: number of an asset's node -> name of its file.
      files: name in assets/ -> path of the file to copy.
      extra: the same for assets.extra/.
    """

    names: Mapping[int, str]
    files: Mapping[str, str]
    extra: Mapping[str, str]

    @property
    def all_files(self) -> dict[str, str]:
        """Return name -> path of every file. Names in assets.extra/ begin with that directory."""
        return {
            **self.files,
            **{f"{layout.ASSETS_EXTRA}/{name}": path for name, path in self.extra.items()},
        }


def asset_files(tree: Tree, options: SaveOptions) -> AssetFiles:
    """Return the asset files of a tree, and those of assets.extra/: the given ones, or those of a
    loaded root.

    A file has one name, however often it is used; different files get different names.

    Raises MissingFileError (with ``strict``, RES-06).
    """
    given = options.extra_assets
    extra = {
        name: os.fspath(source)
        for name, source in sorted((extra_assets_of(tree.root) if given is None else given).items())
        if _exists(os.path.realpath(source), f"{layout.ASSETS_EXTRA}/{name}", options.strict)
    }
    names: dict[int, str] = {}
    files: dict[str, str] = {}
    known: dict[str, str] = {}  # path of a file -> its name
    free = UniqueNames()
    for node in tree.nodes:
        if node.kind is not asset.KIND:
            continue
        (held,) = of_tensors([node.object.asset_path], node.path)
        source = os.path.realpath(held.decode("utf-8", "surrogateescape"))
        if source not in known:
            known[source] = free.take(os.path.basename(source))  # noqa: PTH119
            if _exists(source, node.path, options.strict):
                files[known[source]] = source
        names[node.number] = known[source]
    return AssetFiles(names, files, extra)


def _exists(source: str, path: str, strict: bool) -> bool:
    """Return whether there is such a file. `path` is the Python path of its asset."""
    if os.path.isfile(source):  # noqa: PTH113
        return True
    reason = "a file of the model is missing or no regular file"
    if strict:
        raise MissingFileError(
            f"{reason}; strict=False saves without it", file=source, node=path, clause="RES-06"
        )
    warnings.warn(f"{source}: {path}: {reason}: what is saved lacks it too", stacklevel=2)
    return False
