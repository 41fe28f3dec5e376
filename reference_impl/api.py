"""`load` and `save`.

RFC: API-01
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Set
from typing import TYPE_CHECKING, Any, Optional, Union

import tensorflow as tf

from reference_impl import collector
from reference_impl.drop_in.remote import local_copy, written_locally
from reference_impl.drop_in.tensorflow_errors import about_files, equivalent
from reference_impl.errors import (
    MalformedError,
    MetaGraphChoiceError,
    NoMetaGraphError,
    SavedModelError,
    TruncatedError,
)
from reference_impl.format.container import layout
from reference_impl.format.container.files import shown
from reference_impl.graph.references import check_functions
from reference_impl.load_options import LoadOptions, TensorFlowLoadOptions
from reference_impl.loaded_model import LoadedModel
from reference_impl.tensorflow_api.functions import without_autograph
from reference_impl.tracing import Sink, Watch

if TYPE_CHECKING:
    from reference_impl.saving.options import SaveOptions, TensorFlowSaveOptions

__all__ = ["load", "save"]


def _tags(given: object) -> Optional[list[str]]:
    """Return the tags in an argument: one tag, a set, or any nested structure of tags."""
    if given is None:
        return None
    return [str(tag) for tag in (given if isinstance(given, Set) else tf.nest.flatten(given))]


@contextlib.contextmanager
def _parsed() -> Iterator[None]:
    """Report a file that is not a message with the wording of `tf.saved_model.load`, which callers
    match.
    """
    try:
        yield
    except (MalformedError, TruncatedError) as error:
        raise type(error)(
            f"Cannot parse file: {error.reason}",
            file=error.file,
            node=error.node,
            clause=error.clause,
            rule=error.rule,
        ) from error


@without_autograph
def load(
    export_dir: Union[str, os.PathLike[str]],
    tags: Union[str, Collection[str], None] = None,
    options: Union[LoadOptions, TensorFlowLoadOptions, None] = None,
    *,
    trace: Optional[Sink] = None,
) -> LoadedModel:
    """Load a SavedModel.

    Args:
      export_dir: the directory, or a URL that `tf.io.gfile` can read.
      tags: the tags of the MetaGraph to load, as a set; not needed if there is only one MetaGraph.
      options: `reference_impl.LoadOptions` or `tf.saved_model.LoadOptions`. For a TF 1.x model,
        ``only`` takes paths of signatures.
      trace: called with each step of the load; ``trace=print`` prints one line for each. It takes
        the place of ``LoadOptions.trace``.

    Returns:
      The root of the model. The root of a TF 2 model has the attributes of the saved object that
      can be saved. The root of a TF 1.x model has its variables and signatures. `LoadedModel` lists
      the attributes that every root has.

    Raises:
      MetaGraphChoiceError: no MetaGraph has these tags, or tags are needed to choose one.
      SavedModelError: the directory is not a SavedModel, is damaged, or uses an unknown feature;
        the class says which. A load that meets a replacement of the directory by another export
        begins again. A FileAccessError says that it met one each time, or once in a `tf.Graph`,
        where the objects made so far would stay.

    RFC: API-01, DR-02, V1-04, V1-05, V1-07
    """
    try:
        return _load(export_dir, tags, options, trace or getattr(options, "trace", None))
    except SavedModelError as error:
        theirs = equivalent(error)
        if theirs is None:
            raise
        raise theirs from error


def _load(
    export_dir: Union[str, os.PathLike[str]], tags: object, options: object, trace: Optional[Sink]
) -> LoadedModel:
    path = os.fsdecode(export_dir)
    if "://" in path:
        path = local_copy(path)
    once = functools.partial(_load_once, path, tags, options, trace)
    may_write = getattr(options, "machine_ops", None) == "allow"
    return layout.of_one_export(path, once, _leaves_nothing_behind, may_write)


def _leaves_nothing_behind() -> bool:
    """Return whether a load can be repeated: in a graph, what the first one made would stay
    there.
    """
    with tf.init_scope():
        return tf.executing_eagerly()


def _load_once(path: str, tags: object, options: Any, trace: Optional[Sink]) -> LoadedModel:
    watched = None if trace is None else Watch(trace, layout.directory_of(path))
    try:
        return _load_read(path, tags, options, watched)
    except (SavedModelError, tf.errors.OpError) as error:
        if watched is not None:
            watched.tell_error(error)
        raise


def _load_read(path: str, tags: object, options: Any, watched: Optional[Watch]) -> LoadedModel:
    with _parsed():
        directory = layout.read(path)
    if watched is not None:
        _tell_file(watched, directory)
    try:
        meta_graph = directory.meta_graph(_tags(tags))
    except NoMetaGraphError as error:
        reason = (
            error.reason
            if tags is None
            else f"Got an incompatible argument to `tags`: {error.reason}"
        )
        raise MetaGraphChoiceError(
            reason, file=error.file, node=error.node, clause=error.clause, rule=error.rule
        ) from None
    if watched is not None:
        chosen = layout.tags_text(layout.tags_of(meta_graph))
        watched.tell("meta graph", directory.file, "meta_graphs", f"chosen: {chosen}", "V1-04")
    check_functions(meta_graph.graph_def.library, str(directory.file))
    with tf.init_scope(), collector.paused():
        if len(directory.saved_model.meta_graphs) == 1 and meta_graph.HasField("object_graph_def"):
            from reference_impl.loading.loader import load_object_graph

            return load_object_graph(directory, meta_graph, LoadOptions.of(options), watched)
        from reference_impl.v1.load import load_meta_graph

        return load_meta_graph(directory, meta_graph, LoadOptions.of(options), watched)


def _tell_file(watched: Watch, directory: layout.Layout) -> None:
    """Tell which file was read, and which others of the directory were not."""
    graphs = len(directory.saved_model.meta_graphs)
    said = f"read in {shown(directory.directory)}, MetaGraphs: {graphs}"
    watched.tell("file", directory.file, "", said, "API-01")
    for name in directory.alternatives:
        watched.tell("file", name, "", f"not read: {directory.file.name} comes first")


@without_autograph
def save(
    obj: object,
    export_dir: Union[str, os.PathLike[str]],
    signatures: Union[Callable[..., Any], Mapping[str, Callable[..., Any]], None] = None,
    options: Union[SaveOptions, TensorFlowSaveOptions, None] = None,
) -> None:
    """Write a SavedModel.

    The functions of the object are exported as they were traced. Variables of a `tf.compat.v1`
    graph are read in the default session, which must belong to that graph. An export that exists at
    `export_dir` is replaced in one step; after an error it is unchanged.

    Args:
      obj: a trackable: a `tf.Module`, a Keras model, a `tf.train.Checkpoint`, a loaded model, …
      export_dir: the directory, or a URL that `tf.io.gfile` can write; its parents are created.
      signatures: a function with an input signature, a concrete function, or a map of these. The
        default is the signatures with which the object was loaded, else the only function that can
        be one.
      options: `reference_impl.saving.options.SaveOptions`, or `tf.saved_model.SaveOptions`.

    Raises:
      InsideFunctionError: a `tf.function` is being traced.
      NotTrackableError: the object is not trackable.
      SignatureError: a function cannot be a signature; the message says why.
      UntrackedCaptureError: functions use state that cannot be reached from the object; the message
        names all of it.
      UntracedFunctionError: functions have no trace (with ``strict``).
      MissingFileError: an asset is missing.
      SaveError: something else cannot be saved.

    RFC: API-01, API-02, API-03, API-04, API-05, ATTR-06, COMPAT-01, IMP-01
    """
    from reference_impl.saving.save import save as write

    with about_files(), written_locally(os.fsdecode(export_dir)) as path:
        write(obj, path, signatures, options)
