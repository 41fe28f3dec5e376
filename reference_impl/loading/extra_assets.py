"""assets.extra/: files that the graph does not know of and users of the model do, such as requests for a server to warm up with.

They belong to the directory, which shipped TensorFlow forgets when it has been loaded. Here the root knows them, so that saving
it again keeps them.
"""

from __future__ import annotations

import logging
from typing import Any

from reference_impl.errors import SavedModelError
from reference_impl.format.container import layout
from reference_impl.format.container.layout import Layout

ATTRIBUTE = "extra_assets"

_log = logging.getLogger(__name__)


class ExtraAssets(dict[str, str]):
    """File name below assets.extra/ -> path. Change it to change what is saved."""


def find(directory: Layout) -> ExtraAssets:
    """The files of a SavedModel. One that is a link out of the directory is left out, as it could be any file of the reader."""
    found = ExtraAssets()
    try:
        for name in directory.extra_assets:
            found[name] = str(directory.root.path(f"{layout.ASSETS_EXTRA}/{name}"))
    except SavedModelError as error:  # no call depends on them
        _log.warning("files of assets.extra are left out: %s", error)
    return found


def of(root: Any) -> ExtraAssets:
    """Those of a loaded root, of anything else none."""
    found = getattr(root, ATTRIBUTE, None)
    return found if isinstance(found, ExtraAssets) else ExtraAssets()
