"""Read the directory of a SavedModel, which is untrusted.

    saved_model.pb | saved_model.pbtxt | saved_model.cpb   the MetaGraphs: binary, text, or split
                                                           into chunks
    variables/variables.index, .data-*                      the checkpoint (a tensor bundle)
    assets/, assets.extra/                                  files that the graph reads; other files
                                                            of the user
    fingerprint.pb, debug/saved_model_debug_info.pb         hashes of the parts; source locations of
                                                            nodes

`read` opens one; `reference_impl.format.container.writer` writes one.
"""

from __future__ import annotations

import contextlib
import functools
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Optional, TypeVar, Union

from google.protobuf.message import Message

from reference_impl.format import error_text, errors, limits, schema
from reference_impl.format.container import files
from reference_impl.format.names import ASSETS_COLLECTION
from reference_impl.format.names import CPB as CPB
from reference_impl.format.names import FORMATS as FORMATS
from reference_impl.format.names import PB as PB
from reference_impl.format.names import PBTXT as PBTXT

if TYPE_CHECKING:
    from reference_impl.format.bundle.reader import BundleReader

M = TypeVar("M", bound=Message)
_T = TypeVar("_T")


SCHEMA_VERSION = 1

VARIABLES = "variables"
CHECKPOINT = "variables/variables"
ASSETS, ASSETS_EXTRA = "assets", "assets.extra"
FINGERPRINT = "fingerprint.pb"
DEBUG_INFO = "debug/saved_model_debug_info.pb"
KERAS_METADATA = "keras_metadata.pb"  # written by Keras 2, not part of the format
# requests that TensorFlow Serving sends a model before serving it
WARMUP_REQUESTS = "assets.extra/tf_serving_warmup_requests"

_HUB_MODULE = "tfhub_module.pb"

# Files that readers open by name. If one of them is not a regular file, the reader fails.
FILES = (
    *FORMATS,
    _HUB_MODULE,
    f"{CHECKPOINT}.index",
    FINGERPRINT,
    DEBUG_INFO,
    KERAS_METADATA,
    WARMUP_REQUESTS,
)


class Asset(NamedTuple):
    """A file that the graph reads.

    RFC: RES-11, RES-09, RES-06
    """

    tensor: str  # name of the tensor that the loader feeds the path to
    filename: str  # relative to assets/, as the MetaGraph has it
    path: Path  # absolute, checked to be below assets/
    exists: bool  # False means that the export cannot work


class Layout:
    """A SavedModel directory whose MetaGraphs have been read.

    Its other members are read on demand.

    Args:
      root: the directory; resolves names inside it safely.
      file: the file that the MetaGraphs were read from.
      saved_model: the message, of schema version 1 (0 in a TensorFlow Hub module) and with at least
        one MetaGraph.
      alternatives: other saved_model.* files of the directory, which were not read. Readers differ
        in which file they prefer.
    """

    def __init__(
        self,
        root: files.Root,
        file: Path,
        saved_model: schema.SavedModel,
        alternatives: tuple[str, ...] = (),
    ):
        self.root, self.file, self.saved_model, self.alternatives = (
            root,
            file,
            saved_model,
            alternatives,
        )

    @property
    def directory(self) -> Path:
        return self.root.directory

    @property
    def checkpoint_prefix(self) -> Path:
        """The prefix of the checkpoint. A model without variables may have no checkpoint there.

        Raises:
          PathEscapeError: one of its files is a link that leads out of the directory.
          FileAccessError, LimitError: variables/ cannot be listed.

        RFC: RES-14
        """
        for name in self.root.names(VARIABLES):
            self.root.path(f"{VARIABLES}/{name}")
        return self.root.path(CHECKPOINT)

    @functools.cached_property
    def has_checkpoint(self) -> bool:
        return self.root.exists(f"{CHECKPOINT}.index")

    def open_checkpoint(self) -> BundleReader:
        """Open the checkpoint: the values of the variables by key.

        Raises MissingValueError if there is no checkpoint, and the errors of `checkpoint_prefix`
        and of `BundleReader`.
        """
        from reference_impl.format.bundle.reader import BundleReader  # many callers need no values

        if not self.has_checkpoint:
            raise self.no_checkpoint()
        return BundleReader(self.checkpoint_prefix)

    def no_checkpoint(self) -> errors.MissingValueError:
        """Return the error for a model with variables and without a checkpoint that can be read."""
        if self.root.exists(CHECKPOINT):
            reason = (
                "is not read: it is a checkpoint in format V1, of one file without an index. A"
                " Saver of TensorFlow restores it and saves it as V2"
            )
            return errors.MissingValueError(reason, file=self.directory / CHECKPOINT)
        reason = (
            "no such file: it holds the values of the variables; put variables/ back beside"
            " saved_model.pb"
        )
        return errors.MissingValueError(reason, file=self.directory / f"{CHECKPOINT}.index")

    @functools.cached_property
    def fingerprint(self) -> Optional[schema.FingerprintDef]:
        """fingerprint.pb, or None. Raises the errors of `schema.parse` and `files.read`."""
        with errors.under_rule("SM-PRINT-4"):
            return self._message(schema.FingerprintDef, FINGERPRINT, "FINGERPRINT_BYTES")

    @functools.cached_property
    def keras_metadata(self) -> dict[int, schema.KerasObject]:
        """Node number -> KerasObject of keras_metadata.pb; empty without the file.

        Raises the errors of `fingerprint`.
        """
        found = self._message(schema.KerasMetadata, KERAS_METADATA)
        return {} if found is None else {item.node_id: item for item in found.nodes}

    @functools.cached_property
    def debug_info(self) -> Optional[schema.GraphDebugInfo]:
        """debug/saved_model_debug_info.pb, or None. Raises the errors of `fingerprint`."""
        return self._message(schema.GraphDebugInfo, DEBUG_INFO)

    def _message(self, cls: type[M], name: str, limit: str = "SAVED_MODEL_BYTES") -> Optional[M]:
        if not self.root.exists(name):
            return None
        path = self.root.path(name)
        return schema.parse(cls, files.read(path, limit), path)

    def special_files(self) -> dict[str, str]:
        """Return paths that are not regular files: name -> "a named pipe", ..., or "a directory"
        where readers open a file.

        Raises FileAccessError, LimitError: the directory cannot be listed.
        """
        found = {
            name: what for name in self.names if (what := files.special_kind(self.directory / name))
        }
        return {
            **found,
            **{name: "a directory" for name in FILES if (self.directory / name).is_dir()},
        }

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """Every file below the directory, sorted, relative. Raises FileAccessError, LimitError."""
        return tuple(self.root.names())

    @property
    def extra_assets(self) -> tuple[str, ...]:
        """Files below assets.extra/, relative to it."""
        return tuple(self.root.names(ASSETS_EXTRA))

    @property
    def tag_sets(self) -> tuple[frozenset[str], ...]:
        """The tags of each MetaGraph."""
        return tuple(frozenset(graph.meta_info_def.tags) for graph in self.saved_model.meta_graphs)

    def meta_graph(self, tags: Union[str, Collection[str], None] = None) -> schema.MetaGraphDef:
        """Return the MetaGraph with exactly these tags.

        Args:
          tags: one or more tags, in any order; None for the only MetaGraph.

        Raises:
          NoMetaGraphError: no MetaGraph has these tags, or `tags` is None and there are several
            MetaGraphs.
          DuplicateKeyError: several MetaGraphs have these tags.

        RFC: V1-04, V1-05, V1-07
        """
        graphs = list(self.saved_model.meta_graphs)
        there = list(map(tags_text, self.tag_sets))
        available = "; ".join(there)
        if tags is None:
            if len(graphs) == 1:
                return graphs[0]
            reason = f"{len(graphs)} MetaGraphs: tags must choose one of: {available}"
            raise errors.NoMetaGraphError(reason, file=self.file, clause="V1-04", rule="SM-META-4")
        wanted = frozenset([tags] if isinstance(tags, str) else tags)
        matching = [graph for graph, found in zip(graphs, self.tag_sets) if found == wanted]
        asked = tags_text(wanted)
        if not matching:
            reason = (
                f"no MetaGraph has exactly the tags {asked}; there are:"
                f" {available}.{error_text.like(asked, there)}"
            )
            raise errors.NoMetaGraphError(reason, file=self.file, rule="SM-META-1")
        if len(matching) > 1:
            reason = f"{len(matching)} MetaGraphs have the tags {asked}"
            raise errors.DuplicateKeyError(reason, file=self.file, clause="V1-05", rule="SM-META-3")
        return matching[0]

    def asset_path(self, filename: str, *, node: Optional[str] = None) -> Path:
        """Return the absolute path of an asset by its name in the MetaGraph.

        Raises PathEscapeError.
        """
        reason = files.refuse_name(filename)
        if reason:
            raise errors.PathEscapeError(
                f"asset {filename!r} {reason}", file=self.file, node=node, rule="SM-DIR-4"
            )
        return self.root.path(f"{ASSETS}/{filename}", node=node)

    def assets(self, meta_graph: schema.MetaGraphDef) -> list[Asset]:
        """Return the assets of a MetaGraph, in the order in which object graphs number them.

        Raises:
          PathEscapeError: a file name leads out of assets/.
          MalformedError: a collection entry is not an AssetFileDef.

        RFC: RES-14
        """
        found = []
        for index, definition in enumerate(self.asset_definitions(meta_graph)):
            path = self.asset_path(definition.filename, node=f"asset_file_def[{index}]")
            name = f"{ASSETS}/{definition.filename}"
            found.append(
                Asset(
                    definition.tensor_info.name, definition.filename, path, self.root.exists(name)
                )
            )
        return found

    def asset_definitions(self, meta_graph: schema.MetaGraphDef) -> list[schema.AssetFileDef]:
        """Return the files of a MetaGraph; see the module's function of this name."""
        return asset_definitions(meta_graph, self.file)


def tags_of(meta_graph: schema.MetaGraphDef) -> tuple[str, ...]:
    """Return the tags of a MetaGraph, sorted and each once, because loaders take them as a set."""
    return tuple(sorted(set(meta_graph.meta_info_def.tags)))


def tags_text(tags: Iterable[str]) -> str:
    """Return tags for a message: ``gpu, serve``, or ``(no tags)``."""
    return ", ".join(sorted(tags)) or "(no tags)"


def asset_definitions(
    meta_graph: schema.MetaGraphDef, file: files.AnyPath
) -> list[schema.AssetFileDef]:
    """Return the files of a MetaGraph: from the field, or from the collection in which the first
    releases stored them.

    Raises the errors of `schema.parse`, which name ``file``.

    RFC: V1-12
    """
    # SM-META-16
    if meta_graph.asset_file_def or ASSETS_COLLECTION not in meta_graph.collection_def:
        return list(meta_graph.asset_file_def)
    node = f"collection_def[{ASSETS_COLLECTION!r}]"
    values = meta_graph.collection_def[ASSETS_COLLECTION].any_list.value
    return [schema.parse(schema.AssetFileDef, value.value, file, node) for value in values]


_NO_FILE = (  # wording that users of the shipped loader know
    "SavedModel file does not exist at this path:"
)


def read(path: files.AnyPath, *, follow_links: bool = False) -> Layout:
    """Open a SavedModel.

    Args:
      path: the directory, or one of its saved_model.* files (any name with such a suffix is
        accepted).
      follow_links: accept symbolic links that lead out of the directory.

    Raises:
      NotASavedModelError, MissingFileError, FileAccessError, PathEscapeError: there is no readable
        file. MalformedError, TruncatedError, DuplicateKeyError, LimitError, SplitFileError,
        ChecksumError, UnsupportedError: see `schema.parse`, `split.read`.
      SchemaVersionError, NoMetaGraphError: the file is readable, but a loader cannot use it.
    """
    given = files.Root(path, follow_links=follow_links).directory
    if given.is_dir():
        root = files.Root(given, follow_links=follow_links)
        # SM-DIR-1
        present = [name for name in FORMATS if root.exists(name)]
        if not present:
            raise errors.NotASavedModelError(
                f"{_NO_FILE} no {', '.join(FORMATS[:-1])} or {CPB} in this directory", file=given
            )
        name, alternatives = present[0], tuple(present[1:])
    elif given.exists():
        root, name, alternatives = (
            files.Root(given.parent, follow_links=follow_links),
            given.name,
            (),
        )
    else:
        raise errors.MissingFileError(f"{_NO_FILE} no such file or directory", file=given)
    file = root.path(name)
    saved_model = read_message(file)
    check(saved_model, file)
    return Layout(root, file, saved_model, alternatives)


def directory_of(path: files.AnyPath) -> Path:
    """Return the directory of a SavedModel, given this directory or a file in it."""
    return Path(path) if Path(path).is_dir() else Path(path).parent


_TRIES = 8
_PAUSE = 0.01  # seconds before the second try, twice as many before each further one


def of_one_export(
    path: files.AnyPath,
    read: Callable[[], _T],
    may_repeat: Callable[[], bool] = lambda: True,
    may_write: bool = False,
) -> _T:
    """Return what `read` makes of the files of a SavedModel, all of them of one export.

    If another export takes the place of the SavedModel meanwhile, `read` is called again, a few
    times.

    Args:
      path: its directory, or a file in it.
      read: reads the files. It gets no arguments.
      may_repeat: tells whether `read` left nothing behind, so that it may be called again.
      may_write: `read` runs ops that may write on the files of the model itself. Then only another
        directory is a replacement.

    Raises:
      FileAccessError: the SavedModel was replaced each time, or once if `read` may not be repeated.
        The files that were read may come from either export.
      Exception: the error of `read`.

    RFC: API-04
    """
    directory = directory_of(path)
    met_one = False
    for left in reversed(range(_TRIES)):
        with _watched(directory, may_write) as is_same:
            error: Optional[Exception] = None
            try:
                made = read()
            except Exception as raised:  # also of an op that reads a file which is gone
                error = raised
            same = is_same()
        met_one = met_one or not same
        try:
            if same and error is None:
                return made
            # After a replacement, an error may come from the moment at which there is no export, or
            # half of one.
            if error is not None and same and (not met_one or not left):
                raise error
            if not left or not may_repeat():
                reason = "was replaced by another export while it was read; read it again"
                raise errors.FileAccessError(reason, file=directory) from error
            import logging  # a command that meets no replacement does without it

            logging.getLogger(__name__).warning(
                "%s was replaced by another export while it was read, and is read again (%s)",
                directory,
                error or "no error",
            )
        finally:
            error = None  # it refers to this frame
        time.sleep(_PAUSE * 2 ** (_TRIES - 1 - left))
    raise AssertionError("the last try returns or raises")


@contextlib.contextmanager
def _watched(directory: Path, may_write: bool) -> Iterator[Callable[[], bool]]:
    """Yield a function that tells whether the export in a directory is still the same.

    An export takes the place of another by a rename of the directory or, as TensorFlow writes it,
    file by file.
    """
    handle = None
    # Kept open, so that the system does not reuse its inode number for a later export.
    with contextlib.suppress(
        OSError, ValueError
    ):  # the system cannot open directories, or the directory is missing
        handle = os.open(directory, os.O_RDONLY)
    written = _when_written(directory)
    try:
        yield (
            lambda: (
                (handle is None or files.is_at(handle, directory))
                and (may_write or _when_written(directory) == written)
            )
        )
    finally:
        if handle is not None:
            os.close(handle)


def _when_written(directory: Path) -> list[Optional[tuple[int, int, int]]]:
    """Return what changes when the files that every export has are written again."""
    found: list[Optional[tuple[int, int, int]]] = []
    for name in (*FORMATS, f"{CHECKPOINT}.index"):
        try:
            status = (directory / name).stat()
        except (OSError, ValueError):  # no such file
            found.append(None)
        else:
            found.append((status.st_ino, status.st_size, status.st_mtime_ns))
    return found


def read_message(file: Path) -> schema.SavedModel:
    """Return the SavedModel message in a file, by its suffix, unchecked."""
    if file.suffix == ".cpb":
        from reference_impl.format.container import (
            split,
        )  # imports the record reader and checksums, which few models need

        return split.read(schema.SavedModel, file)
    if file.suffix == ".pbtxt":
        return schema.parse_text(schema.SavedModel, files.read(file, "TEXT_BYTES"), file)
    data = files.read(file, "SAVED_MODEL_BYTES")
    if data and data[:1] not in _FIRST_BYTES:
        raise errors.MalformedError(
            f"this is not a SavedModel: it begins with {_beginning(data)}", file=file
        )
    return schema.parse(schema.SavedModel, data, file)


# The tags of the two fields of a SavedModel. What begins otherwise is another file (text, HTML,
# HDF5), and what a reader of messages would say of its bytes misleads.
_FIRST_BYTES = (b"\x08", b"\x12")
_LFS = b"version https://git-lfs"


def _beginning(data: bytes) -> str:
    if data.startswith(_LFS):
        return "a pointer of Git LFS; fetch the file itself (git lfs pull)"
    return repr(data[:24])


def check(saved_model: schema.SavedModel, file: files.AnyPath) -> None:
    """Check the properties that readers rely on.

    Raises SchemaVersionError, NoMetaGraphError, LimitError.
    """
    version = saved_model.saved_model_schema_version
    if version not in (
        0,
        SCHEMA_VERSION,
    ):  # modules of TensorFlow Hub 1 and models made by hand have none
        raise errors.SchemaVersionError(
            f"saved_model_schema_version is {version}, not {SCHEMA_VERSION}",
            file=file,
            rule="SM-DIR-7",
        )
    if not saved_model.meta_graphs:
        empty = "" if saved_model.ByteSize() else ": the file is empty"
        reason = f"the SavedModel holds no MetaGraph{empty}"
        raise errors.NoMetaGraphError(reason, file=file, rule="SM-DIR-9")
    for graph in saved_model.meta_graphs:
        count = len(graph.graph_def.library.function)
        if count > limits.FUNCTIONS:
            raise errors.LimitError(
                f"a library of {count} functions, more than {limits.FUNCTIONS}",
                file=file,
                limit="FUNCTIONS",
            )
    _check_counts(saved_model.meta_graphs, file)


def _check_counts(graphs: Sequence[schema.MetaGraphDef], file: files.AnyPath) -> None:
    """Check how many entries a file has whose number only its size limits. Raises LimitError."""
    counts = {
        "META_GRAPHS": (len(graphs), "MetaGraphs"),
        "SIGNATURES": (sum(len(graph.signature_def) for graph in graphs), "signatures"),
        "SIGNATURE_ARGUMENTS": (
            sum(map(_count_arguments, graphs)),
            "inputs and outputs of signatures",
        ),
        "ASSETS": (sum(map(_count_assets, graphs)), "assets"),
    }
    for name, (count, what) in counts.items():
        if count > getattr(limits, name):
            raise errors.LimitError(
                f"{count} {what}, more than {getattr(limits, name)}", file=file, limit=name
            )


def _count_arguments(graph: schema.MetaGraphDef) -> int:
    signatures = graph.signature_def
    return sum(len(signatures[key].inputs) + len(signatures[key].outputs) for key in signatures)


def _count_assets(graph: schema.MetaGraphDef) -> int:
    """Return the number of assets, which old models list in a collection."""
    collected = (
        graph.collection_def[ASSETS_COLLECTION].any_list.value
        if ASSETS_COLLECTION in graph.collection_def
        else ()
    )
    return max(len(graph.asset_file_def), len(collected))
