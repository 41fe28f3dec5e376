"""Files that go along (RES-05, RES-06, RES-13)."""

from __future__ import annotations

import os
from typing import Any

from reference_impl.format.errors import MissingFileError


class Assets:
    """Gives every file a name in assets/. The same file has one name; files of equal names get different ones.

    Attributes:
      files: name -> path it is copied from.
    """

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        self._names: dict[str, str] = {}

    def add(self, asset: Any, path: str) -> str:
        """The file name of an asset.

        Args:
          asset: with an `asset_path`.
          path: how Python reaches it, for messages.

        Raises:
          MissingFileError: there is no such file (RES-06).
        """
        source = os.path.realpath(asset.asset_path.numpy().decode("utf-8", "surrogateescape"))
        if not os.path.isfile(source):  # noqa: PTH113
            raise MissingFileError("a file of the model is missing or no regular file", file=source, node=path, clause="RES-06")
        if source not in self._names:
            base = os.path.basename(source)  # noqa: PTH119
            name, count = base, 0
            while name in self.files:
                count += 1
                name = f"{base}_{count}"
            self._names[source] = name
            self.files[name] = source
        return self._names[source]
