"""The root of a loaded model: its type, and the attributes that every root has.

RFC: API-01
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Optional, Protocol

import tensorflow as tf

from reference_impl.errors import SavedModelError, UnsupportedModelError
from reference_impl.format import schema
from reference_impl.format.container import layout
from reference_impl.format.container.layout import Layout
from reference_impl.functions.names import FileName

_log = logging.getLogger(__name__)


class ExtraAssets(dict[str, str]):
    """The files of assets.extra/: file name below the folder -> path.

    Changes to the mapping affect the next save.

    The graph does not use these files, but users of the model do: for example, warm-up requests for
    a server.
    """


class LoadedModel(Protocol):
    """The object that `reference_impl.load` returns.

    The root of a TF 2 model has the attributes of the saved object that can be saved. If the saved
    object was a list, a dict, a tuple or a variable, the root is one too, and has the
    attributes below except the lists of variables. The root of a TF 1.x model is a
    `reference_impl.v1.root.V1Root`.

    Attributes:
      signatures: signature key -> concrete function. A signature takes tensors by keyword and
        returns a dict of tensors.
      variables: all variables of the model, each once.
      trainable_variables: the variables to train.
      tensorflow_version, tensorflow_git_version: versions of the TensorFlow that wrote the model,
        as unchecked strings.
      graph_debug_info: a GraphDebugInfo with the source locations of nodes; empty if the model has
        none.
      extra_assets: the files of assets.extra/ by name. They are saved again with the root.
    """

    signatures: Mapping[str, Any]
    tensorflow_version: str
    tensorflow_git_version: str
    graph_debug_info: Any
    extra_assets: ExtraAssets

    @property
    def variables(self) -> Sequence[tf.Variable]: ...

    @property
    def trainable_variables(self) -> Sequence[tf.Variable]: ...

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Call the model's function ``__call__``; a model without this function is not callable."""

    def __getattr__(self, name: str) -> Any:
        """Return a child of the model.

        ``model[name]`` returns it too, and children with names of TensorFlow's own attributes.
        """


def provenance(directory: Layout, meta_graph: schema.MetaGraphDef) -> dict[str, Any]:
    """Return the attributes of a root that describe the model's origin (see `LoadedModel`)."""
    info = meta_graph.meta_info_def
    try:
        debug_info = directory.debug_info
    except SavedModelError as error:  # no call depends on it
        _log.warning("the debug info is left out: %s", error)
        debug_info = None
    return {
        "tensorflow_version": info.tensorflow_version,
        "tensorflow_git_version": info.tensorflow_git_version,
        "graph_debug_info": debug_info or schema.GraphDebugInfo(),
        "extra_assets": _find_extra_assets(directory),
    }


def _find_extra_assets(directory: Layout) -> ExtraAssets:
    """Return the files of assets.extra/.

    A link that leads out of the directory is left out, since it could lead to any file.
    """
    found = ExtraAssets()
    try:
        for name in directory.extra_assets:
            found[name] = str(directory.root.path(f"{layout.ASSETS_EXTRA}/{name}"))
    except SavedModelError as error:  # no call depends on them
        _log.warning("files of assets.extra are left out: %s", error)
    return found


def extra_assets_of(root: object) -> ExtraAssets:
    """Return the files of assets.extra/ of a loaded root; none for any other object."""
    found = getattr(root, "extra_assets", None)
    return found if isinstance(found, ExtraAssets) else ExtraAssets()


def add_function_aliases(
    root: object,
    aliases: Mapping[str, str],
    find: Callable[[FileName], Optional[Any]],
    polymorphic: Iterable[Any],
) -> None:
    """Set ``function_aliases`` of the root: alias -> the function if all of its traces have the
    alias, else a list of traces.

    `aliases` maps names of FunctionDefs to aliases; `find` returns the concrete function of a
    FunctionDef by name; `polymorphic` are the functions of the object graph. Raises
    UnsupportedModelError: the root already has an attribute of that name.
    """
    if hasattr(root, "function_aliases"):
        reason = (
            "Could not load with experimental_load_function_aliases: the root has an attribute"
            " function_aliases"
        )
        raise UnsupportedModelError(reason, node="root")
    traces: dict[str, list[Any]] = {}
    for name, alias in aliases.items():
        function = find(FileName(name))
        if function is not None:
            traces.setdefault(alias, []).append(function)
    found: dict[str, Any] = {}
    for alias, concrete in sorted(traces.items()):
        whole = next(
            (
                f
                for f in polymorphic
                if set(map(id, f.concrete_functions)) == set(map(id, concrete))
            ),
            None,
        )
        found[alias] = concrete if whole is None else whole
    object.__setattr__(root, "function_aliases", found)
