"""The asset files of an export.

RFC: RES-05, RES-06, RES-13
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import Any, Optional, Union

from reference_impl.errors import MissingFileError
from reference_impl.format.container import layout
from reference_impl.graph.unique_names import UniqueNames
from reference_impl.loaded_model import extra_assets_of
from reference_impl.saving.values import of_tensors


class Assets:
    """Assigns every file one name in assets/, however often it is used; different files get
    different names.
    """

    def __init__(self, strict: bool) -> None:
        self._strict = strict
        self.files: dict[str, str] = {}  # name -> path of the source file
        self.extra: dict[str, str] = {}  # the same for assets.extra/
        self._names: dict[str, str] = {}
        self._free = UniqueNames()

    def add(self, asset: Any, path: str) -> str:
        """Return the name of an asset's file.

        `path` is the asset's Python path. Raises MissingFileError (strict, RES-06).
        """
        (held,) = of_tensors([asset.asset_path], path)
        source = os.path.realpath(held.decode("utf-8", "surrogateescape"))
        if source not in self._names:
            base = os.path.basename(source)  # noqa: PTH119
            name = self._free.take(base)
            if self._exists(source, path):
                self.files[name] = source
            self._names[source] = name
        return self._names[source]

    def add_extra(
        self, root: object, given: Optional[Mapping[str, Union[str, os.PathLike[str]]]]
    ) -> None:
        """Add files for assets.extra/: the given files, or those of a loaded root.

        Raises MissingFileError (strict).
        """
        for name, source in sorted((extra_assets_of(root) if given is None else given).items()):
            if self._exists(os.path.realpath(source), f"{layout.ASSETS_EXTRA}/{name}"):
                self.extra[name] = os.fspath(source)

    @property
    def all_files(self) -> dict[str, str]:
        """Return name -> path of every file. Names in assets.extra/ begin with that directory."""
        return {
            **self.files,
            **{f"{layout.ASSETS_EXTRA}/{name}": path for name, path in self.extra.items()},
        }

    def _exists(self, source: str, path: str) -> bool:
        if os.path.isfile(source):  # noqa: PTH113
            return True
        reason = "a file of the model is missing or no regular file"
        if self._strict:
            raise MissingFileError(
                f"{reason}; strict=False saves without it", file=source, node=path, clause="RES-06"
            )
        warnings.warn(
            f"{source}: {path}: {reason}: what is saved lacks it too [RES-06]", stacklevel=2
        )
        return False
